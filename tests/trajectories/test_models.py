"""Whole trainings of drawn models beside their PyTorch twins, in float64: the same losses, weights, states and rates.

Drawn are the model, the optimizer and its options, a schedule, clipping, groups, the size of the gradients, which of
them are missing in which step, what is frozen when, and whether weights are tied.
"""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import smolgrad
from smolgrad import nn
from spec.oracles import pytorch

ACTIVATIONS = st.sampled_from(["Tanh", "ReLU", "SiLU", "GELU", "Sigmoid"])
CLASSES = 3


@st.composite
def perceptrons(draw):
    width = draw(st.integers(3, 5))
    norm = draw(st.sampled_from([nn.LayerNorm, nn.RMSNorm, nn.BatchNorm1d]))
    return nn.Sequential(
        nn.Linear(4, width, bias=norm is not nn.BatchNorm1d),  # which would take it out again: its gradient is noise
        norm(width, eps=0.1),
        getattr(nn, draw(ACTIVATIONS))(),
        nn.Linear(width, CLASSES, bias=draw(st.booleans())),
    )


@st.composite
def character_models(draw):
    """The class of the last character, from a table that may be the output's too."""
    padding = draw(st.none() | st.integers(0, CLASSES - 1))
    return nn.Sequential(
        nn.Embedding(CLASSES, 4, padding_idx=padding),
        nn.LayerNorm(4, eps=0.1),
        nn.Flatten(),
        nn.Linear(12, 4),
        getattr(nn, draw(ACTIVATIONS))(),
        nn.Linear(4, CLASSES, bias=False),
    )


