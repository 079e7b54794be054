"""The ops under ``torch.nn.functional``'s names: activations, losses, layers without state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .autograd import Node, broadcast_shape
from .primitives import fused
from .primitives.elementwise import relu, sigmoid, tanh
from .primitives.indexing import getitem
from .primitives.operands import axis, must_float, operands, refuse, refuse_bool, tensor
from .primitives.reduction import sum

__all__ = [
    "cross_entropy",
    "embedding",
    "layer_norm",
    "linear",
    "log_softmax",
    "mse_loss",
    "relu",
    "sigmoid",
    "softmax",
    "tanh",
]


def softmax(input: Any, dim: int, **options: Any) -> Any:
    """exp over its sum along ``dim``, shifted so that nothing overflows. The shape of ``input``; floating only."""
    refuse("softmax", options, "dtype _stacklevel")
    x = must_float("softmax", input, NotImplementedError)
    return fused.softmax(x, lane=axis("softmax", dim, x.ndim))


def log_softmax(input: Any, dim: int, **options: Any) -> Any:
    """The logarithm of softmax along ``dim``, finite where softmax itself underflows."""
    refuse("log_softmax", options, "dtype _stacklevel")
    x = must_float("log_softmax", input, NotImplementedError)
    return fused.log_softmax(x, lane=axis("log_softmax", dim, x.ndim))


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """``input @ weight.T + bias``: (*, in), (out, in) and (out,) give (*, out), all of one dtype."""
    xs = [tensor("linear", x) for x in (input, weight, *([] if bias is None else [bias]))]
    shapes = " and ".join(str(x.shape) for x in xs)
    if xs[0].ndim < 1 or xs[1].ndim != 2 or xs[0].shape[-1] != xs[1].shape[1] or xs[-1].shape[:1] != xs[1].shape[:1]:
        raise RuntimeError(f"linear(): got shapes {shapes}; it needs (*, in), (out, in) and, if any, a bias (out,)")
    if len(xs) == 3 and xs[2].ndim != 1:
        raise RuntimeError(f"linear(): got shapes {shapes}; the bias must be (out,)")
    _one_dtype("linear", xs)
    refuse_bool("linear", *xs, error=NotImplementedError)
    return fused.linear(*xs)


def _one_dtype(op: str, xs: Sequence[Any]) -> None:
    if any(x.dtype != xs[0].dtype for x in xs):
        raise RuntimeError(f"{op}(): all tensors must have one dtype, got {', '.join(str(x.dtype) for x in xs)}")


def layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Each lane over the last ``len(normalized_shape)`` axes brought to mean 0 and variance 1, times weight, plus bias.

    The variance is the biased one, with ``eps`` added. Source: Ba et al., "Layer Normalization" (2016).
    """
    x, shape = tensor("layer_norm", input), tuple(normalized_shape)
    affine = [tensor("layer_norm", w) for w in (weight, bias) if w is not None]
    _one_dtype("layer_norm", [x, *affine[:1]])
    must_float("layer_norm", x, NotImplementedError)
    _one_dtype("layer_norm", [x, *affine])
    if not shape or x.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"layer_norm(): normalized_shape {shape} must be the last sizes of the input, which has shape {x.shape}"
        )
    for w in affine:
        if w.shape != shape:
            raise RuntimeError(f"layer_norm(): weight and bias must have shape {shape}, got {w.shape}")
    y = fused.standardize(x, dims=tuple(range(x.ndim - len(shape), x.ndim)), eps=eps)
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def embedding(input: Any, weight: Any, padding_idx: int | None = None, **options: Any) -> Any:
    """The rows of ``weight`` (rows, width) that the integers ``input`` (*) name: (*, width).

    IndexError for a row that is not there, a negative one included. ``padding_idx`` is not offered.
    """
    refuse(
        "embedding", {"padding_idx": padding_idx, **options}, "padding_idx max_norm norm_type scale_grad_by_freq sparse"
    )
    table, rows = tensor("embedding", weight), _integers("embedding", input)
    if table.ndim != 2:
        raise RuntimeError(f"embedding(): weight must be (rows, width), got shape {table.shape}")
    _in_range("embedding", rows, table.shape[0])
    return getitem(table, rows)


def _integers(op: str, x: Any) -> np.ndarray:
    array: np.ndarray = x._data if isinstance(x, Node) else tensor(op, x)
    if array.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{op}(): indices must be int64 or int32, got {array.dtype}")
    return array


def _in_range(op: str, numbers: np.ndarray, size: int) -> None:
    wrong = numbers[(numbers < 0) | (numbers >= size)]
    if wrong.size:
        raise IndexError(f"{op}(): index {wrong.flat[0]} is out of range; with {size} it goes from 0 to {size - 1}")


# --- losses -----------------------------------------------------------------------------------------------------------


def _reduced(losses: Any, reduction: str, count: int) -> Any:
    if reduction == "none":
        return losses
    total = sum(losses)
    return total if reduction == "sum" else total / float(count)


def _checked_reduction(op: str, reduction: Any) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{op}(): reduction must be 'none', 'mean' or 'sum', got {reduction!r}")


def mse_loss(input: Any, target: Any, reduction: str = "mean", **options: Any) -> Any:
    """The squared differences of ``input`` and ``target``, which broadcast: each, their mean, or their sum."""
    refuse("mse_loss", options, "weight size_average reduce")
    _checked_reduction("mse_loss", reduction)
    pair = operands("mse_loss", tensor("mse_loss", input), tensor("mse_loss", target))
    a, b = (must_float("mse_loss", x, NotImplementedError) for x in pair)
    broadcast_shape("mse_loss", a.shape, b.shape)
    d = a - b
    return _reduced(d * d, reduction, d.size)


def cross_entropy(input: Any, target: Any, *, ignore_index: int = -100, reduction: str = "mean", **options: Any) -> Any:
    """-log softmax(input) at the class ``target``, from the logits themselves, of any size without overflow.

    ``input`` is (C,), (N, C) or (N, C, ...), ``target`` the same without C, in int64. The mean is over the targets that
    are not ``ignore_index``, NaN where all are. IndexError for a class that is not there.
    """
    refuse("cross_entropy", options, "weight size_average reduce label_smoothing")
    _checked_reduction("cross_entropy", reduction)
    x = must_float("cross_entropy", input, NotImplementedError)
    classes = tensor("cross_entropy", target)
    classes = classes._data if isinstance(classes, Node) else classes
    if x.ndim == 0:
        raise RuntimeError("cross_entropy(): the input needs a class axis, got a 0-d tensor")
    lane = min(1, x.ndim - 1)
    wanted = x.shape[:lane] + x.shape[lane + 1 :]
    if classes.dtype.kind == "f":
        raise NotImplementedError("cross_entropy(): probabilities as target are not offered here; give class indices")
    if classes.dtype != np.int64:
        raise RuntimeError(f"cross_entropy(): target must hold class indices in int64, got {classes.dtype}")
    if classes.shape != wanted:
        raise ValueError(f"cross_entropy(): target must have shape {wanted} for input {x.shape}, got {classes.shape}")
    kept = classes != ignore_index
    _in_range("cross_entropy", classes[kept], x.shape[lane])
    grid = [*np.ogrid[tuple(slice(n) for n in wanted)]] if wanted else []
    index = (*grid[:lane], np.where(kept, classes, 0), *grid[lane:])
    losses = fused.cross_entropy(x, lane=lane, index=index, kept=kept)
    return _reduced(losses, reduction, int(kept.sum()))
