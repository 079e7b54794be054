"""The tensor itself: what it copies and shares, its dtype and text, its assignments, its identity and its copies."""

import copy
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import smolgrad
from tests.regressions.tensors import leaf, tensor

ROOT = Path(smolgrad.__file__).parents[1]


# --- construction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        pytest.param(1.0, "float32", (), id="float"),
        pytest.param(1, "int64", (), id="int"),
        pytest.param(True, "bool", (), id="bool"),
        pytest.param([1, 2], "int64", (2,), id="ints"),
        pytest.param([1, 2.5], "float32", (2,), id="ints and floats"),
        pytest.param([True, False], "bool", (2,), id="bools"),
        pytest.param([[1.0], [2.0]], "float32", (2, 1), id="nested floats"),
        pytest.param((1.0, 2.0), "float32", (2,), id="a tuple"),
        pytest.param([], "float32", (0,), id="nothing"),
        pytest.param([[], []], "float32", (2, 0), id="rows of nothing"),
        pytest.param(np.float64(1.0), "float64", (), id="a NumPy float"),
        pytest.param(np.float32(1.0), "float32", (), id="a NumPy float32"),
        pytest.param(np.int8(1), "int8", (), id="a NumPy int8"),
        pytest.param([np.float64(1.0)], "float64", (1,), id="a list of NumPy floats"),
        pytest.param(np.ones((2, 0)), "float64", (2, 0), id="an empty array"),
        pytest.param(np.ones(2, "float32"), "float32", (2,), id="an array"),
        pytest.param(np.ones(2, "uint8"), "uint8", (2,), id="an array of bytes"),
        pytest.param(np.ones(2, ">f8"), "float64", (2,), id="an array of the other byte order"),
        pytest.param([np.ones(2), np.zeros(2)], "float64", (2, 2), id="a list of arrays"),
        pytest.param(range(3), "int64", (3,), id="a range"),
    ],
)
def test_the_dtype_of_what_a_tensor_is_made_of(data, dtype, shape):
    for make in (smolgrad.tensor, smolgrad.Tensor):
        t = make(data)
        assert t.dtype == dtype
        assert t.dtype.isnative
        assert t.shape == shape
        assert (t.ndim, t.size) == (len(shape), int(np.prod(shape)))
        np.testing.assert_array_equal(t.data, np.array(data))
        assert type(t.data) is np.ndarray
        assert not t.requires_grad
        assert t.is_leaf
        assert t.grad is None


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_a_dtype_given_is_the_dtype_taken(dtype):
    for data in (1, 2.0, True, [1, 0], np.ones(2, "int8"), tensor([1.0, 0.0])):
        assert smolgrad.tensor(data, dtype=dtype).dtype == dtype
        assert smolgrad.tensor(data, dtype=getattr(smolgrad, dtype)).dtype == dtype


@pytest.mark.parametrize("layout", ["C", "F", "reversed", "0-stride", "read-only"])
def test_a_tensor_has_a_copy_of_its_own(layout):
    base = np.arange(6.0).reshape(2, 3)
    array = {
        "C": base,
        "F": np.asfortranarray(base),
        "reversed": base[::-1, ::-1],
        "0-stride": np.broadcast_to(base[:1], (2, 3)),
        "read-only": base.view(),
    }[layout]
    if layout == "read-only":
        array.flags.writeable = False
    values = array.copy()
    t = smolgrad.tensor(array)
    assert not np.shares_memory(t.data, base)
    assert t.data.flags.writeable
    assert t.data.flags.c_contiguous
    t.add_(1)
    np.testing.assert_array_equal(array, values)
    np.testing.assert_array_equal(t.data, values + 1)


def test_a_tensor_of_a_tensor_is_a_copy_outside_the_graph():
    x = leaf([1.0, 2.0])
    y = smolgrad.tensor(x * 2)
    assert not y.requires_grad
    assert not np.shares_memory(y.data, x.data)
    assert smolgrad.tensor(x, requires_grad=True).is_leaf


def test_as_tensor_and_from_numpy_share():
    array = np.array([1.0, 2.0])
    for make in (smolgrad.as_tensor, smolgrad.from_numpy):
        t = make(array)
        assert t.data is array
    t.add_(1)
    assert array.tolist() == [2.0, 3.0]
    array[0] = 9.0
    assert t.data.tolist() == [9.0, 3.0]
    assert smolgrad.as_tensor(t) is t
    assert not np.shares_memory(smolgrad.as_tensor(array, "float32").data, array)
    assert smolgrad.as_tensor([1.0]).dtype == np.float32


