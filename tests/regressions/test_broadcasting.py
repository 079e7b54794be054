"""What was stretched in the forward pass is summed in the backward pass, over every stretched axis and no other."""

import numpy as np
import pytest

import smolgrad
from smolgrad import functional as F
from tests.regressions.tensors import leaf, tensor, uneven


def summed_to(shape, values):
    """``values`` summed, element by element, into the places of a ``shape`` that was broadcast to theirs."""
    places = np.broadcast_to(np.arange(np.prod(shape, dtype=int)).reshape(shape), values.shape)
    return np.bincount(places.ravel(), values.ravel(), np.prod(shape, dtype=int)).reshape(shape)


SHAPES = [
    pytest.param((2, 1), (2, 3), id="(2,1) and (2,3), pytorch 1787, burn 181, tt-metal 40008"),
    pytest.param((3,), (4, 3), id="(3,) and (4,3)"),
    pytest.param((4, 1), (4, 0), id="(4,1) and (4,0), pytorch 15223"),
    pytest.param((1,), (0,), id="(1,) and (0,)"),
    pytest.param((), (0, 3), id="() and (0,3)"),
    pytest.param((), (2, 3), id="() and (2,3)"),
    pytest.param((), (1,), id="() and (1,)"),
    pytest.param((1, 1), (3,), id="(1,1) and (3,)"),
    pytest.param((1, 3, 1), (2, 3, 4), id="(1,3,1) and (2,3,4)"),
    pytest.param((1, 3, 1), (2, 1, 4), id="both stretched"),
    pytest.param((4, 1), (4, 3), id="(4,1) and (4,3)"),
    pytest.param((2, 1, 2), (2, 2), id="rank and axis"),
    pytest.param((1, 1, 1), (), id="(1,1,1) and ()"),
    pytest.param((3, 3), (3, 1), id="square and column"),
    pytest.param((3, 3), (3,), id="square and row"),
]
OPS = {
    "add": (lambda a, b: a + b, lambda a, b: (1, 1)),
    "sub": (lambda a, b: a - b, lambda a, b: (1, -1)),
    "mul": (lambda a, b: a * b, lambda a, b: (b, a)),
    "div": (lambda a, b: a / b, lambda a, b: (1 / b, -a / b**2)),
    "pow": (lambda a, b: abs(a) ** b, lambda a, b: (b * abs(a) ** b / a, abs(a) ** b * np.log(abs(a)))),
    "maximum": (smolgrad.maximum, lambda a, b: ((a > b) + (a == b) / 2, (b > a) + (a == b) / 2)),
    "minimum": (smolgrad.minimum, lambda a, b: ((a < b) + (a == b) / 2, (b < a) + (a == b) / 2)),
    "where": (lambda a, b: smolgrad.where(a > b, a, b), lambda a, b: (a > b, a <= b)),
    "mse_loss": (lambda a, b: F.mse_loss(a, b, reduction="none"), lambda a, b: (2 * (a - b), 2 * (b - a))),
}


