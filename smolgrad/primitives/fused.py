"""Ops that one rule serves better than a composition: it stays finite, or keeps one array instead of many."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Node, Primitive
from .elementwise import exp, sqrt, where
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
    spread = np.sqrt(np.mean(deviation * deviation, axis=dims, keepdims=True) + eps)
    return deviation / spread


def _standard_back(g: Any, y: Any, x: Any, *, dims: tuple[int, ...], eps: float) -> Any:
    # y = (x - mean) / s with s^2 = var + eps, so dx = (g - mean(g) - y mean(g y)) / s. Source: Ba et al., "Layer
    # Normalization" (2016), differentiated.
    s = sqrt(var(x, dims, correction=0, keepdim=True) + eps)
    return (g - mean(g, dims, True) - y * mean(g * y, dims, True)) / s


standardize = Primitive("standardize", _standard, _standard_back)
