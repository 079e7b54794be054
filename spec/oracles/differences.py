"""Where PyTorch is not asked the same question, or answers it otherwise: one row each, with the reason.

``instead`` is how the oracle answers our question with PyTorch's own ops; tests/parity/test_differences.py has a test
for each row, that PyTorch still differs and that ours is what the reason says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Asked = Callable[..., Any]


@dataclass(frozen=True)
class Difference:
    """For which ops and calls (inputs, params) the oracle answers by ``instead(op, *inputs, **params)``, and why."""

    ops: tuple[str, ...]
    when: Callable[[Sequence[Any], dict[str, Any]], bool]
    instead: Callable[..., Any]
    reason: str


def _over_nothing(op: Asked, x: Any, **params: Any) -> Any:
    return op(x[..., None], **{**params, "dim": -1, "keepdim": False})


def _places(shape: Sequence[int], index: Any) -> np.ndarray:
    return np.arange(int(np.prod(shape))).reshape(tuple(shape))[index]


def _pick(_op: Asked, x: Any, *, index: Any) -> Any:
    places = np.asarray(_places(x.shape, index))
    return torch.take(x, torch.from_numpy(places.astype(np.int64).copy()))


def _write(_op: Asked, x: Any, value: Any, *, index: Any) -> Any:
    places = np.asarray(_places(x.shape, index))
    turn = np.full(x.numel(), -1)
    turn[places.reshape(-1)] = np.arange(places.size)  # NumPy: the last write to a place stays
    spare = torch.zeros(1, dtype=x.dtype)
    value = value.reshape(value.shape[max(0, value.ndim - places.ndim) :])
    values = torch.cat([value.to(x.dtype).broadcast_to(places.shape).reshape(-1), spare])
    taken = values[torch.from_numpy(turn)]
    return torch.where(torch.from_numpy(turn >= 0), taken, x.reshape(-1)).reshape(x.shape)


def _one_hot(numbers: np.ndarray, table: Any) -> Any:
    return torch.nn.functional.one_hot(torch.from_numpy(numbers.astype(np.int64)), table.shape[0]).to(table.dtype)


def _power(op: Asked, a: Any, b: Any) -> Any:
    if not (a.is_floating_point() and b.is_floating_point()):
        return op(a, b)
    smooth = (b == 0) & (a > 0) & (a < np.inf)
    base, exponent = torch.where(smooth, a, 1), torch.where(smooth, b, 0)
    y = op(a, b)
    return torch.where(smooth, torch.exp(exponent * torch.log(base)).to(y.dtype), y)


def _standardized(_op: Asked, x: Any, *affine: Any, normalized_shape: Any, eps: float) -> Any:
    lanes = tuple(range(-len(normalized_shape), 0))
    deviation = x - x.mean(lanes, keepdim=True)
    y = deviation / torch.sqrt((deviation * deviation).mean(lanes, keepdim=True) + eps)
    for w, combine in zip(affine, (torch.mul, torch.add), strict=False):
        y = combine(y, w)
    return y


_REDUCTIONS = ("sum", "mean", "amax", "amin", "var", "logsumexp")

DIFFERENCES = (
    Difference(
        _REDUCTIONS, lambda xs, params: params.get("dim") == (), _over_nothing, "dim=() reduces nothing, as in NumPy"
    ),
    Difference(
        ("logsumexp",),
        lambda xs, params: params.get("dim", 0) is None,
        lambda op, x, dim, **params: op(x, dim=tuple(range(x.ndim)), **params) if x.ndim else op(x, dim=0, **params),
        "dim=None reduces everything in every reduction",
    ),
    Difference(
        ("squeeze",),
        lambda xs, params: params.get("dim", 0) is None,
        lambda op, x, dim: op(x),
        "dim=None squeezes every axis, as in NumPy; PyTorch wants the argument left out",
    ),
    Difference(
        ("getitem",),
        lambda xs, params: True,
        _pick,
        "negative steps, and the place of the axes of mixed advanced indices, are NumPy's",
    ),
    Difference(
        ("setitem",),
        lambda xs, params: True,
        _write,
        "indices are NumPy's, and of repeated places the last write stays",
    ),
    Difference(
        ("pow",),
        lambda xs, params: True,
        _power,
        "at exponent 0 PyTorch's slope in the base is a constant 0, so its mixed second derivative is 0; it is 1/base",
    ),
    Difference(
        ("functional.layer_norm",),
        lambda xs, params: not bool((abs(xs[0] * 1.0) < 1e100).all()),
        _standardized,
        "PyTorch squares before it subtracts the mean: NaN where only that overflows",
    ),
    Difference(
        ("functional.embedding",),
        lambda xs, params: xs[0].shape[-1] == 0 or params["input"].size == 0,
        lambda _op, weight, input: _one_hot(input, weight) @ weight,
        "PyTorch's second derivative raises where nothing is looked up, and for rows of no width",
    ),
)


# Calls that are refused here and not in PyTorch.
STRICTER = {
    "matmul": "PyTorch does not look at dtypes where there is nothing to multiply",
    "functional.linear": "PyTorch multiplies bools for some shapes and not for others",
}


def difference(name: str, inputs: Sequence[Any], params: dict[str, Any]) -> Difference | None:
    """The row, if there is one, by which the oracle answers a call of the op ``name``."""
    return next((row for row in DIFFERENCES if name in row.ops and row.when(inputs, params)), None)
