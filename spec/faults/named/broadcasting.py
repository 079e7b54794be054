"""BRD: what a stretched operand gets."""

from __future__ import annotations

from typing import Any

import numpy as np

from smolgrad import autograd

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("BRD")

VJP = "vjp_matches_finite_differences"


def _stretched(x: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] != 1)


def _leading(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return x.sum(axis=tuple(range(x.ndim - len(shape))))


@fault(1, f"{VJP}[add]", "M004")
def nothing_is_summed_down() -> Planted:
    """The gradient keeps the shape of the output."""
    return seams.summed_down(lambda right, x, shape: x)


@fault(1, f"{VJP}[maximum]", "M005")
def stretched_axes_are_averaged() -> Planted:
    """The mean for the sum."""

    def wrong(right: Any, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        total = right(x, shape)
        return total * (total.size / x.size) if x.size else total

    return seams.summed_down(wrong)


@fault(1, f"{VJP}[mul]", "M006")
def only_leading_axes_are_summed() -> Planted:
    """Axes of size 1 that were stretched are left."""
    return seams.summed_down(lambda right, x, shape: _leading(x, shape))


@fault(1, f"{VJP}[mul]", "M007")
def only_axes_of_one_are_summed() -> Planted:
    """Leading axes that were added are left."""
    return seams.summed_down(
        lambda right, x, shape: x.sum(axis=_stretched(x, shape), keepdims=True) if x.ndim == len(shape) else x
    )


@fault(2, f"{VJP}[add]", "M023")
def only_the_first_stretched_axis_is_summed() -> Planted:
    """Two stretched axes are one too many."""

    def wrong(right: Any, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        x = _leading(x, shape)
        return x.sum(axis=_stretched(x, shape)[:1], keepdims=True)

    return seams.summed_down(wrong)


@fault(2, f"{VJP}[where]", "M025")
def a_0d_branch_is_not_summed() -> Planted:
    """where(condition, x, 0-d): the 0-d branch takes the first element of its gradient."""

    def wrong(gradient: Any, g: Any, y: Any, a: Any, b: Any, condition: Any) -> Any:
        return gradient.reshape(-1)[:1].reshape(()) if np.shape(b) == () and gradient.size else gradient

    return seams.changed("where", 1, wrong)


@fault(3, f"{VJP}[add]", "M077")
def what_was_stretched_to_nothing_is_not_summed() -> Planted:
    """Axes longer than 1 are summed, those of size 0 kept."""

    def wrong(right: Any, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        x = _leading(x, shape)
        return x.sum(axis=tuple(i for i in _stretched(x, shape) if x.shape[i] > 1), keepdims=True)

    return seams.summed_down(wrong)


@fault(4, f"{VJP}[mul]")
def trailing_axes_for_leading_ones() -> Planted:
    """A row stretched down a square is summed along it: the shape does not give that away."""

    def wrong(right: Any, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        lead = x.ndim - len(shape)
        other = x.sum(axis=tuple(range(-lead, 0)))
        return other if lead and other.shape == shape else right(x, shape)

    return seams.summed_down(wrong)


@fault(2, f"{VJP}[sub]")
def the_largest_for_the_sum() -> Planted:
    """max over what an operand was stretched to, where it is one axis."""

    def wrong(right: Any, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        axes = _stretched(x, shape) if x.ndim == len(shape) else ()
        return x.max(axis=axes, keepdims=True) if len(axes) == 1 and x.size else right(x, shape)

    return seams.summed_down(wrong)


@fault(3, f"{VJP}[div]")
def summed_in_float32() -> Planted:
    """The sum down is formed in float32: exact wherever the numbers are."""
    return seams.summed_down(lambda right, x, shape: right(x.astype("float32"), shape).astype(x.dtype))


@fault(3, f"{VJP}[add]")
def nothing_sums_to_one() -> Planted:
    """An operand stretched over an axis of size 0 has slope 1, not 0."""
    return seams.summed_down(lambda right, x, shape: right(x, shape) if x.size else np.ones(shape, x.dtype))


@fault(3, "second_order_matches_finite_differences_of_the_gradient[mul]")
def the_sum_is_pulled_back_as_a_mean() -> Planted:
    """First order is right; the gradient of the sum down is divided by what was summed."""

    def rule(g: Any, _y: Any, _x: Any, *, shape: Any) -> Any:
        return autograd.expand(g, shape=_x.shape) * (g.size / max(1, _x.size))

    return seams.rules("unbroadcast", rule)


@fault(3, f"{VJP}[mul]")
def a_0d_operand_gets_one_row() -> Planted:
    """A 0-d operand's gradient is summed over all axes but the first."""

    def wrong(right: Any, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(x[0].sum()) if shape == () and x.size else right(x, shape)

    return seams.summed_down(wrong)


@fault(3, f"{VJP}[matmul]")
def one_matrix_of_the_batch_counts() -> Planted:
    """A matrix that meets a batch gets the product of the first pair."""

    def first(gradient: Any, g: Any, y: Any, a: Any, b: Any) -> Any:
        lead = gradient.ndim - b.ndim
        return gradient[(0,) * lead] if lead and gradient.size else gradient

    return seams.changed("matmul", 1, first)


@fault(4, f"{VJP}[add]")
def equal_sizes_are_never_stretched() -> Planted:
    """(1, 3) beside (3, 3): as many elements in a row as in a column, and the wrong axis is summed."""

    def wrong(right: Any, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if x.ndim == len(shape) == 2 and x.shape[0] == x.shape[1] != 1 and sorted(shape) == [1, x.shape[0]]:
            return x.sum(axis=shape.index(x.shape[0])).reshape(shape)
        return right(x, shape)

    return seams.summed_down(wrong)
