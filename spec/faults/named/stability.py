"""STB: right on paper, and not in floating point."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad.primitives import fused, reduction
from smolgrad.primitives.elementwise import exp

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("STB")

FILE = "regressions/test_stability"
FAR = f"{FILE}::test_far_from_zero_slopes_are_finite_and_right"
SPECIAL = "special_values_are_pytorchs"


@fault(1, f"{SPECIAL}[functional.softmax]", "M012")
def softmax_without_its_shift() -> Planted:
    """exp of the logits themselves, which overflows from 710 on."""
    return patch.object(fused, "_shifted", lambda x, lane: x)


@fault(2, FAR, "M045")
def a_sigmoid_of_large_powers() -> Planted:
    """e^x/(1 + e^x)², which is inf/inf far from 0."""
    return seams.rules("sigmoid", lambda g, _y, x: g * exp(x) / ((1 + exp(x)) ** 2))


@fault(3, f"{FILE}::test_each_lane_is_shifted_by_its_own_largest", "M096")
def one_shift_for_all_lanes() -> Planted:
    """The largest of all elements is subtracted: lanes far below it underflow."""
    return patch.object(fused, "_shifted", lambda x, lane: x - np.max(x, initial=-np.inf))


@fault(3, f"{FILE}::test_a_small_variance_beside_a_large_mean", "M097")
def variance_in_one_pass() -> Planted:
    """E[x²] - E[x]², which loses all digits where the mean is large."""

    def forward(x: Any, dims: Any, keepdim: bool, correction: float) -> Any:
        n = reduction._count(x.shape, dims)
        spread = (x * x).mean(axis=dims, keepdims=keepdim) - x.mean(axis=dims, keepdims=keepdim) ** 2
        return np.asarray(spread * n / (n - correction), x.dtype)

    return seams.forward("var", forward)


@fault(2, f"{SPECIAL}[logsumexp]")
def logsumexp_without_its_shift() -> Planted:
    """log(sum(exp(x)))."""
    return seams.forward("logsumexp", lambda x, dims, keepdim: np.log(np.sum(np.exp(x), axis=dims, keepdims=keepdim)))


@fault(3, f"{FILE}::test_cross_entropy_is_linear_in_a_hopeless_logit")
def the_logarithm_of_a_softmax() -> Planted:
    """log(softmax(x)): -inf where softmax underflows."""
    return patch.object(fused, "_log_soft_max", lambda x, lane: np.log(fused._soft_max(x, lane)))


@fault(3, f"{FILE}::test_sigmoid_keeps_its_lower_tail")
def a_sigmoid_by_one_minus() -> Planted:
    """1 - 1/(1 + e^x): 0 from -37 on."""
    return seams.forward("sigmoid", lambda x: 1 - 1 / (1 + np.exp(x)))


@fault(4, f"{FILE}::test_the_slopes_of_a_quotient_are_right_where_squares_are_not")
def a_quotient_by_the_square() -> Planted:
    """-g·a/b² for -g·(a/b)/b: b² over- or underflows."""
    return seams.rules("div", None, lambda g, _y, a, b: -g * a / (b * b))


@fault(4, f"{FILE}::test_the_slope_of_a_power_is_right_where_the_power_itself_over_or_underflows")
def a_power_by_its_own_value() -> Planted:
    """g·b·y/a for g·b·a^(b-1): y over- or underflows before its slope does."""
    return seams.changed(
        "pow", 0, lambda gradient, g, y, a, b: g * (y / a * b) if isinstance(g, np.ndarray) else gradient
    )


@fault(4, f"{FILE}::test_a_small_variance_beside_a_large_mean")
def deviations_from_a_float32_mean() -> Planted:
    """The mean that is subtracted has float32's digits: nothing shows near 0."""

    def forward(x: Any, dims: Any, keepdim: bool, correction: float) -> Any:
        mean = x.mean(axis=dims, keepdims=True)
        rough = np.asarray(mean + 0.0).astype("float16").astype(x.dtype)
        deviation = x - np.where(np.abs(mean) > 100, rough, mean)
        total = np.sum(deviation * deviation, axis=dims, keepdims=keepdim)
        return np.divide(total, max(0.0, reduction._count(x.shape, dims) - correction), dtype=x.dtype)

    return seams.forward("var", forward)
