"""Ops that move elements and change none: views where NumPy can make one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd import Node, Primitive
from ..autograd import expand as _expand
from ..dtypes import result_type
from .operands import axes, axis, cast, refuse, sizes, tensor

__all__ = ["cat", "clone", "expand", "flatten", "permute", "reshape", "squeeze", "stack", "transpose", "unsqueeze"]

_clone = Primitive("clone", lambda x: x.copy(), lambda g, _y, _x: g)
_reshape = Primitive("reshape", lambda x, shape: x.reshape(shape), lambda g, _y, _x, *, shape: reshape(g, _x.shape))
_permute: Primitive = Primitive(
    "permute", lambda x, dims: x.transpose(dims), lambda g, _y, _x, *, dims: _permute(g, dims=tuple(np.argsort(dims)))
)


def _piece(g: Any, _y: Any, *_inputs: Any, lane: int, bounds: tuple[int, ...], position: int) -> Any:
    return g[(slice(None),) * lane + (slice(bounds[position], bounds[position + 1]),)]


_cat = Primitive("cat", lambda *xs, lane, bounds: np.concatenate(xs, axis=lane), _piece, variadic=True)


def clone(input: Any) -> Any:
    """A copy, in the graph."""
    return _clone(tensor("clone", input))


def reshape(input: Any, *shape: Any) -> Any:
    """The elements in C order in another ``shape`` of as many; one size may be -1. RuntimeError for others."""
    x = tensor("reshape", input)
    wanted = sizes("reshape", shape)
    known = 1
    for n in wanted:
        known *= n if n != -1 else 1
    free = wanted.count(-1)
    if free == 1 and known > 0 and x.size % known == 0:
        wanted = tuple(x.size // known if n == -1 else n for n in wanted)
    elif free or known != x.size or min(wanted, default=0) < 0:
        raise RuntimeError(
            f"reshape(): shape {wanted} does not fit an input of shape {x.shape}; it needs {x.size} elements in all, "
            "and at most one size of -1, which the others must determine"
        )
    return x if wanted == x.shape and not isinstance(x, Node) else _reshape(x, shape=wanted)


def permute(input: Any, *dims: Any) -> Any:
    """The axes in the order ``dims``. RuntimeError where that does not name each axis once."""
    x = tensor("permute", input)
    given = sizes("permute", dims)
    if len(given) != x.ndim:
        raise RuntimeError(
            f"permute(): got {len(given)} dims for an input of {x.ndim} dimensions; each must be named once"
        )
    order = tuple(axis("permute", d, x.ndim) for d in given)
    axes("permute", order, x.ndim)
    return _permute(x, dims=order)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """The axes ``dim0`` and ``dim1`` exchanged."""
    x = tensor("transpose", input)
    order = list(range(x.ndim)) or [0]
    i, j = axis("transpose", dim0, x.ndim), axis("transpose", dim1, x.ndim)
    order[i], order[j] = order[j], order[i]
    return _permute(x, dims=tuple(order[: x.ndim]))


def T(input: Any) -> Any:
    """All axes in reverse order."""
    x = tensor("T", input)
    return _permute(x, dims=tuple(reversed(range(x.ndim))))


def mT(input: Any) -> Any:
    """The last two axes exchanged. RuntimeError below two dimensions."""
    if input.ndim < 2:
        raise RuntimeError(f"mT: needs at least two dimensions, got shape {input.shape}")
    return transpose(input, -2, -1)


def expand(input: Any, *sizes_: Any) -> Any:
    """``input`` repeated along its axes of size 1, and along new leading ones, without a copy; -1 keeps a size."""
    x = tensor("expand", input)
    wanted = sizes("expand", sizes_)
    lead = len(wanted) - x.ndim
    shape = tuple(x.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(wanted))
    fits = lead >= 0 and min(shape, default=0) >= 0
    if not fits or any(have not in (1, want) for have, want in zip(x.shape, shape[lead:], strict=True)):
        raise RuntimeError(
            f"expand(): sizes {wanted} do not fit an input of shape {x.shape}; counted from the last, each must equal "
            "the input's, be -1 to keep it, or stretch a 1"
        )
    return _expand(x, shape=shape)


def squeeze(input: Any, dim: Any = None) -> Any:
    """Without the axes of size 1, or without those of them that ``dim`` names."""
    x = tensor("squeeze", input)
    dims = axes("squeeze", dim, x.ndim)
    return reshape(x, tuple(n for i, n in enumerate(x.shape) if n != 1 or i not in dims))


def unsqueeze(input: Any, dim: int) -> Any:
    """With a new axis of size 1 at ``dim``."""
    x = tensor("unsqueeze", input)
    at = axis("unsqueeze", dim, x.ndim + 1)
    return reshape(x, x.shape[:at] + (1,) + x.shape[at:])


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The axes from ``start_dim`` to ``end_dim`` as one. RuntimeError where the first comes after the second."""
    x = tensor("flatten", input)
    start, end = axis("flatten", start_dim, x.ndim), axis("flatten", end_dim, x.ndim)
    if start > end:
        raise RuntimeError(f"flatten(): start_dim {start_dim} comes after end_dim {end_dim}")
    size = 1
    for n in x.shape[start : end + 1]:
        size *= n
    return reshape(x, x.shape[:start] + (size,) + x.shape[end + 1 :])


def cat(tensors: Sequence[Any], dim: int = 0, **options: Any) -> Any:
    """``tensors``, promoted, one after the other along ``dim``; their other sizes are equal. RuntimeError otherwise."""
    refuse("cat", options, "out")
    xs = _tensors("cat", tensors)
    lane = axis("cat", dim, xs[0].ndim)
    for i, x in enumerate(xs):
        if x.ndim == 0:
            raise RuntimeError(f"cat(): tensor {i} is 0-d and has no axis to join along; stack() gives it one")
        if x.shape[:lane] + x.shape[lane + 1 :] != xs[0].shape[:lane] + xs[0].shape[lane + 1 :]:
            raise RuntimeError(
                f"cat(): tensor {i} has shape {x.shape}, which does not fit {xs[0].shape}; all sizes but that of dim "
                f"{lane} must be equal"
            )
    bounds = (0, *np.cumsum([x.shape[lane] for x in xs]).tolist())
    return _cat(*xs, lane=lane, bounds=bounds)


def stack(tensors: Sequence[Any], dim: int = 0, **options: Any) -> Any:
    """``tensors`` of one shape, promoted, side by side along a new axis ``dim``. RuntimeError for unequal shapes."""
    refuse("stack", options, "out")
    xs = _tensors("stack", tensors)
    at = axis("stack", dim, xs[0].ndim + 1)
    for i, x in enumerate(xs):
        if x.shape != xs[0].shape:
            raise RuntimeError(f"stack(): tensor {i} has shape {x.shape}, the first {xs[0].shape}; all must be equal")
    return cat([unsqueeze(x, at) for x in xs], at)


def _tensors(op: str, given: Any) -> list[Any]:
    """A list or tuple of tensors in their common dtype."""
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"{op}(): needs a tuple or list of tensors, got {type(given).__name__}")
    if not given:
        raise (ValueError if op == "cat" else RuntimeError)(f"{op}(): needs at least one tensor, got none")
    xs = [tensor(op, x) for x in given]
    dtype = result_type(*xs)
    return [cast(x, dtype) for x in xs]
