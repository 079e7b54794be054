"""A training that stops and goes on in another process, some beside each other in threads, and one that is long."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import smolgrad
from smolgrad import nn, optim

# --- in another process -----------------------------------------------------------------------------------------------

# A program of its own, so that nothing but the file goes from one process to the next.
TRAINING = """
import hashlib, itertools, sys
import smolgrad
from smolgrad import nn, optim
from smolgrad.optim import lr_scheduler as lrs

OPTIMIZERS = {
    "SGD": lambda ps: optim.SGD(ps, lr=0.1),
    "SGD with momentum": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1),
    "nesterov": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda ps: optim.Adam(ps, lr=0.1),
    "amsgrad": lambda ps: optim.Adam(ps, lr=0.1, amsgrad=True, maximize=True),
    "AdamW": lambda ps: optim.AdamW(ps, lr=0.1, betas=(0.5, 0.9)),
}
SCHEDULES = {
    "LambdaLR": lambda o: lrs.LambdaLR(o, lambda n: 0.9**n),
    "StepLR": lambda o: lrs.StepLR(o, 3),
    "LinearLR": lambda o: lrs.LinearLR(o, 0.1, total_iters=6),
    "CosineAnnealingLR": lambda o: lrs.CosineAnnealingLR(o, 5),
    "SequentialLR": lambda o: lrs.SequentialLR(o, [lrs.LinearLR(o, 0.1, total_iters=4), lrs.StepLR(o, 2)], [5]),
}

def build(optimizer, schedule):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.3), nn.Linear(4, 2))
    step = OPTIMIZERS[optimizer](model.parameters())
    return {"model": model, "step": step, "schedule": SCHEDULES[schedule](step)}

def train(parts, steps):
    for _ in range(steps):
        loss = (parts["model"](smolgrad.randn(6, 3)) ** 2).sum()
        parts["step"].zero_grad()
        loss.backward()
        parts["step"].step()
        parts["schedule"].step()

def digest(parts):
    arrays = [x.data.tobytes() for x in parts["model"].state_dict().values()]
    return hashlib.sha256(b"".join(arrays) + repr(parts["schedule"].get_last_lr()).encode()).hexdigest()

folder, action = sys.argv[1:]
for optimizer, schedule in itertools.product(OPTIMIZERS, SCHEDULES):
    path = f"{folder}/{optimizer} {schedule}.npz"
    smolgrad.manual_seed(7 if action == "stop" else 8)
    parts = build(optimizer, schedule)
    if action == "stop":
        train(parts, 4)
        smolgrad.save(path, {"random": smolgrad.get_rng_state(), **{k: p.state_dict() for k, p in parts.items()}})
    else:
        state = smolgrad.load(path)
        smolgrad.set_rng_state(state["random"])
        for name, part in parts.items():
            part.load_state_dict(state[name])
    train(parts, 5)
    print(optimizer, schedule, digest(parts))
"""


def run(folder, action):
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, str(folder), action], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_resumed_in_a_new_process_is_uninterrupted_to_the_bit(tmp_path):
    # "stop" saves in the middle and trains on; "resume" begins with what was saved.
    uninterrupted = run(tmp_path, "stop")
    assert run(tmp_path, "resume") == uninterrupted
    assert len({line.rpartition(" ")[2] for line in uninterrupted}) == len(uninterrupted) == 30  # no two alike


# --- in threads -------------------------------------------------------------------------------------------------------


def perceptron(seed, sizes=(4, 16, 3)):
    smolgrad.manual_seed(seed)
    return nn.Sequential(nn.Linear(*sizes[:2]), nn.Tanh(), nn.Linear(*sizes[1:])).double()


def batch(rng, n=16):
    return smolgrad.tensor(rng.normal(size=(n, 4))), smolgrad.tensor(rng.integers(3, size=n))


def trained(model, seed, steps=150):
    rng, step = np.random.default_rng(seed), optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        x, y = batch(rng)
        loss = smolgrad.functional.cross_entropy(model(x), y)
        step.zero_grad()
        loss.backward()
        step.step()
    return [p.data.tobytes() for p in model.parameters()]


def watched(model, seed, steps=150):
    """The losses of a model under no_grad, which then trains."""
    rng, losses = np.random.default_rng(seed), []
    with smolgrad.no_grad():
        for _ in range(steps):
            x, y = batch(rng)
            losses.append(smolgrad.functional.cross_entropy(model(x), y))
            assert not losses[-1].requires_grad
    return [loss.item() for loss in losses], trained(model, seed, steps)


def test_threads_train_as_they_do_alone():
    jobs = [(trained, 0), (watched, 1), (trained, 2)]
    alone = [job(perceptron(seed), seed) for job, seed in jobs]
    models = [perceptron(seed) for _, seed in jobs]
    start, found = threading.Barrier(len(jobs)), {}

    def work(i, job, seed):
        start.wait()
        found[i] = job(models[i], seed)

    threads = [threading.Thread(target=work, args=(i, *job)) for i, job in enumerate(jobs)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # they change places in the middle of everything
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert [found.get(i) for i in range(len(jobs))] == alone


# --- for long ---------------------------------------------------------------------------------------------------------

# What is measured is asked for once after a hundred steps and once at the end. The collector is off in between; asked
# at those two points, it must find nothing, and empties CPython's lists of free tuples, which fill a little at a time.
LONG = """
import gc, resource, sys, tracemalloc
import numpy as np
import smolgrad
from smolgrad import nn, optim

gc.disable()
rng = smolgrad.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
step = optim.AdamW(model.parameters(), lr=1e-3)
x, y = rng.random((64, 64), dtype="float32"), rng.integers(10, size=64)

def train(steps):
    for _ in range(steps):
        loss = smolgrad.functional.cross_entropy(model(smolgrad.tensor(x)), smolgrad.tensor(y))
        step.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        step.step()

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

def traced():
    unreachable.append(gc.collect())
    return tracemalloc.get_traced_memory()[0]

steps, measure, unreachable = int(sys.argv[1]), globals()[sys.argv[2]], []
gc.collect()  # of what was imported
if measure is traced:
    tracemalloc.start()
train(100)
before = measure()
train(steps - 100)
print(measure() - before, sum(unreachable))
"""


# Of 900 steps and more, not an object a step: the smallest has 16 bytes. Some kilobytes more are caches of NumPy's.
@pytest.mark.everything
@pytest.mark.parametrize(("measure", "most"), [("traced", 2**14), ("resident", 2**20)])
def test_memory_is_flat_with_the_collector_off(measure, most, everything):
    steps = 10_000 if everything else 1_000
    done = subprocess.run(
        [sys.executable, "-c", LONG, str(steps), measure], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    more, unreachable = map(int, done.stdout.split())
    print(f"{steps} steps: {more} bytes more are {measure} than after 100 steps, {unreachable} objects in cycles")
    assert more < most
    assert unreachable == 0
