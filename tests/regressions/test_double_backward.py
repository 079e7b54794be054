"""The gradient differentiated again: by the same rules, at smooth points, at guarded ones, and three deep."""

import numpy as np
import pytest

import smolgrad
from smolgrad import functional as F
from tests.regressions.tensors import leaf, tensor


def derivatives(f, x, orders):
    """The values of f and of its first ``orders`` derivatives at each element of x; f is elementwise."""
    y, found = f(x), []
    for _ in range(orders):
        found.append(y.data)
        y = smolgrad.grad(y, x, smolgrad.ones_like(y), create_graph=True)[0] if y.requires_grad else y * 0
    return [*found, y.data]


POINTS = np.array([0.5, 1.25, 2.0])
E, S, T = np.exp(POINTS), 1 / (1 + np.exp(-POINTS)), np.tanh(POINTS)
FUNCTIONS = [
    pytest.param(smolgrad.exp, [E, E, E, E], id="exp"),
    pytest.param(smolgrad.log, [np.log(POINTS), 1 / POINTS, -1 / POINTS**2, 2 / POINTS**3], id="log"),
    pytest.param(smolgrad.sqrt, [POINTS**0.5, POINTS**-0.5 / 2, -(POINTS**-1.5) / 4, 3 * POINTS**-2.5 / 8], id="sqrt"),
    pytest.param(smolgrad.tanh, [T, 1 - T**2, -2 * T * (1 - T**2), (1 - T**2) * (6 * T**2 - 2)], id="tanh"),
    pytest.param(
        smolgrad.sigmoid,
        [S, S * (1 - S), S * (1 - S) * (1 - 2 * S), S * (1 - S) * (1 - 6 * S + 6 * S**2)],
        id="sigmoid",
    ),
    pytest.param(lambda x: x**3, [POINTS**3, 3 * POINTS**2, 6 * POINTS, 6 + 0 * POINTS], id="cube"),
    pytest.param(lambda x: x * x * x, [POINTS**3, 3 * POINTS**2, 6 * POINTS, 6 + 0 * POINTS], id="product"),
    pytest.param(
        lambda x: (x.float() * x.float()).double() * x, [POINTS**3, 3 * POINTS**2, 6 * POINTS, 6 + 0 * POINTS], id="to"
    ),
    pytest.param(lambda x: 1 / x, [1 / POINTS, -1 / POINTS**2, 2 / POINTS**3, -6 / POINTS**4], id="quotient"),
    pytest.param(lambda x: 2**x, [2**POINTS * np.log(2) ** k for k in range(4)], id="power of two"),
    pytest.param(
        lambda x: x ** tensor([3.0, 3.0, 3.0]), [POINTS**3, 3 * POINTS**2, 6 * POINTS, 6 + 0 * POINTS], id="power"
    ),
    pytest.param(lambda x: (x * x).relu(), [POINTS**2, 2 * POINTS, 2 + 0 * POINTS, 0 * POINTS], id="relu"),
    pytest.param(lambda x: abs(-x * x), [POINTS**2, 2 * POINTS, 2 + 0 * POINTS, 0 * POINTS], id="abs"),
    pytest.param(
        lambda x: smolgrad.where(x > 1, x**3, x * x),
        [
            np.where(POINTS > 1, POINTS**3, POINTS**2),
            np.where(POINTS > 1, 3 * POINTS**2, 2 * POINTS),
            np.where(POINTS > 1, 6 * POINTS, 2),
            np.where(POINTS > 1, 6, 0),
        ],
        id="where",
    ),
    pytest.param(
        lambda x: smolgrad.stack([x, 0 * x]).logsumexp(0),
        [np.log(1 + E), S, S * (1 - S), S * (1 - S) * (1 - 2 * S)],
        id="softplus as a logsumexp",
    ),
    pytest.param(
        lambda x: smolgrad.stack([x, 0 * x]).softmax(0)[0],
        [S, S * (1 - S), S * (1 - S) * (1 - 2 * S), S * (1 - S) * (1 - 6 * S + 6 * S**2)],
        id="sigmoid as a softmax",
    ),
    pytest.param(
        lambda x: -smolgrad.stack([-x, 0 * x]).log_softmax(0)[1],
        [np.log(1 + 1 / E), S - 1, S * (1 - S), S * (1 - S) * (1 - 2 * S)],
        id="softplus as a log_softmax",
    ),
    pytest.param(
        lambda x: F.cross_entropy(smolgrad.stack([0 * x, x], 1), smolgrad.tensor([0, 0, 0]), reduction="none"),
        [np.log(1 + E), S, S * (1 - S), S * (1 - S) * (1 - 2 * S)],
        id="softplus as a cross entropy",
    ),
    pytest.param(lambda x: smolgrad.exp(-x).sigmoid().log() + x - x, None, id="composed"),
]


