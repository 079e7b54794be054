"""Clipping of gradients, under ``torch.nn.utils``' names: between ``backward`` and ``step``, in place.

Nothing is made of a gradient's size. RuntimeError, before anything has changed, for a gradient that is read-only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import versions
from ..chunks import chunked
from ..creation import tensor
from ..dtypes import float32
from ..primitives.operands import refuse
from ..tensor import Tensor


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    **options: Any,
) -> Tensor:
    """Shorten all gradients together, as one vector, to ``max_norm`` where it is longer; its norm before, 0-d.

    The factor is max_norm / (norm + 1e-6), and 1 where that is more. ``norm_type`` is a number above 0, or infinity.
    The norm of float32 gradients is summed in float64, so that no square of theirs overflows. RuntimeError where it is
    not finite and ``error_if_nonfinite`` says so; otherwise every gradient becomes 0 or NaN then. Source: Pascanu et
    al., "On the difficulty of training recurrent neural networks" (2013).
    """
    refuse("clip_grad_norm_", options, "foreach")
    power = float(norm_type)
    if not power > 0:
        raise NotImplementedError(f"clip_grad_norm_(): norm_type must be above 0, got {norm_type}")
    grads = _gradients("clip_grad_norm_", parameters)
    dtype = np.result_type(*(g.dtype for g in grads)) if grads else float32
    with np.errstate(all="ignore"):
        norms = [_norm((chunk.astype(float) for (chunk,) in chunked(g)), g.size, power) for g in grads]
        norm = dtype.type(_norm(norms, len(norms), power))
        if error_if_nonfinite and not np.isfinite(norm):
            raise RuntimeError(
                f"clip_grad_norm_(): the gradients' norm of order {norm_type} is {norm}; nothing clipped"
            )
        factor = float(np.minimum(dtype.type(max_norm) / (norm + dtype.type(1e-6)), dtype.type(1)))
        for g in grads:
            np.multiply(g, factor, out=g)
            versions.stamp(g)
    return tensor(norm, dtype=dtype)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, **options: Any) -> None:
    """Hold every element of the gradients between -clip_value and clip_value."""
    refuse("clip_grad_value_", options, "foreach")
    bound = float(clip_value)
    for g in _gradients("clip_grad_value_", parameters):
        np.clip(g, -bound, bound, out=g)
        versions.stamp(g)


def _gradients(op: str, parameters: Tensor | Iterable[Tensor]) -> list[np.ndarray]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for p in given:
        if not isinstance(p, Tensor):
            raise TypeError(f"{op}(): needs Tensors, got {type(p).__name__}")
    grads = [p.grad.data for p in given if p.grad is not None]
    for g in grads:
        if not g.flags.writeable:
            raise RuntimeError(f"{op}(): a gradient of shape {g.shape} is read-only")
    return grads


def _norm(parts: Iterable[Any], count: int, power: float) -> float:
    """The norm of the ``count`` numbers in ``parts``, arrays or numbers, as one vector."""
    sizes = (np.abs(part) for part in parts)
    if math.isinf(power) or count == 1:  # of one number every norm is its size, though its power may overflow
        return float(np.max([0.0, *(np.max(x, initial=0) for x in sizes)]))
    total = np.sum([np.sum(x * x if power == 2 else x**power) for x in sizes])
    return float(np.sqrt(total) if power == 2 else total ** (1 / power))