@st.composite
def convolutions(draw):
    padding = draw(st.integers(0, 1))
    return nn.Sequential(
        nn.Conv2d(1, 2, 2, padding=padding),
        getattr(nn, draw(ACTIVATIONS))(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(2 * (2 + 2 * padding) ** 2, CLASSES),
    )


def attention(nn, **dtype):
    """A block of attention over characters, in either library."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(CLASSES, 4, **dtype)
            self.attend = nn.MultiheadAttention(4, 2, batch_first=True, **dtype)
            self.norm = nn.LayerNorm(4, eps=0.1, **dtype)
            self.out = nn.Linear(12, CLASSES, **dtype)

        def forward(self, text):
            x = self.table(text)
            y, _ = self.attend(x, x, x, need_weights=False)
            return self.out(self.norm(x + y).flatten(1))

    return Block()


@st.composite
def models(draw):
    """A model, its twin, and what makes a batch for them."""
    kind = draw(st.sampled_from(["perceptron", "characters", "convolution", "attention"]))
    smolgrad.manual_seed(draw(st.integers(0, 2**32)))
    inputs = {
        "perceptron": lambda rng, n: rng.normal(size=(n, 4)),
        "convolution": lambda rng, n: rng.normal(size=(n, 1, 4, 4)),
    }.get(kind, lambda rng, n: rng.integers(CLASSES, size=(n, 3)))
    if kind == "attention":
        model, twin = attention(nn, dtype="float64"), attention(torch.nn, dtype=torch.float64)
        twin.load_state_dict(pytorch.to_pytorch(model.state_dict()))
        return model, twin, inputs
    model = draw({"perceptron": perceptrons(), "characters": character_models(), "convolution": convolutions()}[kind])
    if kind == "characters" and draw(st.booleans()):
        model[-1].weight = model[0].weight
    model.double()
    return model, pytorch.twin(model), inputs


LR = st.sampled_from([0.01, 0.1, 1e-3])
DECAY = {"weight_decay": st.sampled_from([0.0, 0.1, 0.01])}
# An eps well above rounding noise, which is what some gradients are in theory: the keys' bias of an attention, say.
ADAM = {
    "lr": LR,
    "betas": st.sampled_from([(0.9, 0.999), (0.5, 0.9), (0.0, 0.99)]),
    "eps": st.sampled_from([1e-3, 1e-2]),
    "amsgrad": st.booleans(),
}
SGD = {"lr": LR, "momentum": st.sampled_from([0.0, 0.9, 0.5]), "dampening": st.sampled_from([0.0, 0.5])}
NESTEROV = {"lr": LR, "momentum": st.sampled_from([0.9, 0.5]), "nesterov": st.just(True)}
OPTIMIZERS = st.one_of(
    st.tuples(st.just("SGD"), st.fixed_dictionaries(SGD | DECAY)),
    st.tuples(st.just("SGD"), st.fixed_dictionaries(NESTEROV | DECAY)),
    st.tuples(st.sampled_from(["Adam", "AdamW"]), st.fixed_dictionaries(ADAM | DECAY)),
)
SCHEDULES = {
    "none": None,
    "step": lambda library, step: library.StepLR(step, 2, gamma=0.5),
    "cosine": lambda library, step: library.CosineAnnealingLR(step, 5),
    "warm up, then decay": lambda library, step: library.SequentialLR(
        step, [library.LinearLR(step, 0.1, total_iters=3), library.LambdaLR(step, lambda n: 0.9**n)], [3]
    ),
}
CLIPS = {
    "norm": lambda utils, ps: utils.clip_grad_norm_(ps, 0.5),
    "value": lambda utils, ps: utils.clip_grad_value_(ps, 0.1),
}


class Training:
    """One of the two trainings, in the words that both libraries share."""

    def __init__(self, library, model, functional, optimizer, options, first=0, own=None, schedule="none"):
        """``first`` parameters are a group with options of their ``own``."""
        self.library, self.model, self.functional = library, model, functional
        self.params = list(model.parameters())
        groups = [{"params": self.params[:first], **(own or {})}, {"params": self.params[first:]}]
        extra = {} if library is smolgrad else {"foreach": False}
        self.optimizer = getattr(library.optim, optimizer)(groups, **options, **extra)
        make = SCHEDULES[schedule]
        self.schedule = make and make(library.optim.lr_scheduler, self.optimizer)

    def step(self, x, y, scale, clip, missing, frozen):
        """A step, and its loss. Parameters of the numbers ``frozen`` rest; those of ``missing`` lose their gradient."""
        for i, p in enumerate(self.params):
            p.requires_grad_(i not in frozen)
        self.optimizer.zero_grad()
        loss = self.functional.cross_entropy(self.model(self.library.tensor(x)), self.library.tensor(y))
        (loss * scale).backward()
        if clip:
            CLIPS[clip](self.library.nn.utils, self.params)
        for i in missing:
            self.params[i % len(self.params)].grad = None
        self.optimizer.step()
        if self.schedule:
            self.schedule.step()
        return loss.item()

    def state(self):
        """Weights, buffers and what the optimizer remembers, as arrays by name, and the rates."""
        found = {name: x.detach().numpy() for name, x in self.model.state_dict().items()}
        for i, p in enumerate(self.params):
            for key, value in self.optimizer.state.get(p, {}).items():
                if value is not None:
                    found[f"{key} {i}"] = np.asarray(value, "float64")
        return found | {"rates": np.array([group["lr"] for group in self.optimizer.param_groups])}


def check_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, a in ours.items():
        np.testing.assert_allclose(a, theirs[name], rtol=1e-12, atol=1e-12 * max(1e-3, np.abs(a).max()), err_msg=name)


@given(data=st.data())
def test_a_drawn_training_is_pytorchs(data):
    model, twin, inputs = data.draw(models(), label="model")
    optimizer, options = data.draw(OPTIMIZERS, label="optimizer")
    first = data.draw(st.integers(0, 2), label="parameters in the first group")
    own = data.draw(st.fixed_dictionaries({"lr": LR | st.just(0.05)}, optional=DECAY), label="its own options")
    schedule = data.draw(st.sampled_from(sorted(SCHEDULES)), label="schedule")
    clip = data.draw(st.sampled_from([None, *CLIPS]), label="clipped by")
    # Unclipped, uphill steps and a thousandfold gradient throw the weights to where rounding decides what happens; and
    # clipped by value, a thousandfold of what is noise in theory, the keys' bias again, is left as it is.
    options["maximize"] = data.draw(st.booleans() if clip else st.just(False), label="maximize")
    sizes = st.sampled_from([1.0, 1e-9, 1e-4, *([1e3] if clip == "norm" else [])])
    scales = data.draw(st.lists(sizes, min_size=1, max_size=3), label="scales of the loss, in turn")
    count = data.draw(st.integers(3, 10) | st.integers(3, 40), label="steps")
    some = partial(st.dictionaries, st.integers(0, count - 1), max_size=3)
    missing = data.draw(some(st.sets(st.integers(0, 9), max_size=3)), label="missing")
    frozen = data.draw(some(st.sets(st.integers(0, 3), max_size=2)), label="frozen")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32), label="seed"))
    pair = [
        Training(library, part, functional, optimizer, options, first, own, schedule)
        for library, part, functional in (
            (smolgrad, model, smolgrad.functional),
            (torch, twin, torch.nn.functional),
        )
    ]
    check_equal(pair[0].state(), pair[1].state())
    for i in range(count):
        x, y = inputs(rng, 4), rng.integers(CLASSES, size=4)
        scale = scales[i % len(scales)]
        ours, theirs = (t.step(x, y, scale, clip, missing.get(i, ()), frozen.get(i, ())) for t in pair)
        assert ours == pytest.approx(theirs, rel=1e-12)
    check_equal(pair[0].state(), pair[1].state())


# --- of MNIST's size --------------------------------------------------------------------------------------------------

FIXED = {"SGD": {"lr": 0.05, "momentum": 0.9}, "AdamW": {"lr": 1e-3, "weight_decay": 0.01, "eps": 1e-3}}


def differences(optimizer, activation, dtype, steps):
    """The losses of a perceptron, and the largest weight difference from its twin's, of each step."""
    rng = smolgrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 32), getattr(nn, activation)(), nn.Linear(32, 10))
    model = model.double() if dtype == "float64" else model
    ours, theirs = (
        Training(library, part, functional, optimizer, FIXED[optimizer])
        for library, part, functional in (
            (smolgrad, model, smolgrad.functional),
            (torch, pytorch.twin(model), torch.nn.functional),
        )
    )
    patterns, losses, found = rng.random((10, 784)), [], []
    for _ in range(steps):
        y = rng.integers(10, size=32)
        x = np.clip(patterns[y] + rng.normal(scale=0.5, size=(32, 784)), 0, 1).astype(dtype)
        losses.append([part.step(x, y, 1.0, None, (), ()) for part in (ours, theirs)])
        pairs = zip(ours.params, theirs.params, strict=True)
        found.append(max(np.abs(p.data - q.detach().numpy()).max() for p, q in pairs))
    assert losses[-1][0] < 0.6 * losses[0][0]  # it was a training, not a standstill
    return np.array(losses), found


