"""Picking elements and writing them: NumPy's indices, of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Node, Primitive, Scatter
from .elementwise import where
from .operands import Number, cast, integer, tensor
from .shape import reshape

Index = tuple[Any, ...]
_FEW = 2048  # up to so many values, finding flat places costs more than it saves


def _scatter_add(buffer: np.ndarray, index: Index, values: np.ndarray) -> None:
    """Add ``values`` into ``buffer[index]``, as often as ``index`` names a place."""
    if not any(isinstance(i, np.ndarray) and i.dtype != bool for i in index):
        buffer[index] += values  # slices, integers and masks name no place twice
        return
    if buffer.ndim == 1 or values.size <= _FEW:
        np.add.at(buffer, index, values)
        return
    # NumPy's add.at is fast for flat places alone. In them every row is spelled one way, negative or not.
    k = len(index)
    if all(isinstance(i, np.ndarray) and i.dtype != bool for i in index):
        rows = np.ravel_multi_index(np.broadcast_arrays(*index), buffer.shape[:k], mode="wrap")
        width = _product(buffer.shape[k:])
        places = rows.reshape(-1, 1) * width + np.arange(width)
    else:
        places = np.arange(buffer.size).reshape(buffer.shape)[index]
    np.add.at(buffer.reshape(-1), places.reshape(-1), values.reshape(-1))


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for n in shape:
        product *= n
    return product


def _spread_to(values: np.ndarray, index: Index, shape: tuple[int, ...]) -> np.ndarray:
    buffer = np.zeros(shape, values.dtype)
    _scatter_add(buffer, index, values)
    return buffer


def _pick_back(g: Any, _y: Any, _x: Any, *, index: Index) -> Any:
    if isinstance(g, Node):
        return _put(g, index=index, shape=_x.shape)
    return Scatter(lambda buffer: _scatter_add(buffer, index, g))


def _picked(x: np.ndarray, index: Index) -> np.ndarray:
    y = x[index]
    return y if isinstance(y, np.ndarray) else x[(*index, ...)]  # one element: a view too, not a scalar


# The two adjoints of each other: to pick, and to add back where it was picked.
_pick = Primitive("getitem", _picked, _pick_back)
_put = Primitive("put", _spread_to, lambda g, _y, _x, *, index, shape: _pick(g, index=index))


def getitem(input: Any, index: Any) -> Any:
    """``input[index]`` by NumPy's rules: integers, slices of either sign, ``...``, None, integer arrays and masks.

    A view where only integers, slices, ``...`` and None are given. IndexError for what does not fit the shape.
    """
    x = tensor("getitem", input)
    parts = _parts("getitem", index)
    _picked_shape("getitem", x, parts)
    return _pick(x, index=parts)


def along(input: Any, indices: Any, lane: int) -> Any:
    """``input`` picked along one axis by integer ``indices`` of as many dimensions, the others in step."""
    if not input.ndim:
        return _pick(input, index=())
    grid: list[Any] = [*np.ogrid[tuple(slice(n) for n in indices.shape)]]
    grid[lane] = indices._data.copy() if isinstance(indices, Node) else indices  # a tensor's may be written to
    return _pick(input, index=tuple(grid))


def _picked_shape(op: str, x: Any, index: Index) -> tuple[int, ...]:
    try:
        # A 0-stride stand-in: what is picked from it costs no more than the index itself.
        return np.broadcast_to(np.False_, x.shape)[index].shape
    except (IndexError, ValueError) as error:
        raise type(error)(f"{op}(): {error}; the tensor has shape {x.shape}") from None


def _parts(op: str, index: Any) -> Index:
    """``index`` as a tuple whose arrays are its own, so that later changes to the caller's do not reach backward."""
    return tuple(_part(op, part) for part in (index if isinstance(index, tuple) else (index,)))


def _part(op: str, part: Any) -> Any:
    if isinstance(part, Node):
        part = part._data
    if isinstance(part, list):
        part = np.array(part) if len(part) else np.zeros(0, np.int64)
    if isinstance(part, np.ndarray):
        if part.dtype.kind not in "iub":
            raise IndexError(f"{op}(): an index array must hold integers or bools, got {part.dtype}")
        return part.copy()
    if isinstance(part, slice):  # its bounds may be tensors, which may be written to
        return slice(
            *(x if x is None else integer(op, "a slice's bound", x) for x in (part.start, part.stop, part.step))
        )
    if part is None or part is Ellipsis or isinstance(part, (int, np.integer, np.bool_)):
        return part
    raise IndexError(
        f"{op}(): an index is an integer, a slice, ..., None, or an array of integers or bools; "
        f"got {type(part).__name__}"
    )


# --- writing ----------------------------------------------------------------------------------------------------------


def _overwritten(x: np.ndarray, value: np.ndarray, index: Index, last: Any) -> np.ndarray:
    y = x.copy()
    y[index] = value
    return y


def _of_value(g: Any, _y: Any, _x: Any, _value: Any, *, index: Index, last: Any) -> Any:
    picked = _pick(g, index=index)
    return picked if last is None else where(last, picked, 0)


# Where a place is named more than once the value written last stays, and ``last`` says which one that is.
_setitem: Primitive = Primitive(
    "setitem",
    _overwritten,
    lambda g, _y, _x, _value, *, index, last: _setitem(g, np.zeros((), g.dtype), index=index, last=None),
    _of_value,
    broadcasts=True,
)


def setitem(input: Any, index: Any, value: Any) -> Any:
    """A copy of ``input`` with ``value``, broadcast and cast to it, written at ``index``; the last of repeats stays.

    IndexError as ``getitem``; RuntimeError where ``value`` does not broadcast to what ``index`` picks.
    """
    x = tensor("setitem", input)
    parts, value, shape = place("setitem", x, index, value)
    return _setitem(x, value, index=parts, last=_last(x.shape, parts, shape))


def place(op: str, x: Any, index: Any, value: Any) -> tuple[Index, Any, tuple[int, ...]]:
    """``index`` and ``value`` checked and made fit for writing into ``x``, and the shape of the place."""
    parts = _parts(op, index)
    shape = _picked_shape(op, x, parts)
    if isinstance(value, (Number, np.generic)):
        value = np.asarray(value, dtype=x.dtype)
    value = cast(tensor(op, value), x.dtype)
    surplus = max(0, value.ndim - len(shape))
    fits = value.shape[:surplus] == (1,) * surplus
    if surplus and fits:  # NumPy lets go of leading 1-axes beyond those of the place
        value = reshape(value, value.shape[surplus:])
    if not fits or any(n not in (1, m) for n, m in zip(reversed(value.shape), reversed(shape), strict=False)):
        raise RuntimeError(f"{op}(): a value of shape {value.shape} does not broadcast to the place, of shape {shape}")
    return parts, value, shape


def _last(shape: tuple[int, ...], index: Index, picked: tuple[int, ...]) -> np.ndarray | None:
    if not any(isinstance(i, np.ndarray) and i.dtype != bool for i in index):
        return None
    turn, winner = np.arange(_product(picked)).reshape(picked), np.zeros(shape, np.int64)
    winner[index] = turn
    return winner[index] == turn
