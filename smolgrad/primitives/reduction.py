"""Reductions over axes. ``dim`` is an int, a tuple or list in any order, or None for all; ``()`` reduces nothing."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from ..autograd import Node, Primitive, expand, wrap
from .elementwise import div, exp, maximum, where
from .indexing import along
from .operands import Number, axes, axis, floating, integer, must_float, refuse, refuse_bool, tensor
from .shape import clone, reshape

__all__ = ["amax", "amin", "argmax", "logsumexp", "max", "mean", "sum", "var"]


class max_result(NamedTuple):
    """What ``max(input, dim)`` gives: the largest values and where they stand."""

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
    return builtins.max(0.0, _count(x.shape, dims) - correction)


def _count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    count = 1
    for i in dims:
        count *= shape[i]
    return count


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
_logsumexp = Primitive(
    "logsumexp",
    _log_sum_exp,
    lambda g, y, x, *, dims, keepdim: _spread(g, x, dims) * exp(x - _spread(y, x, dims)),
)


def sum(input: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """The sum over ``dim``; of integers and bools in int64."""
    refuse("sum", options, "dtype out")
    x = tensor("sum", input)
    return _sum(x, dims=axes("sum", dim, x.ndim), keepdim=keepdim)


def mean(input: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """The mean over ``dim``; NaN over nothing. RuntimeError for integers."""
    refuse("mean", options, "dtype out")
    x = must_float("mean", input)
    dims = axes("mean", dim, x.ndim)
    return div(_sum(x, dims=dims, keepdim=keepdim), float(_count(x.shape, dims)))


def amax(input: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """The largest element over ``dim``, by default all; tied ones share the slope evenly. IndexError over nothing."""
    return _reduced_to_extreme("amax", _amax, input, dim, keepdim, options)


def amin(input: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """The smallest element over ``dim``, by default all; tied ones share the slope evenly. IndexError over nothing."""
    return _reduced_to_extreme("amin", _amin, input, dim, keepdim, options)


def _reduced_to_extreme(op: str, primitive: Primitive, input: Any, dim: Any, keepdim: bool, options: Any) -> Any:
    refuse(op, options, "out")
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


def max(input: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """The largest element of all; or over one ``dim``, with indices; or of two tensors, as ``maximum``.

    Over a ``dim`` the slope goes to the element at the index returned, the first of those tied.
    """
    refuse("max", options, "out")
    x = tensor("max", input)
    if dim is None:
        _refuse_nothing("max", x)
        return amax(x)
    if isinstance(dim, (Node, np.ndarray)):
        return maximum(x, dim)
    lane = axis("max", dim, x.ndim)
    _refuse_empty("max", x.shape, (lane,) if x.ndim else ())
    indices = _first_largest(x, lane, keepdim=True)
    values = along(x, indices, lane)
    if not keepdim and x.ndim:
        values, indices = (reshape(y, x.shape[:lane] + x.shape[lane + 1 :]) for y in (values, indices))
    return max_result(clone(values), indices)  # picking may have given a view


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index (int64) of the largest element, the first of those tied: among all in C order, or along ``dim``."""
    x = tensor("argmax", input)
    refuse_bool("argmax", x)
    lane = None if dim is None else axis("argmax", dim, x.ndim)
    _refuse_empty("argmax", x.shape, axes("argmax", lane, x.ndim))
    return _first_largest(x, lane, keepdim)


def _first_largest(x: Any, lane: int | None, keepdim: bool) -> Any:
    values = x._data if isinstance(x, Node) else x
    if not x.ndim:
        found = np.zeros((), dtype=np.int64)
    else:
        found = np.asarray(np.argmax(values, axis=lane, keepdims=keepdim), dtype=np.int64)
    return wrap(found) if isinstance(x, Node) else found


def var(input: Any, dim: Any = None, *, correction: float = 1, keepdim: bool = False, **options: Any) -> Any:
    """The variance over ``dim``: squared deviations over count minus ``correction``. RuntimeError for integers."""
    refuse("var", options, "unbiased out")
    x = must_float("var", input)
    if not isinstance(correction, Number):
        integer("var", "correction", correction)
    return _var(x, dims=axes("var", dim, x.ndim), keepdim=keepdim, correction=correction)


def logsumexp(input: Any, dim: Any, keepdim: bool = False, **options: Any) -> Any:
    """log of the sum of exp over ``dim``, by shifting each lane by its largest: no element overflows."""
    refuse("logsumexp", options, "out")
    x = floating("logsumexp", input)
    return _logsumexp(x, dims=axes("logsumexp", dim, x.ndim), keepdim=keepdim)
