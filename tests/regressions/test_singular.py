"""Where a formula divides by zero, takes the logarithm of zero or meets an infinity: the value is PyTorch's.

No rule repairs its result afterwards (nan_to_num hides a wrong number as well as a NaN): it selects, or is written so
that nothing has to be repaired.
"""

import numpy as np
import pytest
import torch

import smolgrad
from smolgrad import functional as F
from tests.regressions.tensors import leaf, tensor

INF, NAN = float("inf"), float("nan")

BASES = [-INF, -2.0, -0.0, 0.0, 1.0, 4.0, INF, NAN]
EXPONENTS = [-1.0, 0.0, 0.3, 1.0, 2.0]


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("shape", [(), (2,)], ids=["0-d", "1-d"])
def test_a_power_and_both_slopes_are_pytorchs_at_singular_points(base, exponent, shape):
    # HIPS/autograd cbf5c42; tinygrad 73af42aeab, 990c240b82, d79772f057: 0**y with log(0), a lost cotangent, 0**0
    # without inf**0. The cotangent is 3: a rule that forgets it is right at ones.
    x, e = leaf(np.full(shape, base)), leaf(np.full(shape, exponent))
    y = x**e
    y.backward(tensor(np.full(shape, 3.0)))
    u, v = (torch.full(shape, value, dtype=torch.float64, requires_grad=True) for value in (base, exponent))
    w = u**v
    w.backward(torch.full(shape, 3.0, dtype=torch.float64))
    np.testing.assert_allclose(y.data, w.detach().numpy(), rtol=1e-15)
    np.testing.assert_allclose(x.grad.data, u.grad.numpy(), rtol=1e-15)
    np.testing.assert_allclose(e.grad.data, v.grad.numpy(), rtol=1e-15)


@pytest.mark.parametrize("exponent", [*EXPONENTS, 0, 1, 2, 3])
@pytest.mark.parametrize("base", BASES)
def test_a_power_to_a_number_has_pytorchs_slope(base, exponent):
    x = leaf([base, base])
    (x**exponent).backward(tensor([3.0, -5.0]))
    u = torch.tensor([base, base], dtype=torch.float64, requires_grad=True)
    (u**exponent).backward(torch.tensor([3.0, -5.0], dtype=torch.float64))
    np.testing.assert_allclose(x.grad.data, u.grad.numpy(), rtol=1e-15)


@pytest.mark.parametrize(
    ("exponent", "slope"), [(2.0, 0.0), (0.3, 0.0), (0.0, 0.0), (-0.0, 0.0), (-1.0, -INF)], ids=str
)
@pytest.mark.parametrize("base", ["tensor", "number"])
def test_the_slope_of_a_power_of_zero_in_its_exponent(base, exponent, slope):
    y = leaf(exponent)
    if base == "number" and exponent < 0:
        z = smolgrad.pow(0.0, y)
    else:
        z = tensor(0.0) ** y if base == "tensor" else 0.0**y
    z.backward(tensor(5.0))
    assert y.grad.item() == slope


def test_a_power_with_mixed_exponents_is_flat_only_where_the_exponent_is_zero():
    # z ** arange(n): a rule that takes one branch for all elements gives NaN, or 1, where the exponent is 0.
    x = leaf([0.0, 0.0, 0.0, 2.0])
    (x ** tensor([0.0, 1.0, 2.0, 3.0])).backward(tensor([3.0, 5.0, 7.0, 11.0]))
    assert x.grad.data.tolist() == [0.0, 5.0, 0.0, 132.0]


def test_the_root_and_the_logarithm_at_zero_are_infinitely_steep():
    x = leaf([0.0, 4.0])
    x.sqrt().backward(tensor([3.0, 5.0]))
    assert x.grad.data.tolist() == [INF, 1.25]
    x.grad = None
    x.log().backward(tensor([-3.0, 5.0]))
    assert x.grad.data.tolist() == [-INF, 1.25]


def test_the_root_of_a_sum_of_squares_is_nan_at_the_zero_row_only():
    # HIPS/autograd 151, pytorch 2421: sqrt(sum(x**2)), as in PyTorch, has no slope at zero; its neighbours do.
    x = leaf([[0.0, 0.0], [3.0, 4.0]])
    (x * x).sum(1).sqrt().backward(tensor([5.0, 10.0]))
    np.testing.assert_array_equal(x.grad.data, [[NAN, NAN], [6.0, 8.0]])


def test_where_selects_and_never_multiplies():
    # The branch not taken has a NaN, and an infinite slope: neither reaches the gradient of where itself.
    a, b = leaf([NAN, 2.0, INF]), leaf([1.0, NAN, 3.0])
    y = smolgrad.where(np.array([False, True, False]), a, b)
    assert y.data.tolist() == [1.0, 2.0, 3.0]
    y.backward(tensor([INF, -INF, 7.0]))
    assert a.grad.data.tolist() == [0.0, -INF, 0.0]
    assert b.grad.data.tolist() == [INF, 0.0, 7.0]


