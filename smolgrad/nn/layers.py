"""Layers: modules with parameters and options of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import functional
from ..creation import ones, rand, randn, zeros
from ..dtypes import float32
from ..primitives.operands import integer, refuse, sizes
from ..primitives.shape import flatten, reshape, transpose
from .module import Buffer, Module, Parameter, asked


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
        refuse("Embedding", asked(options), "max_norm norm_type scale_grad_by_freq sparse _weight _freeze device")
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
        momentum, moving = self.momentum or 0.0, self.training and self.num_batches_tracked is not None
        if moving and self.momentum is None:
            momentum = 1.0 / (int(self.num_batches_tracked) + 1)  # type: ignore[arg-type]  # moving: it is not None
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
        if moving:
            self.num_batches_tracked.data += 1  # type: ignore[union-attr]  # tracked: it is not None
        return y

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class Dropout(Module):
    """Each element 0 with probability ``p`` in training, and otherwise over 1 - p. Source: Srivastava et al. (2014)."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        refuse("Dropout", asked({"inplace": inplace}), "inplace")
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


class _Conv(Module):
    """A convolution over as many axes as a subclass says, with ``weight`` (out, in, *kernel) and ``bias`` (out,).

    Both are drawn uniformly within 1/sqrt(in · the kernel's size), as in PyTorch, in float32 unless ``dtype`` is given.
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
        given = {
            "groups": None if groups == 1 else groups,
            "padding_mode": None if padding_mode == "zeros" else padding_mode,
        }
        refuse(name, given | options, "device groups padding_mode")
        self.in_channels, self.out_channels = sizes(name, (in_channels, out_channels))
        self.kernel_size, self.stride, self.padding, self.dilation = (
            sizes(name, tuple(n) if isinstance(n, (tuple, list)) else (n,) * self.axes)
            for n in (kernel_size, stride, padding, dilation)
        )
        shape = (self.out_channels, self.in_channels, *self.kernel_size)
        bound = 1 / math.sqrt(math.prod(shape[1:])) if math.prod(shape[1:]) > 0 else 0.0
        self.weight = _uniform(shape, bound, dtype)
        self.bias = _uniform(shape[:1], bound, dtype) if bias else None

    def forward(self, input: Any) -> Any:
        return type(self).function(input, self.weight, self.bias, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        defaults = {"padding": (0,) * self.axes, "dilation": (1,) * self.axes}
        others = [f"{name}={getattr(self, name)}" for name, usual in defaults.items() if getattr(self, name) != usual]
        others += ["bias=False"] if self.bias is None else []
        first = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        return ", ".join([first, *others])


class Conv1d(_Conv):
    """``conv1d`` with a kernel and a bias of its own: (N, C, L) gives (N, O, L')."""

    axes, function = 1, functional.conv1d


class Conv2d(_Conv):
    """``conv2d`` with a kernel and a bias of its own: (N, C, H, W) gives (N, O, H', W')."""

    axes, function = 2, functional.conv2d


class MaxPool2d(Module):
    """The largest element of each window: see ``functional.max_pool2d``."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, **options: Any):
        refuse("MaxPool2d", asked(options), "return_indices ceil_mode")
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

    ``query`` is (L, N, E), ``key`` and ``value`` (S, N, E), with ``batch_first`` (N, L, E) and (N, S, E). The result is
    a pair as in PyTorch, (output, None): the weights, PyTorch's default, are not offered, so that calls must say
    ``need_weights=False``. Source: Vaswani et al., "Attention Is All You Need" (2017).
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        batch_first: bool = False,
        dtype: Any = None,
        **options: Any,
    ):
        refuse("MultiheadAttention", asked(options), "add_bias_kv add_zero_attn kdim vdim device")
        self.embed_dim, self.num_heads = sizes("MultiheadAttention", (embed_dim, num_heads))
        if embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention(): {num_heads} heads cannot share {embed_dim} features evenly")
        self.dropout, self.batch_first = dropout, batch_first
        bound = math.sqrt(6 / (4 * embed_dim))  # Xavier's, of a (3E, E) weight
        self.in_proj_weight = _uniform((3 * embed_dim, embed_dim), bound, dtype)
        self.in_proj_bias = Parameter(zeros(3 * embed_dim, dtype=dtype or float32)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        if self.out_proj.bias is not None:
            self.out_proj.bias.data[...] = 0

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: None = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        if need_weights or key_padding_mask is not None:
            raise NotImplementedError("MultiheadAttention(): give need_weights=False and no key_padding_mask")
        if attn_mask is not None and attn_mask.dtype == bool:
            attn_mask = ~np.asarray(attn_mask)  # here, as in PyTorch, True is where not to look
        heads = []
        for i, x in enumerate((query, key, value)):
            part = slice(i * self.embed_dim, (i + 1) * self.embed_dim)
            bias = None if self.in_proj_bias is None else self.in_proj_bias[part]
            y = functional.linear(x if self.batch_first else transpose(x, 0, 1), self.in_proj_weight[part], bias)
            heads.append(transpose(reshape(y, *y.shape[:2], self.num_heads, self.embed_dim // self.num_heads), 1, 2))
        y = functional.scaled_dot_product_attention(
            heads[0],
            heads[1],
            heads[2],
            None if is_causal else attn_mask,
            self.dropout if self.training else 0.0,
            is_causal,
        )
        y = self.out_proj(flatten(transpose(y, 1, 2), 2))
        return (y if self.batch_first else transpose(y, 0, 1)), None
