"""Entries of the ops that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Call, ErrorInput, OpSpec, as_list, by_position
from ..generate import shapes
from .common import elementwise, filled, wrong_axes
from .elementwise import NOT_A_TENSOR

AXIS = wrong_axes(several=False)


def _factors(draw: Any, size: int) -> list[int]:
    """One to four sizes of ``size`` elements in all, one of them sometimes -1."""
    sides: list[int] = []
    left = size
    while left > 1 and len(sides) < 3:
        divisors = [n for n in range(1, left + 1) if left % n == 0]
        # Matrices above all, which rows and columns first read otherwise.
        sides.append(draw(st.sampled_from([n for n in divisors for _ in range(4 if 1 < n < left else 1)])))
        left //= sides[-1]
    if left != 1:
        sides.append(left)
    sides.insert(draw(st.integers(0, len(sides))), 1)
    if left and draw(st.booleans()):
        sides[draw(st.integers(0, len(sides) - 1))] = -1
    return sides


@st.composite
def reshapes(draw: Any) -> Call:
    """A shape and another of as many elements, one size of it sometimes -1."""
    shape = draw(shapes.shapes(min_side=0))
    return Call((shape,), {"shape": tuple(_factors(draw, math.prod(shape)))})


def in_c_order(op: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``op(x.roll(0), shape).clone()``: of a copy in C order, which can be viewed in every shape, and no view of it."""
    return op(inputs[0].roll(0), *params.values()).clone()


@st.composite
def axes_to_unflatten(draw: Any) -> Call:
    shape = draw(shapes.shapes(min_dims=1, min_side=0, max_side=6))
    dim = draw(shapes.one_axis(len(shape)))
    return Call((shape,), {"dim": dim, "sizes": tuple(_factors(draw, shape[dim]))})


@st.composite
def permutations(draw: Any) -> Call:
    shape = draw(shapes.shapes(max_dims=4, min_side=0))
    order = draw(st.permutations(range(len(shape))))
    return Call((shape,), {"dims": tuple(d - len(shape) if draw(st.booleans()) else d for d in order)})


@st.composite
def exchanges(draw: Any, first: str = "dim0", second: str = "dim1") -> Call:
    shape = draw(shapes.shapes(min_side=0))
    return Call((shape,), {first: draw(shapes.one_axis(len(shape))), second: draw(shapes.one_axis(len(shape)))})


@st.composite
def moves(draw: Any) -> Call:
    """Some axes and as many places for them; a single one is a number too."""
    shape = draw(shapes.shapes(max_dims=4, min_side=0))
    source, destination = (draw(shapes.some_axes(len(shape))) for _ in range(2))
    if not shape or draw(st.booleans()):
        one = shapes.one_axis(len(shape))
        return Call((shape,), {"source": draw(one), "destination": draw(one)})
    count = min(len(source), len(destination))
    return Call((shape,), {"source": source[:count], "destination": destination[:count]})


@st.composite
def turns(draw: Any) -> Call:
    shape = draw(shapes.shapes(min_side=0))
    one = shapes.one_axis(len(shape)).map(lambda d: (d,))
    return Call((shape,), {"dims": draw(st.one_of(one, shapes.some_axes(len(shape), 2)))})


@st.composite
def rolls(draw: Any) -> Call:
    """One shift of everything, or one along each of some axes, which may come again."""
    shape, shift = draw(shapes.shapes(min_side=0)), st.integers(-4, 4)
    if not shape or not draw(st.integers(0, 3)):
        return Call((shape,), {"shifts": draw(shift), "dims": None})
    dims = draw(st.lists(shapes.one_axis(len(shape)), min_size=1, max_size=3))
    shifts = tuple(draw(shift) for _ in dims)
    if len(dims) == 1 and draw(st.booleans()):
        return Call((shape,), {"shifts": shifts[0], "dims": dims[0]})
    return Call((shape,), {"shifts": shifts, "dims": tuple(dims)})


@st.composite
def repetitions(draw: Any, fewest: int) -> Call:
    """A shape and how often each axis is repeated, with up to one new axis, or up to ``fewest`` numbers less."""
    shape = draw(shapes.shapes(min_side=0, max_dims=2))
    count = max(0, len(shape) + draw(st.integers(-fewest, 1)))
    return Call((shape,), {"times": tuple(draw(shapes.side(0, 2)) for _ in range(count))})


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
def columns_to_join(draw: Any) -> Call:
    """Shapes that are equal but for the second axis; or of one axis or none."""
    count = draw(st.integers(1, 3))
    if draw(st.booleans()):
        return Call(tuple(draw(shapes.shapes(max_dims=1, min_side=0)) for _ in range(count)))
    shape = draw(shapes.shapes(min_dims=2, min_side=0))
    return Call(tuple((shape[0], draw(st.integers(0, 3)), *shape[2:]) for _ in range(count)))


