"""Saving and loading: what comes back, what a crash leaves, and what files made by others can do, which is nothing."""

import contextlib
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import smolgrad
from smolgrad import nn, optim
from smolgrad.dtypes import SUPPORTED


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    # A file is forced to the disk for the sake of a power failure, which no test here has, and that takes long.
    with patch.object(os, "fsync"):
        yield


# --- what comes back --------------------------------------------------------------------------------------------------

NUMBERS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ARRAYS = npst.arrays(st.sampled_from(SUPPORTED), npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
LAYOUTS = st.sampled_from([np.copy, np.asfortranarray, np.transpose, lambda a: np.broadcast_to(a, (2, *a.shape))])
LEAVES = NUMBERS | st.builds(lambda f, a: f(a), LAYOUTS, ARRAYS) | st.builds(smolgrad.from_numpy, ARRAYS)
STATES = st.recursive(
    LEAVES,
    lambda below: (
        st.lists(below, max_size=3)
        | st.lists(below, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), below, max_size=3)
    ),
    max_leaves=8,
)


def same(a, b):
    """Whether two states are equal in kind and in every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and [*map(type, a)] == [*map(type, b)] and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (np.ndarray, smolgrad.Tensor)):
        a, b = (np.asarray(x) for x in (a, b))
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return a == b or (a != a and b != b)


@given(state=STATES)
def test_what_is_loaded_is_what_was_saved(tmp_path_factory, state):
    path = tmp_path_factory.getbasetemp() / "state.npz"
    smolgrad.save(path, state)
    assert same(smolgrad.load(path), state)


def training(seed):
    smolgrad.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    step = optim.Adam(model.parameters(), lr=0.1, amsgrad=True)
    schedule = optim.lr_scheduler.StepLR(step, 2)
    return model, step, schedule


def steps(model, step, schedule, count):
    losses = []
    for _ in range(count):
        loss = (model(smolgrad.randn(5, 3)) ** 2).sum()
        step.zero_grad()
        loss.backward()
        step.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def test_a_checkpoint_holds_all_that_a_training_goes_on_from(tmp_path):
    model, step, schedule = training(0)
    steps(model, step, schedule, 3)
    parts = {"model": model, "step": step, "schedule": schedule}
    smolgrad.save(tmp_path / "checkpoint.npz", {
        "random": smolgrad.get_rng_state(), **{name: part.state_dict() for name, part in parts.items()}
    })  # fmt: skip
    wanted = steps(model, step, schedule, 5)
    again = training(1)
    state = smolgrad.load(tmp_path / "checkpoint.npz")
    smolgrad.set_rng_state(state["random"])
    for name, part in zip(parts, again, strict=True):
        part.load_state_dict(state[name])
    assert steps(*again, 5) == wanted
    assert all((p.data == q.data).all() for p, q in zip(model.parameters(), again[0].parameters(), strict=True))


def test_numpy_can_read_the_arrays(tmp_path):
    smolgrad.save(tmp_path / "s.npz", {"a": np.arange(3), "b": [1.5]})
    with np.load(tmp_path / "s.npz", allow_pickle=False) as file:
        assert (file["0"] == [0, 1, 2]).all()
        assert json.loads(file["structure"].tobytes()) == {"dict": [["a", {"array": 0}], ["b", [1.5]]]}


class Custom:
    pass


def in_itself():
    state = [1]
    state.append({"again": state})
    return state


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"a": [0, {1, 2}]}, TypeError, r"state\['a'\]\[1\] is of a kind that is not saved: set"),
        ([Custom()], TypeError, r"state\[0\] is of a kind that is not saved: Custom"),
        (np.array([None]), TypeError, "array of dtype object"),
        (np.array(["a"]), TypeError, "array of dtype <U1"),
        (np.ones(1, complex), TypeError, "array of dtype complex128"),
        ({(1, 2): 3}, TypeError, r"state has \(1, 2\)"),
        ({True: 3}, TypeError, "state has True"),
        (in_itself(), ValueError, "does it hold itself"),
        (1j, TypeError, "complex"),
    ],
)  # fmt: skip
def test_what_is_not_saved_leaves_the_old_file(tmp_path, state, error, message):
    smolgrad.save(tmp_path / "s.npz", "old")
    with pytest.raises(error, match=message):
        smolgrad.save(tmp_path / "s.npz", state)
    assert smolgrad.load(tmp_path / "s.npz") == "old"
    assert os.listdir(tmp_path) == ["s.npz"]


def test_a_save_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "s.npz"
    smolgrad.save(path, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        smolgrad.save(path, "new")
    monkeypatch.undo()
    assert smolgrad.load(path) == "old"
    assert os.listdir(tmp_path) == ["s.npz"]


def test_the_content_is_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    # Otherwise a power failure may leave the new name with the content of neither file.
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (calls.append(name), real(*args)))
    smolgrad.save(tmp_path / "s.npz", 1)
    assert calls == ["fsync", "replace", "fsync"]


def test_a_link_is_followed_and_stays_one(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "latest.npz").symlink_to("deep/s.npz")
    smolgrad.save(tmp_path / "latest.npz", 1)
    smolgrad.save(tmp_path / "latest.npz", 2)
    assert (tmp_path / "latest.npz").is_symlink()
    assert smolgrad.load(tmp_path / "deep" / "s.npz") == 2


# --- what a crash leaves ----------------------------------------------------------------------------------------------

# Without PyTorch and pytest, a process forks in a millisecond. The child saves one state after the other until it is
# killed; each state is as good as its checksum: an array of one number, of a length of its own.
KILLED = """
import os, random, signal, sys, time
import numpy as np, smolgrad

