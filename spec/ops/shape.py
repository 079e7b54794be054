"""Entries of the ops that move elements."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from ..entry import Call, ErrorInput, OpSpec, as_list, by_position
from ..generate import shapes
from .common import elementwise, wrong_axes

AXIS = wrong_axes(several=False)


@st.composite
def reshapes(draw: Any) -> Call:
    """A shape and another of as many elements, one size of it sometimes -1."""
    shape = draw(shapes.shapes(min_side=0))
    sides: list[int] = []
    left = math.prod(shape)
    while left > 1 and len(sides) < 3:
        sides.append(draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
        left //= sides[-1]
    if left != 1:
        sides.append(left)
    sides.insert(draw(st.integers(0, len(sides))), 1)
    if left and draw(st.booleans()):
        sides[draw(st.integers(0, len(sides) - 1))] = -1
    return Call((shape,), {"shape": tuple(sides)})


@st.composite
def permutations(draw: Any) -> Call:
    shape = draw(shapes.shapes(max_dims=4, min_side=0))
    order = draw(st.permutations(range(len(shape))))
    return Call((shape,), {"dims": tuple(d - len(shape) if draw(st.booleans()) else d for d in order)})


@st.composite
def exchanges(draw: Any) -> Call:
    shape = draw(shapes.shapes(min_side=0))
    return Call((shape,), {"dim0": draw(shapes.one_axis(len(shape))), "dim1": draw(shapes.one_axis(len(shape)))})


@st.composite
def expansions(draw: Any) -> Call:
    """A shape and one it stretches to, some kept sizes spelled -1."""
    whole = draw(shapes.shapes(min_side=0))
    shape = draw(shapes.stretched(whole))
    lead = len(whole) - len(shape)
    sizes = tuple(-1 if i >= lead and n == shape[i - lead] and draw(st.booleans()) else n for i, n in enumerate(whole))
    return Call((shape,), {"sizes": sizes})


@st.composite
def squeezes(draw: Any) -> Call:
    shape = draw(shapes.shapes(min_side=0, max_side=2))
    return Call((shape,), {"dim": draw(shapes.axes(len(shape)))})


@st.composite
def new_axes(draw: Any) -> Call:
    shape = draw(shapes.shapes(min_side=0))
    return Call((shape,), {"dim": draw(shapes.one_axis(len(shape) + 1))})


@st.composite
def ranges(draw: Any) -> Call:
    shape = draw(shapes.shapes(max_dims=4, min_side=0))
    room = max(len(shape), 1)
    start = draw(st.integers(0, room - 1))
    end = draw(st.integers(start, room - 1))
    return Call(
        (shape,),
        {
            "start_dim": draw(st.sampled_from([start, start - room])),
            "end_dim": draw(st.sampled_from([end, end - room])),
        },
    )


@st.composite
def rows_to_join(draw: Any) -> Call:
    """One to three shapes that are equal but for one axis."""
    shape = draw(shapes.shapes(min_dims=1, min_side=0))
    dim = draw(shapes.one_axis(len(shape)))
    lane = dim % len(shape)
    sides = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    return Call(tuple(shape[:lane] + (n,) + shape[lane + 1 :] for n in sides), {"dim": dim})


@st.composite
def equals_to_stack(draw: Any) -> Call:
    shape = draw(shapes.shapes(min_side=0))
    return Call((shape,) * draw(st.integers(1, 3)), {"dim": draw(shapes.one_axis(len(shape) + 1))})


SPECS = [
    OpSpec(
        "reshape",
        reshapes(),
        affine=True,
        written=by_position,
        errors=(
            ErrorInput(
                ((2, 3),), {"shape": (4,)}, RuntimeError, r"shape \(4,\) does not fit an input of shape \(2, 3\)"
            ),
            ErrorInput(((2, 3),), {"shape": (-1, -1)}, RuntimeError, r"at most one size of -1"),
            ErrorInput(((2, 3),), {"shape": (4, -1)}, RuntimeError, r"does not fit"),
            ErrorInput(((0,),), {"shape": (0, -1)}, RuntimeError, r"does not fit"),
            ErrorInput(((2, 3),), {"shape": (2, 1.5)}, TypeError, r"a size must be an integer"),
        ),
    ),
    OpSpec(
        "permute",
        permutations(),
        affine=True,
        written=by_position,
        errors=(
            ErrorInput(((2, 3),), {"dims": (0,)}, RuntimeError, r"got 1 dims for an input of 2 dimensions"),
            ErrorInput(((2, 3),), {"dims": (0, 0)}, RuntimeError, r"dim 0 is named twice"),
            ErrorInput(((2, 3),), {"dims": (0, 2)}, IndexError, r"dim 2 is out of range"),
        ),
    ),
    OpSpec(
        "transpose",
        exchanges(),
        affine=True,
        errors=(ErrorInput(((2, 3),), {"dim0": 0, "dim1": 2}, IndexError, r"dim 2 is out of range"),),
    ),
    OpSpec("Tensor.T", elementwise(), affine=True),
    OpSpec(
        "Tensor.mT",
        st.builds(lambda shape: Call((shape,)), shapes.shapes(min_dims=2, min_side=0)),
        affine=True,
        errors=(ErrorInput(((3,),), {}, RuntimeError, r"mT: needs at least two dimensions, got shape \(3,\)"),),
    ),
    OpSpec(
        "Tensor.expand",
        expansions(),
        affine=True,
        written=by_position,
        errors=(
            ErrorInput(((2, 3),), {"sizes": (3,)}, RuntimeError, r"expand\(\): sizes \(3,\) do not fit"),
            ErrorInput(((2, 3),), {"sizes": (4, 3)}, RuntimeError, r"do not fit an input of shape \(2, 3\)"),
            ErrorInput(((3,),), {"sizes": (-1, 3)}, RuntimeError, r"do not fit"),
        ),
    ),
    OpSpec(
        "squeeze",
        squeezes(),
        affine=True,
        written=by_position,
        errors=(
            ErrorInput(((2, 1),), {"dim": 2}, IndexError, r"dim 2 is out of range"),
            ErrorInput(((2, 1),), {"dim": (1, 1)}, RuntimeError, r"dim 1 is named twice"),
        ),
    ),
    OpSpec(
        "unsqueeze",
        new_axes(),
        affine=True,
        errors=(ErrorInput(((2,),), {"dim": 2}, IndexError, r"dim 2 is out of range"),),
    ),
    OpSpec(
        "flatten",
        ranges(),
        affine=True,
        errors=(
            ErrorInput(((2, 3),), {"start_dim": 1, "end_dim": 0}, RuntimeError, r"start_dim 1 comes after end_dim 0"),
            ErrorInput(((2, 3),), {"start_dim": 2}, IndexError, r"dim 2 is out of range"),
        ),
    ),
    OpSpec(
        "cat",
        rows_to_join(),
        affine=True,
        written=as_list,
        errors=(
            ErrorInput(((2, 3), (2, 2)), {"dim": 0}, RuntimeError, r"tensor 1 has shape \(2, 2\)"),
            ErrorInput(((2,), (2,)), {"dim": 1}, IndexError, r"dim 1 is out of range"),
            ErrorInput(((), ()), {"dim": 0}, RuntimeError, r"tensor 0 is 0-d"),
        ),
    ),
    OpSpec(
        "stack",
        equals_to_stack(),
        affine=True,
        written=as_list,
        errors=(
            ErrorInput(((2,), (3,)), {"dim": 0}, RuntimeError, r"tensor 1 has shape \(3,\), the first \(2,\)"),
            ErrorInput(((2,), (2,)), {"dim": 2}, IndexError, r"dim 2 is out of range"),
        ),
    ),
]