def test_where_lets_through_what_a_rule_inside_the_branch_not_taken_makes():
    # pytorch 23395, 68425, 187297: accepted there, and here. The zero that where() hands on meets an infinite slope.
    x = leaf([-1.0, 0.0, 4.0])
    smolgrad.where(x > 0, x.sqrt(), x).backward(tensor([1.0, 1.0, 3.0]))
    np.testing.assert_array_equal(x.grad.data, [NAN, NAN, 0.75])
    x.grad = None
    safe = smolgrad.where(x > 0, x, 1.0)  # the remedy: keep the singular point from the op itself
    smolgrad.where(x > 0, safe.sqrt(), x).backward(tensor([1.0, 2.0, 3.0]))
    assert x.grad.data.tolist() == [1.0, 2.0, 0.75]


def test_logsumexp_of_infinite_lanes():
    # pytorch 31829, jax 6811, tinygrad 17822: NaN instead of -inf.
    x = leaf([[1.0, 2.0], [-INF, -INF], [-INF, 3.0], [INF, 1.0]])
    y = x.logsumexp(1)
    np.testing.assert_allclose(y.data, [2.313261687518223, -INF, 3.0, INF], rtol=1e-15)
    y.backward(tensor([3.0, 5.0, 7.0, 11.0]))
    np.testing.assert_allclose(
        x.grad.data, [[3 * 0.2689414213699951, 3 * 0.7310585786300049], [NAN, NAN], [0, 7], [NAN, 0]], rtol=1e-14
    )


@pytest.mark.parametrize("dim", [0, (0, 1), ()], ids=str)
def test_logsumexp_of_one_element_is_the_element(dim):
    x = leaf([[-1000.0]])
    y = x.logsumexp(dim)
    y.backward(tensor(np.full(y.shape, 3.0)))
    assert y.item() == -1000.0
    assert x.grad.item() == 3.0


def test_softmax_with_masked_logits():
    x = leaf([[-INF, 0.0, 0.0], [-INF, -INF, -INF], [-INF, -INF, 5.0]])
    y = x.softmax(1)
    np.testing.assert_array_equal(y.data, [[0, 0.5, 0.5], [NAN, NAN, NAN], [0, 0, 1]])
    y.backward(tensor([[7.0, 2.0, 4.0], [1.0, 2.0, 3.0], [7.0, 8.0, 9.0]]))
    np.testing.assert_array_equal(x.grad.data, [[0, -0.5, 0.5], [NAN, NAN, NAN], [0, 0, 0]])


@pytest.mark.parametrize(
    "pick",
    [
        pytest.param(lambda x: x[[1]], id="array index, tinygrad 5276fbc9c5"),
        pytest.param(lambda x: x[1:2], id="slice"),
        pytest.param(lambda x: x[np.array([False, True, False])], id="mask"),
        pytest.param(lambda x: F.embedding(smolgrad.tensor([1]), x.unsqueeze(1)).squeeze(1), id="embedding"),
        pytest.param(lambda x: smolgrad.where(np.array([False, True, False]), x, 0.0).sum(0, keepdim=True), id="where"),
        pytest.param(lambda x: smolgrad.stack([x, x], 1)[1:2, 0], id="stack"),
    ],
)
@pytest.mark.parametrize("other", [INF, -INF, NAN])
def test_what_is_not_picked_does_not_matter(pick, other):
    # Picking by a product with a one-hot mask makes 0 * inf of it (tinygrad 91a4de4ca7).
    x = leaf([other, 2.0, other])
    y = pick(x)
    assert y.data.tolist() == [2.0]
    y.backward(tensor([5.0]))
    assert x.grad.data.tolist() == [0.0, 5.0, 0.0]


LOGITS = [[1.0, 2.0], [3.0, 1.0], [0.0, 0.0]]
P = 0.7310585786300049  # sigmoid(1)
Q = 0.8807970779778823  # sigmoid(2)


@pytest.mark.parametrize(
    ("targets", "losses", "gradient"),
    [
        pytest.param(
            [0, 1, 0], [1.313261687518223, 2.126928011042972, np.log(2)], [[-P, P], [Q, -Q], [-0.5, 0.5]], id="none"
        ),
        pytest.param([0, -100, 0], [1.313261687518223, 0.0, np.log(2)], [[-P, P], [0, 0], [-0.5, 0.5]], id="one"),
        pytest.param([-100, -100, -100], [0.0, 0.0, 0.0], [[0, 0], [0, 0], [0, 0]], id="all"),
    ],
)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_cross_entropy_leaves_out_the_ignored(targets, losses, gradient, reduction):
    # pytorch 70348, 116349: the mean over nothing is NaN, its gradient 0.
    x, kept = leaf(LOGITS), sum(t >= 0 for t in targets)
    loss = F.cross_entropy(x, smolgrad.tensor(targets), reduction=reduction)
    w = np.array([3.0, 5.0, 7.0]) if reduction == "none" else np.array(3.0)
    loss.backward(tensor(w))
    whole = {"none": losses, "sum": np.sum(losses), "mean": np.sum(losses) / kept if kept else NAN}[reduction]
    np.testing.assert_allclose(loss.data, whole, rtol=1e-14)
    scale = w[:, None] if reduction == "none" else 3.0 / (kept or 1 if reduction == "mean" else 1)
    np.testing.assert_allclose(x.grad.data, scale * np.array(gradient), rtol=1e-14)


