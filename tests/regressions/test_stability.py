"""Numbers too large, too small or too close together for the formula as it stands in the book."""

import numpy as np
import pytest
import torch

import smolgrad
from smolgrad import functional as F
from tests.regressions.tensors import leaf, tensor


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("f", "slopes"),
    [
        pytest.param(smolgrad.sigmoid, [0, 0, 0, 0], id="sigmoid"),
        pytest.param(smolgrad.tanh, [0, 0, 0, 0], id="tanh"),
        pytest.param(smolgrad.relu, [0, 0, 1, 1], id="relu"),
        pytest.param(lambda x: x.clamp(-5, 5), [0, 0, 0, 0], id="clamp"),
        pytest.param(lambda x: smolgrad.stack([x, -x]).logsumexp(0), [-1, -1, 1, 1], id="softplus as a logsumexp"),
        pytest.param(lambda x: smolgrad.stack([x, -x]).softmax(0)[0], [0, 0, 0, 0], id="softmax"),
        pytest.param(lambda x: smolgrad.stack([x, -x]).log_softmax(0)[0], [2, 2, 0, 0], id="log_softmax"),
    ],
)
def test_far_from_zero_slopes_are_finite_and_right(f, slopes, dtype):
    # jax PR 1538: the branch not taken overflowed, and its slope of NaN came through.
    w = [3.0, 5.0, 7.0, 11.0]
    x = leaf([-1e4, -1e3, 1e3, 1e4], dtype)
    y = f(x)
    y.backward(tensor(w, dtype))
    assert np.isfinite(y.data).all()
    np.testing.assert_array_equal(x.grad.data, np.array(w) * slopes)


@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_half_powers_are_roots_at_the_ends_too(exponent):
    x = np.array([-0.0, 0.0, -np.inf, np.inf])
    found, want = (tensor(x) ** exponent).data, (torch.tensor(x) ** exponent).numpy()
    np.testing.assert_array_equal(found, want)
    numbers = ~np.isnan(want)  # a NaN has no sign
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize(("a", "b"), [(0.0, 0.0), (1e-170, -1e-170)])
def test_the_slopes_of_an_angle_whose_squares_vanish_are_pytorchs(a, b):
    found = []
    for library, tensor_of in ((smolgrad, tensor), (torch, lambda x: torch.tensor(x, dtype=torch.float64))):
        x, y = (tensor_of(value).requires_grad_() for value in (a, b))
        library.atan2(x, y).backward()
        found.append([x.grad.item(), y.grad.item()])
    assert found[0] == found[1] == [0, 0]


@pytest.mark.parametrize(("a", "b"), [(2.0**60, 1.0), (1.0, -(2.0**60)), (0.1, 0.7)])
def test_lerp_is_exact_at_both_ends(a, b):
    # a + 1 * (b - a) is 0 where b is lost in the difference.
    for spelled in (float, lambda weight: tensor([weight])):
        assert smolgrad.lerp(tensor([a]), tensor([b]), spelled(0.0)).item() == a
        assert smolgrad.lerp(tensor([a]), tensor([b]), spelled(1.0)).item() == b


def test_sigmoid_keeps_its_lower_tail():
    # 1 - 1 / (1 + e^x) is 0 below -37; the tail itself is e^x.
    x = leaf([-50.0, -700.0])
    y = x.sigmoid()
    np.testing.assert_allclose(y.data, np.exp([-50.0, -700.0]), rtol=1e-12)
    y.backward(tensor([3.0, 5.0]))
    np.testing.assert_allclose(x.grad.data, np.exp([-50.0, -700.0]) * [3, 5], rtol=1e-12)


@pytest.mark.parametrize(
    ("base", "exponent", "slope"),
    [(1e-200, 2, 2e-200), (1e200, 2, 2e200), (1e-160, 3, 3e-320), (-1e-200, 2, -2e-200), (1e110, 3, 3e220)],
)
@pytest.mark.parametrize("spelled", ["number", "tensor"])
def test_the_slope_of_a_power_is_right_where_the_power_itself_over_or_underflows(base, exponent, slope, spelled):
    # tinygrad 990c240b82: y * b / x, where y is 0 or infinite.
    x = leaf([base])
    (x ** (exponent if spelled == "number" else tensor([exponent]))).backward(tensor([3.0]))
    np.testing.assert_allclose(x.grad.data, [3 * slope], rtol=1e-4 if abs(slope) < 1e-300 else 1e-14)


@pytest.mark.parametrize(("a", "b"), [(1e200, 1e-200), (1e-200, 1e200), (1e300, 1e155)])
def test_the_slopes_of_a_quotient_are_right_where_squares_are_not(a, b):
    # -a / b**2: the square overflows, or is 0, where the quotient y / b is a number (or overflows by right).
    x, y = leaf([a]), leaf([b])
    (x / y).backward(tensor([3.0]))
    np.testing.assert_allclose(x.grad.data, [3 / b], rtol=1e-14)
    np.testing.assert_allclose(y.grad.data, [-3 * (a / b / b)], rtol=1e-14)