@pytest.mark.parametrize(("f", "expected"), FUNCTIONS)
def test_the_first_three_derivatives(f, expected):
    x = leaf(POINTS)
    found = derivatives(f, x, 3)
    if expected is None:  # log sigmoid(e^-x): its slope is -u / (1 + e^u) at u = e^-x
        u = np.exp(-POINTS)
        h = 1 / (1 + np.exp(u))
        expected = [-np.log(1 + np.exp(-u)), -u * h, u * h - u * u * h * (1 - h)]
    for value, right in zip(found, expected, strict=False):
        np.testing.assert_allclose(value, right, rtol=1e-12, atol=1e-14)


def test_an_exponential_unit_has_its_own_second_derivative_on_both_sides():
    # tensorflow issue 11091: elu's second derivative used the output of the wrong pass.
    def elu(x):
        return smolgrad.where(x > 0, x, smolgrad.exp(smolgrad.minimum(x, tensor(0.0))) - 1)

    x = leaf([1.0, -2.0])
    (g,) = smolgrad.grad(2 * elu(-x), x, tensor([3.0, 5.0]), create_graph=True)
    np.testing.assert_allclose(g.data, [-6 / np.e, -10.0], rtol=1e-15)
    g.backward(tensor([1.0, 7.0]))
    np.testing.assert_allclose(x.grad.data, [6 / np.e, 0.0], rtol=1e-15)


def hessian(f, *values):
    """All second derivatives of the scalar function f of 0-d tensors."""
    xs = [leaf(v) for v in values]
    first = smolgrad.grad(f(*xs), xs, create_graph=True)
    rows = []
    for g in first:
        row = smolgrad.grad(g, xs, retain_graph=True, allow_unused=True) if g.requires_grad else [None] * len(xs)
        rows.append([0.0 if h is None else h.item() for h in row])
    return rows


