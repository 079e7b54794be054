"""Ops that move elements and change none: views where NumPy can make one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..autograd import Node, Primitive, unbroadcast, value_of
from ..autograd import expand as _expand
from ..dtypes import result_type
from .elementwise import where
from .operands import axes, axis, cast, integer, sizes, tensor
from .operands import sizes as as_sizes

__all__ = [
    "broadcast_to", "cat", "chunk", "clone", "diag", "diagonal", "expand", "flatten", "flip", "hstack", "movedim",
    "permute", "ravel", "repeat", "reshape", "roll", "split", "squeeze", "stack", "swapaxes", "tile", "transpose",
    "tril", "triu", "unbind", "unflatten", "unsqueeze", "view", "vstack",
]  # fmt: skip

_clone = Primitive("clone", lambda x: x.copy(), lambda g, _y, _x: g)
_reshape = Primitive("reshape", lambda x, shape: x.reshape(shape), lambda g, _y, _x, *, shape: reshape(g, _x.shape))
_permute: Primitive = Primitive(
    "permute", lambda x, dims: x.transpose(dims), lambda g, _y, _x, *, dims: _permute(g, dims=tuple(np.argsort(dims)))
)


def _piece(g: Any, _y: Any, *_inputs: Any, lane: int, bounds: tuple[int, ...], position: int) -> Any:
    return g[(slice(None),) * lane + (slice(bounds[position], bounds[position + 1]),)]


_cat = Primitive("cat", lambda *xs, lane, bounds: np.concatenate(xs, axis=lane), _piece, variadic=True)
_flip: Any = Primitive("flip", lambda x, dims: np.flip(x, dims).copy(), lambda g, _y, _x, *, dims: _flip(g, dims=dims))
_roll: Primitive = Primitive(
    "roll",
    lambda x, shifts, dims: np.roll(x, shifts, dims),
    lambda g, _y, _x, *, shifts, dims: _roll(g, shifts=tuple(-n for n in shifts), dims=dims),
)


def _tile_back(g: Any, _y: Any, _x: Any, *, times: tuple[int, ...]) -> Any:
    # An axis of r times n is one of r beside one of n, and what was repeated is summed.
    lengths = (1,) * (len(times) - _x.ndim) + _x.shape
    apart = reshape(g, tuple(n for pair in zip(times, lengths, strict=True) for n in pair))
    return reshape(unbroadcast(apart, shape=tuple(n for length in lengths for n in (1, length))), _x.shape)


_tile = Primitive("tile", lambda x, times: np.tile(x, times), _tile_back)


def _diagonal_of(x: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    y = np.diagonal(x, max(-x.shape[dim1], min(offset, x.shape[dim2])), dim1, dim2)
    y.flags.writeable = x.flags.writeable  # a view like any other
    return y


def _with_diagonal(x: np.ndarray, shape: tuple[int, ...], **at: int) -> np.ndarray:
    y = np.zeros(shape, x.dtype)
    _diagonal_of(y, **at)[...] = x
    return y


# The two adjoints of each other.
_diagonal: Any = Primitive("diagonal", _diagonal_of, lambda g, _y, _x, **at: _diag_embed(g, shape=_x.shape, **at))
_diag_embed: Any = Primitive("diag_embed", _with_diagonal, lambda g, _y, _x, *, shape, **at: _diagonal(g, **at))

Widths = tuple[tuple[int, int], ...]


def _framed(x: np.ndarray, widths: Widths, value: float) -> np.ndarray:
    y = np.full([n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)], value, x.dtype)
    inner = tuple(slice(max(a, 0), n - max(b, 0)) for n, (a, b) in zip(y.shape, widths, strict=True))
    y[inner] = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, widths, strict=True))]
    return y


# A frame of ``value``, where a width is negative a cut: the adjoint cuts what was framed, and the other way about.
_pad: Primitive = Primitive(
    "pad", _framed, lambda g, _y, _x, *, widths, value: _pad(g, widths=tuple((-a, -b) for a, b in widths), value=0)
)


def clone(input: Any) -> Any:
    """A copy, in the graph."""
    return _clone(tensor("clone", input))


def reshape(input: Any, *shape: Any) -> Any:
    """The elements in C order in another ``shape`` of as many; one size may be -1. RuntimeError for others."""
    x = tensor("reshape", input)
    wanted = _determined("reshape", sizes("reshape", shape), x.size, f"an input of shape {x.shape}")
    return x if wanted == x.shape and not isinstance(x, Node) else _reshape(x, shape=wanted)


def _determined(op: str, wanted: tuple[int, ...], size: int, what: str) -> tuple[int, ...]:
    """``wanted`` with the size that -1 stands for, of ``size`` elements in all. RuntimeError where it has others."""
    known = math.prod(n for n in wanted if n != -1)
    free = wanted.count(-1)
    if free == 1 and known > 0 and size % known == 0:
        return tuple(size // known if n == -1 else n for n in wanted)
    if free or known != size or min(wanted, default=0) < 0:
        raise RuntimeError(
            f"{op}(): shape {wanted} does not fit {what}; it needs {size} elements in all, and at most one size of -1, "
            "which the others must determine"
        )
    return wanted


def view(input: Any, *size: Any) -> Any:
    """``reshape`` that never copies. RuntimeError where the memory of ``input`` cannot be read in that shape."""
    x = tensor("view", input)
    if size and isinstance(size[0], np.dtype):
        raise NotImplementedError("view(): reading the memory in another dtype is not offered here; to() casts")
    y = reshape(x, *size)
    before, after = map(value_of, (x, y))
    if x.size and not np.may_share_memory(before, after):
        raise RuntimeError(
            f"view(): the memory of this tensor, of shape {x.shape} and strides {before.strides}, cannot be read in "
            f"shape {y.shape} without a copy; reshape() makes one"
        )
    return y


def ravel(input: Any) -> Any:
    """The elements in C order, along one axis."""
    return reshape(tensor("ravel", input), -1)


def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """The axis ``dim`` as several, of ``sizes``; one of them may be -1. RuntimeError where they do not fit."""
    x, wanted = tensor("unflatten", input), as_sizes("unflatten", (sizes,))
    at = axis("unflatten", dim, x.ndim)
    if not x.ndim or not wanted:
        raise RuntimeError(f"unflatten(): needs an axis and at least one size, got shape {x.shape} and {wanted}")
    parts = _determined("unflatten", wanted, x.shape[at], f"dim {at} of shape {x.shape}")
    return reshape(x, x.shape[:at] + parts + x.shape[at + 1 :])


def permute(input: Any, *dims: Any) -> Any:
    """The axes in the order ``dims``. RuntimeError where that does not name each axis once."""
    x = tensor("permute", input)
    given = sizes("permute", dims)
    if len(given) != x.ndim:
        raise RuntimeError(f"permute(): got {len(given)} dims for {x.ndim} dimensions; each must be named once")
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


def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """``transpose`` by its other name."""
    return transpose(input, axis0, axis1)


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """The axes ``source``, an int or several, moved to ``destination``; the others keep their order."""
    x = tensor("movedim", input)
    old, new = (
        [axis("movedim", d, x.ndim) for d in (dims if isinstance(dims, (tuple, list)) else (dims,))]
        for dims in (source, destination)
    )
    if len(old) != len(new):
        raise RuntimeError(f"movedim(): got {len(old)} dims as source and {len(new)} as destination; each needs one")
    for dims in (old, new):
        axes("movedim", dims, x.ndim)
    order = [i for i in range(x.ndim) if i not in old]
    for place, i in sorted(zip(new, old, strict=True)):
        order.insert(place, i)
    return _permute(x, dims=tuple(order[: x.ndim]))


def flip(input: Any, *dims: Any) -> Any:
    """The elements in reverse order along each of ``dims``."""
    x = tensor("flip", input)
    return _flip(x, dims=axes("flip", sizes("flip", dims), x.ndim))


def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """The elements moved on by ``shifts`` along ``dims``, those at the end to the front; without ``dims``, in C order.

    One shift for each of ``dims``, which may name an axis again. RuntimeError where there are more of one than of the
    other.
    """
    x, moves = tensor("roll", input), sizes("roll", (shifts,))
    named = () if dims is None else dims if isinstance(dims, (tuple, list)) else (dims,)
    lanes = tuple(axis("roll", d, x.ndim) for d in named)
    if len(moves) != (len(lanes) or 1):
        raise RuntimeError(f"roll(): needs one shift for each of dims, got shifts {moves} and dims {tuple(named)}")
    if lanes and not x.ndim:
        raise IndexError("roll(): a 0-d tensor has no dim to roll along")
    return _roll(x, shifts=moves, dims=lanes or None)


def T(input: Any) -> Any:
    """All axes in reverse order."""
    x = tensor("T", input)
    return _permute(x, dims=tuple(reversed(range(x.ndim))))


def mT(input: Any) -> Any:
    """The last two axes exchanged. RuntimeError below two dimensions."""
    if input.ndim < 2:
        raise RuntimeError(f"mT: needs at least two dimensions, got shape {input.shape}")
    return transpose(input, -2, -1)


def expand(input: Any, *size: Any) -> Any:
    """``input`` repeated along its axes of size 1, and along new leading ones, without a copy; -1 keeps a size."""
    x = tensor("expand", input)
    wanted = sizes("expand", size)
    lead = len(wanted) - x.ndim
    shape = tuple(x.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(wanted))
    fits = lead >= 0 and min(shape, default=0) >= 0
    if not fits or any(have not in (1, want) for have, want in zip(x.shape, shape[lead:], strict=True)):
        raise RuntimeError(
            f"expand(): sizes {wanted} do not fit an input of shape {x.shape}; counted from the last, each must equal "
            "the input's, be -1 to keep it, or stretch a 1"
        )
    return _expand(x, shape=shape)


def broadcast_to(input: Any, *size: Any) -> Any:
    """``expand`` by its other name."""
    return expand(tensor("broadcast_to", input), *size)


def repeat(input: Any, *repeats: Any) -> Any:
    """Copies side by side, ``repeats`` of them along each axis and along new leading ones. RuntimeError for too few."""
    return _tiled("repeat", tensor("repeat", input), sizes("repeat", repeats))


def tile(input: Any, *dims: Any) -> Any:
    """``repeat``, where leading ones may be left out."""
    x, times = tensor("tile", input), sizes("tile", dims)
    return _tiled("tile", x, (1,) * (x.ndim - len(times)) + times)


def _tiled(op: str, x: Any, times: tuple[int, ...]) -> Any:
    if len(times) < x.ndim or min(times, default=0) < 0:
        raise RuntimeError(f"{op}(): needs one number, not negative, for each axis of {x.shape}, got {times}")
    return _tile(x, times=times)


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
    return reshape(x, x.shape[:start] + (math.prod(x.shape[start : end + 1]),) + x.shape[end + 1 :])


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """``tensors``, promoted, one after the other along ``dim``; their other sizes are equal. RuntimeError otherwise."""
    return _joined("cat", _tensors("cat", tensors), dim)


def _joined(op: str, xs: list[Any], dim: int) -> Any:
    lane = axis(op, dim, xs[0].ndim)
    for i, x in enumerate(xs):
        if x.ndim == 0:
            raise RuntimeError(f"{op}(): tensor {i} is 0-d and has no axis to join along; stack() gives it one")
        if x.shape[:lane] + x.shape[lane + 1 :] != xs[0].shape[:lane] + xs[0].shape[lane + 1 :]:
            raise RuntimeError(
                f"{op}(): tensor {i} has shape {x.shape}, which does not fit {xs[0].shape}; all sizes but that of dim "
                f"{lane} must be equal"
            )
    bounds = (0, *np.cumsum([x.shape[lane] for x in xs]).tolist())
    return _cat(*xs, lane=lane, bounds=bounds)


def hstack(tensors: Sequence[Any]) -> Any:
    """``cat`` along the second axis, of 0-d and 1-d tensors along the only one."""
    xs = _tensors("hstack", tensors, 1)
    return _joined("hstack", xs, min(xs[0].ndim - 1, 1))


def vstack(tensors: Sequence[Any]) -> Any:
    """``cat`` along the first axis, where 0-d and 1-d tensors are rows."""
    return _joined("vstack", _tensors("vstack", tensors, 2), 0)


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """``tensors`` of one shape, promoted, side by side along a new axis ``dim``. RuntimeError for unequal shapes."""
    xs = _tensors("stack", tensors)
    at = axis("stack", dim, xs[0].ndim + 1)
    for i, x in enumerate(xs):
        if x.shape != xs[0].shape:
            raise RuntimeError(f"stack(): tensor {i} has shape {x.shape}, the first {xs[0].shape}; all must be equal")
    return cat([unsqueeze(x, at) for x in xs], at)


def _tensors(op: str, given: Any, least: int = 0) -> list[Any]:
    """A list or tuple of tensors in their common dtype, of ``least`` dimensions at least."""
    if not isinstance(given, (tuple, list)):
        raise TypeError(f"{op}(): needs a tuple or list of tensors, got {type(given).__name__}")
    if not given:
        raise (ValueError if op == "cat" else RuntimeError)(f"{op}(): needs at least one tensor, got none")
    xs = [tensor(op, x) for x in given]
    xs = [x if x.ndim >= least else reshape(x, (1,) * (least - x.ndim) + x.shape) for x in xs]
    dtype = result_type(*xs)
    return [cast(x, dtype) for x in xs]


# --- parts ------------------------------------------------------------------------------------------------------------


def _lane(op: str, x: Any, dim: int, error: type[Exception] = RuntimeError) -> int:
    """``dim`` counted from the front. ``error``, as PyTorch has it, for a 0-d tensor."""
    lane = axis(op, dim, x.ndim)
    if not x.ndim:
        raise error(f"{op}(): a 0-d tensor has no dim to take apart")
    return lane


def split(input: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Views of ``input``, one after the other along ``dim``: each of so many, the last of what is left.

    Or of the sizes in a tuple or list, which must add up to the axis. RuntimeError otherwise.
    """
    x = tensor("split", input)
    lane = _lane("split", x, dim)
    n = x.shape[lane]
    if isinstance(split_size_or_sections, (tuple, list)):
        parts = sizes("split", (split_size_or_sections,))
    else:
        size = integer("split", "split_size_or_sections", split_size_or_sections)
        parts = tuple(min(size, n - start) for start in range(0, n, max(size, 1))) or (min(size, 0),)
    if min(parts, default=0) < 0 or sum(parts) != n:
        raise RuntimeError(f"split(): sizes {parts} must not be negative and add up to {n}, the size of dim {lane}")
    bounds = np.cumsum([0, *parts]).tolist()
    return tuple(x[(slice(None),) * lane + (slice(a, b),)] for a, b in pairwise(bounds))


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Views of ``input`` of one size along ``dim``, the last of what is left: ``chunks`` of them, or fewer."""
    x, count = tensor("chunk", input), integer("chunk", "chunks", chunks)
    n = x.shape[_lane("chunk", x, dim)]
    if count < 1:
        raise RuntimeError(f"chunk(): chunks must be at least 1, got {count}")
    return split(x, -(-n // count) if n else (0,) * count, dim)


def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """Views of ``input``, one for each place along ``dim``, without that axis. IndexError for a 0-d tensor."""
    x = tensor("unbind", input)
    lane = _lane("unbind", x, dim, IndexError)
    return tuple(x[(slice(None),) * lane + (i, ...)] for i in range(x.shape[lane]))


# --- diagonals --------------------------------------------------------------------------------------------------------


def tril(input: Any, diagonal: int = 0) -> Any:
    """The last two axes as matrices, 0 above the ``diagonal``-th. RuntimeError below two dimensions."""
    return _triangle("tril", input, lambda rows, columns, k: np.tri(rows, columns, k, bool), diagonal)


def triu(input: Any, diagonal: int = 0) -> Any:
    """The last two axes as matrices, 0 below the ``diagonal``-th. RuntimeError below two dimensions."""
    return _triangle("triu", input, lambda rows, columns, k: ~np.tri(rows, columns, k - 1, bool), diagonal)


def _triangle(op: str, input: Any, mask: Any, diagonal: int) -> Any:
    x = tensor(op, input)
    if x.ndim < 2:
        raise RuntimeError(f"{op}(): needs at least two dimensions, got shape {x.shape}")
    return where(mask(*x.shape[-2:], integer(op, "diagonal", diagonal)), x, np.zeros((), x.dtype))


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A view of the ``offset``-th diagonal over two axes, as the last axis. RuntimeError where they are one."""
    x = tensor("diagonal", input)
    rows, columns = axis("diagonal", dim1, x.ndim), axis("diagonal", dim2, x.ndim)
    axes("diagonal", (rows, columns), x.ndim)
    return _diagonal(x, offset=integer("diagonal", "offset", offset), dim1=rows, dim2=columns)


def diag(input: Any, diagonal: int = 0) -> Any:
    """The ``diagonal``-th diagonal of a matrix, copied; of a vector the matrix that has it there, and 0 elsewhere."""
    x, k = tensor("diag", input), integer("diag", "diagonal", diagonal)
    if x.ndim not in (1, 2):
        raise RuntimeError(f"diag(): needs one or two dimensions, got shape {x.shape}")
    if x.ndim == 2:
        return clone(_diagonal(x, offset=k, dim1=0, dim2=1))
    return _diag_embed(x, shape=(x.size + abs(k),) * 2, offset=k, dim1=0, dim2=1)
