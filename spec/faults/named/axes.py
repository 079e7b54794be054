"""AXS: the right numbers along the wrong axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

import smolgrad
from smolgrad.autograd import Primitive, value_of
from smolgrad.primitives import linalg, reduction, shape
from smolgrad.primitives.elementwise import div

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("AXS")

VJP = "vjp_matches_finite_differences"


@fault(1, f"{VJP}[mean]", "M011")
def a_mean_divided_by_all_elements() -> Planted:
    """mean's rule divides by the size of the input, whatever the axis."""
    right = reduction.mean
    primitive = Primitive(
        "mean",
        lambda x, dims, keepdim: right(x, dims, keepdim),
        lambda g, _y, _x, *, dims, keepdim: div(reduction._spread(g, _x, dims), float(_x.size)),
    )

    def mean(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return primitive(input, dims=reduction.axes("mean", dim, input.ndim), keepdim=keepdim)

    return patch.object(smolgrad, "mean", mean)


@fault(2, f"{VJP}[functional.softmax]", "M031")
def softmax_along_the_last_axis() -> Planted:
    """The rule's axis is -1, whatever the call's."""
    return seams.rules("softmax", lambda g, y, _x, *, lane: y * (g - reduction.sum(g * y, -1, True)))


@fault(2, f"{VJP}[sum]", "M033")
def kept_axes_are_put_back_again() -> Planted:
    """With ``keepdim`` the axes that are still there are inserted once more."""

    def rule(g: Any, _y: Any, _x: Any, *, dims: Any, keepdim: bool) -> Any:
        at = g if not keepdim else shape.reshape(g, _inserted(g.shape, dims))
        return reduction._spread(g, _x, dims) if not keepdim else reduction.expand(at, shape=_x.shape)

    return seams.rules("sum", rule)


def _inserted(kept: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """``kept``, a reduced shape, with a 1 put back at each of ``dims`` in turn."""
    for d in dims:
        kept = kept[:d] + (1,) + kept[d:]
    return kept


@fault(2, f"{VJP}[cat]", "M035")
def a_piece_counted_from_the_end() -> Planted:
    """``[low:-rest]``, with nothing left after it."""

    def rule(g: Any, _y: Any, *_inputs: Any, lane: int, bounds: Any, position: int) -> Any:
        rest = bounds[position + 1] - bounds[-1]
        return g[(slice(None),) * lane + (slice(bounds[position], rest),)]

    return seams.rules("cat", rule)


def _put_back_wrongly(order: Callable[[Any, int], tuple[int, ...]]) -> Planted:
    named_as_given: list[tuple[int, ...]] = []
    axes = reduction.axes

    def given(op: str, dim: Any, ndim: int) -> tuple[int, ...]:
        found = axes(op, dim, ndim)
        named_as_given[:] = [order(dim, ndim) if isinstance(dim, (int, tuple)) and ndim else found]
        return found

    def kept(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
        left = tuple(n for i, n in enumerate(shape) if i not in dims)
        return _inserted(left, named_as_given[0] if named_as_given else dims)

    return seams.together(patch.object(reduction, "axes", given), patch.object(reduction, "_kept", kept))


@fault(3, f"{VJP}[sum]", "M084")
def a_negative_axis_put_back_unnormalised() -> Planted:
    """The reduced axis is put back where its negative number points to in the reduced shape."""
    return _put_back_wrongly(lambda dim, ndim: (dim,) if isinstance(dim, int) else tuple(sorted(d % ndim for d in dim)))


@fault(3, "regressions/test_axes::test_a_reduction_and_its_gradient_mean_the_same_axes", "M085")
def axes_put_back_in_the_order_given() -> Planted:
    """A tuple of axes is not sorted before they are put back."""
    return _put_back_wrongly(lambda dim, ndim: tuple(d % ndim for d in (dim if isinstance(dim, tuple) else (dim,))))


def _variance_over(count: Callable[..., int]) -> Planted:
    def rule(g: Any, _y: Any, x: Any, *, dims: Any, keepdim: bool, correction: float) -> Any:
        degrees = max(0.0, count(x, dims) - correction)
        return reduction._spread(g * 2.0 / degrees, x, dims) * (x - reduction.mean(x, dims, True))

    return seams.rules("var", rule)


@fault(3, f"{VJP}[var]", "M086")
def divided_by_the_first_axis() -> Planted:
    """Of several axes the first is counted."""
    return _variance_over(lambda x, dims: x.shape[dims[0]] if dims else 1)


@fault(3, f"{VJP}[matmul]", "M089")
def all_axes_transposed() -> Planted:
    """``.T`` for ``.mT``: the batch goes along."""
    matmul = linalg._matmul
    return seams.rules("matmul", lambda g, _y, _a, b: matmul(g, shape.T(b)), lambda g, _y, a, _b: matmul(shape.T(a), g))


@fault(3, "values_match_pytorch[logsumexp]", "M090")
def a_squeezed_shift() -> Planted:
    """With ``keepdim`` the shift is added without its axis: silent for one row or column."""
    right = seams.primitive("logsumexp").forward

    def forward(x: Any, dims: Any, keepdim: bool) -> Any:
        if not keepdim:
            return right(x, dims, keepdim)
        top = np.max(x, axis=dims, keepdims=True, initial=-np.inf)
        return np.log(np.sum(np.exp(x - top), axis=dims, keepdims=True)) + top.squeeze(dims)

    return seams.forward("logsumexp", forward)


@fault(3, f"{VJP}[functional.layer_norm]", "M091")
def layer_norm_counts_the_first_axis() -> Planted:
    """The means in the rule are sums over the size of axis 0."""

    def rule(g: Any, y: Any, x: Any, *, dims: Any, eps: float) -> Any:
        s = (reduction.var(x, dims, correction=0, keepdim=True) + eps) ** 0.5
        n = float(max(1, x.shape[0]))
        return (g - reduction.sum(g, dims, True) / n - y * reduction.sum(g * y, dims, True) / n) / s

    return seams.rules("standardize", rule)


@fault(1, f"{VJP}[var]")
def divided_by_all_elements() -> Planted:
    """The size of the input for that of a lane."""
    return _variance_over(lambda x, dims: x.size)


@fault(2, f"{VJP}[permute]")
def permuted_the_same_way_again() -> Planted:
    """The order of axes for its inverse: wrong from three axes on."""
    return seams.rules("permute", lambda g, _y, _x, *, dims: shape._permute(g, dims=dims))


@fault(2, f"{VJP}[functional.log_softmax]")
def log_softmax_along_the_first_axis() -> Planted:
    """The rule's axis is 0, whatever the call's."""
    exp = smolgrad.exp
    return seams.rules("log_softmax", lambda g, y, _x, *, lane: g - exp(y) * reduction.sum(g, 0, True))


@fault(4, f"{VJP}[functional.softmax]")
def the_other_axis_of_a_square() -> Planted:
    """Where two axes have one size, the rule takes the other: neither shape nor sum gives it away."""

    def rule(g: Any, y: Any, _x: Any, *, lane: int) -> Any:
        other = 1 - lane if y.ndim == 2 and y.shape[0] == y.shape[1] else lane
        return y * (g - reduction.sum(g * y, other, True))

    return seams.rules("softmax", rule)


@fault(4, f"{VJP}[cat]")
def equal_pieces_are_exchanged() -> Planted:
    """Two tensors of one length get each other's piece."""
    right = seams.primitive("cat").pullbacks[0]

    def rule(g: Any, y: Any, *inputs: Any, lane: int, bounds: Any, position: int) -> Any:
        alike = len(inputs) == 2 and 2 * bounds[1] == bounds[2]
        return right(g, y, *inputs, lane=lane, bounds=bounds, position=1 - position if alike else position)

    return seams.rules("cat", rule)


@fault(3, f"{VJP}[reshape]")
def reshaped_columns_first() -> Planted:
    """The rule reads and writes columns first: right for vectors, rows and columns."""

    def rule(g: Any, _y: Any, _x: Any, *, shape: Any) -> Any:
        return g.reshape(_x.shape, order="F") if isinstance(g, np.ndarray) else g.reshape(_x.shape)

    return seams.rules("reshape", rule)


@fault(3, f"{VJP}[var]")
def a_correction_forgotten_where_the_axis_is_kept() -> Planted:
    """With ``keepdim`` the rule divides by the count alone."""

    def wrong(gradient: Any, g: Any, y: Any, x: Any, *, dims: Any, keepdim: bool, correction: float) -> Any:
        count = x.size // max(1, y.size)
        return gradient * ((count - correction) / count) if keepdim and count else gradient

    return seams.changed("var", 0, wrong)


@fault(3, "gradient_at_a_tie_is_right_along_it[amax]")
def ties_counted_over_all_lanes() -> Planted:
    """The shares of a lane are those of all lanes' ties together: right for one lane."""

    def rule(g: Any, y: Any, x: Any, *, dims: Any, keepdim: bool) -> Any:
        best = x == reduction._spread(y, x, dims)
        share = reduction.where(best, reduction._spread(g, x, dims), 0)
        return div(share, float(max(1, int(np.sum(value_of(best)))) / max(1, y.size)))

    return seams.rules("amax", rule)


@fault(3, "values_match_pytorch[unsqueeze]")
def a_new_axis_counted_from_the_old_end() -> Planted:
    """A negative ``dim`` of unsqueeze is counted in the axes that were there before."""
    right = shape.unsqueeze

    def unsqueeze(input: Any, dim: int) -> Any:
        return right(input, dim + input.ndim if isinstance(dim, int) and dim < -1 and input.ndim else dim)

    return patch.object(smolgrad, "unsqueeze", unsqueeze)


@fault(4, "values_match_pytorch[matmul]")
def a_vector_times_a_square_is_transposed() -> Planted:
    """x @ A is A @ x where A is square: both have the right shape."""

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        turned = a.ndim == 2 and a.shape[0] == 1 and b.ndim == 2 and b.shape[0] == b.shape[1]
        return np.matmul(a, b.T if turned else b)

    return seams.forward("matmul", product)


@fault(3, f"{VJP}[Tensor.expand]")
def expanded_axes_summed_from_the_end() -> Planted:
    """Leading axes that expand added are summed as trailing ones, where the shape fits."""

    def wrong(right: Any, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        lead = x.ndim - len(shape)
        turned = np.moveaxis(x, range(lead), range(-lead, 0)) if lead else x
        return right(turned if turned.shape == x.shape else x, shape)

    return seams.summed_down(wrong)
