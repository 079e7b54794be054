"""Calls that many entries share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ..entry import Call, ErrorInput, Shape
from ..generate import shapes


def elementwise(count: int = 1, **params: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    """``count`` inputs that broadcast together."""
    found = shapes.broadcastable(count) if count > 1 else shapes.shapes(min_side=0).map(lambda shape: (shape,))
    return st.builds(Call, found, st.fixed_dictionaries(params))


def filled(shape: Shape, dim: Any, least: int) -> Shape:
    """``shape`` with at least ``least`` on each axis of ``dim``, which may be None for all of them."""
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    lanes = {d % len(shape) for d in dims if shape}
    return tuple(max(n, least) if i in lanes else n for i, n in enumerate(shape))


@st.composite
def over_axes(draw: Any, lane: int = 0, single: bool = False, **params: st.SearchStrategy[Any]) -> Call:
    """One input, reduced over ``dim``, with and without ``keepdim``; no side that is reduced is below ``lane``."""
    shape = draw(shapes.shapes(max_dims=4, min_side=0))
    dim = draw(shapes.one_axis(len(shape)) if single else shapes.axes(len(shape)))
    extra = {name: draw(strategy) for name, strategy in params.items()}
    return Call((filled(shape, dim, lane),), {"dim": dim, "keepdim": draw(st.booleans()), **extra})


@st.composite
def along(draw: Any, lane: int = 0, all_too: bool = False, **params: st.SearchStrategy[Any]) -> Call:
    """One input and one axis of it, of at least ``lane``; where ``all_too``, sometimes None for all of them."""
    shape = draw(shapes.shapes(min_side=0))
    dim = draw(st.none() | shapes.one_axis(len(shape)) if all_too else shapes.one_axis(len(shape)))
    return Call((filled(shape, dim, lane),), {"dim": dim, **{k: draw(v) for k, v in params.items()}})


def wrong_axes(*, several: bool) -> tuple[ErrorInput, ...]:
    """Axes that no op over ``dim`` may accept."""
    refused = (
        ErrorInput(((2, 3),), {"dim": 2}, IndexError, r"dim 2 is out of range.*-2 to 1"),
        ErrorInput(((2, 3),), {"dim": -3}, IndexError, r"dim -3 is out of range"),
        ErrorInput(((),), {"dim": 1}, IndexError, r"dim 1 is out of range"),
        ErrorInput(((2, 3),), {"dim": 0.5}, TypeError, r"dim must be an integer, got 0.5"),
    )
    twice = ErrorInput(((2, 3),), {"dim": (0, -2)}, RuntimeError, r"dim 0 is named twice")
    return (*refused, twice) if several else refused


DO_NOT_BROADCAST = (
    ErrorInput(((2,), (3,)), {}, RuntimeError, r"shapes \(2,\) and \(3,\) do not broadcast"),
    ErrorInput(((2, 3), (3, 2)), {}, RuntimeError, r"do not broadcast"),
)


def not_offered(shapes_: tuple[tuple[int, ...], ...], option: str, value: Any, **params: Any) -> ErrorInput:
    """An option of PyTorch's that is refused by name."""
    return ErrorInput(shapes_, {**params, option: value}, NotImplementedError, f"option {option} .*not offered")