MAKERS = {
    "tensor": lambda **kw: smolgrad.tensor([1.0, 2.0], **kw),
    "zeros": lambda **kw: smolgrad.zeros(2, **kw),
    "ones": lambda **kw: smolgrad.ones((2,), **kw),
    "zeros_like": lambda **kw: smolgrad.zeros_like(smolgrad.ones(2), **kw),
    "ones_like": lambda **kw: smolgrad.ones_like(smolgrad.ones(2), **kw),
    "full": lambda **kw: smolgrad.full((2,), 3.0, **kw),
    "eye": lambda **kw: smolgrad.eye(2, **kw),
    "arange": lambda **kw: smolgrad.arange(0.0, 2.0, **kw),
    "rand": lambda **kw: smolgrad.rand(2, **kw),
    "randn": lambda **kw: smolgrad.randn(2, **kw),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_every_maker_honours_requires_grad_and_dtype(maker):
    # tinygrad issue 15242, commits aa9462c29b, 09fd80fba6: creation helpers dropped the argument.
    assert not MAKERS[maker]().requires_grad
    x = MAKERS[maker](requires_grad=True, dtype="float64")
    assert (x.requires_grad, x.is_leaf, x.dtype) == (True, True, np.float64)
    (x * 3).sum().backward()
    assert (x.grad.data == 3.0).all()
    assert x.grad.dtype == np.float64


def test_drawn_tensors_follow_the_seed():
    smolgrad.manual_seed(7)
    first = [smolgrad.rand(3).data, smolgrad.randn(3).data, smolgrad.randint(100, (3,)).data]
    smolgrad.manual_seed(7)
    again = [smolgrad.rand(3).data, smolgrad.randn(3).data, smolgrad.randint(100, (3,)).data]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(smolgrad.rand(3).data, first[0])


def test_draws_go_on_from_a_state_that_was_taken():
    smolgrad.manual_seed(7)
    smolgrad.rand(5)
    state = smolgrad.get_rng_state()
    first = [smolgrad.rand(3).data, smolgrad.functional.dropout(smolgrad.ones(9)).data]
    smolgrad.set_rng_state(state)
    again = [smolgrad.rand(3).data, smolgrad.functional.dropout(smolgrad.ones(9)).data]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_counting_and_filling():
    assert smolgrad.arange(3).data.tolist() == [0, 1, 2]
    assert smolgrad.arange(3).dtype == np.int64
    assert smolgrad.arange(1, 7, 2).data.tolist() == [1, 3, 5]
    assert smolgrad.arange(3, 0, -1).data.tolist() == [3, 2, 1]
    assert smolgrad.arange(0.0, 1.0, 0.25).dtype == np.float32
    assert smolgrad.full((2,), 7).dtype == np.int64
    assert smolgrad.full((), 7.0).shape == ()
    assert smolgrad.eye(2, 3).data.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert smolgrad.zeros().shape == ()


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: smolgrad.tensor(1.5), "tensor(1.5)"),
        (lambda: smolgrad.tensor([1, 2]), "tensor([1, 2])"),
        (lambda: smolgrad.tensor([True]), "tensor([ True])"),
        (lambda: tensor([1.0]), "tensor([1.], dtype=float64)"),
        (lambda: tensor([1], "int8"), "tensor([1], dtype=int8)"),
        (lambda: smolgrad.tensor([]), "tensor([], dtype=float32)"),
        (lambda: smolgrad.tensor(1.0, requires_grad=True), "tensor(1., requires_grad=True)"),
        (lambda: smolgrad.tensor([1.0], requires_grad=True) * 2, "tensor([2.], grad_fn=mul)"),
        (lambda: smolgrad.tensor([[1.0, 2.0], [3.0, 4.0]]), "tensor([[1., 2.],\n        [3., 4.]])"),
    ],
)
def test_a_tensor_is_shown_as_in_pytorch_with_the_op_that_made_it(make, text):
    assert repr(make()) == str(make()) == text


def test_a_large_tensor_is_shown_in_short():
    assert len(repr(smolgrad.zeros(1000, 1000))) < 1000


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)], ids=str)
def test_one_element_is_a_python_number(shape):
    for dtype, kind, value in (
        ("float32", float, 2.5),
        ("float64", float, 2.5),
        ("int8", int, 2),
        ("bool", bool, True),
    ):
        t = tensor(np.full(shape, value), dtype)
        assert type(t.item()) is kind
        assert t.item() == value
    t = leaf(np.full(shape, 2.5))
    assert (float(t), int(t), bool(t)) == (2.5, 2, True)
    assert not bool(tensor(np.zeros(shape)))


def test_a_0d_integer_tensor_is_an_index():
    assert ["a", "b"][smolgrad.tensor(1)] == "b"
    assert list(range(smolgrad.tensor(3))) == [0, 1, 2]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 2), (1,)], ids=str)
def test_a_tensor_is_as_long_as_its_first_axis_and_gives_its_rows(shape):
    values = np.arange(np.prod(shape)).reshape(shape).astype(float)
    t = leaf(values)
    assert len(t) == shape[0]
    rows = list(t)
    assert len(rows) == shape[0]
    for row, expected in zip(rows, values, strict=True):
        np.testing.assert_array_equal(row.data, expected)
        assert row.requires_grad


# --- assignments ------------------------------------------------------------------------------------------------------


