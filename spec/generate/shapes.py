"""Shapes: 0-d, size 0, 1-axes, squares and cubes as well as unequal sides, and every way of naming an axis.

Strategies are cached by their arguments: Hypothesis validates each new one, which would cost more than to draw from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from hypothesis import strategies as st

from ..entry import Shape

MOST = 24  # elements of one input: finite differences visit every one of them


@cache
def _size(least: int, most: int) -> st.SearchStrategy[int]:
    """A number, the larger the likelier: nothing shows on an axis of 0, and little on one of 1 or with few axes."""
    return st.sampled_from([n for n in range(least, most + 1) for _ in range(1 + n)])


_known: Sequence[Shape] = ()


@contextmanager
def among(known: Sequence[Shape]) -> Iterator[None]:
    """Draw ``shapes`` that are in ``known`` more often than not, where some are of the size that is asked for."""
    global _known
    before, _known = _known, known
    try:
        yield
    finally:
        _known = before


@cache
@st.composite
def shapes(draw: Any, min_dims: int = 0, max_dims: int = 3, min_side: int = 1, max_side: int = 3) -> Shape:
    """A shape of at most ``MOST`` elements. Size 0 must be asked for, with ``min_side=0``."""
    fit = [
        shape
        for shape in _known
        if min_dims <= len(shape) <= max_dims
        and all(min_side <= n <= max_side for n in shape)
        and math.prod(shape) <= MOST
    ]
    if fit and draw(st.integers(0, 3)) < 3:
        return draw(st.sampled_from(fit))
    ndim = draw(_size(min_dims, max_dims))
    if ndim >= 2 and draw(st.booleans()):
        return (draw(_size(min_side, max_side if ndim == 2 else 2)),) * ndim
    sides: list[int] = []
    room = MOST
    for _ in range(ndim):
        sides.append(draw(_size(min_side, max(min_side, min(max_side, room)))))
        room //= max(1, sides[-1])
    return tuple(sides)


def _stretched(shape: Shape, code: int) -> Shape:
    """``shape`` itself for a quarter of all bytes; for the others some leading axes dropped, and some of the rest 1."""
    if code < 64:
        return shape
    kept = shape[(0, 0, 0, 0, 1, 1, 2, 3)[code % 8] :]
    return tuple(1 if code >> 3 + i & 1 else n for i, n in enumerate(kept))


@cache
def stretched(shape: Shape) -> st.SearchStrategy[Shape]:
    """A shape that broadcasts to ``shape``."""
    return st.integers(0, 255).map(lambda code: _stretched(shape, code))


@cache
@st.composite
def broadcastable(draw: Any, count: int = 2, **sizes: int) -> tuple[Shape, ...]:
    """``count`` shapes that broadcast together, equal ones often."""
    whole = draw(shapes(**{"min_side": 0, **sizes}))
    # One choice for all: Hypothesis likes to copy one of several alike over another, and then nothing is stretched.
    codes = draw(st.binary(min_size=count, max_size=count))
    return tuple(_stretched(whole, code) for code in codes)


@cache
def one_axis(ndim: int) -> st.SearchStrategy[int]:
    """An axis of a tensor of ``ndim`` dimensions, counted from either end; a 0-d one has a nominal axis."""
    room = max(ndim, 1)
    return st.integers(-room, room - 1)


@cache
@st.composite
def some_axes(draw: Any, ndim: int, least: int = 0) -> tuple[int, ...]:
    """Different axes in any order, each counted from either end."""
    order = draw(st.permutations(range(ndim)))[: draw(st.integers(min(least, ndim), ndim))]
    return tuple(d - ndim if draw(st.booleans()) else d for d in order)


@cache
def axes(ndim: int) -> st.SearchStrategy[Any]:
    """Every way of naming the axes to reduce: None, one, several in any order, none."""
    return st.one_of(st.none(), one_axis(ndim), some_axes(ndim))
