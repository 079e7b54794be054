"""Reductions over axes. ``dim`` is an int, a tuple or list in any order, or None for all; ``()`` reduces nothing."""

from __future__ import annotations

import builtins
import math
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Node, Primitive, expand, like, value_of
from ..dtypes import Number
from .elementwise import abs, div, exp, isnan, maximum, minimum, ne, sign, where, zero
from .indexing import along
from .operands import axes, axis, cast, floating, integer, must_float, refuse_bool, tensor
from .shape import _diagonal, _pad, cat, clone, flip, reshape

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cummax", "cumprod", "cumsum", "logsumexp",
    "max", "mean", "median", "min", "nansum", "norm", "prod", "sort", "std", "sum", "topk", "trace", "var",
]  # fmt: skip


class picked(NamedTuple):
    """What ops give that pick elements along one axis: their values, and where they stand."""

    values: Any
    indices: Any


def _kept(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """``shape`` with its reduced axes kept as 1."""
    return tuple(1 if i in dims else n for i, n in enumerate(shape))


def _spread(g: Any, x: Any, dims: tuple[int, ...]) -> Any:
    """``g``, of the reduced shape, spread over the shape of ``x`` again."""
    return expand(reshape(g, _kept(x.shape, dims)), shape=x.shape)


def _share(g: Any, y: Any, x: Any, *, dims: tuple[int, ...], keepdim: bool) -> Any:
    # Every element that equals its lane's extreme gets the same share, so that the shares of a lane add up to g.
    best = x == _spread(y, x, dims)
    return div(where(best, _spread(g, x, dims), 0), _spread(sum(best, dims, keepdim), x, dims))


def _log_sum_exp(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> Any:
    top = np.max(x, axis=dims, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0)  # a lane of -inf alone is -inf, one with inf is inf: not inf - inf
    with np.errstate(divide="ignore"):
        result = np.log(np.sum(np.exp(x - shift), axis=dims, keepdims=True)) + shift
    return result if keepdim else result.reshape(tuple(n for i, n in enumerate(x.shape) if i not in dims))


def _variance(x: np.ndarray, dims: tuple[int, ...], keepdim: bool, correction: float) -> Any:
    # Two passes: the one-pass E[x^2] - E[x]^2 loses all digits where the mean is large beside the spread.
    deviation = x - x.mean(axis=dims, keepdims=True)
    total = np.sum(deviation * deviation, axis=dims, keepdims=keepdim)
    return np.divide(total, _degrees(x, dims, correction), dtype=x.dtype)


def _degrees(x: Any, dims: tuple[int, ...], correction: float) -> float:
    count = _count(x.shape, dims)
    return count and builtins.max(count - correction, 0.0)  # NaN where the correction is


def _count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    return math.prod(shape[i] for i in dims)


def _extreme(function: Any) -> Any:
    return lambda x, dims, keepdim: function(x, axis=dims, keepdims=keepdim)


_sum = Primitive(
    "sum",
    lambda x, dims, keepdim: np.sum(x, axis=dims, keepdims=keepdim, dtype=x.dtype if x.dtype.kind == "f" else np.int64),
    lambda g, _y, _x, *, dims, keepdim: _spread(g, _x, dims),
)
_amax = Primitive("amax", _extreme(np.max), _share)
_amin = Primitive("amin", _extreme(np.min), _share)
_var = Primitive(
    "var",
    _variance,
    lambda g, _y, x, *, dims, keepdim, correction: (
        _spread(div(g * 2.0, _degrees(x, dims, correction)), x, dims) * (x - mean(x, dims, True))
    ),
)
_std = Primitive(
    "std",
    lambda x, **how: np.sqrt(_variance(x, **how)),
    # Where nothing is spread the slope is 0, by PyTorch's convention.
    lambda g, y, x, **how: _var.pullbacks[0](where(y == 0, 0, g / (where(y == 0, 1, y) * 2)), y, x, **how),
)
_logsumexp = Primitive(
    "logsumexp", _log_sum_exp, lambda g, y, x, *, dims, keepdim: _spread(g, x, dims) * exp(x - _spread(y, x, dims))
)


def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum over ``dim``; of integers and bools in int64. ``dtype``: of the input before, and of the result."""
    x = _in_dtype("sum", input, dtype)
    return _as_dtype(_sum(x, dims=axes("sum", dim, x.ndim), keepdim=keepdim), dtype)


def _in_dtype(op: str, input: Any, dtype: Any) -> Any:
    return _as_dtype(tensor(op, input), dtype)


def _as_dtype(x: Any, dtype: Any) -> Any:
    return x if dtype is None else cast(x, dtype)


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """``sum`` with 0 in the place of each NaN."""
    x = tensor("nansum", input)
    return sum(where(isnan(x), 0, x), axes("nansum", dim, x.ndim), keepdim, dtype=dtype)


def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean over ``dim``; NaN over nothing. RuntimeError for integers, unless a floating ``dtype`` is given."""
    x = must_float("mean", _in_dtype("mean", input, dtype))
    dims = axes("mean", dim, x.ndim)
    return div(_sum(x, dims=dims, keepdim=keepdim), float(_count(x.shape, dims)))


def trace(input: Any) -> Any:
    """The sum of the diagonal of a matrix. RuntimeError for other tensors."""
    x = tensor("trace", input)
    refuse_bool("trace", x, error=NotImplementedError)
    if x.ndim != 2:
        raise RuntimeError(f"trace(): needs two dimensions, got shape {x.shape}")
    return sum(_diagonal(x, offset=0, dim1=0, dim2=1))


def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product of all elements, or over one ``dim``; of integers and bools in int64. ``dtype`` as for ``sum``.

    The slope of an element is the product of the others, zeros among them or not.
    """
    x = _in_dtype("prod", input, dtype)
    lane = None if dim is None else axis("prod", dim, x.ndim)
    kept = tuple(1 if lane in (i, None) else n for i, n in enumerate(x.shape)) if keepdim else None
    line = x if lane is not None and x.ndim else reshape(x, -1)
    y = _prod(line, lane=lane or 0)
    return _as_dtype(y if kept is None else clone(reshape(y, kept)), dtype)


def count_nonzero(input: Any, dim: Any = None) -> Any:
    """How many elements over ``dim`` are not 0, in int64."""
    x = tensor("count_nonzero", input)
    return sum(ne(x, 0), axes("count_nonzero", dim, x.ndim))


def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether one element over ``dim`` is not 0: a bool tensor, of uint8 one of uint8."""
    return _verdict("any", np.any, input, dim, keepdim)


def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether no element over ``dim`` is 0: a bool tensor, of uint8 one of uint8."""
    return _verdict("all", np.all, input, dim, keepdim)


def _verdict(op: str, function: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    x = tensor(op, input)
    found = np.asarray(function(value_of(x), axis=axes(op, dim, x.ndim), keepdims=keepdim))
    return like(x, found.astype(np.uint8) if x.dtype == np.uint8 else found)


def amax(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element over ``dim``, by default all; tied ones share the slope evenly. IndexError over nothing."""
    return _reduced_to_extreme("amax", _amax, input, dim, keepdim)


def amin(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element over ``dim``, by default all; tied ones share the slope evenly. IndexError over nothing."""
    return _reduced_to_extreme("amin", _amin, input, dim, keepdim)


def _reduced_to_extreme(op: str, primitive: Primitive, input: Any, dim: Any, keepdim: bool) -> Any:
    x = tensor(op, input)
    dims = axes(op, dim, x.ndim)
    if dim is None:
        _refuse_nothing(op, x)
    _refuse_empty(op, x.shape, dims)
    return primitive(x, dims=dims, keepdim=keepdim)


def _refuse_nothing(op: str, x: Any) -> None:
    if x.size == 0:
        raise RuntimeError(f"{op}(): needs at least one element, got shape {x.shape}; say which dim to reduce")


def _refuse_empty(op: str, shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    for i in dims:
        if shape[i] == 0:
            raise IndexError(f"{op}(): dim {i} of shape {shape} has size 0; it needs at least one element to pick from")


def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The largest element of all; or over one ``dim``, with indices; or of two tensors, as ``maximum``.

    Over a ``dim`` the slope goes to the element at the index returned, the first of those tied.
    """
    return _extreme_of("max", (amax, maximum, np.argmax), input, dim, keepdim, other)


def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest element of all; or over one ``dim``, with indices; or of two tensors, as ``minimum``.

    Over a ``dim`` the slope goes to the element at the index returned, the first of those tied.
    """
    return _extreme_of("min", (amin, minimum, np.argmin), input, dim, keepdim, other)


def _extreme_of(op: str, forms: tuple[Any, ...], input: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    x, (of_all, of_two, place) = tensor(op, input), forms
    pair = dim if isinstance(dim, (Node, np.ndarray)) else other
    if pair is not None:
        if keepdim or not (dim is None or other is None):
            raise TypeError(f"{op}(): of two tensors it takes neither dim nor keepdim")
        return of_two(x, pair)
    if dim is None:
        _refuse_nothing(op, x)
        return of_all(x, keepdim=keepdim)
    lane = axis(op, dim, x.ndim)
    _refuse_empty(op, x.shape, (lane,) if x.ndim else ())
    return _picked(x, _places(place, x, lane, True), lane, keepdim)


def _places(place: Any, x: Any, lane: int | None, keepdim: bool) -> np.ndarray:
    return np.asarray(place(value_of(x), axis=lane, keepdims=keepdim) if x.ndim else 0, dtype=np.int64)


def _picked(x: Any, places: np.ndarray, lane: int, keepdim: bool = True) -> picked:
    """The elements of ``x`` at ``places`` along ``lane``, each with its slope."""
    indices = like(x, places)
    values = along(x, indices, lane)
    if not keepdim and x.ndim:
        values, indices = (reshape(y, x.shape[:lane] + x.shape[lane + 1 :]) for y in (values, indices))
    return picked(clone(values), indices)  # picking may have given a view


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index (int64) of the largest element, the first of those tied: among all in C order, or along ``dim``."""
    return _index_of("argmax", np.argmax, input, dim, keepdim)


def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index (int64) of the smallest element, the first of those tied: among all in C order, or along ``dim``."""
    return _index_of("argmin", np.argmin, input, dim, keepdim)


def _index_of(op: str, place: Any, input: Any, dim: int | None, keepdim: bool) -> Any:
    x = tensor(op, input)
    refuse_bool(op, x)
    lane = None if dim is None else axis(op, dim, x.ndim)
    _refuse_empty(op, x.shape, axes(op, lane, x.ndim))
    return like(x, _places(place, x, lane, keepdim))


# --- in order ---------------------------------------------------------------------------------------------------------


def _order(x: np.ndarray, lane: int, descending: bool) -> np.ndarray:
    """The places of the elements along ``lane`` in order, equal ones as they stand; NaN counts as the largest."""
    if not x.ndim:
        return np.zeros((), np.int64)
    if descending:
        return x.shape[lane] - 1 - np.flip(_order(np.flip(x, lane), lane, False), lane)
    return np.argsort(x, axis=lane, kind="stable")


def sort(input: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> picked:
    """The elements in order along ``dim``, and where they stood; NaN counts as the largest. Always ``stable``."""
    x = tensor("sort", input)
    lane = axis("sort", dim, x.ndim)
    return _picked(x, _order(value_of(x), lane, descending), lane)


def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> picked:
    """The ``k`` largest elements along ``dim``, or smallest, in order even if not ``sorted``, and where they stand.

    Of equal ones the first. RuntimeError where there are not as many.
    """
    x, count = tensor("topk", input), integer("topk", "k", k)
    refuse_bool("topk", x)
    lane = axis("topk", dim, x.ndim)
    most = x.shape[lane] if x.ndim else 1
    if not 0 <= count <= most:
        raise RuntimeError(f"topk(): k must be from 0 to {most}, the elements along dim {lane}, got {count}")
    order = _order(value_of(x), lane, largest)
    return _picked(x, order[(slice(None),) * lane + (slice(count),)] if x.ndim else order, lane)


def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of all, of an even number the lower one; or over one ``dim``, with indices. NaN where one is.

    Elements that equal the median of all share its slope evenly; over a ``dim`` it goes to the element at the index
    returned: of those tied the one that a stable ``sort`` puts in the middle.
    """
    x = tensor("median", input)
    refuse_bool("median", x, error=NotImplementedError)
    if dim is None:
        if x.dtype.kind != "f":
            _refuse_nothing("median", x)
        return _median(x, keepdim=keepdim)
    lane = axis("median", dim, x.ndim)
    _refuse_empty("median", x.shape, (lane,) if x.ndim else ())
    return _picked(x, _middle(value_of(x), lane), lane, keepdim)


def _middle(x: np.ndarray, lane: int) -> np.ndarray:
    if not x.ndim:
        return np.zeros((), np.int64)
    middle = np.take(_order(x, lane, False), [(x.shape[lane] - 1) // 2], lane)
    nan = x != x
    return np.where(nan.any(axis=lane, keepdims=True), np.argmax(nan, axis=lane, keepdims=True), middle)


def _median_of_all(x: np.ndarray, keepdim: bool) -> np.ndarray:
    line = x.reshape(-1)
    value = line[_middle(line, 0)] if line.size else np.full(1, np.nan).astype(x.dtype)
    return value.reshape((1,) * x.ndim if keepdim else ())


def _even_share(g: Any, y: Any, x: Any, *, keepdim: bool) -> Any:
    equal = (x == y) | (isnan(x) & isnan(y))
    return div(where(equal, g, 0), sum(equal))


_median = Primitive("median", _median_of_all, _even_share)

# --- running ----------------------------------------------------------------------------------------------------------


def _running(function: Any) -> Any:
    return lambda x, lane: function(x, axis=lane, dtype=x.dtype if x.dtype.kind == "f" else np.int64)


def _recur(b: np.ndarray, a: np.ndarray, lane: int, backward: bool) -> np.ndarray:
    s = b.copy()
    rows, factors = np.moveaxis(s, lane, 0), np.moveaxis(a, lane, 0)
    for i in range(1, len(rows)):
        if backward:
            rows[-1 - i] += factors[-i] * rows[-i]
        else:
            rows[i] += factors[i] * rows[i - 1]
    return s


def _later(x: Any, lane: int) -> Any:
    """Each element in the place of the next one of its lane, and 0 in the first."""
    return _pad(x, widths=tuple((1, -1) if i == lane else (0, 0) for i in range(x.ndim)), value=0)


# s[i] = b[i] + a[i] s[i-1], or backward s[i] = b[i] + a[i+1] s[i+1]: each is the other's adjoint in b.
_recurrence: Primitive = Primitive(
    "recurrence",
    _recur,
    lambda g, _y, _b, a, *, lane, backward: _recurrence(g, a, lane=lane, backward=not backward),
    lambda g, y, _b, a, *, lane, backward: _slope_in_factor(
        _recurrence(g, a, lane=lane, backward=not backward), y, lane, backward
    ),
)


def _slope_in_factor(t: Any, s: Any, lane: int, backward: bool) -> Any:
    return _later(t, lane) * s if backward else t * _later(s, lane)


def _before(first: Any, x: Any, lane: int) -> Any:
    """``first`` times the product of all that stands before each element of its lane."""
    return _cumprod(cat([first, x], lane), lane=lane)[(slice(None),) * lane + (slice(0, x.shape[lane]),)]


def _ones(x: Any, lane: int) -> np.ndarray:
    return np.ones(_kept(x.shape, (lane,)), x.dtype)


def _others(g: Any, _y: Any, x: Any, *, lane: int) -> Any:
    # What stands before an element, times g and what stands behind it: nothing is divided by what may be 0.
    after = _before(reshape(g, _kept(x.shape, (lane,))), flip(x, lane), lane)
    return _before(_ones(x, lane), x, lane) * flip(after, lane)


_prod = Primitive("prod", _running(np.prod), _others)
_cumsum: Primitive = Primitive(
    "cumsum", _running(np.cumsum), lambda g, _y, _x, *, lane: flip(_cumsum(flip(g, lane), lane=lane), lane)
)
_cumprod: Primitive = Primitive(
    "cumprod",
    _running(np.cumprod),
    lambda g, _y, x, *, lane: _before(_ones(x, lane), x, lane) * _recurrence(g, x, lane=lane, backward=True),
)


def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The sums of all up to each element along ``dim``; of integers and bools in int64. ``dtype`` as for ``sum``."""
    return _run("cumsum", _cumsum, input, dim, dtype)


def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The products of all up to each element along ``dim``; of integers and bools in int64. ``dtype`` as for ``sum``.

    Slopes are right at zeros. They take a step of Python for each place of the lane.
    """
    return _run("cumprod", _cumprod, input, dim, dtype)


def _run(op: str, primitive: Primitive, input: Any, dim: int, dtype: Any) -> Any:
    x = _in_dtype(op, input, dtype)
    if dtype is not None:
        refuse_bool(op, x, error=NotImplementedError)
    lane = axis(op, dim, x.ndim)
    y = primitive(x, lane=lane) if x.ndim else sum(x)  # a 0-d tensor has no lane, but its sum is a running one
    return _as_dtype(y, dtype)


def cummax(input: Any, dim: int) -> picked:
    """The largest up to each element along ``dim``, and where it stands: of equal ones the last. NaN from the first on.

    The slope goes to the element at the index returned.
    """
    x = tensor("cummax", input)
    lane, values = axis("cummax", dim, x.ndim), value_of(x)
    if not x.ndim:
        return _picked(x, np.zeros((), np.int64), lane)
    leads = (values == np.maximum.accumulate(values, axis=lane)) | (values != values)
    steps = np.arange(x.shape[lane]).reshape(_kept(x.shape, tuple(i for i in range(x.ndim) if i != lane)))
    return _picked(x, np.maximum.accumulate(np.where(leads, steps, 0), axis=lane), lane)


# --- spread and length ------------------------------------------------------------------------------------------------


def var(input: Any, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Any:
    """The variance over ``dim``: squared deviations over count minus ``correction``. RuntimeError for integers."""
    return _spread_of("var", _var, input, dim, correction, keepdim)


def std(input: Any, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Any:
    """The square root of ``var``; its slope is 0 where nothing is spread. RuntimeError for integers."""
    return _spread_of("std", _std, input, dim, correction, keepdim)


def _spread_of(op: str, primitive: Primitive, input: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    x = must_float(op, input)
    correction = 1 if correction is None else correction
    if not isinstance(correction, Number):
        integer(op, "correction", correction)
    return primitive(x, dims=axes(op, dim, x.ndim), keepdim=keepdim, correction=correction)


def _length(x: np.ndarray, p: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    if p == 2:
        return np.sqrt(np.sum(x * x, axis=dims, keepdims=keepdim))
    if np.isinf(p):
        return (np.max if p > 0 else np.min)(np.abs(x), axis=dims, keepdims=keepdim)
    return np.sum(np.abs(x) ** p, axis=dims, keepdims=keepdim) ** (1 / p)


def _slope_of_length(g: Any, y: Any, x: Any, *, p: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    # sign(x) |x|^(p - 1) / y^(p - 1), and 0 where that has no limit: at the zero vector and, below p = 2, for x = 0.
    g, y = _spread(g, x, dims), _spread(y, x, dims)
    if np.isinf(p):
        longest = (abs(x) == y) | isnan(x)
        return where(longest, sign(x) * div(g, _spread(sum(longest, dims, keepdim), x, dims)), 0)
    if p < 2:
        power = where(x == 0, 0, sign(x) * where(x == 0, 1, abs(x)) ** (p - 1))
    else:
        power = x if p == 2 else x * abs(x) ** (p - 2)
    return power * where(y == 0, 0, g * where(y == 0, 1, y) ** (1 - p))


_norm = Primitive("norm", _length, _slope_of_length)


def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of ``|x| ** p`` over ``dim``, to the power 1/p; ``"fro"`` is 2.

    The number of elements that are not 0 for p = 0, the largest or smallest ``|x|`` for p = inf or -inf: tied ones
    share the slope evenly. At the zero vector it is 0. RuntimeError for integers, and over nothing for p < 0 or inf.
    """
    x = must_float("norm", _in_dtype("norm", must_float("norm", input), dtype))
    if x.dtype.itemsize < input.dtype.itemsize:
        raise RuntimeError(f"norm(): dtype {x.dtype} is narrower than the input's, {input.dtype}")
    if p == "nuc":
        raise NotImplementedError("norm(): the nuclear norm of PyTorch's is not offered here")
    dims = axes("norm", dim, x.ndim)
    if p == "fro" and dim is not None and len(dims) > 2:
        raise RuntimeError(f"norm(): p = 'fro' is over one dim or two, got {dim}; p = 2 is the same over any")
    p = 2 if p in ("fro", None) else p
    if not isinstance(p, Number):
        raise RuntimeError(f"norm(): p must be a number or 'fro', got {p!r}")
    if (p < 0 or p == np.inf) and 0 in [x.shape[i] for i in dims]:
        raise RuntimeError(f"norm(): there is no {p}-norm of nothing, got shape {x.shape}")
    if p == 0:
        return sum(where(x == 0, zero(x), 1), dims, keepdim)
    if p == 1 or _count(x.shape, dims) == 1:  # of one number, which its power need not hold
        return sum(abs(x), dims, keepdim)
    return _norm(x, p=p, dims=dims, keepdim=keepdim)


def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """log of the sum of exp over ``dim``, by shifting each lane by its largest: no element overflows."""
    x = floating("logsumexp", input)
    return _logsumexp(x, dims=axes("logsumexp", dim, x.ndim), keepdim=keepdim)
