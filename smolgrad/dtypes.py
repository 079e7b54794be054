"""The dtypes of tensors, and PyTorch's promotion between them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

float32, float64 = np.dtype("float32"), np.dtype("float64")
int8, int16, int32, int64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
uint8, bool_ = np.dtype("uint8"), np.dtype("bool")

Number = (bool, int, float)  # Python's
SUPPORTED = (float32, float64, int8, int16, int32, int64, uint8, bool_)
# What a Python number counts as, as far as it counts at all (PyTorch's default dtypes).
OF_NUMBER = {bool: bool_, int: int64, float: float32}


def as_dtype(dtype: Any, default: Any = None) -> np.dtype[Any]:
    """The supported dtype that ``dtype`` names, for None ``default``. TypeError for float16, complex and all others."""
    dtype = default if dtype is None else dtype
    try:
        found = None if dtype is None else np.dtype(dtype).newbyteorder("=")  # NumPy's None is float64
    except TypeError:
        found = None
    if found is None or found not in SUPPORTED:
        raise TypeError(f"dtype must be one of {', '.join(map(str, SUPPORTED))}, got {found or repr(dtype)}")
    return found


def result_type(*operands: Any) -> np.dtype[Any]:
    """The dtype in which ``operands`` (arrays, tensors, Python numbers) meet, as ``torch.result_type`` has it.

    Tensors with dimensions decide; 0-d tensors, and after them Python numbers, count only where theirs is a higher kind
    (bool < integer < floating). Source: PyTorch, "Tensor Attributes", type promotion.
    """
    ranked: tuple[list[np.dtype[Any]], ...] = ([], [], [])
    for x in operands:
        if isinstance(x, np.generic):
            x = x.item()
        if isinstance(x, Number):
            ranked[2].append(OF_NUMBER[type(x)])
        else:
            ranked[0 if x.ndim else 1].append(x.dtype)
    first, *others = (join(dtypes) for dtypes in ranked if dtypes)
    for dtype in others:
        if kind(dtype) > kind(first):
            first = join([first, dtype])
    return first


def kind(dtype: np.dtype[Any]) -> int:
    """0 for bool, 1 for integers, 2 for floating dtypes."""
    return {"b": 0, "i": 1, "u": 1, "f": 2}[dtype.kind]


def join(dtypes: Collection[np.dtype[Any]]) -> np.dtype[Any]:
    """The common dtype of equals: the widest floating one, else NumPy's (int32 with float32 is float32 here)."""
    return np.result_type(*([dtype for dtype in dtypes if dtype.kind == "f"] or dtypes))
