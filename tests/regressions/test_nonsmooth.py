"""What an op's slope is where it has none: PyTorch 2.13's conventions at kinks, bounds and ties, in every spelling."""

import numpy as np
import pytest
import torch

import smolgrad
from tests.regressions.tensors import leaf, tensor

NAN = float("nan")
KINKS = [
    # what, as a function of x; the points; the slopes there
    pytest.param(lambda t, x: t.relu(x), [-0.0, 0.0, 5e-324], [0.0, 0.0, 1.0], id="relu"),
    pytest.param(lambda t, x: t.nn.functional.relu(x), [0.0], [0.0], id="functional.relu"),
    pytest.param(lambda t, x: x.relu(), [0.0], [0.0], id="Tensor.relu"),
    pytest.param(lambda t, x: t.abs(x), [-0.0, 0.0, -5e-324, 5e-324], [0.0, 0.0, -1.0, 1.0], id="abs, micrograd_c 4"),
    pytest.param(lambda t, x: abs(x), [0.0, -0.0], [0.0, 0.0], id="the builtin abs"),
    pytest.param(lambda t, x: x.abs(), [0.0], [0.0], id="Tensor.abs"),
    pytest.param(lambda t, x: t.sign(x), [-1.0, 0.0, 2.0], [0.0, 0.0, 0.0], id="sign"),
    pytest.param(
        lambda t, x: t.clamp(x, 0.0, 1.0), [-1.0, 0.0, 0.5, 1.0, 2.0], [0, 1, 1, 1, 0], id="clamp, pytorch 7002"
    ),
    pytest.param(lambda t, x: t.clamp(x, min=0.0), [-0.0, 0.0, -5e-324], [1, 1, 0], id="clamp from below"),
    pytest.param(lambda t, x: x.clamp(max=1.0), [1.0, np.nextafter(1, 2)], [1, 0], id="clamp from above"),
    pytest.param(lambda t, x: t.clamp(x, 1.0, 1.0), [0.0, 1.0, 2.0], [0, 1, 0], id="clamp between equal bounds"),
    pytest.param(
        lambda t, x: t.clamp(x, 1.0, 0.0), [0.0, 0.5, 1.0, 2.0], [0, 0, 0, 0], id="clamp between swapped bounds"
    ),
    pytest.param(lambda t, x: t.clamp(x, 0.0, 1.0), [NAN], [0], id="clamp of NaN"),
    pytest.param(lambda t, x: t.relu(x), [NAN], [1], id="relu of NaN"),
    pytest.param(lambda t, x: t.maximum(x, x), [1.0, 0.0], [1, 1], id="maximum with itself"),
    pytest.param(lambda t, x: t.minimum(x, x), [1.0, 0.0], [1, 1], id="minimum with itself"),
    pytest.param(lambda t, x: t.maximum(x, -x), [0.0, 2.0, -2.0], [0, 1, -1], id="abs as a maximum"),
    pytest.param(lambda t, x: t.where(x > 0, x, x * 0), [0.0, 2.0], [0, 1], id="relu as a where"),
    pytest.param(lambda t, x: x * (x > 0), [0.0, 2.0], [0, 1], id="relu as a product with a mask"),
    pytest.param(lambda t, x: t.sqrt(x * x), [0.0], [NAN], id="abs as the root of a square"),
    pytest.param(lambda t, x: t.exp(abs(x)) + t.exp(-abs(x)), [0.0, 1.0], [0, np.e - 1 / np.e], id="cosh through abs"),
]


class Smolgrad:
    """smolgrad, under PyTorch's module names."""

    nn = type("nn", (), {"functional": smolgrad.functional})

    def __getattr__(self, name):
        return getattr(smolgrad, name)


@pytest.mark.parametrize("shape", [(-1,), (1, -1, 1)], ids=["1-d", "3-d"])
@pytest.mark.parametrize(("f", "points", "slopes"), KINKS)
def test_the_slope_at_a_kink_is_pytorchs(f, points, slopes, shape):
    # jax a8723ecb9c, micrograd_c issue 4, pytorch issues 7002, 120258, 184574; the oracle is asked too, so that a line
    # here changes when its convention does.
    points, slopes = (np.array(values, "float64").reshape(shape) for values in (points, slopes))
    w = 3.0 + np.arange(points.size).reshape(points.shape)
    x = leaf(points)
    f(Smolgrad(), x).backward(tensor(w))
    np.testing.assert_array_equal(x.grad.data, w * slopes)
    y = torch.tensor(points, requires_grad=True)
    f(torch, y).backward(torch.tensor(w))
    np.testing.assert_array_equal(y.grad.numpy(), w * slopes)


@pytest.mark.parametrize(("f", "points", "slopes"), KINKS)
def test_the_slope_at_a_kink_of_one_element_is_the_same(f, points, slopes):
    for point, slope in zip(points, slopes, strict=True):
        x = leaf(point)
        f(Smolgrad(), x).backward(tensor(5.0))
        np.testing.assert_array_equal(x.grad.data, 5.0 * slope)