@pytest.mark.parametrize(
    ("f", "shift", "digits"),
    [
        pytest.param(lambda x: x.var(correction=0), 1e4, 1e-6, id="var, MyGrad 285"),
        pytest.param(lambda x: x.var(0, correction=1), 1e6, 1e-6, id="var over an axis"),
        pytest.param(lambda x: F.layer_norm(x, (4,), eps=0.0), 1e4, 1e-5, id="layer_norm"),
        pytest.param(lambda x: x.softmax(0), 1e6, 1e-6, id="softmax"),
        pytest.param(lambda x: x.log_softmax(0), 1e6, 1e-6, id="log_softmax"),
        pytest.param(lambda x: F.cross_entropy(x, smolgrad.tensor(2)), 1e4, 1e-2, id="cross_entropy"),
    ],
)
def test_a_shift_of_all_elements_changes_nothing_in_float32(f, shift, digits):
    values = np.array([0.0, 1.0, 2.0, 5.0])
    results = []
    for offset, dtype in ((0.0, "float64"), (shift, "float32")):
        x = leaf(values + offset, dtype)
        y = f(x)
        y.backward(tensor(1.0 + np.arange(y.size).reshape(y.shape) ** 2, dtype))
        results.append((y.data, x.grad.data))
    (value, slope), (shifted, slope_shifted) = results
    np.testing.assert_allclose(shifted, value, rtol=digits)
    np.testing.assert_allclose(slope_shifted, slope, rtol=2e-5, atol=2e-5 * np.abs(slope).max())
    assert np.abs(slope).max() > 0.01


def test_a_small_variance_beside_a_large_mean():
    x = leaf([1e4, 1e4 + 1, 1e4 + 2], "float32")
    y = x.var(correction=0)
    assert y.item() == pytest.approx(2 / 3, rel=1e-6)
    y.backward(tensor(3.0, "float32"))
    np.testing.assert_allclose(x.grad.data, [-2.0, 0.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("op", ["log_softmax", "softmax", "logsumexp"])
def test_each_lane_is_shifted_by_its_own_largest(op, dim):
    # With one shift for all lanes, one that lies 1000 below has exp(x - shift) = 0 everywhere.
    low, high = np.array([1.0, 2.0, 4.0]), np.array([0.0, 3.0, 1.0])
    w = np.array([3.0, -5.0, 7.0])

    def run(values, weights):
        x = leaf(values)
        y = getattr(x, op)(dim if np.ndim(values) > 1 else 0)
        y.backward(tensor(weights))
        return y.data, x.grad.data

    both = np.stack([low - 1000, high + 1000], 1 - dim)
    weights = w[:2] if op == "logsumexp" else np.stack([w, 2 * w], 1 - dim)
    value, slope = run(both, weights)
    for i, (lane, offset) in enumerate(((low, -1000), (high, 1000))):
        alone, slope_alone = run(lane + offset, w[i] if op == "logsumexp" else (i + 1) * w)
        np.testing.assert_allclose(value[i] if op == "logsumexp" else value.take(i, 1 - dim), alone, rtol=1e-13)
        np.testing.assert_allclose(slope.take(i, 1 - dim), slope_alone, rtol=1e-13)
        assert np.abs(slope_alone).max() > 0.1


@pytest.mark.parametrize("logit", [1e3, 1e4, -1e4])
def test_cross_entropy_is_linear_in_a_hopeless_logit(logit):
    x = leaf([[logit, 0.0], [0.0, logit]])
    loss = F.cross_entropy(x, smolgrad.tensor([1, 0]), reduction="none")
    loss.backward(tensor([3.0, 5.0]))
    expected = max(logit, 0.0)
    assert loss.data.tolist() == [expected, expected]
    on = 1.0 if logit > 0 else 0.0
    assert x.grad.data.tolist() == [[3 * on, -3 * on], [-5 * on, 5 * on]]


def test_the_loss_of_a_sure_and_right_answer_does_not_round_to_zero():
    # log(1 + e^-50) in float64 is 0; a loss of log(softmax) has a slope of 0 there, this one has e^-50.
    x = leaf([[50.0, 0.0]])
    F.cross_entropy(x, smolgrad.tensor([0])).backward(tensor(4.0))
    np.testing.assert_allclose(x.grad.data[0, 1], 4 * np.exp(-50.0), rtol=1e-12)


@pytest.mark.parametrize("x", [5e-324, 1e-310, 1e-200, -1e-200])
def test_the_smallest_numbers_keep_their_slopes(x):
    # MyGrad 9584b50f guarded x == 0 only, and divided by a square that is 0 for |x| = 1e-200.
    for op, slope in [("tanh", 1.0), ("sigmoid", 0.25), ("exp", 1.0), ("abs", np.sign(x)), ("relu", float(x > 0))]:
        t = leaf([x])
        getattr(smolgrad, op)(t).backward(tensor([3.0]))
        assert t.grad.data.tolist() == [3 * slope], op


def test_a_long_float32_sum_and_mean_do_not_stall():
    # One running float32 sum of ones stops at 2**24.
    n = 2**24 + 2**16
    x = smolgrad.ones(n)
    assert x.sum().item() == n
    assert x.mean().item() == 1.0