def test_a_gradient_can_be_assigned_replaced_and_taken_away():
    x = leaf([1.0, 2.0])
    given = tensor([10.0, 20.0])
    x.grad = given
    assert x.grad is given
    (x * 3).backward(tensor([1.0, 1.0]))
    assert x.grad.data.tolist() == [13.0, 23.0]
    x.grad = None
    (x * 3).backward(tensor([1.0, 1.0]))
    assert x.grad.data.tolist() == [3.0, 3.0]


def test_data_assigned_is_copied_into_the_memory_that_is_there():
    x = leaf([1.0, 2.0])
    memory, view, given = x.data, x.detach(), np.array([7.0, 8.0])
    x.data = given
    assert x.data is memory
    given[:] = 0
    assert view.data.tolist() == x.data.tolist() == [7.0, 8.0]
    x.data = tensor([3.0, 4.0])
    assert x.data.tolist() == [3.0, 4.0]
    assert x.requires_grad
    assert x.is_leaf
    (x * x).backward(tensor([1.0, 1.0]))
    assert x.grad.data.tolist() == [6.0, 8.0]


def test_numpy_gives_the_array_itself_of_a_constant():
    t = tensor([1.0, 2.0])
    assert t.numpy() is t.data
    assert leaf([1.0]).detach().numpy().tolist() == [1.0]


def test_a_clone_is_recorded_and_has_memory_of_its_own():
    x = leaf([1.0, 2.0])
    y = x.clone()
    assert not np.shares_memory(y.data, x.data)
    y.mul_(3)
    y.backward(tensor([1.0, 10.0]))
    assert x.grad.data.tolist() == [3.0, 30.0]
    assert x.data.tolist() == [1.0, 2.0]


# --- identity ---------------------------------------------------------------------------------------------------------


def test_tensors_are_hashed_and_kept_by_identity():
    a, b = tensor([1.0]), tensor([1.0])
    assert hash(a) != hash(b)
    assert {a: "a", b: "b"}[a] == "a"
    assert a in [b, a]
    kept = hash(a)
    a.add_(1)
    assert hash(a) == kept


def test_equality_is_elementwise():
    a = tensor([1.0, 2.0])
    assert (a == tensor([1.0, 3.0])).data.tolist() == [True, False]
    assert (a != 2).data.tolist() == [True, False]


def test_tensors_can_be_weakly_referenced_and_take_no_attributes():
    x = leaf([1.0])
    y = x * 2
    for t in (x, y):
        assert weakref.ref(t)() is t
        assert not hasattr(t, "__dict__")
    held = weakref.WeakKeyDictionary({x: 1})
    assert held[x] == 1
    del x, y, t
    assert len(held) == 0


# --- copies -----------------------------------------------------------------------------------------------------------

COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda t: pickle.loads(pickle.dumps(t)),
    "old pickle": lambda t: pickle.loads(pickle.dumps(t, 2)),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("make", [lambda: leaf([1.0, 2.0]), lambda: tensor([[1], [2]], "int8"), lambda: leaf(3.0)])
def test_a_copied_leaf_is_equal_and_apart(how, make):
    x = make()
    if x.requires_grad:
        (x * 3).sum().backward()
    y = COPIES[how](x)
    np.testing.assert_array_equal(y.data, x.data)
    assert (y.dtype, y.requires_grad, y.is_leaf) == (x.dtype, x.requires_grad, True)
    assert not np.shares_memory(y.data, x.data)
    if x.requires_grad:
        np.testing.assert_array_equal(y.grad.data, x.grad.data)
        (y * 5).sum().backward()
        assert (y.grad.data == 8.0).all()
        assert (x.grad.data == 3.0).all()


@pytest.mark.parametrize("how", [*COPIES, "copy"])
def test_only_leaves_are_copied(how):
    y = leaf([1.0, 2.0]) * 2
    with pytest.raises(RuntimeError, match=r"only leaves can be copied or pickled; take a detach\(\)"):
        COPIES.get(how, copy.copy)(y)
    assert COPIES.get(how, copy.copy)(y.detach()).data.tolist() == [2.0, 4.0]


def test_a_shallow_copy_shares_its_memory():
    x = leaf([1.0, 2.0])
    assert copy.copy(x).data is x.data


def test_two_references_to_one_tensor_stay_two_references_to_one():
    x = leaf([1.0, 2.0])
    for how in COPIES.values():
        a, b = how([x, x])
        assert a is b


UNPICKLED = """
import pickle, sys
import numpy as np
import smolgrad
x = pickle.loads(bytes.fromhex(sys.argv[1]))
y = x * 2
y.mul_(x)
y.backward(smolgrad.tensor(np.array([3.0, 5.0])))
sys.stdout.write(str(x.grad.data.tolist()))
"""


def test_a_leaf_unpickled_in_another_process_takes_part_in_a_graph_with_writes():
    # A tensor's time is that of its process's own clock of writes: taken over, it lies in a younger one's future.
    for _ in range(100):
        tensor([1.0]).add_(1)
    pickled = pickle.dumps(leaf([1.0, 2.0])).hex()
    run = subprocess.run(
        [sys.executable, "-c", UNPICKLED, pickled], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.stderr) == ("[12.0, 40.0]", "")
