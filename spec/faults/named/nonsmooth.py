"""NSM: slopes at kinks and ties, which are conventions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad import Tensor
from smolgrad.autograd import Primitive, value_of, wrap
from smolgrad.primitives import elementwise, reduction
from smolgrad.primitives.elementwise import exp, where

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("NSM")

KINKS = "conventions_at_kinks_are_pytorchs"
TIE = "gradient_at_a_tie_is_right_along_it"


@fault(1, f"{KINKS}[relu]", "M018")
def relu_is_steep_at_zero() -> Planted:
    """Slope 1 at 0."""
    return seams.rules("relu", lambda g, y, x: where(x >= 0, g, 0))


def _every_tie(name: str) -> Planted:
    def rule(g: Any, y: Any, x: Any, *, dims: Any, keepdim: bool) -> Any:
        return where(x == reduction._spread(y, x, dims), reduction._spread(g, x, dims), 0)

    return seams.rules(name, rule)


@fault(2, f"{TIE}[amax]", "M041")
def every_tie_gets_it_all() -> Planted:
    """Each of several largest elements gets the whole gradient."""
    return _every_tie("amax")


@fault(2, f"{KINKS}[maximum]", "M042")
def the_left_of_two_equals_gets_it_all() -> Planted:
    """maximum(a, b) is a where they are equal, and so is its slope."""
    return seams.rules("maximum", lambda g, _y, a, b: where(a >= b, g, 0), lambda g, _y, a, b: where(b > a, g, 0))


@fault(2, "regressions/test_nonsmooth::test_the_slope_at_a_kink_is_pytorchs", "M043")
def one_spelling_of_abs_is_steep_at_zero() -> Planted:
    """Of abs(x), x.abs() and smolgrad.abs(x) the method has slope 1 at 0."""
    steep = Primitive("abs", np.abs, lambda g, _y, x: where(x >= 0, g, -g))
    return patch.object(Tensor, "abs", lambda self: steep(self))


@fault(3, f"{KINKS}[clamp]", "M102")
def a_clamp_open_at_one_end() -> Planted:
    """Slope 0 at the lower bound, 1 at the upper."""

    def rule(g: Any, _y: Any, x: Any, *, low: Any, high: Any) -> Any:
        at_low = (x == low) if low is not None else np.zeros(x.shape, bool)
        return where(at_low, 0, where(elementwise._within(x, low, high), g, 0))

    return seams.rules("clamp", rule)


def _near(a: Any, b: Any) -> np.ndarray:
    return np.isclose(value_of(a), value_of(b))


@fault(4, "regressions/test_nonsmooth::test_a_tie_is_an_exact_one", "M136")
def near_ties_are_ties() -> Planted:
    """``isclose`` for ``==``: finite differences agree, as their step is longer than the gap."""
    right = seams.primitive("maximum").pullbacks

    def rule(i: int) -> Callable[..., Any]:
        return lambda g, y, a, b: where(_near(a, b), g / 2, right[i](g, y, a, b))

    return seams.rules("maximum", rule(0), rule(1))


@fault(4, "regressions/test_nonsmooth::test_a_tie_is_an_exact_one")
def near_largest_elements_share() -> Planted:
    """amax's ties by ``isclose``."""

    def rule(g: Any, y: Any, x: Any, *, dims: Any, keepdim: bool) -> Any:
        best = _near(x, reduction._spread(y, x, dims))
        best = wrap(best) if isinstance(x, Tensor) else best
        share = where(best, reduction._spread(g, x, dims), 0)
        return share / reduction._spread(reduction.sum(best, dims, keepdim), x, dims)

    return seams.rules("amax", rule)


@fault(2, f"{TIE}[amin]")
def every_smallest_gets_it_all() -> Planted:
    """amin apart from amax: each tie gets the whole gradient."""
    return _every_tie("amin")


@fault(3, f"{KINKS}[minimum]")
def the_right_of_two_equals_gets_it_all() -> Planted:
    """minimum apart from maximum: the second operand wins ties."""
    return seams.rules("minimum", lambda g, _y, a, b: where(a < b, g, 0), lambda g, _y, a, b: where(b <= a, g, 0))


@fault(3, f"{KINKS}[clamp]")
def a_clamp_open_at_both_ends() -> Planted:
    """Slope 0 at either bound."""

    def rule(g: Any, _y: Any, x: Any, *, low: Any, high: Any) -> Any:
        above = x > low if low is not None else np.ones(x.shape, bool)
        below = x < high if high is not None else np.ones(x.shape, bool)
        return where(above & below, g, 0)

    return seams.rules("clamp", rule)


@fault(4, f"{KINKS}[abs]")
def abs_has_the_slope_of_zeros_sign() -> Planted:
    """``copysign``: +1 at 0.0 and -1 at -0.0."""
    return seams.changed("abs", 0, lambda gradient, g, y, x: g * seams.like(x, np.copysign(1.0, value_of(x))))


@fault(4, "special_values_are_pytorchs[relu]")
def relu_of_nan_has_no_slope() -> Planted:
    """``where(y > 0, g, 0)``, which is the same but for NaN."""
    return seams.rules("relu", lambda g, y, _x: where(y > 0, g, 0))


@fault(3, f"{KINKS}[max]")
def max_over_a_dim_takes_the_last_of_those_tied() -> Planted:
    """Index and slope go to the last."""
    right = reduction._places

    def last(place: Any, x: Any, lane: int | None, keepdim: bool) -> Any:
        if lane is None or not x.ndim:
            return right(place, x, lane, keepdim)
        values = np.flip(value_of(x), lane)
        return np.asarray(values.shape[lane] - 1 - place(values, axis=lane, keepdims=keepdim))

    return patch.object(reduction, "_places", last)


@fault(3, "regressions/test_nonsmooth::test_ties_over_all_elements_share_evenly")
def max_of_all_goes_to_the_first() -> Planted:
    """max() without a dim gives its slope to the first of those tied, as with one."""
    return seams.rules("amax", _of_the_first)


def _of_the_first(g: Any, y: Any, x: Any, *, dims: Any, keepdim: bool) -> Any:
    best = value_of(x == reduction._spread(y, x, dims))
    if dims == tuple(range(best.ndim)):
        best = (np.arange(best.size) == best.argmax()).reshape(best.shape)
    return where(best, reduction._spread(g, x, dims), 0)


@fault(3, "second_derivatives_at_kinks_are_pytorchs[functional.elu]")
def the_curve_left_of_a_kink_is_that_at_it() -> Planted:
    """Right slopes, whose own slope at 0 is that from below."""
    return seams.rules(
        "elu",
        lambda g, _y, x, *, alpha, scale: g * where(x > 0, scale, exp(where(x > 0, 0, x)) * (alpha * scale)),
    )
