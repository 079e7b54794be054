"""Layers: modules with parameters and options of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import functional
from ..creation import ones, rand, randn, zeros
from ..dtypes import float32
from ..primitives.linalg import matmul
from ..primitives.operands import integer, refuse, sizes, tensor
from ..primitives.reduction import mean
from ..primitives.shape import flatten, reshape, squeeze, transpose, unsqueeze
from .module import Buffer, Module, Parameter


class Linear(Module):
    """``x @ weight.T + bias``: (*, in_features) gives (*, out_features).

    ``weight`` is (out_features, in_features), ``bias`` (out_features,) or None. Both are drawn uniformly within
    1/sqrt(in_features), which is PyTorch's kaiming_uniform(a=sqrt(5)). ``dtype`` is float32 unless given.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = None, **options: Any):
        refuse("Linear", options, "device")
        shape = self.out_features, self.in_features = sizes("Linear", (out_features, in_features))
        bound = 1 / math.sqrt(shape[1]) if shape[1] > 0 else 0.0
        self.weight = _uniform(shape, bound, dtype)
        self.bias = _uniform(shape[:1], bound, dtype) if bias else None

    def forward(self, input: Any) -> Any:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _uniform(shape: tuple[int, ...], bound: float, dtype: Any) -> Parameter:
    return Parameter(rand(shape, dtype=dtype or float32) * (2 * bound) - bound)


class Embedding(Module):
    """The rows of ``weight`` (num_embeddings, embedding_dim) that integers name: (*) gives (*, embedding_dim).

    Drawn from N(0, 1), in float32 unless ``dtype`` is given. The row ``padding_idx``, counted from either end, begins
    as zeros and gets no gradient. AssertionError, as in PyTorch, where there is no such row.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        dtype: Any = None,
        **options: Any,
    ):
        refuse("Embedding", options, "max_norm norm_type scale_grad_by_freq sparse _weight _freeze device")
        self.num_embeddings, self.embedding_dim = rows, _ = sizes("Embedding", (num_embeddings, embedding_dim))
        if padding_idx is not None and not -rows <= integer("Embedding", "padding_idx", padding_idx) < rows:
            raise AssertionError(f"Embedding(): padding_idx {padding_idx} is out of range; there are {rows} rows")
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % rows
        self.weight = Parameter(randn(rows, self.embedding_dim, dtype=dtype or float32))
        if padding_idx is not None:
            self.weight.data[padding_idx] = 0

    def forward(self, input: Any) -> Any:
        return functional.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class LayerNorm(Module):
    """Each lane over the last axes, of sizes ``normalized_shape``, brought to mean 0 and variance 1, and made affine.

    ``weight`` (ones) and ``bias`` (zeros) have shape ``normalized_shape``, in float32 unless ``dtype`` is given, or are
    None. Source: Ba et al., "Layer Normalization" (2016).
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = None,
        **options: Any,
    ):
        refuse("LayerNorm", options, "device")
        self.normalized_shape = shape = sizes("LayerNorm", (normalized_shape,))
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Parameter(ones(shape, dtype=dtype or float32)) if elementwise_affine else None
        self.bias = Parameter(zeros(shape, dtype=dtype or float32)) if elementwise_affine and bias else None

    def forward(self, input: Any) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Each lane over the last axes, of sizes ``normalized_shape``, over its root mean square, times ``weight`` (ones).

    ``eps`` is the dtype's unless given. Source: Zhang and Sennrich (2019).
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: Any = None,
        **options: Any,
    ):
        refuse("RMSNorm", options, "device")
        self.normalized_shape = shape = sizes("RMSNorm", (normalized_shape,))
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Parameter(ones(shape, dtype=dtype or float32)) if elementwise_affine else None

    def forward(self, input: Any) -> Any:
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class BatchNorm1d(Module):
    """Each channel of (N, C) or (N, C, L) brought to mean 0 and variance 1, and made affine.

    In training by the batch, and the buffers ``running_mean`` and ``running_var`` follow it; otherwise by them. A
    ``momentum`` of None is their mean over all batches, which ``num_batches_tracked`` counts. Source: Ioffe and
    Szegedy (2015).
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        dtype: Any = None,
        **options: Any,
    ):
        refuse("BatchNorm1d", options, "device")
        (self.num_features,) = shape = sizes("BatchNorm1d", (num_features,))
        self.eps, self.momentum, self.affine, self.track_running_stats = eps, momentum, affine, track_running_stats
        self.weight = Parameter(ones(shape, dtype=dtype or float32)) if affine else None
        self.bias = Parameter(zeros(shape, dtype=dtype or float32)) if affine and bias else None
        track = track_running_stats
        self.running_mean = Buffer(zeros(shape, dtype=dtype or float32)) if track else None
        self.running_var = Buffer(ones(shape, dtype=dtype or float32)) if track else None
        self.num_batches_tracked = Buffer(0) if track else None

    def forward(self, input: Any) -> Any:
        if input.ndim not in (2, 3):
            raise ValueError(f"BatchNorm1d(): needs (N, C) or (N, C, L), got shape {input.shape}")
        momentum, counted = self.momentum or 0.0, self.num_batches_tracked if self.training else None
        if counted is not None and self.momentum is None:
            momentum = 1.0 / (int(counted) + 1)
        y = functional.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            momentum,
            self.eps,
        )
        if counted is not None:
            counted.data += 1
        return y

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class Dropout(Module):
    """Each element 0 with probability ``p`` in training, and otherwise over 1 - p. Source: Srivastava et al. (2014)."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        refuse("Dropout", {"inplace": inplace}, "inplace")
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout(): p must be in [0, 1], got {p}")
        self.p = p

    def forward(self, input: Any) -> Any:
        return functional.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace=False"