TIED = np.array([[2.0, 2.0, 1.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 3.0, 3.0]])
EVENLY = np.array([[1 / 2, 1 / 2, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 2, 1 / 2]])
FIRST = np.array([[1.0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [1, -1])
@pytest.mark.parametrize(
    ("f", "shares"),
    [
        pytest.param(
            lambda x, d, k: x.amax(d, keepdim=k), EVENLY, id="amax, autograd c48b874, mxnet 18563, Theano 4568"
        ),
        pytest.param(lambda x, d, k: -(-x).amin(d, keepdim=k), EVENLY, id="amin"),
        pytest.param(lambda x, d, k: x.max(d, keepdim=k).values, FIRST, id="max over a dim"),
    ],
)
def test_tied_elements_of_a_lane_share_its_gradient(f, shares, dim, keepdim):
    w = np.array([6.0, -12.0, 18.0, 4.0])
    x = leaf(TIED)
    y = f(x, dim, keepdim)
    y.backward(tensor(w.reshape(y.shape)))
    np.testing.assert_allclose(x.grad.data, w[:, None] * shares, rtol=1e-15)
    np.testing.assert_allclose(x.grad.data.sum(1), w, rtol=1e-15)


@pytest.mark.parametrize("f", [smolgrad.amax, smolgrad.max], ids=["amax", "max"])
def test_ties_over_all_elements_share_evenly(f):
    x = leaf([[3.0, 1.0], [3.0, 3.0]])
    f(x).backward(tensor(6.0))
    assert x.grad.data.tolist() == [[2.0, 0.0], [2.0, 2.0]]


def test_ties_over_several_axes_share_evenly():
    x = leaf([[[1.0, 5.0], [5.0, 0.0]], [[2.0, 2.0], [2.0, 2.0]]])
    x.amax((2, 1)).backward(tensor([6.0, 8.0]))
    assert x.grad.data.tolist() == [[[0.0, 3.0], [3.0, 0.0]], [[2.0, 2.0], [2.0, 2.0]]]


def test_max_over_a_dim_follows_the_index_that_it_returns():
    x = leaf(TIED)
    values, indices = x.max(0)
    assert indices.data.tolist() == [0, 3, 3]
    assert x.argmax(0).data.tolist() == [0, 3, 3]
    values.backward(tensor([3.0, 5.0, 7.0]))
    expected = np.zeros((4, 3))
    expected[[0, 3, 3], [0, 1, 2]] = [3.0, 5.0, 7.0]
    np.testing.assert_array_equal(x.grad.data, expected)


@pytest.mark.parametrize(
    ("f", "one", "other"),
    [(smolgrad.maximum, 0.0, 1.0), (smolgrad.minimum, 1.0, 0.0), (smolgrad.max, 0.0, 1.0)],
    ids=["maximum", "minimum", "max of two"],
)
def test_equal_operands_take_half_the_slope_each(f, one, other):
    # HIPS/autograd 855fa5a (each took 1), pytorch issue 56734.
    a, b = leaf([1.0, 1.0, -0.0, 7.0]), leaf([1.0, 2.0, 0.0, 7.0])
    f(a, b).backward(tensor([6.0, 10.0, 14.0, -4.0]))
    assert a.grad.data.tolist() == [3.0, 10.0 * one, 7.0, -2.0]
    assert b.grad.data.tolist() == [3.0, 10.0 * other, 7.0, -2.0]


@pytest.mark.parametrize("f", [smolgrad.maximum, smolgrad.minimum], ids=["maximum", "minimum"])
def test_the_shares_of_two_operands_add_up_however_they_are_stretched(f):
    a, b = leaf([[1.0], [2.0]]), leaf([1.0, 2.0, 1.0])
    w = np.array([[3.0, 5.0, 7.0], [11.0, 13.0, 17.0]])
    f(a, b).backward(tensor(w))
    assert a.grad.data.sum() + b.grad.data.sum() == w.sum()
    tie = np.equal(a.data, b.data) / 2
    wins = np.greater(a.data, b.data) if f is smolgrad.maximum else np.less(a.data, b.data)
    np.testing.assert_array_equal(a.grad.data, (w * (wins + tie)).sum(1, keepdims=True))
    np.testing.assert_array_equal(b.grad.data, (w * (1 - wins - tie)).sum(0))


NEAR = [1.0, np.nextafter(1.0, 2.0), 1.0 + 1e-9]


@pytest.mark.parametrize("above", NEAR[1:], ids=["one ulp", "1e-9"])
def test_a_tie_is_an_exact_one(above):
    # A tie found by isclose agrees with any finite difference whose step is larger than the gap.
    x = leaf([1.0, above])
    x.amax().backward(tensor(3.0))
    assert x.grad.data.tolist() == [0.0, 3.0]
    x.grad = None
    x.amin().backward(tensor(5.0))
    assert x.grad.data.tolist() == [5.0, 0.0]
    a, b = leaf([1.0]), leaf([above])
    smolgrad.maximum(a, b).backward(tensor([7.0]))
    assert (a.grad.item(), b.grad.item()) == (0.0, 7.0)


def test_infinities_tie_as_numbers_do():
    x = leaf([np.inf, 1.0, np.inf])
    x.amax().backward(tensor(8.0))
    assert x.grad.data.tolist() == [4.0, 0.0, 4.0]
    a, b = leaf([np.inf, -np.inf]), leaf([np.inf, np.inf])
    smolgrad.maximum(a, b).backward(tensor([6.0, 5.0]))
    assert a.grad.data.tolist() == [3.0, 0.0]
    assert b.grad.data.tolist() == [3.0, 5.0]
