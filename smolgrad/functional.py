"""The ops under ``torch.nn.functional``'s names: activations, losses, layers without state."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .autograd import Node, broadcast_shape, like, value_of
from .primitives import fused
from .primitives.elementwise import abs, clamp, erf, exp, log, relu, sigmoid, sqrt, sub, tanh, where
from .primitives.indexing import along, getitem
from .primitives.linalg import matmul
from .primitives.operands import (
    axis,
    cast,
    factor,
    in_range,
    integer,
    integers,
    must_float,
    one_dtype,
    operands,
    publish,
    refuse_bool,
    sizes,
    tensor,
)
from .primitives.reduction import mean, sum
from .primitives.shape import _pad, cat, clone, expand, mT, permute, reshape, squeeze, stack, unsqueeze
from .randomness import generator

__all__ = [
    "avg_pool2d", "batch_norm", "binary_cross_entropy", "binary_cross_entropy_with_logits", "conv1d", "conv2d",
    "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding", "gelu", "glu", "group_norm", "hardswish",
    "hardtanh", "huber_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid",
    "max_pool2d", "mish", "mse_loss", "nll_loss", "one_hot", "pad", "relu", "rms_norm", "scaled_dot_product_attention",
    "selu", "sigmoid", "silu", "smooth_l1_loss", "softmax", "softplus", "tanh",
]  # fmt: skip


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """exp over its sum along ``dim``, shifted so that nothing overflows. The shape of ``input``; floating only.

    With a ``dtype`` the input is cast to it before.
    """
    return _softmax("softmax", fused.softmax, input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of softmax along ``dim``, finite where softmax itself underflows. ``dtype`` as there."""
    return _softmax("log_softmax", fused.log_softmax, input, dim, dtype)


def _softmax(op: str, primitive: Any, input: Any, dim: int, dtype: Any) -> Any:
    x = tensor(op, input)
    x = must_float(op, x if dtype is None else cast(x, dtype), NotImplementedError)
    return primitive(x, lane=axis(op, dim, x.ndim))


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """``input @ weight.T + bias``: (*, in), (out, in) and (out,) give (*, out), all of one dtype."""
    x, w, *others = xs = [tensor("linear", x) for x in (input, weight, *([] if bias is None else [bias]))]
    if x.ndim < 1 or w.ndim != 2 or x.shape[-1] != w.shape[1] or any(b.shape != w.shape[:1] for b in others):
        shapes = " and ".join(str(x.shape) for x in xs)
        raise RuntimeError(f"linear(): got shapes {shapes}; it needs (*, in), (out, in) and, if any, a bias (out,)")
    one_dtype("linear", *xs)
    refuse_bool("linear", *xs, error=NotImplementedError)
    return fused.linear(*xs)


def layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Each lane over the last ``len(normalized_shape)`` axes brought to mean 0 and variance 1, times weight, plus bias.

    The variance is the biased one, with ``eps`` added. Source: Ba et al., "Layer Normalization" (2016).
    """
    x = tensor("layer_norm", input)
    affine = [tensor("layer_norm", w) for w in (weight, bias) if w is not None]
    one_dtype("layer_norm", x, *affine[:1])
    must_float("layer_norm", x, NotImplementedError)
    one_dtype("layer_norm", x, *affine)
    y = fused.standardize(x, dims=_last_axes("layer_norm", x, normalized_shape, affine), eps=eps)
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def _last_axes(op: str, x: Any, normalized_shape: Sequence[int], affine: Sequence[Any]) -> tuple[int, ...]:
    """The axes of ``normalized_shape``, the last of ``x``. RuntimeError where sizes differ, or those of ``affine``."""
    shape = tuple(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape or any(w.shape != shape for w in affine):
        raise RuntimeError(
            f"{op}(): normalized_shape {shape} must be the last sizes of the input and the shape of weight and bias, "
            f"got shapes {' and '.join(str(v.shape) for v in (x, *affine))}"
        )
    return tuple(range(x.ndim - len(shape), x.ndim))


def rms_norm(input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    """Each lane over the last ``len(normalized_shape)`` axes over its root mean square, times weight.

    ``eps``, by default the dtype's, is added to the mean square. Source: Zhang and Sennrich, "Root Mean Square Layer
    Normalization" (2019).
    """
    x = must_float("rms_norm", input, NotImplementedError)
    dims = _last_axes("rms_norm", x, normalized_shape, [] if weight is None else [tensor("rms_norm", weight)])
    y = x / sqrt(mean(x * x, dims, True) + float(np.finfo(x.dtype).eps if eps is None else eps))
    return y if weight is None else cast(y * weight, x.dtype)


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Each channel of (N, C, ...) brought to mean 0 and variance 1, times weight, plus bias, all (C,).

    In ``training`` by the batch's own mean and biased variance, and ``running_mean`` and ``running_var``, where they
    are not None, are moved by ``momentum`` towards its mean and unbiased variance; otherwise by them. ValueError for
    one of the two alone and, in training, for a single value a channel and an ``eps`` that is not positive. Source:
    Ioffe and Szegedy, "Batch Normalization" (2015).
    """
    x = _with_channels("batch_norm", input, running_mean, running_var, weight, bias)
    if (running_mean is None) != (running_var is None):
        raise ValueError("batch_norm(): running_mean and running_var come both or not at all")
    if not training and running_mean is None:
        raise RuntimeError("batch_norm(): needs running_mean and running_var unless training")
    if training and not eps > 0:
        raise ValueError(f"batch_norm(): eps must be positive when training, got {eps}")
    means, variances = (v if v is None else _fixed("batch_norm", "statistics", v) for v in (running_mean, running_var))
    dims, channels = (0, *range(2, x.ndim)), (-1, *[1] * (x.ndim - 2))
    count = x.size // x.shape[1] if x.shape[1] else 0
    if training and count == 1:
        raise ValueError(f"batch_norm(): needs more than one value a channel when training, got shape {x.shape}")
    if training:
        if count:
            _move_running(running_mean, running_var, x, dims, count, momentum)
        y = fused.standardize(x, dims=dims, eps=eps)
    else:
        y = (x - reshape(means, channels)) / sqrt(reshape(variances, channels) + eps)
    return _affine(y, weight, bias)


