"""GCK: the checker itself: generators, oracles and comparisons of this suite that check less than they say.

The engine is right here, and the suite is not: tests/meta notices, or a property raises a false alarm.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from ... import case
from ...engines.pytorch import PyTorch
from ...generate import shapes, values
from ...oracles import finite_differences
from ..seams import Planted
from . import faults_of

fault = faults_of("GCK")

REACH = "meta/test_reach"
COMPARISON = "meta/test_comparison"


@fault(2, f"{REACH}::test_cotangents", "M067")
def cotangents_of_ones() -> Planted:
    """A gradient that is 0 for every constant cotangent, softmax's say, is never looked at."""
    return patch.object(values, "cotangents", lambda shape: st.just(np.ones(shape)))


@fault(2, f"{COMPARISON}::test_gradients_are_compared_for_each_input", "M068")
def gradients_compared_as_far_as_they_go() -> Planted:
    """``zip`` ends with the shorter one: a gradient that is missing is not missed."""

    def compare(self: Any, got: Any, want: Any, allowed: Any = None) -> None:
        for g, w in list(zip(got, want, strict=False))[:1]:
            self.compare("a gradient", g, w, allowed)

    return patch.object(case.Case, "compare_gradients", compare)


@fault(3, "vjp_matches_finite_differences[exp]", "M118")
def finite_differences_move_a_copy() -> Planted:
    """The function is asked at the same place above and below."""
    right = finite_differences.slopes
    return patch.object(
        finite_differences,
        "slopes",
        lambda function, arrays, weights, affine: right(lambda _: function(arrays), arrays, weights, affine),
    )


def _comparing(change: Any) -> Planted:
    right = case.Case.compare

    def compare(self: Any, what: str, got: Any, want: Any, allowed: Any = None, votes: Any = None) -> None:
        got, want = change(np.asarray(got), np.asarray(want))
        right(self, what, got, want, allowed, votes)

    return patch.object(case.Case, "compare", compare)


@fault(3, f"{COMPARISON}::test_what_is_not_equal_fails", "M119")
def nan_counts_as_zero() -> Planted:
    """``nan_to_num`` on both sides of a comparison."""
    return _comparing(lambda got, want: (_tidy(got), _tidy(want)))


def _tidy(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.nan_to_num(x)) if x.dtype.kind == "f" else x


@fault(4, f"{REACH}::test_values", "M149")
def values_that_avoid_zero() -> Planted:
    """No zero and no tie at zero is ever drawn."""
    return patch.object(values, "_CODES", np.where(values._CODES == 0, 1, values._CODES))


@fault(4, "gradients_match_pytorch[exp]", "M150")
def an_oracle_of_float32() -> Planted:
    """PyTorch is asked in float32: what it says is wrong from the eighth digit on, and the engine is blamed."""
    right = PyTorch.array
    return patch.object(PyTorch, "array", lambda self, x: right(self, x).astype("float32").astype(right(self, x).dtype))


@fault(4, f"{COMPARISON}::test_what_is_not_equal_fails")
def shapes_that_broadcast_are_equal() -> Planted:
    """A row is compared with a column, and (3,) with (1, 3)."""

    def alike(got: np.ndarray, want: np.ndarray) -> Any:
        return (np.resize(got, want.shape) if got.size == want.size else got), want

    return _comparing(alike)


@fault(3, f"{COMPARISON}::test_what_is_not_equal_fails")
def dtypes_are_not_compared() -> Planted:
    """float32 for float64 passes, rounding and all."""
    return _comparing(lambda got, want: (got.astype(want.dtype), want))


@fault(3, f"{COMPARISON}::test_the_tolerance_is_what_it_says")
def a_tolerance_wider_than_the_signal() -> Planted:
    """A part in a thousand where 1e-12 is said."""
    return patch.object(case, "ROUNDING", 1e-3)


@fault(2, f"{COMPARISON}::test_what_is_required_and_does_not_hold_fails")
def what_is_required_is_not_checked() -> Planted:
    """``require`` counts, and never fails."""
    return patch.object(case.Case, "require", lambda *_: None)


@fault(3, f"{COMPARISON}::test_finite_differences_that_are_too_uncertain_fail")
def an_uncertain_oracle_is_believed() -> Planted:
    """However wide the error bar of finite differences is, what lies in it passes."""
    return patch.object(case.Case, "require_narrow", lambda *_: None)


@fault(4, f"{REACH}::test_shapes_and_axes")
def nothing_is_ever_stretched() -> Planted:
    """Operands always have one shape."""
    return patch.object(shapes, "_stretched", lambda shape, code: shape)


@fault(4, f"{REACH}::test_special_values")
def special_values_without_nan() -> Planted:
    """Infinities, zeros and huge numbers, but no NaN."""
    return patch.object(values, "SPECIAL", np.nan_to_num(values.SPECIAL, nan=1.0, posinf=np.inf, neginf=-np.inf))


@fault(4, f"{REACH}::test_kinks_are_kept_clear_by_a_step_and_reached_from_both_sides")
def kinks_approached_from_one_side() -> Planted:
    """Of each kink only the upper side is drawn."""
    right = values.in_domain

    def above(steps: np.ndarray, domain: Any, gap: int = 0) -> np.ndarray:
        return right(np.abs(steps) + int(max(domain.kinks) / values.STEP) if domain.kinks else steps, domain, gap)

    return patch.object(values, "in_domain", above)