os.fsync = lambda descriptor: None  # what a killed process wrote is the system's: only a power failure loses it
path, kills, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
moments = random.Random(seed)

def state(n):
    return {"n": n, "arrays": [np.full(1000 + 7 * (n % 100), n), smolgrad.full(20_000, float(n))]}

def save(n):
    smolgrad.save(path, state(n))

smolgrad.save(path, state(0))
start = time.perf_counter()
for _ in range(20):
    save(0)
usual = (time.perf_counter() - start) / 20
last, inside = 0, 0
begun, begins = os.pipe()
for _ in range(kills):
    child = os.fork()
    if not child:
        os.write(begins, b".")  # the moments count from here, however long a busy machine takes to come to it
        for n in range(last + 1, last + 10_000):
            save(n)
        os._exit(0)
    os.read(begun, 1)
    time.sleep(moments.uniform(0, 8 * usual))  # the first saves of a new process are slower than usual
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = smolgrad.load(path)
    n = found["n"]
    assert n >= last, (n, last)
    wanted = state(n)
    assert all((np.asarray(a) == np.asarray(b)).all() for a, b in zip(found["arrays"], wanted["arrays"], strict=True))
    drafts = [name for name in os.listdir(os.path.dirname(path)) if name.endswith(".tmp")]
    inside += bool(drafts)
    for name in drafts:
        os.unlink(os.path.join(os.path.dirname(path), name))
    last = n
print(last, inside)
"""


@pytest.mark.everything
def test_saves_killed_at_drawn_moments_leave_the_old_file_or_the_new(tmp_path, request):
    kills = 500 if "everything" in request.config.option.markexpr else 100
    seed = str(request.config.option.hypothesis_seed)
    script = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "s.npz"), str(kills), seed],
        capture_output=True,
        text=True,
        check=False,
    )
    assert script.returncode == 0, script.stderr
    saved, inside = map(int, script.stdout.split())
    print(f"{saved} saves went through, {inside} of {kills} kills came in the middle of one")
    assert saved > kills / 10
    assert inside > kills / 10


# --- files of others --------------------------------------------------------------------------------------------------


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def text(structure):
    return npy(np.frombuffer(json.dumps(structure).encode(), np.uint8))


def archive(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, content in members:
            made.writestr(name, content)
    return file.getvalue()


def good(tmp_path):
    smolgrad.save(tmp_path / "good.npz", {"a": np.arange(12.0), "b": [smolgrad.ones(2, 2), "text", 3]})
    return (tmp_path / "good.npz").read_bytes()


class Shell:
    """An object whose unpickling runs a command of its maker's choice."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


