"""Picking elements and writing them: NumPy's indices, of every kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..autograd import Node, Primitive, Scatter, broadcast_shape, expand, value_of
from ..dtypes import Number
from .elementwise import where
from .operands import axis, cast, factor, in_range, integer, integers, one_dtype, tensor
from .shape import clone, reshape

__all__ = [
    "gather", "index_add", "index_put", "index_select", "masked_fill", "masked_select", "scatter", "scatter_add",
    "take_along_dim",
]  # fmt: skip

Index = tuple[Any, ...]
_FEW = 1024  # up to so many values for each index, finding flat places costs more than it saves


def _scatter_add(buffer: np.ndarray, index: Index, values: np.ndarray) -> None:
    """Add ``values`` into ``buffer[index]``, as often as ``index`` names a place."""
    arrays = [i for i in index if isinstance(i, np.ndarray) and i.dtype.kind != "b"]
    if not arrays:
        buffer[index] += values  # slices, integers and masks name no place twice
        return
    k = len(index)
    if k == 1 and buffer.size == len(buffer):  # a column is a line
        buffer, values = buffer.reshape(-1), values.reshape(arrays[0].shape)
    if buffer.ndim == 1 or values.size <= _FEW * k:
        np.add.at(buffer, index, values)
        return
    # NumPy's add.at is fast for flat places alone. A negative number counts from the end in them too, on the first axis
    # alone: beside others each is spelled one way.
    if len(arrays) == k:
        rows, *others = (i.astype(np.intp) for i in arrays)
        for i, n in zip(others, buffer.shape[1:], strict=False):
            rows = rows * n + np.where(i < 0, i + n, i)
        width = math.prod(buffer.shape[k:])
        places = rows.reshape(-1, 1) * width + np.arange(width)
    else:
        places = np.arange(buffer.size).reshape(buffer.shape)[index]
    np.add.at(buffer.reshape(-1), places.reshape(-1), values.reshape(-1))


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
    if any(isinstance(i, np.ndarray) for i in index):
        return np.asarray(y, order="C")  # NumPy's may lie otherwise, and a reshape of it would be no view
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
    # A tensor's may be written to.
    return _pick(input, index=_in_step(indices._data.copy() if isinstance(indices, Node) else indices, lane))


def _in_step(indices: np.ndarray, lane: int) -> Index:
    grid: list[Any] = [*np.ogrid[tuple(slice(n) for n in indices.shape)]] if indices.ndim else []
    return (*grid[:lane], indices, *grid[lane + 1 :])


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
        bounds = part.start, part.stop, part.step
        return slice(*(x if x is None else integer(op, "a slice's bound", x) for x in bounds))
    if part is None or part is Ellipsis or isinstance(part, (int, np.integer, np.bool_)):
        return part
    got = type(part).__name__
    raise IndexError(f"{op}(): an index is an integer, a slice, ..., None, or integers or bools in an array; got {got}")


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
    if isinstance(value, (*Number, np.generic)):
        value = factor(op, "value", value if isinstance(value, Number) else value.item(), x.dtype)
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
    turn, winner = np.arange(math.prod(picked)).reshape(picked), np.zeros(shape, np.int64)
    winner[index] = turn
    return winner[index] == turn


# --- PyTorch's functions ----------------------------------------------------------------------------------------------


def _accumulated(x: np.ndarray, values: np.ndarray, index: Index) -> np.ndarray:
    y = np.array(x, order="C")
    # NumPy 2.4's add.at reads beyond the end of values that it has to broadcast.
    _scatter_add(y, index, np.broadcast_to(values, np.broadcast_to(np.False_, x.shape)[index].shape))
    return y


_accumulate = Primitive(
    "accumulate",
    _accumulated,
    lambda g, _y, _x, _values, *, index: g,
    lambda g, _y, _x, _values, *, index: _pick(g, index=index),
    broadcasts=True,
)


def _row(x: Any) -> Any:
    """``x``, or one of no dimensions as a row of one."""
    return x if x.ndim else reshape(x, 1)


def _checked(op: str, input: Any, dim: int, index: Any, src: Any = None) -> tuple[Any, Index]:
    """``input``, with one axis at least, and ``index`` along ``dim`` of it, in step with the other axes.

    RuntimeError for an index of other dimensions, that is longer than ``input`` along another axis, or than ``src``.
    """
    x, numbers = tensor(op, input), integers(op, index).copy()
    lane = axis(op, dim, x.ndim)
    if max(x.ndim, 1) != max(numbers.ndim, 1) or (src is not None and max(src.ndim, 1) != max(x.ndim, 1)):
        raise RuntimeError(f"{op}(): index must have as many dimensions as the input, of shape {x.shape}, and src")
    for d, n in enumerate(numbers.shape):
        if (d != lane and n > x.shape[d]) or (src is not None and n > _row(src).shape[d]):
            raise RuntimeError(f"{op}(): index of shape {numbers.shape} is longer in dim {d} than {x.shape}, or src")
    x = _row(x)
    in_range(op, numbers, x.shape[lane], RuntimeError)
    return x, _in_step(numbers, lane)


def gather(input: Any, dim: int, index: Any) -> Any:
    """The elements of ``input`` at ``index`` along ``dim``, and on each other axis where they stand in ``index``.

    ``index`` has as many dimensions as ``input``, is int64 or int32, and no longer along the other axes; its shape is
    the result's. RuntimeError otherwise, and for an index that is out of range or negative.
    """
    x, places = _checked("gather", input, dim, index)
    y = _pick(x, index=places)
    return y if index.ndim else clone(y)  # no view


def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None) -> Any:
    """A copy of ``input`` with ``src``, of its dtype, or a number, written where ``gather`` would pick.

    As much of ``src`` is used as ``index`` has; of repeated places the last write stays, and has the gradient.
    """
    if src is not None and value is not None:
        raise TypeError("scatter(): takes src or value, not both")
    src = value if src is None else src
    if isinstance(src, Number):
        x, places = _checked("scatter", input, dim, index)
        part = factor("scatter", "value", src, x.dtype)
    else:
        x, places, part = _with_source("scatter", input, dim, index, src)
    y = _setitem(x, part, index=places, last=_last(x.shape, places, _shape_of(places)))
    return y if y.shape == input.shape else clone(reshape(y, input.shape))


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """A copy of ``input`` with ``src``, of its dtype, added where ``gather`` would pick, as often as it is named."""
    x, places, part = _with_source("scatter_add", input, dim, index, src)
    y = _accumulate(x, part, index=places)
    return y if y.shape == input.shape else clone(reshape(y, input.shape))


def _shape_of(index: Index) -> tuple[int, ...]:
    return np.broadcast_shapes(*(np.shape(i) for i in index))


def _with_source(op: str, input: Any, dim: int, index: Any, src: Any) -> tuple[Any, Index, Any]:
    src = tensor(op, src)
    x, places = _checked(op, input, dim, index, src)
    one_dtype(op, x, src)
    return x, places, _pick(_row(src), index=tuple(slice(n) for n in index.shape) if index.ndim else (0,))


def _rows(op: str, x: Any, dim: int, index: Any, error: type[Exception]) -> Index:
    """The index of the slices of ``x``, of one dimension at least, that a vector or a number ``index`` names."""
    numbers = integers(op, index).copy()
    if numbers.ndim > 1:
        raise IndexError(f"{op}(): index must be a vector, got shape {numbers.shape}")
    lane = axis(op, dim, x.ndim)
    in_range(op, numbers, x.shape[lane], error)
    return (*(slice(None),) * lane, numbers.reshape(-1))


def index_select(input: Any, dim: int, index: Any) -> Any:
    """The slices of ``input`` along ``dim`` that the vector ``index`` names, in its order.

    IndexError for one that is out of range or negative.
    """
    x = tensor("index_select", input)
    y = _pick(_row(x), index=_rows("index_select", _row(x), dim, index, IndexError))
    if x.ndim:
        return y
    if y.size != 1:
        raise RuntimeError(f"index_select(): a 0-d input has one element to select, got index of shape {y.shape}")
    return clone(reshape(y, ()))


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    """A copy of ``input`` with ``alpha`` times the slices of ``source``, of its dtype, added to those ``index`` names.

    RuntimeError where ``source`` is not of the shape of ``index_select(input, dim, index)``, or an index is not there.
    """
    x, values = tensor("index_add", input), tensor("index_add", source)
    index = _rows("index_add", _row(x), dim, index, RuntimeError)
    one_dtype("index_add", x, values)
    lane = len(index) - 1
    wanted = (*x.shape[:lane], index[lane].size, *x.shape[lane + 1 :]) if x.ndim else ()
    if values.shape != wanted or (not x.ndim and index[lane].size != 1):
        raise RuntimeError(f"index_add(): source must have shape {wanted}, got {values.shape}")
    if alpha != 1:
        values = values * factor("index_add", "alpha", alpha, x.dtype)
    y = _accumulate(_row(x), _row(values), index=index)
    return y if x.ndim else clone(reshape(y, ()))


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """A copy of ``input`` with ``values``, of its dtype, written at a tuple of index tensors or masks, or added there.

    Of repeated places the last write stays; where they ``accumulate``, each counts.
    """
    x = tensor("index_put", input)
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put(): indices must be a tuple of tensors, got {type(indices).__name__}")
    for part in indices:
        if tensor("index_put", part).dtype not in (np.int64, np.int32, np.bool_):
            raise IndexError(f"index_put(): indices must be int64, int32 or bool, got {part.dtype}")
    values = tensor("index_put", values)
    one_dtype("index_put", x, values)
    index, values, shape = place("index_put", x, tuple(indices), values)
    if accumulate:
        return _accumulate(x, values, index=index)
    return _setitem(x, values, index=index, last=_last(x.shape, index, shape))


def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """The elements at int64 ``indices`` along ``dim``, where the two broadcast on all other axes; without, of all.

    IndexError for an index that is out of range; a negative one counts from the end.
    """
    x, numbers = tensor("take_along_dim", input), integers("take_along_dim", indices).copy()
    if numbers.dtype != np.int64:
        raise RuntimeError(f"take_along_dim(): indices must be int64, got {numbers.dtype}")
    if dim is None:
        in_range("take_along_dim", numbers, x.size, RuntimeError)  # PyTorch knows no negative ones here
        x, numbers, dim = reshape(x, -1), numbers.reshape(-1), 0
    if x.ndim != numbers.ndim:
        raise RuntimeError(f"take_along_dim(): indices must have the input's {x.ndim} dimensions, got {numbers.ndim}")
    lane, shape = axis("take_along_dim", dim, x.ndim), x.shape
    x, numbers = _row(x), _row(numbers)
    length = x.shape[lane]
    in_range("take_along_dim", numbers, length, IndexError, -length)
    both = broadcast_shape("take_along_dim", *((*s[:lane], 1, *s[lane + 1 :]) for s in (x.shape, numbers.shape)))
    numbers = np.broadcast_to(numbers, (*both[:lane], numbers.shape[lane], *both[lane + 1 :]))
    x = expand(x, shape=(*both[:lane], length, *both[lane + 1 :]))
    y = _pick(x, index=_in_step(numbers, lane))
    return y if shape else clone(reshape(y, ()))


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """``value``, a number or a 0-d tensor, where ``mask`` holds; ``input`` elsewhere. They broadcast."""
    if not isinstance(value, Number) and tensor("masked_fill", value).ndim:
        raise RuntimeError(f"masked_fill(): value must be a number or 0-d, got shape {value.shape}")
    x = tensor("masked_fill", input)
    number = factor("masked_fill", "value", value if isinstance(value, Number) else value_of(value).item(), x.dtype)
    value = cast(value, x.dtype) if isinstance(value, Node) else number
    return where(mask, value, x)


def masked_select(input: Any, mask: Any) -> Any:
    """The elements of ``input`` where ``mask`` holds, which broadcast, as a vector. RuntimeError for another dtype."""
    x, chosen = tensor("masked_select", input), tensor("masked_select", mask)
    if chosen.dtype != bool:
        raise RuntimeError(f"masked_select(): mask must have dtype bool, got {chosen.dtype}")
    shape = broadcast_shape("masked_select", x.shape, chosen.shape)
    chosen = np.broadcast_to(value_of(chosen), shape).copy()
    return _pick(expand(x, shape=shape) if x.shape != shape else x, index=(chosen,))