def _with_channels(op: str, input: Any, *of_channels: Any) -> Any:
    """``input``, checked to be (N, C, ...) and floating, and ``of_channels``, each (C,) of its dtype or None."""
    x = must_float(op, input, NotImplementedError)
    others = [tensor(op, v) for v in of_channels if v is not None]
    if x.ndim < 2 or any(v.shape != x.shape[1:2] for v in others):
        shapes = ", ".join(str(v.shape) for v in (x, *others))
        raise RuntimeError(f"{op}(): needs (N, C, ...), and (C,) for all the others, got {shapes}")
    one_dtype(op, x, *others)
    return x


def _affine(y: Any, weight: Any, bias: Any) -> Any:
    """``y`` (N, C, ...) times ``weight``, plus ``bias``, each (C,) or None."""
    channels = (-1, *[1] * (y.ndim - 2))
    if weight is not None:
        y = y * reshape(weight, channels)
    return y if bias is None else y + reshape(bias, channels)


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Each of ``num_groups`` groups of the channels of (N, C, ...) brought to mean 0 and variance 1 in each sample.

    Then times ``weight``, plus ``bias``, both (C,). ValueError for a group of one value. Source: Wu and He, "Group
    Normalization" (2018).
    """
    x = _with_channels("group_norm", input, weight, bias)
    if num_groups < 1 or x.shape[1] % num_groups:
        raise RuntimeError(f"group_norm(): num_groups must divide the channels of {x.shape}, got {num_groups}")
    size = x.shape[1] // num_groups * math.prod(x.shape[2:])
    if size * x.shape[0] == 1:
        raise ValueError(f"group_norm(): needs more than one value a group, got shape {x.shape}")
    y = fused.standardize(reshape(x, x.shape[0], num_groups, size), dims=(2,), eps=eps)
    return _affine(clone(reshape(y, x.shape)), weight, bias)


def _move_running(mean: Any, variance: Any, x: Any, dims: tuple[int, ...], count: int, momentum: float) -> None:
    values = value_of(x)
    for running, found in ((mean, np.mean), (variance, lambda *a, **k: np.var(*a, **k) * (count / (count - 1)))):
        if running is not None:
            running.data = (1 - momentum) * running.data + momentum * found(values, axis=dims)


def dropout(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """Each element 0 with probability ``p``, and otherwise times 1/(1 - p); ``input`` as it is unless ``training``.

    The draws are the generator's that ``manual_seed`` starts. ValueError for a ``p`` that is not in [0, 1]. Source:
    Srivastava et al., "Dropout" (2014).
    """
    x = tensor("dropout", input)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout(): p must be in [0, 1], got {p}")
    if not training or p == 0:
        return clone(x)
    if p < 1:
        must_float("dropout", x)
    kept = (generator().random(x.shape) >= p).astype(x.dtype)
    return x * (kept * (1 / (1 - p)) if p < 1 else np.zeros_like(kept))


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The rows of ``weight`` (rows, width) that the integers ``input`` (*) name: (*, width).

    The row ``padding_idx``, counted from either end, gets no gradient. IndexError for a row that is not there, a
    negative one included; RuntimeError for a ``padding_idx`` that is not there.
    """
    table, rows = tensor("embedding", weight), integers("embedding", input)
    if table.ndim != 2:
        raise RuntimeError(f"embedding(): weight must be (rows, width), got shape {table.shape}")
    in_range("embedding", rows, table.shape[0])
    y = getitem(table, rows)
    if padding_idx is None:
        return y
    if not -table.shape[0] <= integer("embedding", "padding_idx", padding_idx) < table.shape[0]:
        raise RuntimeError(f"embedding(): padding_idx {padding_idx} is out of range; there are {table.shape[0]} rows")
    padding = np.equal(rows, padding_idx % table.shape[0])
    if not padding.any() or not isinstance(table, Node):
        return y
    return where(padding[..., None], y.detach(), y)


def one_hot(input: Any, num_classes: int = -1) -> Any:
    """1 at the class that each int64 number of ``input`` names and 0 at the others, along a new last axis, in int64.

    ``num_classes`` is by default one more than the largest. RuntimeError for a class that is not there.
    """
    classes = integers("one_hot", input)
    if classes.dtype != np.int64:
        raise RuntimeError(f"one_hot(): indices must be int64, got {classes.dtype}")
    if num_classes < 1 and classes.size == 0:
        raise RuntimeError("one_hot(): of no elements it needs num_classes")
    count = int(classes.max()) + 1 if num_classes == -1 else num_classes
    in_range("one_hot", classes, count, RuntimeError)
    return like(input, (classes[..., None] == np.arange(count)).astype(np.int64))


