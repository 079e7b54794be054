"""SNG: singular points, where a formula divides by zero and the function does not."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad import functional
from smolgrad.autograd import value_of
from smolgrad.primitives import reduction
from smolgrad.primitives.elementwise import where

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("SNG")

SPECIAL = "special_values_are_pytorchs"


@fault(2, f"{SPECIAL}[Tensor.__pow__]", "M038")
def a_power_without_its_singular_points() -> Planted:
    """b·a^(b-1), which is 0·inf where a = b = 0."""
    return seams.rules("pow", lambda g, _y, a, b: g * (b * a ** (b - 1)), None)


@fault(2, "regressions/test_singular::test_layer_norm_of_a_constant_lane_is_its_bias", "M039")
def divided_by_a_spread_of_nothing() -> Planted:
    """layer_norm's rule without ``eps``: 0/0 for a constant lane."""

    def rule(g: Any, y: Any, x: Any, *, dims: Any, eps: float) -> Any:
        s = reduction.var(x, dims, correction=0, keepdim=True) ** 0.5
        return (g - reduction.mean(g, dims, True) - y * reduction.mean(g * y, dims, True)) / s

    return seams.rules("standardize", rule)


@fault(3, "vjp_matches_finite_differences[pow]", "M094")
def an_exponent_of_zero_has_slope_one() -> Planted:
    """Where the exponent is 0 the slope in the base is taken for that of the exponent 1."""
    return seams.changed("pow", 0, lambda gradient, g, y, a, b: where(b == 0, g, gradient) if np.ndim(b) else gradient)


@fault(3, "regressions/test_singular::test_where_selects_and_never_multiplies")
def where_multiplies() -> Planted:
    """g·mask: 0·inf is NaN, in the branch that was not taken."""

    def times(mask: Any, g: Any) -> Any:
        return g * seams.like(g, mask.astype(g.dtype))

    return seams.together(
        seams.rules(
            "where",
            lambda g, _y, _a, _b, *, condition: times(condition, g),
            lambda g, _y, _a, _b, *, condition: times(~condition, g),
        ),
        seams.rules("relu", lambda g, y, _x: g * seams.like(g, (value_of(y) > 0).astype(g.dtype))),
    )


@fault(3, f"{SPECIAL}[sqrt]")
def an_infinite_slope_is_made_zero() -> Planted:
    """The root at 0 is flat: its slope guarded by ``where``."""
    return seams.rules("sqrt", lambda g, y, _x: where(y == 0, 0, g / (2 * where(y == 0, 1, y))))


@fault(3, f"{SPECIAL}[log]")
def the_logarithm_of_at_least_a_little() -> Planted:
    """g / max(x, 1e-12): finite at 0, and right from there on."""
    return seams.changed("log", 0, lambda gradient, g, y, x: g / seams.like(x, np.maximum(value_of(x), 1e-12)))


@fault(4, f"{SPECIAL}[div]")
def nan_to_num_after_a_quotient() -> Planted:
    """What is not finite becomes 0 or the largest number."""

    def tidy(gradient: Any, *_: Any) -> Any:
        return seams.like(gradient, np.nan_to_num(value_of(gradient)))

    return seams.changed("div", 0, tidy)


@fault(3, "regressions/test_singular::test_the_variance_of_one_element_is_nan_only_where_nothing_is_left_to_divide_by")
def the_variance_of_one_element_is_zero() -> Planted:
    """Nothing left to divide by counts as 1."""
    right = reduction._degrees
    return patch.object(reduction, "_degrees", lambda *args: right(*args) or 1.0)


@fault(3, "regressions/test_singular::test_logsumexp_of_infinite_lanes")
def a_lane_of_minus_infinity_is_nan() -> Planted:
    """logsumexp subtracts its largest element even where that is infinite."""

    def forward(x: np.ndarray, dims: Any, keepdim: bool) -> Any:
        with np.errstate(all="ignore"):
            top = np.max(x, axis=dims, keepdims=True, initial=-np.inf)
            y = np.log(np.sum(np.exp(x - top), axis=dims, keepdims=True)) + top
        return y if keepdim else y.reshape(tuple(n for i, n in enumerate(x.shape) if i not in dims))

    return seams.forward("logsumexp", forward)


@fault(3, "values_match_pytorch[functional.scaled_dot_product_attention]")
def a_query_that_sees_nothing_is_nan() -> Planted:
    """The softmax of a row that is masked whole is 0 / 0."""

    def weights(query: Any, key: Any, mask: Any = None, dropout_p: float = 0.0, scale: float | None = None) -> Any:
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
        if mask is not None:
            scores = where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        return functional.softmax(scores, -1)

    return patch.object(functional, "attention_weights", weights)