@st.composite
def rows_to_pile(draw: Any) -> Call:
    """Shapes that are equal but for the first axis, some of a single row without it."""
    count = draw(st.integers(1, 3))
    shape = draw(shapes.shapes(min_dims=1, max_dims=3, min_side=0))
    if len(shape) > 2:
        return Call(tuple((draw(st.integers(0, 3)), *shape[1:]) for _ in range(count)))
    lone = [(shape[-1],), *([()] if shape[-1] == 1 else [])]
    rows = st.one_of(st.sampled_from(lone), st.integers(0, 3).map(lambda n: (n, shape[-1])))
    return Call(tuple(draw(rows) for _ in range(count)))


@st.composite
def pieces(draw: Any) -> Call:
    """An axis in parts of one size, or of several that add up to it."""
    shape = draw(shapes.shapes(min_dims=1, min_side=0, max_side=4))
    dim = draw(shapes.one_axis(len(shape)))
    n = shape[dim]
    if draw(st.booleans()):
        return Call((shape,), {"split_size_or_sections": draw(st.integers(min(n, 1), n + 1)), "dim": dim})
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=2)))
    sizes = tuple(b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True))
    return Call((shape,), {"split_size_or_sections": sizes, "dim": dim})


@st.composite
def parts(draw: Any, lane: int = 0, **params: st.SearchStrategy[Any]) -> Call:
    """An axis of one tensor, of at least ``lane``."""
    shape = draw(shapes.shapes(min_dims=1, min_side=0, max_side=4))
    dim = draw(shapes.one_axis(len(shape)))
    found = {name: draw(strategy) for name, strategy in params.items()}
    return Call((filled(shape, dim, lane),), {**found, "dim": dim})


DIAGONALS = st.integers(-3, 3)


@st.composite
def matrices(draw: Any, min_dims: int = 2, max_dims: int = 4) -> Call:
    return Call((draw(shapes.shapes(min_dims, max_dims, min_side=0)),), {"diagonal": draw(DIAGONALS)})


@st.composite
def diagonals(draw: Any) -> Call:
    shape = draw(shapes.shapes(2, 4, min_side=draw(st.sampled_from([1, 1, 0]))))
    dims = draw(shapes.some_axes(len(shape), 2))[:2]
    return Call((shape,), {"offset": draw(DIAGONALS), "dim1": dims[0], "dim2": dims[1]})


# By how much an axis of n can grow at one end, and what must be left of it.
_GROWTH = {"constant": (lambda n: 3, 0), "reflect": (lambda n: n - 1, 1), "replicate": (lambda n: 3, 1)}


def _cut_and_grown(draw: Any, n: int, mode: str) -> tuple[int, int]:
    """Two widths, one of them often 0 or negative, that an axis of ``n`` can take."""
    if mode == "circular":  # what was cut off does not come back
        cut = (draw(st.integers(0, n)) if draw(st.booleans()) else 0, 0)
        left, ends = n - cut[0], draw(st.permutations([0, 1]))
        grown = [draw(st.integers(0, left)), draw(st.integers(0, left))]
        if cut[0]:
            grown[0] = -cut[0]
        return grown[ends[0]], grown[ends[1]]
    most, least = _GROWTH[mode]
    before = draw(st.integers(least - n, most(n)))
    after = draw(st.integers(least - n - min(before, 0), most(n)))
    return before, after