@pytest.mark.everything
@pytest.mark.parametrize("optimizer", FIXED)
def test_a_perceptron_of_mnists_size_stays_within_1e_13_of_pytorchs(optimizer, everything):
    steps = 1407 if everything else 300  # 1407 are three epochs of 60,000 in batches of 128
    losses, found = differences(optimizer, "ReLU", "float64", steps)
    print(f"{optimizer}, {steps} steps: loss {losses[0, 0]:.3f} to {losses[-1, 0]:.3f}, "
          f"largest weight difference {max(found[:300]):.2g} in 300 steps, {max(found):.2g} in all")  # fmt: skip
    assert 0 < max(found) <= 1e-13


@pytest.mark.everything
@pytest.mark.parametrize("optimizer", FIXED)
def test_float32_begins_as_pytorchs_and_drifts(optimizer, everything):
    # After the first steps nothing is promised: rounding differs, and each step goes on from where the last one ended.
    losses, found = differences(optimizer, "Tanh", "float32", 1407 if everything else 100)
    drift = ", ".join(f"{found[n - 1]:.2g} after {n}" for n in (1, 3, 10, 30, 100, 300, 1407) if n <= len(found))
    print(f"{optimizer} in float32: largest weight difference {drift}")
    np.testing.assert_allclose(losses[:3, 0], losses[:3, 1], rtol=1e-6)
    assert 0 < max(found[:3]) <= 1e-6
