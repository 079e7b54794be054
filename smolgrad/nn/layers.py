"""Layers: modules with parameters and options of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import functional
from ..creation import ones, rand, randn, zeros
from ..dtypes import float32
from ..primitives.operands import refuse, sizes
from .module import Module, Parameter, asked


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

    Drawn from N(0, 1), in float32 unless ``dtype`` is given. ``padding_idx`` is not offered.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: None = None, *, dtype: Any = None, **options: Any
    ):
        given = asked({"padding_idx": padding_idx, **options})
        refuse("Embedding", given, "padding_idx max_norm norm_type scale_grad_by_freq sparse _weight _freeze device")
        self.num_embeddings, self.embedding_dim = sizes("Embedding", (num_embeddings, embedding_dim))
        self.weight = Parameter(randn(self.num_embeddings, self.embedding_dim, dtype=dtype or float32))

    def forward(self, input: Any) -> Any:
        return functional.embedding(input, self.weight)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


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