@pytest.mark.parametrize(("one", "other"), SHAPES)
@pytest.mark.parametrize("op", OPS)
def test_a_stretched_operand_gets_the_sum_over_what_it_was_stretched_to(op, one, other):
    for shapes in ((one, other), (other, one)):
        f, slopes = OPS[op]
        a, b = uneven(shapes[0]) / 2, uneven(shapes[1]) / 4
        x, y = leaf(a), leaf(b)
        z = f(x, y)
        w = uneven(z.shape)
        z.backward(tensor(w))
        for leaf_, slope in zip((x, y), slopes(a, b), strict=True):
            assert leaf_.grad.shape == leaf_.shape
            np.testing.assert_allclose(leaf_.grad.data, summed_to(leaf_.shape, slope * w), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("condition", [(), (3,), (2, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("one", [(), (1, 1), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("other", [(), (2, 1), (2, 3)], ids=str)
def test_where_sums_each_branch_to_its_own_shape(condition, one, other):
    c = np.arange(np.prod(condition, dtype=int)).reshape(condition) % 2 == 0
    x, y = leaf(uneven(one)), leaf(uneven(other))
    z = smolgrad.where(smolgrad.tensor(c), x, y)
    w = uneven(z.shape)
    z.backward(tensor(w))
    np.testing.assert_array_equal(x.grad.data, summed_to(one, np.where(c, w, 0)))
    np.testing.assert_array_equal(y.grad.data, summed_to(other, np.where(c, 0, w)))


def test_the_stretched_branch_beside_a_number_is_summed():
    x = leaf(2.0)
    smolgrad.where(np.array([True, False, True]), x, 1.0).backward(tensor([3.0, 5.0, 7.0]))
    assert x.grad.item() == 10.0


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((1,), (3,)), ((), (2, 3)), ((2, 1), (4, 2, 3)), ((1, 1), (0, 5)), ((2, 1), (-1, 3)), ((3,), (2, 0, 3))],
    ids=str,
)
def test_expand_is_summed_back(shape, sizes):
    x = leaf(uneven(shape))
    y = x.expand(sizes)
    w = uneven(y.shape)
    y.backward(tensor(w))
    np.testing.assert_array_equal(x.grad.data, summed_to(shape, w))


@pytest.mark.parametrize(
    ("one", "other"),
    [((4, 2, 3), (3, 2)), ((2, 3), (4, 3, 2)), ((1, 2, 3), (4, 3, 2)), ((2, 1, 2, 3), (4, 3, 5)), ((3,), (4, 3, 2))],
    ids=str,
)
def test_a_matrix_stretched_over_a_batch_gets_the_sum_over_the_batch(one, other):
    a, b = uneven(one), uneven(other)
    x, y = leaf(a), leaf(b)
    z = x @ y
    w = uneven(z.shape)
    z.backward(tensor(w))
    row = a if a.ndim > 1 else a[None]
    v = w if a.ndim > 1 else w[..., None, :]
    gx, gy = v @ np.swapaxes(b, -1, -2), np.swapaxes(row, -1, -2) @ v
    np.testing.assert_array_equal(x.grad.data, summed_to(row.shape, gx).reshape(one))
    np.testing.assert_array_equal(y.grad.data, summed_to(other, gy))


@pytest.mark.parametrize(
    ("x", "y", "gx", "gy"),
    [
        pytest.param([[2.0, 2.0]], [[2.0]], None, None, id="refused"),
        pytest.param([[2.0, 3.0]], [[5.0], [7.0]], [[15.0, 21.0]], [[6.0], [9.0]], id="(1,2) @ (2,1)"),
        pytest.param([[2.0], [3.0]], [[5.0]], [[15.0], [50.0]], [[36.0]], id="(2,1) @ (1,1)"),
    ],
)
def test_an_inner_axis_of_one_is_not_stretched(x, y, gx, gy):
    # HIPS/autograd 376 and MyGrad b32452be: einsum let a label of size 1 in the other operand stand for all sizes, and
    # gave a short gradient. Here an inner size must be the same on both sides.
    x, y = leaf(x), leaf(y)
    if gx is None:
        with pytest.raises(RuntimeError, match=r"matmul\(\): shapes \(1, 2\) and \(1, 1\) do not fit"):
            x @ y
        return
    (x @ y).backward(tensor([[3.0], [10.0]][: x.shape[0]]))
    assert x.grad.data.tolist() == gx
    assert y.grad.data.tolist() == gy


def test_a_label_is_summed_as_soon_as_those_to_come_have_it_as_1():
    # As in PyTorch: x times (the sum over a, of nothing) times NaN, so that the slope is 0 times NaN.
    x = leaf(2.0)
    smolgrad.einsum(",aa,a", x, tensor(np.zeros((0, 0))), tensor([np.nan])).backward()
    assert np.isnan(x.grad.data)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 3), (3,), (1,), ()], ids=str)
def test_a_value_assigned_gets_the_sum_over_the_place_it_filled(shape):
    # MyGrad 75aa260c: surplus leading 1-axes were reshaped away instead of summed.
    x, v = leaf([1.0, 2.0, 3.0]), leaf(uneven(shape))
    y = x * 1
    y[...] = v
    y.backward(tensor([3.0, 5.0, 11.0]))
    np.testing.assert_array_equal(v.grad.data, summed_to(shape[-1:], np.array([3.0, 5.0, 11.0])).reshape(shape))
    assert v.grad.shape == shape
    assert x.grad.data.tolist() == [0.0, 0.0, 0.0]


def test_a_stretched_operand_in_place_gets_the_sum():
    x, b = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([10.0, 20.0])
    y = x * 1
    y += b
    y *= b
    y.backward(tensor([[1.0, 2.0], [3.0, 5.0]]))
    assert x.grad.data.tolist() == [[10.0, 40.0], [30.0, 100.0]]
    assert b.grad.data.tolist() == [1 * 21 + 3 * 23, 2 * 42 + 5 * 44]


@pytest.mark.parametrize("batch", [(), (4,), (2, 4), (0,)], ids=str)
def test_a_bias_gets_the_sum_over_all_rows(batch):
    x, w, b = leaf(uneven((*batch, 3))), leaf(uneven((2, 3))), leaf([1.0, 2.0])
    y = F.linear(x, w, b)
    v = uneven(y.shape)
    y.backward(tensor(v))
    np.testing.assert_array_equal(b.grad.data, v.reshape(-1, 2).sum(0))
    np.testing.assert_array_equal(w.grad.data, v.reshape(-1, 2).T @ x.data.reshape(-1, 3))
    np.testing.assert_array_equal(x.grad.data, v @ w.data)


def test_a_deviation_from_the_mean_has_the_slope_of_both_parts():
    # pytorch 107007, no fault: from a cotangent of ones the gradient of x - mean(x) is zero, which a rule that loses
    # all of it gives as well. Another cotangent shows it.
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x - x.mean()
    y.backward(tensor([1.0, 1.0, 1.0, 1.0]), retain_graph=True)
    assert x.grad.data.tolist() == [0.0, 0.0, 0.0, 0.0]
    y.backward(tensor([4.0, -8.0, 0.0, 16.0]))
    assert x.grad.data.tolist() == [1.0, -11.0, -3.0, 13.0]


def test_a_gradient_is_unbroadcast_for_every_slot_of_one_tensor():
    x = leaf([[1.0, 2.0]])
    (x + x.T).backward(tensor([[1.0, 10.0], [100.0, 1000.0]]))
    assert x.grad.data.tolist() == [[101.0 + 11.0, 1010.0 + 1100.0]]