# --- padding ----------------------------------------------------------------------------------------------------------

# For each mode which of n elements stands at the places p, and by how many of them an axis can grow at one end.
_PADDING: dict[str, tuple[Callable[[Any, int], Any], Callable[[int], float]]] = {
    "reflect": (lambda p, n: n - 1 - np.abs(n - 1 - np.abs(p)), lambda n: n - 1),
    "replicate": (lambda p, n: np.clip(p, 0, n - 1), lambda n: np.inf if n else -1),
    "circular": (lambda p, n: p % n, lambda n: n),
}


def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """``input`` with ``pad`` more elements at the ends of its last axes, fewer where they are negative.

    ``pad`` is two numbers for the last axis, two more for the one before, and so on. New elements are ``value`` (by
    default 0); or, for the last one of 2 or 3 axes, two of 3 or 4, three of 4 or 5, mirror images without the edge
    (``reflect``), the edge (``replicate``), the other end (``circular``). RuntimeError for widths that do not fit.
    """
    x, widths = tensor("pad", input), sizes("pad", (pad,))
    lanes = len(widths) // 2
    if len(widths) % 2 or lanes > x.ndim:
        raise RuntimeError(f"pad(): needs two widths an axis, of {x.ndim} at most, got {widths}")
    pairs = ((0, 0),) * (x.ndim - lanes) + tuple(zip(widths[-2::-2], widths[::-2], strict=True))
    cut = tuple((min(before, 0), min(after, 0)) for before, after in pairs)
    if mode in ("constant", "circular") and any(
        n + before + after < 0 for n, (before, after) in zip(x.shape, cut, strict=True)
    ):
        raise RuntimeError(f"pad(): the widths {widths} cut off more than there is of an axis of shape {x.shape}")
    if mode == "constant":
        return _pad(x, widths=pairs, value=factor("pad", "value", float(value or 0), x.dtype))
    if mode not in _PADDING or not 1 <= lanes <= 3 or x.ndim - lanes not in (1, 2):
        raise NotImplementedError(
            "pad(): mode must be 'constant'; or 'reflect', 'replicate' or 'circular', for the last one of 2 or 3 axes, "
            f"two of 3 or 4, or three of 4 or 5; got {mode!r} and {len(widths)} widths for shape {x.shape}"
        )
    if value:
        raise RuntimeError(f"pad(): mode {mode!r} takes no value, got {value!r}")
    if mode != "circular":
        refuse_bool("pad", x, error=NotImplementedError)
    if mode == "circular":  # what is cut off does not come back at the other end
        x, pairs = _pad(x, widths=cut, value=0), tuple((max(before, 0), max(after, 0)) for before, after in pairs)
    source, most = _PADDING[mode]
    for lane in range(x.ndim - lanes, x.ndim):
        n, (before, after) = x.shape[lane], pairs[lane]
        if max(before, after) > most(n) or (n + before + after < 1 and mode != "circular"):
            raise RuntimeError(f"pad(): mode {mode!r} cannot widen {n} elements by {before} before and {after} after")
        x = getitem(x, (slice(None),) * lane + (source(np.arange(-before, n + after), n),))
    return x


# --- convolution and pooling ------------------------------------------------------------------------------------------


def _sides(op: str, name: str, given: Any, least: int, axes: int = 2) -> tuple[int, ...]:
    """One number for all of ``axes``, or one each."""
    sides = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    sides = sides * axes if len(sides) == 1 else sides
    if len(sides) != axes or any(integer(op, name, n) < least for n in sides):
        number = "a number" if axes == 1 else "one or two numbers"
        raise RuntimeError(f"{op}(): {name} must be {number}, at least {least}, got {given}")
    return sides