def oversized():
    """A few bytes whose header says a terabyte."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    return file.getvalue() + b"\0" * 16


ONE = text({"array": 0})
HOSTILE = {
    "nothing": b"",
    "text": b"not a zip at all",
    "a pickle": pickle.dumps(Shell()),
    "an array of objects": archive([("structure.npy", ONE), ("0.npy", npy(np.array([Shell()]), allow_pickle=True))]),
    "a pickle for a structure": archive([("structure.npy", pickle.dumps(Shell()))]),
    "a pickle for an array": archive([("structure.npy", ONE), ("0.npy", pickle.dumps(Shell()))]),
    "someone else's npz": archive([("weights.npy", npy(np.ones(2)))]),
    "a program inside": archive([("structure.npy", text(1)), ("run.py", b"import os")]),
    "a way out of the folder": archive([("structure.npy", text(1)), ("../0.npy", npy(np.ones(2)))]),
    "a compressed member": archive([("structure.npy", text(["x" * 10**6]))], zipfile.ZIP_DEFLATED),
    "a terabyte in a header": archive([("structure.npy", ONE), ("0.npy", oversized())]),
    "a negative size": archive([("structure.npy", ONE), ("0.npy", npy(np.ones(2)).replace(b"(2,)", b"(-2,"))]),
    "an array that goes on": archive([("structure.npy", ONE), ("0.npy", npy(np.ones(2)) + b"more")]),
    "an array that ends early": archive([("structure.npy", ONE), ("0.npy", npy(np.ones(2))[:-3])]),
    "a long header": archive([("structure.npy", ONE), ("0.npy", b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535)]),
    "complex numbers": archive([("structure.npy", ONE), ("0.npy", npy(np.ones(2, complex)))]),
    "the other byte order": archive([("structure.npy", ONE), ("0.npy", npy(np.ones(2, ">f8")))]),
    "another version": archive([("structure.npy", ONE), ("0.npy", npy(np.ones(2), version=(2, 0)))]),
    "a version before the first": archive(
        [("structure.npy", ONE), ("0.npy", npy(np.ones(2)).replace(b"NUMPY\x01", b"NUMPY\x00", 1))]
    ),
    "no structure": archive([("0.npy", npy(np.ones(2)))]),
    "a structure of floats": archive([("structure.npy", npy(np.ones(2)))]),
    "no json": archive([("structure.npy", npy(np.frombuffer(b"{", np.uint8)))]),
    "an array too few": archive([("structure.npy", text([{"array": 0}, {"array": 1}])), ("0.npy", npy(np.ones(2)))]),
    "an array too many": archive([("structure.npy", text(1)), ("0.npy", npy(np.ones(2)))]),
    "one array twice": archive([("structure.npy", text([{"array": 0}, {"array": 0}])), ("0.npy", npy(np.ones(2)))]),
    "an unknown kind": archive([("structure.npy", text({"function": "os.system"}))]),
    "two kinds": archive([("structure.npy", text({"tuple": [], "dict": []}))]),
    "a tuple of a number": archive([("structure.npy", text({"tuple": 3}))]),
    "a dict of a list": archive([("structure.npy", text({"dict": [1, 2]}))]),
    "a key of a list": archive([("structure.npy", text({"dict": [[[1], 2]]}))]),
    "a key twice": archive([("structure.npy", text({"dict": [["a", 1], ["a", 2]]}))]),
    "a number of no array": archive([("structure.npy", text({"array": "0"})), ("0.npy", npy(np.ones(2)))]),
    "too deep for us": archive([("structure.npy", text(json.loads("[" * 200 + "]" * 200)))]),
    "too deep for json": archive([("structure.npy", npy(np.frombuffer(b"[" * 10**5 + b"]" * 10**5, np.uint8)))]),
    "a number too long": archive([("structure.npy", npy(np.frombuffer(b"1" * 5000, np.uint8)))]),
}  # fmt: skip


@pytest.mark.parametrize("row", HOSTILE)
def test_files_of_others_are_refused_and_run_nothing(tmp_path, monkeypatch, row):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.npz").write_bytes(HOSTILE[row])
    with pytest.raises(ValueError, match=r"load\(\): .*s\.npz is no file that save\(\) wrote"):
        smolgrad.load(tmp_path / "s.npz")
    assert os.listdir(tmp_path) == ["s.npz"]


def test_a_member_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = archive([("structure.npy", text(1)), ("structure.npy", text(2))])
    (tmp_path / "s.npz").write_bytes(content)
    with pytest.raises(ValueError, match="a member twice"):
        smolgrad.load(tmp_path / "s.npz")


def test_every_truncation_is_refused(tmp_path):
    content = good(tmp_path)
    for length in range(0, len(content), 11):
        (tmp_path / "s.npz").write_bytes(content[:length])
        with pytest.raises(ValueError, match="no file that save"):
            smolgrad.load(tmp_path / "s.npz")


def test_a_changed_byte_is_refused_or_changes_nothing(tmp_path):
    content = good(tmp_path)
    wanted = smolgrad.load(tmp_path / "good.npz")
    refused = 0
    for at in range(0, len(content), 5):
        spoiled = bytearray(content)
        spoiled[at] ^= 1 << at % 8
        (tmp_path / "s.npz").write_bytes(spoiled)
        try:
            assert same(smolgrad.load(tmp_path / "s.npz"), wanted)  # a date, say
        except ValueError:
            refused += 1
    assert refused > len(content) / 5 / 2


@given(
    member=st.sampled_from(["structure.npy", "0.npy"]),
    changes=st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=3), st.integers(0, 3)), min_size=1, max_size=3),
)
def test_a_member_changed_by_someone_who_mends_the_checksum(tmp_path_factory, member, changes):
    path = tmp_path_factory.getbasetemp() / "mended.npz"
    members = {"structure.npy": text({"dict": [["a", {"array": 0}], [1, {"tuple": [2.5]}]]}), "0.npy": npy(np.ones(2))}
    for at, new, length in changes:
        content = members[member]
        members[member] = content[:at] + new + content[at + length :]
    path.write_bytes(archive(members.items()))
    with contextlib.suppress(ValueError):  # any other exception is one that load() does not know
        smolgrad.load(path)


def test_a_file_that_is_not_there_is_not_called_damaged(tmp_path):
    with pytest.raises(FileNotFoundError):
        smolgrad.load(tmp_path / "s.npz")
    with pytest.raises(IsADirectoryError):
        smolgrad.load(tmp_path)
