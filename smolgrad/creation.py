"""Tensors from nothing: filled, counted, drawn, or around an array that is there already.

A size is given as ``2, 3`` or as ``(2, 3)``: TypeError for what is no integer, RuntimeError for a negative one. All
raise TypeError for a dtype that is none here, and RuntimeError where integers or bools shall require grad.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .autograd import wrap
from .dtypes import OF_NUMBER, Number, as_dtype, float32
from .primitives.operands import factor, integer, publish, sizes
from .randomness import generator, get_rng_state, manual_seed, set_rng_state
from .tensor import Tensor

__all__ = [
    "arange", "as_tensor", "eye", "from_numpy", "full", "get_rng_state", "manual_seed", "ones", "ones_like", "rand",
    "randint", "randn", "set_rng_state", "tensor", "zeros", "zeros_like",
]  # fmt: skip


def _made(array: np.ndarray, requires_grad: bool) -> Tensor:
    made: Tensor = wrap(array)
    return made.requires_grad_() if requires_grad else made


def tensor(data: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor that copies ``data``: a number, a nested list, an array or a tensor. TypeError for anything else."""
    return Tensor(data, dtype, requires_grad)


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """``data`` as a tensor: a tensor itself, an array's own memory, where the dtype is right; otherwise a copy."""
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, np.ndarray) and (dtype is None or data.dtype == as_dtype(dtype)):
        return from_numpy(data)
    return Tensor(data, dtype)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor around ``array`` itself: what is written to either is seen in both. TypeError for another byte order."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy(): needs an array, got {type(array).__name__}")
    if as_dtype(array.dtype) != array.dtype:
        raise TypeError(f"from_numpy(): needs the machine's byte order, got dtype {array.dtype.str}")
    made: Tensor = wrap(array)
    return made


def full(size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of shape ``size`` with the number ``fill_value`` everywhere, in its kind's dtype unless one is given.

    TypeError for what is no number, RuntimeError for one that does not fit the dtype.
    """
    value = _number("full", "fill_value", fill_value)
    filled = factor("full", "fill_value", value, as_dtype(dtype, OF_NUMBER[type(value)]))
    return _made(np.full(_shape("full", (size,)), filled), requires_grad)


def _number(op: str, name: str, x: Any) -> Any:
    """The Python number that ``x`` is, or a NumPy scalar or tensor without dimensions holds. TypeError otherwise."""
    value = x.item() if isinstance(x, (Tensor, np.generic)) and not x.ndim else x
    if not isinstance(value, Number):
        raise TypeError(f"{op}(): {name} must be a number, got {type(x).__name__}")
    return value


def zeros(*size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros, by default float32: ``zeros(2, 3)`` or ``zeros((2, 3))``."""
    return _made(np.zeros(_shape("zeros", size), as_dtype(dtype, float32)), requires_grad)


def ones(*size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones, by default float32: ``ones(2, 3)`` or ``ones((2, 3))``."""
    return _made(np.ones(_shape("ones", size), as_dtype(dtype, float32)), requires_grad)


def zeros_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the shape and dtype of ``input``."""
    return zeros(input.shape, dtype=as_dtype(dtype, input.dtype), requires_grad=requires_grad)


def ones_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the shape and dtype of ``input``."""
    return ones(input.shape, dtype=as_dtype(dtype, input.dtype), requires_grad=requires_grad)


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers from ``start`` (0 where only the end is given) up to but not with ``end``: int64, with floats float32.

    An integer ``dtype`` takes whole steps. RuntimeError where ``step`` does not lead to the end, NotImplementedError
    for bools.
    """
    limits = (0, start) if end is None else (start, end)
    first, stop, by = (_number("arange", "each of start, end and step", x) for x in (*limits, step))
    found = as_dtype(dtype, float32 if any(isinstance(x, float) for x in (first, stop, by)) else np.int64)
    if found == np.bool_:
        raise NotImplementedError("arange(): counts in numbers, not in bools")
    if found == np.int64 and np.isfinite([first, stop, by]).all():
        first, stop, by = int(first), int(stop), int(by)
    if not by or not 0 <= (stop - first) / by < np.inf:
        raise RuntimeError(f"arange(): from {first} to {stop} there is no way in steps of {by}")
    steps, whole = np.arange(math.ceil((stop - first) / by)), float if found.kind == "f" else int
    return _made((whole(first) + whole(by) * steps).astype(found), requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """An ``n`` by ``m`` (by default ``n``) matrix with ones on its diagonal, by default in float32."""
    shape = _shape("eye", (n, n if m is None else m))
    return _made(np.eye(*shape, dtype=as_dtype(dtype, float32)), requires_grad)


def _shape(op: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    shape = sizes(op, given)
    if min(shape, default=0) < 0:
        raise RuntimeError(f"{op}(): sizes must not be negative, got {shape}")
    return shape


# --- drawn ------------------------------------------------------------------------------------------------------------


def rand(*size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Draws from [0, 1), uniform, by default in float32. NotImplementedError for integers and bools."""
    return _made(generator().random(_shape("rand", size), dtype=_drawable("rand", dtype)), requires_grad)


def randn(*size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Draws from the normal distribution of mean 0 and variance 1, by default in float32, as ``rand``."""
    drawn = generator().standard_normal(_shape("randn", size), dtype=_drawable("randn", dtype))
    return _made(np.asarray(drawn), requires_grad)


def randint(
    low: Any = 0, high: Any = None, size: Any = None, *, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """Integers from ``low`` (0 where only the end is given) up to but not with ``high``: ``randint(10, (2, 3))``.

    By default in int64. RuntimeError where there is none, or one that does not fit ``dtype``.
    """
    if high is None or size is None:  # randint(high, size), where size may be given by name
        low, high, size = 0, low, high if size is None else size
    least, most = integer("randint", "low", low), integer("randint", "high", high) - 1
    if least > most:
        raise RuntimeError(f"randint(): needs low < high, got {low} and {high}")
    found = as_dtype(dtype, np.int64)
    if any(np.asarray(n).astype(found) != n for n in (least, most)):
        raise RuntimeError(f"randint(): numbers from {least} to {most} do not fit {found}")
    drawn = generator().integers(least, most + 1, _shape("randint", (size,)), found if found.kind != "f" else np.int64)
    return _made(np.asarray(drawn).astype(found, copy=False), requires_grad)


def _drawable(op: str, dtype: Any) -> Any:
    found = as_dtype(dtype, float32)
    if found.kind != "f":
        raise NotImplementedError(f"{op}(): draws float32 or float64, not {found}")
    return found


publish(globals(), __name__)
