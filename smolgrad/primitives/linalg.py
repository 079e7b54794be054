"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Primitive, broadcast_shape
from .operands import refuse_bool, tensor
from .shape import clone, mT, squeeze, unsqueeze

__all__ = ["matmul"]

_matmul: Primitive = Primitive(
    "matmul",
    np.matmul,
    lambda g, _y, _a, b: _matmul(g, mT(b)),
    lambda g, _y, a, _b: _matmul(mT(a), g),
    broadcasts=True,
)


def matmul(input: Any, other: Any) -> Any:
    """The matrix product over the last two axes, batches broadcast; a vector counts as a row first, a column second.

    RuntimeError for 0-d inputs, inner sizes that differ, batches that do not broadcast, and unequal dtypes.
    """
    a, b = (tensor("matmul", x) for x in (input, other))
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"matmul(): both inputs need at least one dimension, got shapes {a.shape} and {b.shape}")
    if a.dtype != b.dtype:
        raise RuntimeError(f"matmul(): both inputs must have one dtype, got {a.dtype} and {b.dtype}")
    refuse_bool("matmul", a, error=NotImplementedError)
    row, column = a.ndim == 1, b.ndim == 1
    if a.shape[-1] != b.shape[0 if column else -2]:
        raise RuntimeError(
            f"matmul(): shapes {a.shape} and {b.shape} do not fit: the last size of the first and the "
            f"{'only' if column else 'last but one'} size of the second must be equal"
        )
    broadcast_shape("matmul", a.shape[:-2], b.shape[:-2])
    if row:
        a = unsqueeze(a, 0)
    if column:
        b = unsqueeze(b, 1)
    y = _matmul(a, b)
    if column:
        y = squeeze(y, -1)
    if row:
        y = squeeze(y, -1 if column else -2)
    return clone(y) if row or column else y  # no view of a tensor that nobody sees: it may be written in place
