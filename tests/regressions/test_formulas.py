"""Local rules, each against its derivative written down by hand, at points chosen so that a plausible slip shows."""

import numpy as np
import pytest

import smolgrad
from smolgrad import functional as F
from tests.regressions.tensors import leaf, tensor

POINTS = np.array([-2.5, -0.5, 0.25, 3.0])
W = np.array([3.0, -5.0, 7.0, 2.0])


def logistic(x):
    return 1 / (1 + np.exp(-x))


UNARY = [
    pytest.param(smolgrad.exp, np.exp, np.exp, id="exp"),
    pytest.param(lambda x: smolgrad.log(abs(x)), lambda x: np.log(abs(x)), lambda x: 1 / x, id="log"),
    pytest.param(lambda x: smolgrad.sqrt(x * x + 1), lambda x: np.hypot(x, 1), lambda x: x / np.hypot(x, 1), id="sqrt"),
    pytest.param(smolgrad.tanh, np.tanh, lambda x: 1 / np.cosh(x) ** 2, id="tanh"),
    pytest.param(smolgrad.sigmoid, logistic, lambda x: logistic(x) * logistic(-x), id="sigmoid"),
    pytest.param(smolgrad.neg, np.negative, lambda x: -1.0 + 0 * x, id="neg"),
    pytest.param(smolgrad.abs, np.abs, np.sign, id="abs"),
    pytest.param(smolgrad.sign, np.sign, lambda x: 0.0 * x, id="sign"),
    pytest.param(smolgrad.relu, lambda x: x * (x > 0), lambda x: (x > 0) * 1.0, id="relu"),
    pytest.param(smolgrad.clone, lambda x: x, lambda x: 1.0 + 0 * x, id="clone"),
    pytest.param(lambda x: x.clamp(-1, 1), lambda x: np.clip(x, -1, 1), lambda x: (abs(x) <= 1) * 1.0, id="clamp"),
    pytest.param(lambda x: x**2, np.square, lambda x: 2 * x, id="square"),
    pytest.param(lambda x: x**-3, lambda x: x**-3, lambda x: -3 * x**-4, id="negative power"),
    pytest.param(lambda x: 3**x, lambda x: 3**x, lambda x: 3**x * np.log(3), id="power of 3"),
    pytest.param(lambda x: 5 / x, lambda x: 5 / x, lambda x: -5 / x**2, id="quotient from a number"),
    pytest.param(lambda x: x / 5, lambda x: x / 5, lambda x: 0.2 + 0 * x, id="quotient by a number"),
    pytest.param(lambda x: 5 - x, lambda x: 5 - x, lambda x: -1.0 + 0 * x, id="difference from a number"),
    pytest.param(lambda x: x - 5, lambda x: x - 5, lambda x: 1.0 + 0 * x, id="difference with a number"),
]


@pytest.mark.parametrize(("f", "value", "slope"), UNARY)
def test_an_op_of_one_input_has_its_derivative(f, value, slope):
    # MyGrad c26f3af3 computed three slopes and forgot to return them; HIPS/autograd afea209 took an op
    # of slope 1 to be flat.
    x = leaf(POINTS)
    y = f(x)
    np.testing.assert_allclose(y.data, value(POINTS), rtol=1e-14)
    y.backward(tensor(W))
    np.testing.assert_allclose(x.grad.data, W * slope(POINTS), rtol=1e-13)


SIGNS = [(5.5, 2.0), (-5.5, 2.0), (5.5, -2.0), (-5.5, -2.0)]
BINARY = [
    pytest.param(smolgrad.add, lambda a, b: (1, 1), id="add"),
    pytest.param(smolgrad.sub, lambda a, b: (1, -1), id="sub"),
    pytest.param(smolgrad.mul, lambda a, b: (b, a), id="mul"),
    pytest.param(smolgrad.div, lambda a, b: (1 / b, -a / b**2), id="div"),
    pytest.param(smolgrad.maximum, lambda a, b: (a > b, b > a), id="maximum"),
    pytest.param(smolgrad.minimum, lambda a, b: (a < b, b < a), id="minimum"),
    pytest.param(smolgrad.max, lambda a, b: (a > b, b > a), id="max"),
    pytest.param(
        lambda a, b: F.mse_loss(a, b, reduction="none"), lambda a, b: (2 * (a - b), 2 * (b - a)), id="mse_loss"
    ),
]


@pytest.mark.parametrize(("a", "b"), SIGNS)
@pytest.mark.parametrize(("f", "slopes"), BINARY)
def test_an_op_of_two_inputs_has_both_partial_derivatives_for_all_signs(f, slopes, a, b):
    # jax daf6e3b065: a test that drew positive quotients only.
    x, y = leaf(a), leaf(b)
    f(x, y).backward(tensor(3.0))
    for t, slope in zip((x, y), slopes(a, b), strict=True):
        assert t.grad.item() == pytest.approx(3.0 * slope, rel=1e-14)


