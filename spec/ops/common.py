"""Calls that many entries share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ..entry import Call, ErrorInput
from ..generate import shapes


def elementwise(count: int = 1, **params: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    """``count`` inputs that broadcast together."""
    found = shapes.broadcastable(count) if count > 1 else shapes.shapes(min_side=0).map(lambda shape: (shape,))
    return st.builds(Call, found, st.fixed_dictionaries(params))


@st.composite
def over_axes(draw: Any, min_side: int = 0, single: bool = False, **params: st.SearchStrategy[Any]) -> Call:
    """One input, reduced over ``dim``, with and without ``keepdim``."""
    shape = draw(shapes.shapes(max_dims=4, min_side=min_side))
    dim = draw(shapes.one_axis(len(shape)) if single else shapes.axes(len(shape)))
    extra = {name: draw(strategy) for name, strategy in params.items()}
    return Call((shape,), {"dim": dim, "keepdim": draw(st.booleans()), **extra})


@st.composite
def along(draw: Any, min_side: int = 0, **params: st.SearchStrategy[Any]) -> Call:
    """One input and one axis of it."""
    shape = draw(shapes.shapes(min_side=min_side))
    return Call((shape,), {"dim": draw(shapes.one_axis(len(shape))), **{k: draw(v) for k, v in params.items()}})


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