LOG4 = np.log(4.0)
HESSIANS = [
    pytest.param(lambda x, y: x**y, (4.0, 0.0), [[0, 0.25], [0.25, LOG4**2]], id="power at exponent 0, jax b8fe0ab8b1"),
    pytest.param(lambda x, y: x**y, (4.0, 1.0), [[0, 1 + LOG4], [1 + LOG4, 4 * LOG4**2]], id="power at exponent 1"),
    pytest.param(
        lambda x, y: x**y, (4.0, 2.0), [[2, 4 + 8 * LOG4], [4 + 8 * LOG4, 16 * LOG4**2]], id="power at exponent 2"
    ),
    pytest.param(lambda x, y: x * y, (3.0, 5.0), [[0, 1], [1, 0]], id="product"),
    pytest.param(lambda x, y: x / y, (3.0, 2.0), [[0, -0.25], [-0.25, 0.75]], id="quotient"),
    pytest.param(lambda x, y: (x * y).exp(), (0.0, 3.0), [[9, 1], [1, 0]], id="exp of a product"),
    pytest.param(lambda x, y: smolgrad.maximum(x * x, y * x), (3.0, 2.0), [[2, 0], [0, 0]], id="maximum"),
    pytest.param(lambda x, y: smolgrad.stack([x, y]).var() * 2, (3.0, 5.0), [[2, -2], [-2, 2]], id="var"),
    pytest.param(lambda x, y: smolgrad.stack([x * x, y]).amax(), (3.0, 5.0), [[2, 0], [0, 0]], id="amax"),
    pytest.param(lambda x, y: smolgrad.stack([x * y, y]).max(0).values, (3.0, 5.0), [[0, 1], [1, 0]], id="max"),
    pytest.param(lambda x, y: F.mse_loss(x, y), (3.0, 5.0), [[2, -2], [-2, 2]], id="mse_loss"),
    pytest.param(lambda x, y: (x * y).clamp(0, 20), (3.0, 5.0), [[0, 1], [1, 0]], id="clamp"),
    pytest.param(lambda x, y: smolgrad.stack([x, y]) @ smolgrad.stack([y, x]), (3.0, 5.0), [[0, 2], [2, 0]], id="dot"),
    pytest.param(
        lambda x, y: smolgrad.cat([x[None], y[None]])[[0, 1, 1]].sum() * x, (3.0, 5.0), [[2, 2], [2, 0]], id="pick"
    ),
    pytest.param(lambda x, y: (x * y).expand(3).mean(), (3.0, 5.0), [[0, 1], [1, 0]], id="expand"),
]


@pytest.mark.parametrize(("f", "point", "expected"), HESSIANS)
def test_a_hessian_is_right_and_symmetric(f, point, expected):
    np.testing.assert_allclose(hessian(f, *point), expected, rtol=1e-13, atol=1e-13)


ROUGH = np.array([[0.3, -1.2, 0.8], [1.7, 0.4, -0.6]])
LAYERS = [
    pytest.param(lambda x: x.softmax(1), id="softmax"),
    pytest.param(lambda x: x.log_softmax(0), id="log_softmax"),
    pytest.param(lambda x: x.logsumexp((0, 1)), id="logsumexp"),
    pytest.param(lambda x: x.var(1, correction=1), id="var"),
    pytest.param(lambda x: F.layer_norm(x, (3,), x[0], x[1]), id="layer_norm"),
    pytest.param(lambda x: F.linear(x, x, x[:, 0]), id="linear"),
    pytest.param(lambda x: (x @ x.T) ** 2, id="matmul"),
    pytest.param(lambda x: F.cross_entropy(x, smolgrad.tensor([2, 0])), id="cross_entropy"),
    pytest.param(
        lambda x: F.cross_entropy(x, smolgrad.tensor([2, -100]), reduction="none"), id="ignoring cross_entropy"
    ),
    pytest.param(lambda x: F.embedding(smolgrad.tensor([1, 1, 0]), x).exp(), id="embedding"),
    pytest.param(lambda x: x[:, [0, 0, 2]] ** 3, id="repeated picks"),
    pytest.param(lambda x: (x.T.reshape(2, 3) * x).sum(0) ** 2, id="reshape"),
    pytest.param(lambda x: (x.mean(0) * x.sum(1, keepdim=True)).tanh(), id="mean and sum"),
    pytest.param(lambda x: smolgrad.stack([x.sigmoid(), x.exp()], 1).permute(2, 0, 1)[1], id="stack"),
]


@pytest.mark.parametrize("f", LAYERS)
def test_the_gradient_of_a_gradient_is_its_central_difference(f):
    # The slope, in a drawn direction, of the gradient that the first-order path of arrays gives.
    v = np.array([[1.0, -2.0, 0.5], [0.25, 1.5, -1.0]])

    def gradient(values, create_graph=False):
        x = leaf(values)
        y = f(x)
        w = tensor(1.0 + np.arange(y.size).reshape(y.shape) % 5)
        return x, smolgrad.grad(y, x, w, create_graph=create_graph)[0]

    x, g = gradient(ROUGH, create_graph=True)
    np.testing.assert_allclose(g.data, gradient(ROUGH)[1].data, rtol=1e-13)
    (second,) = smolgrad.grad(g, x, tensor(v))
    step = 2.0**-10
    sides = [gradient(ROUGH + k * step * v)[1].data for k in (1, -1, 2, -2)]
    difference = (8 * (sides[0] - sides[1]) - (sides[2] - sides[3])) / (12 * step)
    # A Hessian is symmetric, so that the slope of the gradient along v is the gradient of its product with v.
    np.testing.assert_allclose(second.data, difference, rtol=1e-7, atol=1e-8)
    assert np.abs(second.data).max() > 0.1