def margins(op: str, padding: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """How far a convolution reaches over its input's ends, as ``pad`` takes it: ``padding`` in numbers, or by its name.

    "valid" is 0; "same" gives a result of the input's size, of an odd sum the larger part at the end. RuntimeError for
    "same" with strides, and for another name.
    """
    if not isinstance(padding, str):
        return _both_ends(_sides(op, "padding", padding, 0, len(kernel)))
    if padding not in ("same", "valid"):
        raise RuntimeError(f"{op}(): padding must be numbers, 'same' or 'valid', got {padding!r}")
    if padding == "valid":
        return [0] * 2 * len(kernel)
    if max(stride) > 1:
        raise RuntimeError(f"{op}(): padding='same' needs strides of 1, got {tuple(stride)}")
    sums = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return [end for n in reversed(sums) for end in (n // 2, n - n // 2)]


def _both_ends(before: Sequence[int], after: Sequence[int] | None = None) -> list[int]:
    """The widths of ``pad`` that are ``before`` and ``after``, by default the same, at the ends of the last axes."""
    return [n for pair in reversed([*zip(before, after or before, strict=True)]) for n in pair]


def _windows(op: str, x: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> list[Any]:
    """For each place of the kernel, in C order, what of ``x`` (N, C, ...) stands there as the kernel moves."""
    out = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)]
    if min(out) < 1:
        raise RuntimeError(f"{op}(): a kernel of {tuple(kernel)} does not fit into an input of {tuple(x.shape[2:])}")
    lanes = [
        [slice(i * d, i * d + s * (m - 1) + 1, s) for i in range(k)]
        for m, k, s, d in zip(out, kernel, stride, dilation, strict=True)
    ]
    return [getitem(x, (slice(None), slice(None), *place)) for place in itertools.product(*lanes)]


def _convolution(op: str, axes: int, tensors: Sequence[Any], padding: Any, groups: int, **moves: Any) -> Any:
    """``conv1d`` and ``conv2d``, over as many axes; ``moves`` are stride and dilation."""
    xs = [must_float(op, x) for x in tensors if x is not None]
    one_dtype(op, *xs)
    x, w, bias = *xs[:2], xs[2] if len(xs) > 2 else None
    if (
        x.ndim not in (axes + 1, axes + 2)
        or w.ndim != axes + 2
        or 0 in (w.shape[0], *w.shape[2:])
        or integer(op, "groups", groups) < 1
        or x.shape[-axes - 1] != w.shape[1] * groups
        or w.shape[0] % groups
        or (bias is not None and bias.shape != w.shape[:1])
    ):
        sides, kernel = ("L", "l") if axes == 1 else ("H, W", "h, w")
        raise RuntimeError(
            f"{op}(): got shapes {' and '.join(str(x.shape) for x in xs)} with groups={groups}; it needs "
            f"(N, C, {sides}), (O, C/groups, {kernel}) and, if any, (O,), O a multiple of groups"
        )
    stride, dilation = (_sides(op, name, moves[name], 1, axes) for name in ("stride", "dilation"))
    single = x.ndim == axes + 1
    x = pad(unsqueeze(x, 0) if single else x, margins(op, padding, w.shape[2:], stride, dilation))
    parts = _windows(op, x, w.shape[2:], stride, dilation)
    n, out = x.shape[0], parts[0].shape[2:]
    # For each group (N, groups, places of the kernel · C/groups, places of the result), and its kernels as rows.
    columns = cat([reshape(part, n, groups, w.shape[1], math.prod(out)) for part in parts], 2)
    rows = reshape(permute(w, 0, *range(2, w.ndim), 1), groups, w.shape[0] // groups, w.shape[1] * len(parts))
    y = reshape(matmul(rows, columns), n, w.shape[0], *out)
    y = squeeze(y, 0) if single else y
    return clone(y) if bias is None else y + reshape(bias, -1, *[1] * axes)


def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """The sums of products of a kernel (O, C/groups, h, w) with all places of (N, C, H, W), plus bias (O,).

    They are (N, O, H', W'), and without N there is none in the result either: H' = (H + 2·padding - dilation·(h - 1) -
    1) // stride + 1. With ``groups``, each part of the O kernels sees its part of the C channels alone. ``padding`` may
    be "valid", which is none, or "same", for H' = H.
    """
    return _convolution("conv2d", 2, (input, weight, bias), padding, groups, stride=stride, dilation=dilation)


def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """``conv2d`` over one axis: (N, C, L) or (C, L) with (O, C/groups, l) and bias (O,) gives (N, O, L') or (O, L')."""
    return _convolution("conv1d", 1, (input, weight, bias), padding, groups, stride=stride, dilation=dilation)


def _moves(op: str, kernel_size: Any, stride: Any, padding: Any) -> Any:
    """The sides of a pool's kernel, its strides, by default as long, and the padding, at most half as wide."""
    kernel, around = _sides(op, "kernel_size", kernel_size, 1), _sides(op, "padding", padding, 0)
    if any(2 * p > k for p, k in zip(around, kernel, strict=True)):
        raise RuntimeError(f"{op}(): padding {around} must be at most half of the kernel's size, {kernel}")
    return kernel, kernel if stride in (None, (), []) else _sides(op, "stride", stride, 1), around


def max_pool2d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """The largest element of each window of (N, C, H, W) or (C, H, W); the first of those tied has the slope.

    ``stride`` is the kernel's size unless given; the padding is below every number. With ``ceil_mode`` a last window
    may reach over the padded edge. RuntimeError for a padding above half the kernel.
    """
    x = tensor("max_pool2d", input)
    refuse_bool("max_pool2d", x)
    if x.ndim not in (3, 4) or 0 in x.shape[-3:]:
        raise RuntimeError(f"max_pool2d(): needs (N, C, H, W) or (C, H, W), only N may be 0, got shape {x.shape}")
    if x.ndim == 3:
        return clone(squeeze(max_pool2d(unsqueeze(x, 0), kernel_size, stride, padding, dilation, ceil_mode), 0))
    kernel, stride, padding = _moves("max_pool2d", kernel_size, stride, padding)
    dilation = _sides("max_pool2d", "dilation", dilation, 1)
    beyond = [
        p + (_overhang(n, d * (k - 1) + 1, s, p) if ceil_mode else 0)
        for n, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)
    ]
    floating = x.dtype.kind == "f"
    lowest = -np.inf if floating else np.iinfo(x.dtype).min

    def windows(x: Any) -> list[Any]:
        return _windows("max_pool2d", pad(x, _both_ends(padding, beyond), value=lowest), kernel, stride, dilation)

    # An infinity below zero that was given goes before one that pads, and the last NaN before all, as in PyTorch.
    values = value_of(x)
    rated = np.stack(windows(np.maximum(values, np.finfo(x.dtype).min) if floating else values), -1)
    nan = np.isnan(rated)
    last = rated.shape[-1] - 1 - np.argmax(nan[..., ::-1], axis=-1, keepdims=True)
    indices = np.where(nan.any(axis=-1, keepdims=True), last, np.argmax(rated, axis=-1, keepdims=True))
    return clone(squeeze(along(stack(windows(x), -1), indices, 4), -1))


def _overhang(n: int, kernel: int, stride: int, padding: int) -> int:
    """How far a last window that begins before the padded end reaches over it."""
    last = -(-(n + 2 * padding - kernel) // stride)
    if last * stride >= n + padding:  # none begins in the padding at the end
        last -= 1
    return max(0, last * stride + kernel - n - 2 * padding)


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window of (N, C, H, W) or (C, H, W); ``stride`` is the kernel's size unless given.

    With ``ceil_mode`` a last window may reach over the padded edge. What is divided by is the number of elements in the
    window, those of the padding among them where ``count_include_pad``, or ``divisor_override``. RuntimeError for a
    padding above half the kernel.
    """
    x = must_float("avg_pool2d", input, NotImplementedError)
    if x.ndim not in (3, 4) or 0 in x.shape[-3:]:
        raise RuntimeError(f"avg_pool2d(): needs (N, C, H, W) or (C, H, W), only N may be 0, got shape {x.shape}")
    if x.ndim == 3:
        options = (stride, padding, ceil_mode, count_include_pad, divisor_override)
        return clone(squeeze(avg_pool2d(unsqueeze(x, 0), kernel_size, *options), 0))
    kernel, stride, padding = _moves("avg_pool2d", kernel_size, stride, padding)
    if divisor_override == 0:
        raise RuntimeError("avg_pool2d(): divisor_override must not be 0")
    moves = list(zip(x.shape[2:], kernel, stride, padding, strict=True))
    over = [_overhang(*move) if ceil_mode else 0 for move in moves]

    def total(y: Any, around: Sequence[int], beyond: Sequence[int]) -> Any:
        ends = _both_ends(around, [p + o for p, o in zip(around, beyond, strict=True)])
        return functools.reduce(operator.add, _windows("avg_pool2d", pad(y, ends), kernel, stride, (1, 1)))

    y = total(x, padding, over)
    if divisor_override is not None:
        return y / divisor_override
    frame = padding if count_include_pad else (0, 0)
    counted = np.ones((1, 1, *(n + 2 * p for n, p in zip(x.shape[2:], frame, strict=True))), x.dtype)
    return y / total(counted, [p - q for p, q in zip(padding, frame, strict=True)], over)


# --- attention --------------------------------------------------------------------------------------------------------


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Any:
    """softmax(query @ key.mT · scale + mask) @ value: (..., L, E), (..., S, E) and (..., S, V) give (..., L, V).

    ``scale`` is 1/√E unless given. ``attn_mask`` broadcasts to (..., L, S): bools, True where to look, or numbers that
    are added, in float32 or the dtype of ``query``; one of L that may look at none gives 0. ``is_causal`` lets each of
    L look at those of S that are not after it. Source: Vaswani et al.,
    "Attention Is All You Need" (2017).
    """
    q, k, v = (must_float("scaled_dot_product_attention", x) for x in (query, key, value))
    if is_causal and attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention(): is_causal is a mask itself; give no attn_mask beside it")
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError("scaled_dot_product_attention(): query, key and value need at least two dimensions")
    if is_causal:
        attn_mask = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
    return matmul(attention_weights(q, k, attn_mask, dropout_p, scale), v)


def attention_weights(
    query: Any, key: Any, mask: Any = None, dropout_p: float = 0.0, scale: float | None = None
) -> Any:
    """What ``scaled_dot_product_attention`` multiplies values by, (..., L, S): of each of L the part of each of S."""
    op = "scaled_dot_product_attention"
    scores, blind = matmul(query, mT(key)) * (max(query.shape[-1], 1) ** -0.5 if scale is None else scale), None
    if mask is not None:
        allowed = tensor(op, mask)
        if allowed.dtype not in (np.bool_, np.float32, scores.dtype):
            raise RuntimeError(f"{op}(): attn_mask must be bool or, as query, {scores.dtype}, got {allowed.dtype}")
        scores = where(allowed, scores, -np.inf) if allowed.dtype == bool else scores + allowed
        blind = np.all(value_of(scores) == -np.inf, axis=-1, keepdims=True)
        scores = where(blind, 0, scores)  # whose softmax would be 0 / 0
    weights = softmax(scores, -1)
    weights = weights if blind is None else where(blind, 0, weights)
    return dropout(weights, dropout_p) if dropout_p else weights


# --- activations ------------------------------------------------------------------------------------------------------


def leaky_relu(input: Any, negative_slope: float = 0.01) -> Any:
    """x, or ``negative_slope`` · x where x is not above 0. Source: Maas et al. (2013)."""
    x = must_float("leaky_relu", input, NotImplementedError)
    return x * np.where(value_of(x) > 0, 1, negative_slope).astype(x.dtype)


def elu(input: Any, alpha: float = 1.0) -> Any:
    """x, or ``alpha`` · (exp(x) - 1) where x is not above 0. Source: Clevert et al. (2015)."""
    return fused.elu(must_float("elu", input, NotImplementedError), alpha=float(alpha), scale=1.0)


def selu(input: Any) -> Any:
    """``elu`` of a slope and a scale that keep mean 0 and variance 1. Source: Klambauer et al. (2017)."""
    return fused.elu(must_float("selu", input, NotImplementedError), alpha=1.6732632423543772, scale=1.0507009873554805)


def silu(input: Any) -> Any:
    """x · sigmoid(x). Source: Elfwing et al. (2017)."""
    x = must_float("silu", input, NotImplementedError)
    return x * sigmoid(x)


def mish(input: Any) -> Any:
    """x · tanh(softplus(x)). Source: Misra (2019)."""
    x = must_float("mish", input, NotImplementedError)
    return x * tanh(fused.softplus(x, beta=1.0, threshold=np.inf))


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(``beta`` · x)) / ``beta``; x itself where ``beta`` · x is above ``threshold``."""
    x = must_float("softplus", input, NotImplementedError)
    beta, threshold = (float(factor("softplus", n, v, x.dtype)) for n, v in (("beta", beta), ("threshold", threshold)))
    return fused.softplus(x, beta=beta, threshold=threshold)


def logsigmoid(input: Any) -> Any:
    """log(sigmoid(x)), without overflow and right in both tails."""
    return fused.logsigmoid(must_float("logsigmoid", input, NotImplementedError))


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """x held between ``min_val`` and ``max_val``, with a slope of 0 at both. ValueError where the first is larger."""
    x = tensor("hardtanh", input)
    refuse_bool("hardtanh", x)
    if min_val > max_val:
        raise ValueError(f"hardtanh(): min_val {min_val} must not be above max_val {max_val}")
    whole = float if x.dtype.kind == "f" else int
    low, high = (factor("hardtanh", "a bound of", float(whole(v)), x.dtype) for v in (min_val, max_val))
    return where((x > low) & (x < high), x, np.clip(value_of(x), low, high))


def hardswish(input: Any) -> Any:
    """x · min(max(x + 3, 0), 6) / 6. Source: Howard et al. (2019)."""
    x = must_float("hardswish", input, NotImplementedError)
    return x * hardtanh(x + 3, 0, 6) / 6


def glu(input: Any, dim: int = -1) -> Any:
    """The first half along ``dim`` times the sigmoid of the second. Source: Dauphin et al. (2016).

    RuntimeError for an odd size.
    """
    x = must_float("glu", input, NotImplementedError)
    lane = axis("glu", dim, x.ndim)
    if not x.ndim or x.shape[lane] % 2:
        raise RuntimeError(f"glu(): dim {dim} must have an even size, got shape {x.shape}")
    half, before = x.shape[lane] // 2, (slice(None),) * lane
    return getitem(x, (*before, slice(half))) * sigmoid(getitem(x, (*before, slice(half, None))))


def gelu(input: Any, approximate: str = "none") -> Any:
    """x · Φ(x), Φ the normal distribution's; with ``approximate="tanh"`` x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))).

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu(): approximate must be 'none' or 'tanh', got {approximate!r}")
    x = must_float("gelu", input, NotImplementedError)
    if approximate == "none":
        return x * 0.5 * (1 + erf(x * 0.5**0.5))
    return x * 0.5 * (1 + tanh((x + 0.044715 * x * x * x) * (2 / np.pi) ** 0.5))


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between ``x1`` and ``x2``, which broadcast, along ``dim``; no norm is below ``eps``.

    RuntimeError for a negative ``eps``.
    """
    if not eps >= 0:
        raise RuntimeError(f"cosine_similarity(): eps must not be negative, got {eps}")
    pair = operands("cosine_similarity", tensor("cosine_similarity", x1), tensor("cosine_similarity", x2))
    shape = broadcast_shape("cosine_similarity", *(x.shape for x in pair))
    lane = axis("cosine_similarity", dim, len(shape))
    units = []
    for x in pair:
        x = must_float("cosine_similarity", x if x.shape == shape else expand(x, shape))
        least = max(eps * eps, float(np.finfo(x.dtype).tiny)) if eps else 0.0  # whose square may be none
        units.append(x / sqrt(clamp(sum(x * x, lane, True), min=least)))
    return sum(units[0] * units[1], lane)


# --- losses -----------------------------------------------------------------------------------------------------------


def _reduced(op: str, losses: Any, reduction: str, count: Any = None, allowed: str = "'none', 'mean' or 'sum'") -> Any:
    """Each of ``losses``, their sum, or that over ``count``, by default how many they are. ValueError for another."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{op}(): reduction must be {allowed}, got {reduction!r}")
    if reduction == "none":
        return losses
    total = sum(losses)
    return total if reduction == "sum" else total / (float(losses.size) if count is None else count)


def _beside(op: str, input: Any, target: Any) -> Any:
    """The two in their common dtype. They are stretched first, so that one of no dimensions counts in it."""
    xs = [tensor(op, x) for x in (input, target)]
    if xs[0].ndim or xs[1].ndim:
        xs = [x if x.ndim else unsqueeze(x, 0) for x in xs]
    broadcast_shape(op, *(x.shape for x in xs))
    return operands(op, *xs)


def _difference(op: str, input: Any, target: Any, weight: Any = None) -> Any:
    pair = _beside(op, input, target)
    if weight is None:
        return sub(*(must_float(op, x, NotImplementedError) for x in pair))
    refuse_bool(op, input, target)
    return sub(*pair)


def _weighed(op: str, losses: Any, input: Any, weight: Any, reduction: str, mean_of_weights: bool) -> Any:
    if weight is None:
        return _reduced(op, losses, reduction)
    if tensor(op, weight).shape != input.shape:
        raise ValueError(f"{op}(): weight must have the input's shape {input.shape}, got {weight.shape}")
    return _reduced(op, losses * weight, reduction, sum(weight) if mean_of_weights else None)


def mse_loss(input: Any, target: Any, *, reduction: str = "mean", weight: Any = None) -> Any:
    """The squared differences of ``input`` and ``target``, which broadcast: each, their mean, or their sum.

    ``weight``, of the shape of ``input``, multiplies each; then the mean is their sum over that of the weights.
    """
    d = _difference("mse_loss", input, target, weight)
    return _weighed("mse_loss", d * d, input, weight, reduction, True)


def l1_loss(input: Any, target: Any, *, reduction: str = "mean", weight: Any = None) -> Any:
    """The absolute differences of ``input`` and ``target``, reduced and weighed as those of ``mse_loss``."""
    refuse_bool("l1_loss", input, target)
    d = abs(sub(*_beside("l1_loss", input, target)))
    if reduction == "mean" and weight is None:
        must_float("l1_loss", d)
    return _weighed("l1_loss", d, input, weight, reduction, True)


def smooth_l1_loss(input: Any, target: Any, *, reduction: str = "mean", beta: float = 1.0) -> Any:
    """d²/2/``beta`` of the differences d below ``beta``, |d| - ``beta``/2 of the others, reduced as in ``mse_loss``.

    RuntimeError for a ``beta`` that is negative or infinite. Source: Girshick, "Fast R-CNN" (2015).
    """
    if not 0 <= beta < np.inf:
        raise RuntimeError(f"smooth_l1_loss(): beta must not be negative or infinite, got {beta}")
    if beta < np.finfo(np.float32).tiny:  # what is divided by it may be no number
        return l1_loss(input, target, reduction=reduction)
    d = _difference("smooth_l1_loss", input, target)
    return _reduced("smooth_l1_loss", fused.huber(d, delta=float(beta)) / beta, reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """``delta`` times ``smooth_l1_loss``, in the dtype of ``input``; ``weight`` multiplies each.

    RuntimeError for a ``delta`` that is not positive. Source: Huber (1964).
    """
    if not delta > 0:
        raise RuntimeError(f"huber_loss(): delta must be positive, got {delta}")
    d = _difference("huber_loss", input, target)
    must_float("huber_loss", input)
    losses = cast(fused.huber(d, delta=float(delta)), input.dtype)
    return _weighed("huber_loss", losses, input, weight, reduction, False)


def kl_div(input: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Any:
    """``target`` · (log ``target`` - ``input``): how far a distribution is from one given by its logarithm.

    With ``log_target`` both are logarithms. ``reduction`` may be "batchmean": the sum over the first size. Source:
    Kullback and Leibler (1951).
    """
    x, t = (must_float("kl_div", x) for x in (input, target))
    broadcast_shape("kl_div", x.shape, t.shape)
    losses = exp(t) * (t - x) if log_target else where(t == 0, 0, t * log(t)) - t * x
    if reduction == "batchmean":
        return _reduced("kl_div", losses, "mean" if x.ndim else "sum", float(x.shape[0]) if x.ndim else None)
    return _reduced("kl_div", losses, reduction, allowed="'none', 'batchmean', 'mean' or 'sum'")


def _fixed(op: str, name: str, x: Any) -> np.ndarray:
    """The array of what has no gradient here."""
    if isinstance(x, Node) and x._requires_grad:
        raise RuntimeError(f"{op}(): has no gradient for {name}, which must not require it")
    return value_of(tensor(op, x)).copy()


def _same_shape(op: str, input: Any, target: Any) -> Any:
    x, t = (tensor(op, x) for x in (input, target))
    if x.shape != t.shape:
        raise ValueError(f"{op}(): input and target must have one shape, got {x.shape} and {t.shape}")
    return x, t


def _refuse_to_stretch(op: str, x: Any, name: str, weight: Any) -> None:
    if broadcast_shape(op, x.shape, tensor(op, weight).shape) != x.shape:
        raise RuntimeError(f"{op}(): {name} must broadcast to the input's shape {x.shape}, got {weight.shape}")


def _times(op: str, losses: Any, weight: Any) -> Any:
    if weight is None:
        return losses
    _refuse_to_stretch(op, losses, "weight", weight)
    return losses * _fixed(op, "weight", weight).astype(losses.dtype)


def binary_cross_entropy(input: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Any:
    """-(t log x + (1 - t) log(1 - x)) of probabilities x and t, of one shape and dtype, times ``weight``.

    The logarithms are -100 at the least. RuntimeError for what is not in [0, 1].
    """
    x, t = _same_shape("binary_cross_entropy", input, target)
    one_dtype("binary_cross_entropy", x, t)
    must_float("binary_cross_entropy", x, NotImplementedError)
    for name, array in (("input", value_of(x)), ("target", value_of(t))):
        if not ((array >= 0) & (array <= 1)).all():
            raise RuntimeError(f"binary_cross_entropy(): all elements of {name} must be in [0, 1]")
    losses = _times("binary_cross_entropy", fused.binary_cross_entropy(x, t), weight)
    return _reduced("binary_cross_entropy", losses, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
) -> Any:
    """``binary_cross_entropy`` of sigmoid(``input``), without overflow, in the dtype of ``target``.

    ``pos_weight``, which broadcasts to the input's shape, multiplies what comes from log x.
    """
    op = "binary_cross_entropy_with_logits"
    x, t = _same_shape(op, input, target)
    must_float(op, x, NotImplementedError)
    must_float(op, t)
    x = cast(x, t.dtype)
    if pos_weight is None:
        losses = (1 - t) * x - fused.logsigmoid(x)
    else:
        _refuse_to_stretch(op, x, "pos_weight", pos_weight)
        losses = fused.weighed_logits(x, t, weight=_fixed(op, "pos_weight", pos_weight).astype(t.dtype))
    return _reduced(op, _times(op, losses, weight), reduction)


def _classes(op: str, input: Any, target: Any, weight: Any, ignore_index: int) -> Any:
    """Logits or their like, the axis of classes, an index of each target's place, those kept, and their weights."""
    x, classes = tensor(op, input), value_of(tensor(op, target))
    if x.ndim == 0:
        raise ValueError(f"{op}(): the input needs a class axis, got a 0-d tensor")
    must_float(op, x, NotImplementedError)
    lane = min(1, x.ndim - 1)
    wanted = x.shape[:lane] + x.shape[lane + 1 :]
    if classes.dtype not in (np.int64, np.uint8):
        raise RuntimeError(f"{op}(): target must hold class indices in int64 or uint8, got {classes.dtype}")
    if classes.shape != wanted:
        raise ValueError(f"{op}(): target must have shape {wanted} for input {x.shape}, got {classes.shape}")
    kept = classes != ignore_index
    in_range(op, classes[kept], x.shape[lane])
    classes = np.where(kept, classes, 0)
    weights = None
    if weight is not None:
        _check_class_weights(op, weight, x, lane)
        one_dtype(op, x, weight)
        weights = np.where(kept, _fixed(op, "weight", weight)[classes], 0)
    grid = [*np.ogrid[tuple(slice(n) for n in wanted)]] if wanted else []
    return x, lane, (*grid[:lane], classes, *grid[lane:]), kept, weights


def _check_class_weights(op: str, weight: Any, x: Any, lane: int) -> None:
    if tensor(op, weight).shape != x.shape[lane : lane + 1]:
        raise RuntimeError(f"{op}(): weight must have one element a class, {x.shape[lane]}, got {weight.shape}")


def _summed_up(op: str, losses: Any, kept: np.ndarray, weights: Any, reduction: str) -> Any:
    """Each of ``losses`` times its weight, their sum, or that over the sum of the weights of those kept."""
    if weights is None:
        return _reduced(op, losses, reduction, float(kept.sum()))
    return _reduced(op, losses * weights, reduction, float(weights.sum()))


def nll_loss(input: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """-``input`` at the class ``target``: the loss of log probabilities; all else is as in ``cross_entropy``."""
    x, _, index, kept, weights = _classes("nll_loss", input, target, weight, ignore_index)
    return _summed_up("nll_loss", where(kept, -getitem(x, index), 0), kept, weights, reduction)


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """-log softmax(input) at the class ``target``, from the logits themselves, of any size without overflow.

    ``input`` is (C,), (N, C) or (N, C, ...), ``target`` the same without C, in int64 or uint8; or it is of the input's
    shape and holds the probability of each class. ``weight`` (C,) multiplies the losses of each class; of so much as
    ``label_smoothing`` says, every class is the target alike. The mean is over the weights of those that are not
    ``ignore_index``, NaN where all are; of probabilities, over the samples. IndexError for a class that is not there.
    Source of label smoothing: Szegedy et al. (2015).
    """
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"cross_entropy(): label_smoothing must be in [0, 1], got {label_smoothing}")
    if tensor("cross_entropy", input).shape == tensor("cross_entropy", target).shape:
        return _of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    x, lane, index, kept, weights = _classes("cross_entropy", input, target, weight, ignore_index)
    if not label_smoothing:
        losses = fused.cross_entropy(x, lane=lane, index=index, kept=kept)
        return _summed_up("cross_entropy", losses, kept, weights, reduction)
    share = np.full(x.shape, label_smoothing / x.shape[lane], x.dtype)
    share[index] += 1 - label_smoothing
    losses = where(kept, _surprises(x, lane, share, weight), 0)
    count = float(kept.sum() if weights is None else weights.sum()) or np.nan
    return _reduced("cross_entropy", losses, reduction, count)


def _surprises(x: Any, lane: int, share: Any, weight: Any) -> Any:
    terms = log_softmax(x, lane) * share
    if weight is not None:
        terms = terms * reshape(weight, (-1, *[1] * (x.ndim - lane - 1)))
    return -sum(terms, lane)


def _of_probabilities(x: Any, share: Any, weight: Any, ignore_index: int, reduction: str, smoothing: float) -> Any:
    if x.ndim == 0:
        raise RuntimeError("cross_entropy(): the input needs a class axis, got a 0-d tensor")
    if share.dtype.kind != "f" or ignore_index >= 0:
        raise RuntimeError(
            f"cross_entropy(): a target of the input's shape holds probabilities: in a floating dtype, got "
            f"{share.dtype}, and without ignore_index, got {ignore_index}"
        )
    must_float("cross_entropy", x, NotImplementedError)
    lane = min(1, x.ndim - 1)
    if weight is not None:
        _check_class_weights("cross_entropy", weight, x, lane)
    if smoothing:
        share = share * (1 - smoothing) + smoothing / x.shape[lane]
    return _reduced("cross_entropy", _surprises(x, lane, share, weight), reduction)


publish(globals(), "smolgrad")
