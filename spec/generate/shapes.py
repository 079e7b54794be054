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
def side(least: int, most: int) -> st.SearchStrategy[int]:
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
    ndim = draw(side(min_dims, max_dims))
    if ndim >= 2 and draw(st.booleans()):
        return (draw(side(min_side, max_side if ndim == 2 else 2)),) * ndim
    sides: list[int] = []
    room = MOST
    for _ in range(ndim):
        sides.append(draw(side(min_side, max(min_side, min(max_side, room)))))
        room //= max(1, sides[-1])
    return tuple(sides)


def _stretched(shape: Shape, code: int) -> Shape:
    """A shape that broadcasts to ``shape``, by a byte.

    Every way is common: ``shape`` itself; leading axes dropped (a row beside a square, whose sums over either axis have
    one shape; a 0-d operand); one axis 1; all but one; all; any, after some were dropped.
    """
    way, which = code % 8, code // 8
    if way == 0 or not shape:
        return shape
    if way < 3:
        return shape[1 + which % len(shape) :]
    if way < 6:
        one = which % len(shape)
        return tuple(1 if way == 5 or (i == one) == (way == 3) else n for i, n in enumerate(shape))
    return tuple(1 if which >> 2 + i & 1 else n for i, n in enumerate(shape[which % 3 :]))


@cache
def stretched(shape: Shape) -> st.SearchStrategy[Shape]:
    """A shape that broadcasts to ``shape``."""
    return st.integers(0, 255).map(lambda code: _stretched(shape, code))


# A row or a column beside a square, whose sums over either axis have one shape, is what is drawn too rarely otherwise.
# Smaller ones come first, to which they shrink.
_BESIDE = [((0,), ()), ((1,), (0,)), ((2,), ())]
_BESIDE += [((n, n), beside) for n in (2, 3) for beside in ((n,), (1, n), (n, 1))]
_PAIRS = [pair for a, b in _BESIDE for pair in ((a, b), (b, a))]


@cache
@st.composite
def broadcastable(draw: Any, count: int = 2, **sizes: int) -> tuple[Shape, ...]:
    """``count`` shapes that broadcast together, equal ones often."""
    if not sizes and draw(st.integers(0, 2)) == 2:
        pair = draw(st.sampled_from(_PAIRS))
        return (*pair, *pair[: count - 2])
    whole = draw(shapes(**{"min_side": 0, **sizes}))
    # One choice for all: Hypothesis likes to copy one of several alike over another, and then nothing is stretched.
    codes = draw(st.binary(min_size=count + 1, max_size=count + 1))
    kept = codes[-1] % (2 * count)  # often one operand has the whole shape, so that the others are stretched
    return tuple(whole if i == kept else _stretched(whole, code) for i, code in enumerate(codes[:-1]))


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