@pytest.mark.parametrize(("base", "exponent"), [(2.0, 3.0), (0.5, -2.0), (3.0, 0.5)])
def test_a_power_has_both_partial_derivatives_and_they_are_not_exchanged(base, exponent):
    x, y = leaf(base), leaf(exponent)
    (x**y).backward(tensor(5.0))
    assert x.grad.item() == pytest.approx(5 * exponent * base ** (exponent - 1), rel=1e-14)
    assert y.grad.item() == pytest.approx(5 * base**exponent * np.log(base), rel=1e-14)


def test_logsumexp_has_partial_derivatives_that_sum_to_one():
    # MyGrad 47a654b4: logaddexp2 kept the rule for base e, and a stray 1 / ln 2.
    x = leaf([1.0, 2.0])
    x.logsumexp(0).backward(tensor(3.0))
    np.testing.assert_allclose(x.grad.data, [3 * 0.2689414213699951, 3 * 0.7310585786300049], rtol=1e-14)
    x.grad = None
    two = smolgrad.log(tensor(2.0))
    ((x * two).logsumexp(0) / two).backward(tensor(3.0))
    np.testing.assert_allclose(x.grad.data, [1.0, 2.0], rtol=1e-14)


LOGITS = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0]])
TARGETS = [2, 0]
P = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
ONE_HOT = np.eye(3)[TARGETS]


@pytest.mark.parametrize(
    ("reduction", "seed", "per_row"),
    [
        pytest.param("none", [1.0, 10.0], [1.0, 10.0], id="none"),
        pytest.param("sum", 7.0, [7.0, 7.0], id="sum"),
        pytest.param("mean", 7.0, [3.5, 3.5], id="mean"),
    ],
)
def test_cross_entropy_divides_by_the_batch_for_the_mean_only_and_reads_all_of_its_cotangent(reduction, seed, per_row):
    # aprender PR 2182: it always divided, and read only the first element of the cotangent.
    x = leaf(LOGITS)
    loss = F.cross_entropy(x, smolgrad.tensor(TARGETS), reduction=reduction)
    rows = -np.log((P * ONE_HOT).sum(1))
    np.testing.assert_allclose(loss.data, {"none": rows, "sum": rows.sum(), "mean": rows.mean()}[reduction], rtol=1e-14)
    loss.backward(tensor(seed))
    np.testing.assert_allclose(x.grad.data, (P - ONE_HOT) * np.array(per_row)[:, None], rtol=1e-13)


@pytest.mark.parametrize(("reduction", "scale"), [("sum", 1.0), ("mean", 1 / 6)])
def test_mse_loss_divides_by_all_elements_for_the_mean_only(reduction, scale):
    x, y = leaf(LOGITS), leaf(LOGITS[:, ::-1])
    d = LOGITS - LOGITS[:, ::-1]
    loss = F.mse_loss(x, y, reduction=reduction)
    assert loss.item() == pytest.approx((d**2).sum() * scale, rel=1e-14)
    loss.backward(tensor(3.0))
    np.testing.assert_allclose(x.grad.data, 6 * scale * d, rtol=1e-14)
    np.testing.assert_allclose(y.grad.data, -6 * scale * d, rtol=1e-14)


def test_softmax_is_pulled_back_by_its_whole_jacobian():
    # From a cotangent of ones the gradient is zero, and a rule that gives nothing passes.
    x, w = leaf(LOGITS), np.array([[3.0, -5.0, 7.0], [2.0, 11.0, -1.0]])
    x.softmax(1).backward(tensor(w))
    jacobians = np.einsum("ij,jk->ijk", P, np.eye(3)) - P[:, :, None] * P[:, None, :]
    np.testing.assert_allclose(x.grad.data, np.einsum("ijk,ij->ik", jacobians, w), rtol=1e-13)
    x.grad = None
    x.log_softmax(1).backward(tensor(w))
    np.testing.assert_allclose(x.grad.data, w - P * w.sum(1, keepdims=True), rtol=1e-13)


@pytest.mark.parametrize("correction", [0, 1, 2, 0.5])
def test_the_variance_divides_by_what_correction_leaves(correction):
    values = np.array([1.0, 2.0, 4.0, 9.0])
    x = leaf(values)
    y = x.var(correction=correction)
    deviation = values - 4.0
    assert y.item() == pytest.approx((deviation**2).sum() / (4 - correction), rel=1e-14)
    y.backward(tensor(3.0))
    np.testing.assert_allclose(x.grad.data, 6 * deviation / (4 - correction), rtol=1e-14)


