"""Indices of every NumPy kind, for a given shape."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Shape
from .shapes import stretched

_DTYPES = ("int64", "int32", "int16", "uint8")


@cache
def positions(n: int) -> st.SearchStrategy[int]:
    """A place on an axis of ``n``, spelled from either end."""
    return st.integers(-n, n - 1)


@cache
@st.composite
def _picking_one(draw: Any, n: int) -> slice:
    """A slice whose step picks one of an axis of ``n``, and would pick two if it were forgotten."""
    start = draw(st.integers(0, n - 2))
    return slice(start, start + 2, draw(st.integers(2, 3)))


@cache
@st.composite
def slices(draw: Any, n: int) -> slice:
    """A slice of an axis of ``n``: all of it, either way; bounds missing, inside, outside and negative, any step."""
    way = draw(st.integers(0, 5))
    if way < 2:
        return slice(None, None, -1 if way else None)
    if n > 1 and way in (2, 3):
        return draw(_picking_one(n))
    bound = st.none() | st.integers(-n - 1, n + 1)
    return slice(draw(bound), draw(bound), draw(st.none() | st.sampled_from([1, 2, 3, -1, -2, -3])))


@cache
@st.composite
def index_arrays(draw: Any, n: int, shape: Shape) -> np.ndarray:
    """Places on an axis of ``n``: often the last is the first again, as it was or spelled from the other end.

    Often, too, all are one place, spelled by turns.
    """
    size = int(np.prod(shape))
    dtype = draw(st.sampled_from(_DTYPES))
    signed = not dtype.startswith("u")
    # A byte each, in one draw: one number copied over another by Hypothesis is not wanted more often than it comes.
    codes = draw(st.binary(min_size=size, max_size=size)) if n else b""
    numbers = [code % n - n * (signed and code >= 128) for code in codes]
    again = draw(st.integers(0, 5)) if len(numbers) > 1 else 0
    if again:
        other = numbers[0] - n * signed if numbers[0] >= 0 else numbers[0] + n
        numbers[-1] = numbers[0] if again == 1 else other
        if again == 5:
            numbers = [other if i % 2 else numbers[0] for i in range(size)]
    return np.array(numbers, dtype=dtype).reshape(shape if n else (0,))


@cache
@st.composite
def masks(draw: Any, shape: Shape) -> np.ndarray:
    """Which elements to pick: none, some or all."""
    size = int(np.prod(shape))
    return np.array([code >= 128 for code in draw(st.binary(min_size=size, max_size=size))], dtype=bool).reshape(shape)


@cache
@st.composite
def _mask_of(draw: Any, n: int, count: int) -> np.ndarray:
    """A mask of an axis of ``n`` that picks ``count``."""
    mask = np.zeros(n, bool)
    mask[draw(st.permutations(range(n)))[:count]] = True
    return mask


@cache
def _one_thing(shape: Shape) -> list[st.SearchStrategy[Any]]:
    """Indices that do one thing: turn an axis round, step, pick rows by number, mix in an integer, mask, come apart."""
    found: list[st.SearchStrategy[Any]] = []
    every = slice(None)
    long = [axis for axis, n in enumerate(shape) if n > 1]
    if long:
        found.append(st.sampled_from(long).map(lambda axis: (every,) * axis + (slice(None, None, -1),)))
        found.append(st.one_of([st.tuples(*[st.just(every)] * axis, _picking_one(shape[axis])) for axis in long]))
    if shape and shape[0]:
        found.append(positions(shape[0]))
        # As an embedding looks them up; nothing, too.
        found.append(st.sampled_from([(3,), (4,), (2, 2), (0,)]).flatmap(lambda picked: index_arrays(shape[0], picked)))
    if len(shape) > 1 and shape[0] and shape[1]:
        found.append(st.tuples(positions(shape[0]), index_arrays(shape[1], (2,))))
        found.append(masks(shape[:2]))
    if len(shape) > 3 and all(shape):  # their axes go first; as many as the slice picks, so that it does not show
        first, last = (index_arrays(n, shape[:1]) for n in (shape[1], shape[3]))
        found += [st.tuples(st.just(every), first, st.just(every), last)] * 2
    return found


@cache
@st.composite
def indices(draw: Any, shape: Shape) -> Any:
    """An index into ``shape``: integers, slices, ``...``, None, integer arrays and masks, alone and mixed."""
    ndim = len(shape)
    alone = _one_thing(shape)
    if alone and draw(st.integers(0, 2)):
        return draw(st.one_of(alone))
    kinds = ["basic", "basic", "mask", "mask", "arrays", "mixed"] + (["split"] if ndim > 2 else ["arrays"]) * 3
    kind = draw(st.sampled_from(kinds))
    front = ndim if kind in ("mask", "split") else draw(st.sampled_from([*range(ndim + 1), *range(1, ndim + 1)]))
    back = draw(st.integers(0, ndim - front)) if draw(st.booleans()) else 0
    # The common shape of the index arrays; a mask beside them must pick as many.
    together = draw(st.sampled_from([(2,), (3,), (1,), (0,)] + [(2, 2), (2,), ()] * (kind != "mixed")))
    alike = kind == "split" and draw(st.booleans())
    if alike:
        together = (shape[1],)  # as many as the slice picks: then the place of the axes does not show in the shape

    def choice(number: int, axis: int) -> str:
        n = shape[axis]
        arrays = ["array"] if n else []
        if kind == "split" and arrays:  # a slice between arrays: their axes go first
            first = "array" if number else draw(st.sampled_from(["integer", "array"]))
            return "slice" if number % 2 else first
        if kind in ("arrays", "mixed") and axis == certain and arrays:
            return "array"
        if kind == "mask" and axis == certain:
            return "mask"
        choices = ["slice"] + ["integer"] * (n > 0) + arrays * 2 * (kind in ("arrays", "mixed"))
        return draw(st.sampled_from(choices + ["counted mask"] * 2 * (kind == "mixed" and together[0] <= n)))

    def parts(axes: list[int]) -> list[Any]:
        found: list[Any] = []
        at = 0
        while at < len(axes):
            n = shape[axes[at]]
            chosen = choice(at, axes[at])
            rank = 1
            if chosen == "array":
                fewer = draw(st.integers(0, 3)) == 3
                found.append(draw(index_arrays(n, draw(stretched(together)) if fewer else together)))
            elif chosen == "mask":
                rank = draw(st.sampled_from([*range(1, len(axes) - at + 1), len(axes) - at]))
                found.append(draw(masks(tuple(shape[a] for a in axes[at : at + rank]))))
            elif chosen == "counted mask":
                found.append(draw(_mask_of(n, together[0])))
            elif chosen == "integer":
                found.append(draw(positions(n)))
            else:
                found.append(slice(None) if alike else draw(slices(n)))
            at += rank
        if draw(st.integers(0, 3)) == 3:
            found.insert(draw(st.integers(0, len(found))), None)
        return found

    named = [*range(front), *range(len(shape) - back, len(shape))]
    certain = (
        draw(st.sampled_from([named[0], *named])) if named else None
    )  # the axis that has what the kind is named for
    index = parts(named[:front])
    if back or draw(st.booleans()):
        index += [Ellipsis, *parts(named[front:])]
    return index[0] if len(index) == 1 and draw(st.booleans()) else tuple(index)