class Flatten(Module):
    """The axes from ``start_dim`` to ``end_dim`` as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Conv(Module):
    """A convolution over as many axes as a subclass says: ``weight`` (out, in/groups, *kernel) and ``bias`` (out,).

    Both are drawn uniformly within 1/sqrt(in/groups · the kernel's size), as in PyTorch, in float32 unless ``dtype`` is
    given. ``padding`` may be a name, and ``padding_mode`` says what stands there: zeros, or the input itself, mirrored
    ("reflect"), held at its ends ("replicate") or begun again ("circular"). ValueError for other names, and for
    ``groups`` that do not divide both numbers of channels.
    """

    axes: ClassVar[int]
    function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        dtype: Any = None,
        **options: Any,
    ):
        name = type(self).__name__
        refuse(name, options, "device")
        self.in_channels, self.out_channels = sizes(name, (in_channels, out_channels))
        self.padding: tuple[int, ...] | str
        self.kernel_size, self.stride, self.padding, self.dilation = (
            sizes(name, tuple(n) if isinstance(n, (tuple, list)) else (n,) * self.axes)
            for n in (kernel_size, stride, () if isinstance(padding, str) else padding, dilation)
        )
        self.groups, self.padding_mode = integer(name, "groups", groups), padding_mode
        if self.groups < 1 or self.in_channels % self.groups or self.out_channels % self.groups:
            raise ValueError(
                f"{name}(): groups must divide {self.in_channels} and {self.out_channels} channels, got {groups}"
            )
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"{name}(): padding_mode must be one of {', '.join(_PADDING_MODES)}, got {padding_mode!r}")
        if isinstance(padding, str):
            self.padding = padding
            try:
                self._margins()
            except RuntimeError as error:  # which it is of the function, in PyTorch too
                raise ValueError(*error.args) from None
        shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        bound = 1 / math.sqrt(math.prod(shape[1:])) if math.prod(shape[1:]) > 0 else 0.0
        self.weight = _uniform(shape, bound, dtype)
        self.bias = _uniform(shape[:1], bound, dtype) if bias else None

    def forward(self, input: Any) -> Any:
        zeros: Any = self.padding
        if self.padding_mode != "zeros":
            input, zeros = functional.pad(input, self._margins(), self.padding_mode), 0
        return type(self).function(input, self.weight, self.bias, self.stride, zeros, self.dilation, self.groups)

    def _margins(self) -> list[int]:
        return functional.margins(type(self).__name__, self.padding, self.kernel_size, self.stride, self.dilation)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        defaults = {
            "padding": (0,) * self.axes,
            "dilation": (1,) * self.axes,
            "groups": 1,
            "bias": True,
            "padding_mode": "zeros",
        }
        found = vars(self) | {"bias": self.bias is not None}
        parts += [f"{name}={found[name]}" for name, usual in defaults.items() if found[name] != usual]
        return ", ".join(parts)


class Conv1d(_Conv):
    """``functional.conv1d`` with a kernel and a bias of its own: (N, C, L) gives (N, O, L')."""

    axes, function = 1, functional.conv1d


class Conv2d(_Conv):
    """``functional.conv2d`` with a kernel and a bias of its own: (N, C, H, W) gives (N, O, H', W')."""

    axes, function = 2, functional.conv2d


class MaxPool2d(Module):
    """The largest element of each window: see ``functional.max_pool2d``."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, **options: Any):
        refuse("MaxPool2d", options, "return_indices ceil_mode")
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation

    def forward(self, input: Any) -> Any:
        return functional.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            "ceil_mode=False"
        )


class MultiheadAttention(Module):
    """Attention of ``num_heads`` heads beside each other: each of its own embed_dim/num_heads features.

    ``query`` is (L, N, E), ``key`` (S, N, kdim) and ``value`` (S, N, vdim), with ``batch_first`` N goes first, and all
    may be without N. The result is a pair: the output, of the shape of ``query``, and with ``need_weights`` the weights
    (N, L, S), which are the heads' mean unless ``average_attn_weights`` is False, for (N, num_heads, L, S); otherwise
    None. ``attn_mask`` is (L, S) or (N·num_heads, L, S), ``key_padding_mask`` (N, S): bools, True where not to look, or
    numbers that are added. ``is_causal`` is a hint, that ``attn_mask`` is causal. AssertionError and RuntimeError for
    other shapes and dtypes, as in PyTorch. Source: Vaswani et al., "Attention Is All You Need" (2017).
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        dtype: Any = None,
        **options: Any,
    ):
        name = type(self).__name__
        switches = {"add_bias_kv": add_bias_kv, "add_zero_attn": add_zero_attn}
        refuse(name, switches | options, "add_bias_kv add_zero_attn device")
        self.embed_dim, self.num_heads = width, _ = sizes(name, (embed_dim, num_heads))
        if width < 1 or self.num_heads < 1:
            raise ValueError(f"{name}(): embed_dim and num_heads must be at least 1, got {width} and {num_heads}")
        if width % self.num_heads:
            raise AssertionError(f"{name}(): {num_heads} heads cannot share {width} features evenly")
        self.kdim, self.vdim = sizes(name, (width if kdim is None else kdim, width if vdim is None else vdim))
        self.dropout, self.batch_first = dropout, batch_first
        if self.kdim == self.vdim == width:
            self.in_proj_weight = _xavier((3 * width, width), dtype)
        else:
            self.q_proj_weight = _xavier((width, width), dtype)
            self.k_proj_weight = _xavier((width, self.kdim), dtype)
            self.v_proj_weight = _xavier((width, self.vdim), dtype)
        self.in_proj_bias = Parameter(zeros(3 * width, dtype=dtype or float32)) if bias else None
        self.out_proj = Linear(width, width, bias, dtype=dtype)
        if self.out_proj.bias is not None:
            self.out_proj.bias.data[...] = 0

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        single = self._check_shapes(query, key, value)
        if is_causal and attn_mask is None:
            raise RuntimeError("MultiheadAttention(): is_causal is a hint that attn_mask is causal, and there is none")
        q, k, v = (self._heads(i, x, single) for i, x in enumerate((query, key, value)))
        (n, heads, length), size = q.shape[:3], k.shape[2]
        looks = {(length, size): (length, size), (n * heads, length, size): (n, heads, length, size)}
        padding: dict[tuple[int, ...], tuple[int, ...]] = {(size,) if single else (n, size): (n, 1, 1, size)}
        masks = [
            _added("attn_mask", attn_mask, looks, RuntimeError, q.dtype),
            _added("key_padding_mask", key_padding_mask, padding, AssertionError, q.dtype),
        ]
        given = [mask for mask in masks if mask is not None]
        mask = given[0] + given[1] if len(given) == 2 else given[0] if given else None
        weights = functional.attention_weights(q, k, mask, self.dropout if self.training else 0.0)
        y = self.out_proj(flatten(transpose(matmul(weights, v), 1, 2), 2))
        if average_attn_weights:
            weights = mean(weights, 1)
        if single:
            y, weights = squeeze(y, 0), squeeze(weights, 0)
        elif not self.batch_first:
            y = transpose(y, 0, 1)
        return y, weights if need_weights else None

    def _check_shapes(self, query: Any, key: Any, value: Any) -> bool:
        """Whether there is no batch."""
        shapes = [x.shape for x in (query, key, value)]
        widths, batch = [self.embed_dim, self.kdim, self.vdim], 0 if self.batch_first else 1
        if (
            query.ndim not in (2, 3)
            or any(len(shape) != query.ndim for shape in shapes)
            or [shape[-1] for shape in shapes] != widths
            or key.shape[:-1] != value.shape[:-1]
        ):
            raise AssertionError(
                f"MultiheadAttention(): query, key and value need two or three axes, the last of sizes {widths}, and "
                f"key and value the same others, got {', '.join(map(str, shapes))}"
            )
        if query.ndim == 3 and query.shape[batch] != key.shape[batch]:
            raise RuntimeError(f"MultiheadAttention(): query {shapes[0]} and key {shapes[1]} are not of one batch")
        return bool(query.ndim == 2)

    def _heads(self, i: int, x: Any, single: bool) -> Any:
        """The queries, keys or values (N, heads, length, features), for ``i`` of 0, 1 or 2."""
        width, part = self.embed_dim, slice(i * self.embed_dim, (i + 1) * self.embed_dim)
        if self.kdim == self.vdim == width:
            weight = self.in_proj_weight[part]
        else:
            weight = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[i]
        x = unsqueeze(x, 0) if single else x if self.batch_first else transpose(x, 0, 1)
        y = functional.linear(x, weight, None if self.in_proj_bias is None else self.in_proj_bias[part])
        return transpose(reshape(y, *y.shape[:2], self.num_heads, width // self.num_heads), 1, 2)


def _xavier(shape: tuple[int, int], dtype: Any) -> Parameter:
    """Drawn uniformly within sqrt(6 / (fan in + fan out)): Glorot and Bengio (2010)."""
    return _uniform(shape, math.sqrt(6 / sum(shape)), dtype)


def _added(
    name: str, mask: Any, shapes: dict[tuple[int, ...], tuple[int, ...]], error: type[Exception], dtype: Any
) -> Any:
    """A mask as numbers that are added, in the shape that ``shapes`` has for its own."""
    if mask is None:
        return None
    mask = tensor("MultiheadAttention", mask)
    if mask.shape not in shapes:
        raise error(f"MultiheadAttention(): {name} must have shape {' or '.join(map(str, shapes))}, got {mask.shape}")
    if mask.dtype == bool:
        mask = np.where(np.asarray(mask), -np.inf, 0.0).astype(dtype)
    elif mask.dtype.kind != "f":
        raise AssertionError(f"MultiheadAttention(): {name} must hold bools or floating numbers, got {mask.dtype}")
    return reshape(mask, shapes[mask.shape])