def test_layer_norm_tells_its_weight_from_its_bias():
    # Weight and bias have one shape: gradients exchanged fit everywhere.
    values, g = np.array([[1.0, 3.0], [2.0, 8.0]]), np.array([[3.0, -5.0], [7.0, 2.0]])
    x, w, b = leaf(values), leaf([2.0, 5.0]), leaf([0.25, -0.5])
    y = F.layer_norm(x, (2,), w, b, eps=0.0)
    np.testing.assert_allclose(y.data, [[-1.75, 4.5], [-1.75, 4.5]], rtol=1e-14)
    y.backward(tensor(g))
    np.testing.assert_allclose(w.grad.data, [-10.0, -3.0], rtol=1e-14)
    np.testing.assert_allclose(b.grad.data, [10.0, -3.0], rtol=1e-14)
    # Two elements normalise to -1 and 1 whatever they are.
    np.testing.assert_allclose(x.grad.data, np.zeros((2, 2)), atol=1e-13)


def test_layer_norm_of_three_has_the_slope_of_its_formula():
    values, g, eps = np.array([1.0, 2.0, 6.0]), np.array([3.0, -5.0, 7.0]), 0.5
    x = leaf(values)
    F.layer_norm(x, (3,), eps=eps).backward(tensor(g))
    deviation, s = values - 3.0, np.sqrt(14 / 3 + eps)
    # d/dx_j of (x_i - m) / s: (1[i=j] - 1/3) / s - (x_i - m)(x_j - m) / (3 s^3)
    jacobian = (np.eye(3) - 1 / 3) / s - np.outer(deviation, deviation) / (3 * s**3)
    np.testing.assert_allclose(x.grad.data, g @ jacobian, rtol=1e-13)


def test_linear_is_its_matrix_product_and_its_bias():
    x, w, b = leaf([[1.0, 2.0]]), leaf([[3.0, 5.0], [7.0, 11.0], [13.0, 17.0]]), leaf([1.0, -1.0, 2.0])
    y = F.linear(x, w, b)
    assert y.data.tolist() == [[14.0, 28.0, 49.0]]
    y.backward(tensor([[2.0, 3.0, -1.0]]))
    assert x.grad.data.tolist() == [[14.0, 26.0]]
    assert w.grad.data.tolist() == [[2.0, 4.0], [3.0, 6.0], [-1.0, -2.0]]
    assert b.grad.data.tolist() == [2.0, 3.0, -1.0]


COMPARISONS = {
    "lt": [True, False, False],
    "le": [True, True, False],
    "gt": [False, False, True],
    "ge": [False, True, True],
    "eq": [False, True, False],
    "ne": [True, False, True],
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_is_a_constant_of_bools(name):
    x, y = leaf([1.0, 2.0, 3.0]), leaf([2.0, 2.0, 2.0])
    for mask in (getattr(smolgrad, name)(x, y), getattr(x, name)(2), getattr(x, name)(y.data)):
        assert mask.data.tolist() == COMPARISONS[name]
        assert mask.dtype == np.bool_
        assert not mask.requires_grad
    (x * getattr(x, name)(y)).backward(tensor([3.0, 5.0, 7.0]))
    np.testing.assert_array_equal(x.grad.data, np.array([3.0, 5.0, 7.0]) * COMPARISONS[name])


def test_masks_combine():
    x = leaf([-1.0, 0.5, 2.0])
    inside, outside = (x > 0) & (x < 1), (x < 0) | (x > 1)
    assert inside.data.tolist() == [False, True, False]
    assert outside.data.tolist() == [True, False, True]
    assert (smolgrad.tensor([6, 3]) & 5).data.tolist() == [4, 1]
    assert (smolgrad.tensor([6, 3]) | 8).data.tolist() == [14, 11]


def wrong(gradient):
    return smolgrad.autograd.Primitive("wrong", lambda x: x * 2, lambda g, _y, _x: gradient(g))


@pytest.mark.parametrize("create_graph", [False, True], ids=["arrays", "tensors"])
@pytest.mark.parametrize(
    ("gradient", "got"),
    [
        pytest.param(lambda g: None, "NoneType", id="None, MyGrad c26f3af3"),
        pytest.param(lambda g: g.sum(), r"shape \(\)", id="summed"),
        pytest.param(lambda g: g[:1], r"shape \(1,\)", id="cut off"),
        pytest.param(lambda g: g[None], r"shape \(1, 2\)", id="an axis too many"),
        pytest.param(lambda g: 3.0, "float", id="a number"),
    ],
)
def test_a_rule_whose_gradient_does_not_fit_is_refused_by_name(gradient, got, create_graph):
    # mxnet 19021, pytorch 65244: it was broadcast, or summed, until it fitted.
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=rf"pullback of wrong\(\) for input 0 gave {got}.*must give"):
        wrong(gradient)(x).backward(tensor([3.0, 5.0]), create_graph=create_graph)
    assert x.grad is None