def test_create_graph_on_raw_arrays_would_lose_the_second_order():
    x = leaf([1.0, 2.0])
    (x**3).backward(tensor([3.0, 5.0]), create_graph=True)
    assert x.grad.requires_grad
    assert x.grad.data.tolist() == [9.0, 60.0]
    g = x.grad
    x.grad = None
    g.backward(tensor([1.0, 10.0]))
    assert x.grad.data.tolist() == [18.0, 600.0]


def test_without_create_graph_a_gradient_is_a_constant():
    x = leaf([1.0, 2.0])
    (x**3).backward(tensor([3.0, 5.0]))
    assert not x.grad.requires_grad
    assert not smolgrad.grad(x**3, x, tensor([3.0, 5.0]))[0].requires_grad


def test_the_seed_of_a_recorded_sweep_is_differentiated_too():
    x, seed = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    (g,) = smolgrad.grad(x**3, x, seed, create_graph=True)
    g.backward(tensor([1.0, 10.0]))
    assert seed.grad.data.tolist() == [3.0, 120.0]
    assert x.grad.data.tolist() == [18.0, 600.0]


def test_a_recorded_gradient_accumulates_with_its_graph():
    x = leaf([1.0, 2.0])
    for _ in range(2):
        (x**3).backward(tensor([3.0, 5.0]), create_graph=True)
    assert x.grad.data.tolist() == [18.0, 120.0]
    (second,) = smolgrad.grad(x.grad, x, tensor([1.0, 10.0]))
    assert second.data.tolist() == [36.0, 1200.0]
    x.grad = None


def test_create_graph_keeps_the_graph_it_came_from():
    x = leaf([1.0, 2.0])
    y = x**3
    (g,) = smolgrad.grad(y, x, tensor([3.0, 5.0]), create_graph=True)
    y.backward(tensor([1.0, 1.0]))
    assert x.grad.data.tolist() == [3.0, 12.0]
    with pytest.raises(RuntimeError, match="already swept"):
        y.backward(tensor([1.0, 1.0]))
    assert g.data.tolist() == [9.0, 60.0]


def test_create_graph_records_inside_no_grad():
    x = leaf([1.0, 2.0])
    y = x**3
    with smolgrad.no_grad():
        (g,) = smolgrad.grad(y, x, tensor([3.0, 5.0]), create_graph=True)
    assert g.requires_grad
    g.backward(tensor([1.0, 10.0]))
    assert x.grad.data.tolist() == [18.0, 600.0]


def test_a_penalty_on_the_gradient_trains_the_weights():
    x, w = leaf([1.0, 2.0]), leaf([0.5, -1.0])
    (g,) = smolgrad.grad((w * x * x).sum(), x, create_graph=True)
    ((g * g).sum() * 3).backward()
    # g = 2 w x, so the penalty is 12 w^2 x^2.
    np.testing.assert_allclose(w.grad.data, [24 * 0.5, 24 * -4.0])
    np.testing.assert_allclose(x.grad.data, [24 * 0.25, 24 * 2.0])


def test_a_gradient_that_does_not_depend_on_its_input_says_so():
    # HIPS/autograd 5eb58d8: a wrapper stripped one level too many.
    x = leaf([1.0, 2.0])
    (g,) = smolgrad.grad(x * 3, x, tensor([1.0, 10.0]), create_graph=True)
    assert g.data.tolist() == [3.0, 30.0]
    assert not g.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        g.backward(tensor([1.0, 1.0]))