def test_an_ignored_row_of_infinities_has_no_loss_and_a_gradient_of_nan():
    # pytorch 11551: PyTorch 2.13 gives NaN there and nowhere else, and so does this.
    x = leaf([[1.0, 2.0], [-INF, -INF]])
    loss = F.cross_entropy(x, smolgrad.tensor([0, -100]))
    loss.backward(tensor(3.0))
    assert loss.item() == pytest.approx(1.313261687518223, rel=1e-14)
    np.testing.assert_allclose(x.grad.data, [[-3 * P, 3 * P], [NAN, NAN]], rtol=1e-14)


def test_cross_entropy_of_an_impossible_class_is_infinite_and_its_slope_is_not():
    x = leaf([[0.0, -INF, 0.0]])
    loss = F.cross_entropy(x, smolgrad.tensor([1]))
    loss.backward(tensor(4.0))
    assert loss.item() == INF
    assert x.grad.data.tolist() == [[2.0, -4.0, 2.0]]


@pytest.mark.parametrize("correction", [0, 1])
def test_the_variance_of_a_constant_lane_is_flat(correction):
    x = leaf([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    y = x.var(1, correction=correction)
    y.backward(tensor([5.0, 6.0]))
    assert y.data[0] == 0.0
    np.testing.assert_allclose(x.grad.data, [[0, 0, 0], np.array([-12.0, 0, 12]) / (3 - correction)], rtol=1e-15)


def test_the_variance_of_one_element_is_nan_only_where_nothing_is_left_to_divide_by():
    x = leaf([[5.0], [7.0]])
    y = x.var(1)
    y.backward(tensor([1.0, 2.0]))
    np.testing.assert_array_equal(y.data, [NAN, NAN])
    np.testing.assert_array_equal(x.grad.data, [[NAN], [NAN]])
    x.grad = None
    y = x.var(1, correction=0)
    y.backward(tensor([1.0, 2.0]))
    np.testing.assert_array_equal(y.data, [0.0, 0.0])
    np.testing.assert_array_equal(x.grad.data, [[0.0], [0.0]])


def test_layer_norm_of_a_constant_lane_is_its_bias():
    x, w, b = leaf([[4.0, 4.0], [1.0, 3.0]]), leaf([2.0, 3.0]), leaf([0.5, -0.5])
    y = F.layer_norm(x, (2,), w, b, eps=1e-2)
    y.backward(tensor([[5.0, -7.0], [1.0, 1.0]]))
    assert y.data[0].tolist() == [0.5, -0.5]
    # There the spread is sqrt(eps) = 1/10, and the slope ten times the deviation of g w = (10, -21) from its mean.
    np.testing.assert_allclose(x.grad.data[0], [155.0, -155.0], rtol=1e-12)
    np.testing.assert_allclose(w.grad.data, [-1 / np.sqrt(1.01), 1 / np.sqrt(1.01)], rtol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda x: x.sum(0), id="sum"),
        pytest.param(lambda x: x.logsumexp(0), id="logsumexp"),
        pytest.param(lambda x: x.softmax(0), id="softmax"),
        pytest.param(lambda x: x.log_softmax(0), id="log_softmax"),
        pytest.param(lambda x: x.amax(1), id="amax"),
        pytest.param(lambda x: x.var(1), id="var"),
        pytest.param(lambda x: x.max(1).values, id="max over a dim"),
    ],
)
def test_ops_over_lanes_of_nothing_or_beside_nothing_have_empty_gradients(f):
    # MyGrad 5dc4f1a0: a rule divided by an empty sum.
    x = leaf(np.zeros((0, 3)))
    y = f(x)
    y.backward(tensor(np.ones(y.shape)))
    assert x.grad.shape == (0, 3)


def test_nothing_sums_to_zero_averages_to_nan_and_has_the_logarithm_of_zero():
    x = leaf(np.zeros((2, 0)))
    assert x.sum(1).data.tolist() == [0.0, 0.0]
    assert np.isnan(x.mean(1).data).all()
    assert x.logsumexp(1).data.tolist() == [-INF, -INF]
    assert np.isnan(F.mse_loss(x, x).item())


@pytest.mark.parametrize("shape", [(), (1,), (2,)])
def test_a_half_in_a_tensor_is_a_power_whatever_its_strides(shape):
    # NumPy takes a root where all exponents are one 0.5: NaN of -inf, and -0.0 of -0.0.
    power = tensor([-np.inf, -0.0]) ** tensor(np.full(shape, 0.5))
    np.testing.assert_array_equal(power.data, [np.inf, 0.0])
    assert not np.signbit(power.data).any()
