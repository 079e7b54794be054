"""Tensors from nothing: filled, counted, drawn, or around an array that is there already."""

from __future__ import annotations

from typing import Any

import numpy as np

from .autograd import wrap
from .dtypes import as_dtype, float32
from .primitives.operands import sizes
from .randomness import generator, get_rng_state, manual_seed, set_rng_state
from .tensor import Tensor, array_of

__all__ = [
    "arange", "as_tensor", "eye", "from_numpy", "full", "get_rng_state", "manual_seed", "ones", "ones_like", "rand",
    "randint", "randn", "set_rng_state", "tensor", "zeros", "zeros_like",
]  # fmt: skip


def _made(array: np.ndarray, requires_grad: bool) -> Tensor:
    made: Tensor = wrap(array)
    return made.requires_grad_() if requires_grad else made


def tensor(data: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor that copies ``data``: a number, a nested list, an array or a tensor."""
    return Tensor(data, dtype, requires_grad)


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """``data`` as a tensor: a tensor itself, an array's own memory, where the dtype is right; otherwise a copy."""
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, np.ndarray) and (dtype is None or data.dtype == as_dtype(dtype)):
        return from_numpy(data)
    return Tensor(data, dtype)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor around ``array`` itself: what is written to either is seen in both."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy(): needs an array, got {type(array).__name__}")
    if as_dtype(array.dtype) != array.dtype:
        raise TypeError(f"from_numpy(): needs the machine's byte order, got dtype {array.dtype.str}")
    made: Tensor = wrap(array)
    return made


def full(size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of shape ``size`` with ``fill_value`` everywhere, in its dtype unless ``dtype`` is given."""
    value = array_of(fill_value, dtype)
    if value.ndim:
        raise TypeError(f"full(): fill_value must be a number, got shape {value.shape}")
    return _made(np.full(_shape("full", (size,)), value), requires_grad)


def zeros(*size: Any, dtype: Any = float32, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros: ``zeros(2, 3)`` or ``zeros((2, 3))``."""
    return _made(np.zeros(_shape("zeros", size), as_dtype(dtype)), requires_grad)


def ones(*size: Any, dtype: Any = float32, requires_grad: bool = False) -> Tensor:
    """A tensor of ones: ``ones(2, 3)`` or ``ones((2, 3))``."""
    return _made(np.ones(_shape("ones", size), as_dtype(dtype)), requires_grad)


def zeros_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the shape and dtype of ``input``."""
    return zeros(input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad)


def ones_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the shape and dtype of ``input``."""
    return ones(input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad)


def arange(
    start: float, end: float | None = None, step: float = 1, *, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """Numbers from ``start`` (0 where only the end is given) up to but not with ``end``: int64, with floats float32."""
    first, stop = (0, start) if end is None else (start, end)
    if step == 0 or (stop - first) / step < 0:
        raise RuntimeError(f"arange(): from {first} to {stop} there is no way in steps of {step}")
    floating = any(isinstance(number, float) for number in (first, stop, step))
    kind = as_dtype(dtype) if dtype is not None else np.dtype(float32 if floating else np.int64)
    return _made(np.arange(first, stop, step).astype(kind), requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = float32, requires_grad: bool = False) -> Tensor:
    """An ``n`` by ``m`` (by default ``n``) matrix with ones on its diagonal."""
    shape = _shape("eye", (n, n if m is None else m))
    return _made(np.eye(*shape, dtype=as_dtype(dtype)), requires_grad)


def _shape(op: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    shape = sizes(op, given)
    if min(shape, default=0) < 0:
        raise RuntimeError(f"{op}(): sizes must not be negative, got {shape}")
    return shape


# --- drawn ------------------------------------------------------------------------------------------------------------


def rand(*size: Any, dtype: Any = float32, requires_grad: bool = False) -> Tensor:
    """Draws from [0, 1), uniform."""
    return _made(generator().random(_shape("rand", size), dtype=_drawable("rand", dtype)), requires_grad)


def randn(*size: Any, dtype: Any = float32, requires_grad: bool = False) -> Tensor:
    """Draws from the normal distribution of mean 0 and variance 1."""
    return _made(
        np.asarray(generator().standard_normal(_shape("randn", size), dtype=_drawable("randn", dtype))), requires_grad
    )


def randint(low: int, high: int | None = None, size: Any = None, *, dtype: Any = np.int64) -> Tensor:
    """Integers from ``low`` (0 where only the end is given) up to but not with ``high``: ``randint(10, (2, 3))``."""
    if size is None:
        low, high, size = 0, low, high
    if high is None or low >= high:
        raise RuntimeError(f"randint(): needs low < high, got {low} and {high}")
    return _made(generator().integers(low, high, _shape("randint", (size,)), dtype=as_dtype(dtype)), False)


def _drawable(op: str, dtype: Any) -> Any:
    found = as_dtype(dtype)
    if found.kind != "f":
        raise NotImplementedError(f"{op}(): draws float32 or float64, not {found}")
    return found
