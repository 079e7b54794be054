"""Ops that one rule serves better than a composition: it stays finite, or keeps one array instead of many."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Node, Primitive
from .elementwise import abs, clamp, exp, log, sigmoid, sign, sqrt, where
from .indexing import Index, _put
from .linalg import _matmul
from .reduction import _spread, mean, sum, var
from .shape import mT, reshape

# --- softmax ----------------------------------------------------------------------------------------------------------


def _shifted(x: np.ndarray, lane: int) -> Any:
    return x - np.max(x, axis=lane, keepdims=True, initial=-np.inf)


def _soft_max(x: np.ndarray, lane: int) -> Any:
    e = np.exp(_shifted(x, lane))
    return e / np.sum(e, axis=lane, keepdims=True)


def _log_soft_max(x: np.ndarray, lane: int) -> Any:
    x = _shifted(x, lane)
    return x - np.log(np.sum(np.exp(x), axis=lane, keepdims=True))


softmax = Primitive("softmax", _soft_max, lambda g, y, _x, *, lane: y * (g - sum(g * y, lane, True)))
log_softmax = Primitive("log_softmax", _log_soft_max, lambda g, y, _x, *, lane: g - exp(y) * sum(g, lane, True))

# --- activations ------------------------------------------------------------------------------------------------------


def _exponential(x: np.ndarray, alpha: float, scale: float) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))) * scale


def _exponential_back(g: Any, _y: Any, x: Any, *, alpha: float, scale: float) -> Any:
    return g * where(x > 0, scale, exp(where(x >= 0, 0, x)) * (alpha * scale))  # flat at 0, as in PyTorch


elu = Primitive("elu", _exponential, _exponential_back)
softplus = Primitive(
    "softplus",
    lambda x, beta, threshold: np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta),
    lambda g, _y, x, *, beta, threshold: where(x * beta > threshold, g, g * sigmoid(x * beta)),
)
logsigmoid = Primitive(
    "logsigmoid", lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))), lambda g, _y, x: g * sigmoid(-x)
)

# --- cross entropy ----------------------------------------------------------------------------------------------------


def _surprise(x: np.ndarray, lane: int, index: Index, kept: np.ndarray) -> Any:
    return np.where(kept, -_log_soft_max(x, lane)[index], 0)


def _surprise_back(g: Any, _y: Any, x: Any, *, lane: int, index: Index, kept: np.ndarray) -> Any:
    # d/dx (logsumexp(x) - x[target]) = softmax(x), less 1 at the target.
    g = where(kept, g, 0)
    slope = softmax(x, lane=lane) * _spread(g, x, (lane,))
    if isinstance(slope, Node):
        return slope - _put(g, index=index, shape=x.shape)
    slope[index] -= g  # the place of each sample is its own
    return slope


# The loss of each sample: ``index`` picks its target's logit, and one that is not ``kept`` loses nothing.
cross_entropy = Primitive("cross_entropy", _surprise, _surprise_back)


def _binary(x: np.ndarray, t: np.ndarray) -> Any:
    return -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100))


# Of probabilities. The logarithms end at -100, and what the slope divides by at 1e-12, a float32, as in PyTorch.
binary_cross_entropy = Primitive(
    "binary_cross_entropy",
    _binary,
    lambda g, _y, x, t: g * (x - t) / clamp(x * (1 - x), min=float(np.float32(1e-12))),
    lambda g, _y, x, _t: g * (log(1 - x) - log(x)),
)


def _of_logits(x: np.ndarray, t: np.ndarray, weight: np.ndarray) -> Any:
    return (1 - t) * x - ((weight - 1) * t + 1) * logsigmoid(x)


weighed_logits = Primitive(
    "weighed_logits",
    _of_logits,
    lambda g, _y, x, t, *, weight: g * ((t * weight + 1 - t) * sigmoid(x) - t * weight),
    lambda g, _y, x, _t, *, weight: g * (logsigmoid(-x) - logsigmoid(x) * weight),
)
# d^2/2 up to delta, from there straight on: the slope is d held between -delta and delta.
huber = Primitive(
    "huber",
    lambda d, delta: (q := np.clip(d, -delta, delta)) * (d - q / 2),
    lambda g, _y, d, *, delta: g * where(abs(d) >= delta, sign(d) * delta, d),
)

# --- linear -----------------------------------------------------------------------------------------------------------


def _rows(x: Any) -> Any:
    """``x`` as a matrix: its last axis, and all others as one."""
    width = x.shape[-1]
    return reshape(x, (x.size // width if width else int(np.prod(x.shape[:-1])), width))


def _affine(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    y = _rows(x) @ weight.T
    if bias is not None:
        y += bias
    return y.reshape(x.shape[:-1] + weight.shape[:1])


linear = Primitive(
    "linear",
    _affine,
    lambda g, _y, _x, weight, _bias=None: reshape(_matmul(_rows(g), weight), _x.shape),
    lambda g, _y, x, _weight, _bias=None: _matmul(mT(_rows(g)), _rows(x)),
    lambda g, _y, _x, _weight, _bias: sum(_rows(g), 0),
)

# --- normalisation ----------------------------------------------------------------------------------------------------


def _standard(x: np.ndarray, dims: tuple[int, ...], eps: float) -> Any:
    deviation = x - x.mean(axis=dims, keepdims=True)
    return deviation / np.sqrt(np.mean(deviation * deviation, axis=dims, keepdims=True) + eps)


def _standard_back(g: Any, y: Any, x: Any, *, dims: tuple[int, ...], eps: float) -> Any:
    # y = (x - mean) / s with s^2 = var + eps, so dx = (g - mean(g) - y mean(g y)) / s. Source: Ba et al., "Layer
    # Normalization" (2016), differentiated.
    s = sqrt(var(x, dims, correction=0, keepdim=True) + eps)
    return (g - mean(g, dims, True) - y * mean(g * y, dims, True)) / s


standardize = Primitive("standardize", _standard, _standard_back)
