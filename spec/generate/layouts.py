"""Layouts: functions from an array to an equal one that lies differently in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def fortran(x: np.ndarray) -> np.ndarray:
    """Columns first."""
    return x.copy(order="F")


def reversed_(x: np.ndarray) -> np.ndarray:
    """Every stride negative."""
    flip = (slice(None, None, -1),) * x.ndim
    return x[flip].copy()[flip] if x.ndim else x.copy()


def strided(x: np.ndarray) -> np.ndarray:
    """Every other element of a larger array, whose gaps hold NaN."""
    if not x.ndim:
        return x.copy()
    gaps = np.full(tuple(2 * n for n in x.shape), np.nan if x.dtype.kind == "f" else 1, x.dtype)
    every_other = gaps[(slice(None, None, 2),) * x.ndim]
    every_other[...] = x
    return every_other


def read_only(x: np.ndarray) -> np.ndarray:
    """Not to be written."""
    x = x.copy()
    x.flags.writeable = False
    return x


def zero_stride(x: np.ndarray) -> np.ndarray:
    """The first slice of the first axis (a 0-d array: itself) in every place: values change, as all must be equal."""
    return np.broadcast_to(x[:1].copy(), x.shape) if x.ndim and x.shape[0] else read_only(x)


LAYOUTS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (fortran, reversed_, strided, read_only, zero_stride)