@st.composite
def paddings(draw: Any) -> Call:
    """Widths for some of the last axes: those that each mode takes, negative ones among them."""
    mode = draw(st.sampled_from(["constant", "constant", "reflect", "replicate", "circular"]))
    if mode == "constant":
        shape = draw(shapes.shapes(min_side=0))
        lanes = draw(st.integers(0, len(shape)))
    else:
        lanes = draw(st.integers(1, 2))
        shape = draw(shapes.shapes(lanes + 1, lanes + 2))
        if len(shape) == lanes + 2 and draw(st.integers(0, 3)) == 3:
            shape = (0, *shape[1:])  # an empty batch
    widths: list[int] = []
    for n in reversed(shape[len(shape) - lanes :]):
        widths += _cut_and_grown(draw, n, mode)
    value = draw(st.sampled_from([None, 0.5, -1.0])) if mode == "constant" else None
    return Call((shape,), {"pad": tuple(widths), "mode": mode, "value": value})


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
            ErrorInput(((2, 3),), {"dims": (0,)}, RuntimeError, r"got 1 dims for 2 dimensions"),
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
    OpSpec(
        "Tensor.view",
        reshapes(),
        affine=True,
        written=in_c_order,
        errors=(
            ErrorInput(
                ((2, 3),), {"shape": (4,)}, RuntimeError, r"shape \(4,\) does not fit an input of shape \(2, 3\)"
            ),
            ErrorInput(((2, 3),), {"shape": (2, 1.5)}, TypeError, r"a size must be an integer"),
            ErrorInput(((2,),), {"dtype": np.dtype("int64")}, NotImplementedError, r"another dtype is not offered"),
        ),
    ),
    OpSpec("ravel", elementwise(), affine=True, errors=NOT_A_TENSOR),
    OpSpec(
        "unflatten",
        axes_to_unflatten(),
        affine=True,
        errors=(
            ErrorInput(((2, 3),), {"dim": 1, "sizes": (2, 2)}, RuntimeError, r"shape \(2, 2\) does not fit dim 1"),
            ErrorInput(((2, 3),), {"dim": 1, "sizes": (-1, -1)}, RuntimeError, r"at most one size of -1"),
            ErrorInput(((0, 3),), {"dim": 0, "sizes": (0, -1)}, RuntimeError, r"does not fit dim 0"),
            ErrorInput(((2, 3),), {"dim": 1, "sizes": ()}, RuntimeError, r"at least one size"),
            ErrorInput(((),), {"dim": 0, "sizes": (1,)}, RuntimeError, r"needs an axis"),
            ErrorInput(((2, 3),), {"dim": 2, "sizes": (3,)}, IndexError, r"dim 2 is out of range"),
        ),
    ),
    OpSpec(
        "swapaxes",
        exchanges("axis0", "axis1"),
        affine=True,
        errors=(ErrorInput(((2, 3),), {"axis0": 0, "axis1": 2}, IndexError, r"dim 2 is out of range"),),
    ),
    OpSpec(
        "movedim",
        moves(),
        affine=True,
        errors=(
            ErrorInput(((2, 3),), {"source": (0, 1), "destination": (0,)}, RuntimeError, r"got 2 dims as source and 1"),
            ErrorInput(((2, 3),), {"source": (0, 0), "destination": (0, 1)}, RuntimeError, r"dim 0 is named twice"),
            ErrorInput(((2, 3),), {"source": (0, 1), "destination": (1, -1)}, RuntimeError, r"dim 1 is named twice"),
            ErrorInput(((2, 3),), {"source": 0, "destination": 2}, IndexError, r"dim 2 is out of range"),
        ),
    ),
    OpSpec(
        "broadcast_to",
        expansions(),
        affine=True,
        written=by_position,
        errors=(
            ErrorInput(((2, 3),), {"size": (3,)}, RuntimeError, r"sizes \(3,\) do not fit"),
            ErrorInput(((2, 3),), {"size": (4, 3)}, RuntimeError, r"do not fit an input of shape \(2, 3\)"),
        ),
    ),
    *(
        OpSpec(
            name,
            repetitions(fewest),
            affine=True,
            written=by_position,
            errors=(
                ErrorInput(((2, 3),), {"times": (2, -1)}, RuntimeError, r"one number, not negative, for each axis"),
                ErrorInput(((2, 3),), {"times": (2, 0.5)}, TypeError, r"must be an integer, got 0.5"),
            ),
        )
        for name, fewest in (("Tensor.repeat", 0), ("tile", 2))
    ),
    OpSpec(
        "flip",
        turns(),
        affine=True,
        written=by_position,
        errors=(
            ErrorInput(((2, 3),), {"dims": (0, -2)}, RuntimeError, r"dim 0 is named twice"),
            ErrorInput(((2, 3),), {"dims": (2,)}, IndexError, r"dim 2 is out of range"),
        ),
    ),
    OpSpec(
        "roll",
        rolls(),
        affine=True,
        errors=(
            ErrorInput(((2, 3),), {"shifts": (1, 2)}, RuntimeError, r"one shift for each of dims"),
            ErrorInput(((2, 3),), {"shifts": 1, "dims": (0, 1)}, RuntimeError, r"one shift for each of dims"),
            ErrorInput(((),), {"shifts": 1, "dims": 0}, IndexError, r"0-d tensor has no dim"),
            ErrorInput(((2, 3),), {"shifts": 1, "dims": 2}, IndexError, r"dim 2 is out of range"),
        ),
    ),
    OpSpec(
        "hstack",
        columns_to_join(),
        affine=True,
        written=as_list,
        errors=(
            ErrorInput(((2, 3), (3, 3)), {}, RuntimeError, r"hstack\(\): tensor 1 has shape \(3, 3\)"),
            ErrorInput(((2, 3), (3,)), {}, RuntimeError, r"tensor 1 has shape \(3,\)"),
            ErrorInput((), {}, RuntimeError, r"at least one tensor"),
        ),
    ),
    OpSpec(
        "vstack",
        rows_to_pile(),
        affine=True,
        written=as_list,
        errors=(
            ErrorInput(((3,), (2,)), {}, RuntimeError, r"vstack\(\): tensor 1 has shape \(1, 2\)"),
            ErrorInput((), {}, RuntimeError, r"at least one tensor"),
        ),
    ),
    OpSpec(
        "split",
        pieces(),
        affine=True,
        written=by_position,
        errors=(
            ErrorInput(((3,),), {"split_size_or_sections": 0}, RuntimeError, r"must not be negative and add up to 3"),
            ErrorInput(((3,),), {"split_size_or_sections": -1}, RuntimeError, r"must not be negative and add up to 3"),
            ErrorInput(
                ((3,),), {"split_size_or_sections": (1, 1)}, RuntimeError, r"sizes \(1, 1\) must .* add up to 3"
            ),
            ErrorInput(((3,),), {"split_size_or_sections": (4, -1)}, RuntimeError, r"must not be negative"),
            ErrorInput(((),), {"split_size_or_sections": 1}, RuntimeError, r"0-d tensor has no dim"),
            ErrorInput(((3,),), {"split_size_or_sections": 1, "dim": 1}, IndexError, r"dim 1 is out of range"),
        ),
    ),
    OpSpec(
        "chunk",
        parts(chunks=st.integers(1, 4)),
        affine=True,
        errors=(
            ErrorInput(((3,),), {"chunks": 0}, RuntimeError, r"chunks must be at least 1, got 0"),
            ErrorInput(((),), {"chunks": 1}, RuntimeError, r"0-d tensor has no dim"),
            ErrorInput(((3,),), {"chunks": 1.0}, TypeError, r"chunks must be an integer, got 1.0"),
        ),
    ),
    OpSpec(
        "unbind",
        parts(lane=1),  # without one there is no output
        affine=True,
        errors=(
            ErrorInput(((),), {}, IndexError, r"0-d tensor has no dim"),
            ErrorInput(((3,),), {"dim": 1}, IndexError, r"dim 1 is out of range"),
        ),
    ),
    *(
        OpSpec(
            name,
            matrices(),
            affine=True,
            errors=(
                ErrorInput(((3,),), {}, RuntimeError, rf"{name}\(\): needs at least two dimensions"),
                ErrorInput(((2, 2),), {"diagonal": 0.5}, TypeError, r"diagonal must be an integer, got 0.5"),
            ),
        )
        for name in ("tril", "triu")
    ),
    OpSpec(
        "diagonal",
        diagonals(),
        affine=True,
        errors=(
            ErrorInput(((2, 3),), {"dim1": 0, "dim2": -2}, RuntimeError, r"dim 0 is named twice"),
            ErrorInput(((3,),), {}, IndexError, r"dim 1 is out of range"),
        ),
    ),
    OpSpec(
        "diag",
        matrices(1, 2),
        affine=True,
        errors=(
            ErrorInput(((),), {}, RuntimeError, r"needs one or two dimensions, got shape \(\)"),
            ErrorInput(((1, 1, 1),), {}, RuntimeError, r"needs one or two dimensions"),
        ),
    ),
    OpSpec(
        "functional.pad",
        paddings(),
        affine=True,
        errors=(
            ErrorInput(((3,),), {"pad": (1,)}, RuntimeError, r"needs two widths an axis"),
            ErrorInput(((3,),), {"pad": (1, 1, 1, 1)}, RuntimeError, r"needs two widths an axis"),
            ErrorInput(((3,),), {"pad": (-4, 2)}, RuntimeError, r"cut off more than there is"),
            ErrorInput(((2, 3),), {"pad": (3, 0), "mode": "reflect"}, RuntimeError, r"cannot widen 3 elements by 3"),
            ErrorInput(((2, 3),), {"pad": (4, 0), "mode": "circular"}, RuntimeError, r"cannot widen 3 elements by 4"),
            ErrorInput(
                ((2, 3),), {"pad": (1, 0), "mode": "reflect", "value": 1.0}, RuntimeError, r"takes no value, got 1.0"
            ),
            *(
                ErrorInput(
                    ((3,),),
                    {"pad": (1, 0), "mode": mode},
                    NotImplementedError,
                    r"got '\w+' and 2 widths",
                    theirs=NotImplementedError,
                )
                for mode in ("reflect", "mirror")
            ),
        ),
    ),
]
