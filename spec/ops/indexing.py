"""Entries of picking and writing by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Call, ErrorInput, OpSpec, Shape
from ..generate import indices, shapes


@st.composite
def picks(draw: Any) -> Call:
    """Any index; into three dimensions and more as often as into fewer, since there its axes may come in any order."""
    dims, side = draw(st.sampled_from([(0, 0), (0, 1), (3, 0), (4, 1), (4, 1)]))
    shape = draw(shapes.shapes(min_dims=dims, max_dims=4, min_side=side))
    return Call((shape,), {"index": draw(indices.indices(shape))})


@st.composite
def writes(draw: Any) -> Call:
    """A place, and a value that broadcasts down to it: stretched, or with leading 1-axes to spare."""
    shape = draw(shapes.shapes(min_side=0))
    index = draw(indices.indices(shape))
    value = draw(shapes.stretched(np.broadcast_to(0.0, shape)[index].shape))
    if draw(st.integers(0, 3)) == 3:
        value = (1,) * draw(st.integers(1, 2)) + value
    return Call((shape, value), {"index": index})


def picked(_op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    return xs[0][params["index"]]


def written(_op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    y = xs[0].clone()
    y[params["index"]] = xs[1]
    return y


@st.composite
def numbers(draw: Any, n: int, shape: Shape) -> np.ndarray:
    """Places on an axis of ``n``, counted from the front, as PyTorch's functions want them."""
    if not n or 0 in shape:
        return np.zeros(shape, np.int64)
    found = draw(indices.index_arrays(n, shape)).astype(np.int64) % n
    return np.asarray(found.astype(draw(st.sampled_from(["int64", "int64", "int32"]))))


@st.composite
def along(draw: Any, inputs: int = 1, **params: st.SearchStrategy[Any]) -> Call:
    """An axis, and numbers along it in step with the other axes, or with fewer; a source is as large, or larger."""
    shape = draw(shapes.shapes(min_side=0))
    dim = draw(shapes.one_axis(len(shape)))
    lane, n = (dim % len(shape), shape[dim]) if shape else (0, 1)
    fewer = draw(st.integers(0, 3)) == 3
    long = draw(shapes.side(0, 3)) if n else 0
    of = tuple(long if d == lane else max(0, m - fewer) for d, m in enumerate(shape))
    source = tuple(m + draw(st.integers(0, 1)) for m in of) if draw(st.booleans()) else of
    chosen = {"dim": dim, "places": draw(numbers(n, of)), **{k: draw(v) for k, v in params.items()}}
    return Call((shape, source)[:inputs], chosen)


@st.composite
def slices(draw: Any, inputs: int = 1, **params: st.SearchStrategy[Any]) -> Call:
    """An axis and a vector of numbers along it; a source has a slice for each."""
    shape = draw(shapes.shapes(min_side=0))
    dim = draw(shapes.one_axis(len(shape)))
    lane, n = (dim % len(shape), shape[dim]) if shape else (0, 1)
    long = (draw(shapes.side(0, 4)) if n else 0) if shape else 1
    source = tuple(long if d == lane else m for d, m in enumerate(shape))
    chosen = {"dim": dim, "places": draw(numbers(n, (long,))), **{k: draw(v) for k, v in params.items()}}
    return Call((shape, source)[:inputs], chosen)


@st.composite
def taken(draw: Any) -> Call:
    """Numbers from either end along an axis, where the others broadcast; or of all elements."""
    if draw(st.integers(0, 2)) == 2:
        whole = draw(shapes.shapes(min_side=draw(st.sampled_from([1, 0]))))
        of = draw(shapes.shapes(max_dims=2, min_side=0)) if 0 not in whole else (0,)
        return Call((whole,), {"places": draw(numbers(int(np.prod(whole)), of)).astype(np.int64), "dim": None})
    whole = draw(shapes.shapes(min_dims=1))
    dim = draw(shapes.one_axis(len(whole)))
    lane = dim % len(whole)
    if len(whole) > 1 and draw(st.integers(0, 3)) == 3:
        whole = tuple(m if d == lane else 0 for d, m in enumerate(whole))
    shape, of = (
        tuple(1 if d != lane and draw(st.integers(0, 3)) == 3 else m for d, m in enumerate(whole)) for _ in range(2)
    )
    of = (*of[:lane], draw(shapes.side(0, 3)), *of[lane + 1 :])
    return Call((shape,), {"places": draw(indices.index_arrays(whole[lane], of)).astype(np.int64), "dim": dim})


@st.composite
def put(draw: Any) -> Call:
    """Index arrays of the first axes, which broadcast, or a mask of them, and a value that broadcasts to the place."""
    shape = draw(shapes.shapes(min_dims=1, min_side=0))
    front = draw(st.integers(1, len(shape)))
    if draw(st.integers(0, 3)) == 3:
        places: tuple[Any, ...] = (draw(indices.masks(shape[:front])),)
    else:
        together = draw(st.sampled_from([(3,), (2, 2), (2,), (0,), ()])) if all(shape[:front]) else (0,)
        of = [draw(shapes.stretched(together)) if together and draw(st.booleans()) else together for _ in range(front)]
        places = tuple(draw(indices.index_arrays(n, s)).astype(np.int64) for n, s in zip(shape, of, strict=False))
    value = draw(shapes.stretched(np.broadcast_to(0.0, shape)[places].shape))
    return Call((shape, value), {"places": places, "accumulate": draw(st.booleans())})


@st.composite
def chosen(draw: Any) -> Call:
    """A mask that broadcasts with the input."""
    mask, shape = draw(shapes.broadcastable(2))
    return Call((shape,), {"mask": draw(indices.masks(mask))})


def between(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``op(input, *params, source)``: by position, the inputs around the rest."""
    return op(xs[0], *params.values(), *xs[1:])


def _but(params: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in names}


def _added(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    return op(xs[0], params["dim"], params["places"], *xs[1:], **_but(params, "dim", "places"))


def _put(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    return op(xs[0], params["places"], xs[1], **_but(params, "places"))


def _wrong(sources: int, places: Any, error: type[Exception], match: str, dim: int = 0, **more: Any) -> ErrorInput:
    """A wrong index into (2, 3), with or without a source of (1, 3)."""
    return ErrorInput(((2, 3), (1, 3))[: 1 + sources], {"dim": dim, "places": np.array(places), **more}, error, match)


def _wrong_lanes(sources: int) -> tuple[ErrorInput, ...]:
    return (
        _wrong(sources, [[2]], RuntimeError, r"index 2 is out of range; with 2 it goes from 0 to 1"),
        _wrong(sources, [[-1]], RuntimeError, r"index -1 is out of range"),
        _wrong(sources, [0], RuntimeError, r"must have as many dimensions as the input, of shape \(2, 3\)"),
        _wrong(sources, [[0, 0, 0, 0]], RuntimeError, r"is longer in dim 1 than "),
        _wrong(sources, [[0.0]], RuntimeError, r"must be int64 or int32, got float64"),
        _wrong(sources, [[0]], IndexError, r"dim 2 is out of range", dim=2),
    )


ANOTHER_DTYPE = ErrorInput(
    ((2, 3),),
    {"dim": 0, "places": np.array([[0]]), "src": np.ones((1, 3), "float32")},
    RuntimeError,
    r"must have one dtype",
)
PUT = {"accumulate": False}
WRONG = (
    (2, r"index 2 is out of bounds.*shape \(2, 3\)"),
    ((0, 0, 0), r"too many indices"),
    (np.array([0.5]), r"must hold integers or bools, got float64"),
    (np.array([True]), r"boolean index did not match"),
    (np.array([[0, -3]]), r"index -3 is out of bounds"),
)

SPECS = [
    OpSpec(
        "getitem",
        picks(),
        affine=True,
        written=picked,
        errors=tuple(ErrorInput(((2, 3),), {"index": i}, IndexError, r"getitem\(\): .*" + match) for i, match in WRONG),
    ),
    OpSpec(
        "setitem",
        writes(),
        affine=True,
        written=written,
        errors=(
            *(ErrorInput(((2, 3), ()), {"index": i}, IndexError, r"setitem\(\): .*" + match) for i, match in WRONG),
            ErrorInput(((2, 3), (2,)), {"index": 0}, RuntimeError, r"value of shape \(2,\) does not broadcast"),
            ErrorInput(((2, 3), (2, 3)), {"index": 0}, RuntimeError, r"to the place, of shape \(3,\)"),
        ),
    ),
    OpSpec("gather", along(), affine=True, written=between, errors=_wrong_lanes(0)),
    OpSpec(
        "scatter",
        along(2),
        affine=True,
        written=between,
        errors=(*_wrong_lanes(1), _wrong(1, [[0], [1]], RuntimeError, r"longer in dim 0 .* or src"), ANOTHER_DTYPE),
    ),
    OpSpec(
        "Tensor.scatter",
        along(value=st.sampled_from([0.5, -2, 0])),
        affine=True,
        written=_added,
        errors=(
            ErrorInput(((2,),), {"dim": 0, "places": np.array([2]), "value": 1}, RuntimeError, r"index 2 is out of"),
        ),
    ),
    OpSpec("scatter_add", along(2), affine=True, written=between, errors=(*_wrong_lanes(1), ANOTHER_DTYPE)),
    OpSpec(
        "index_select",
        slices(),
        affine=True,
        written=between,
        errors=(
            _wrong(0, [2], IndexError, r"index 2 is out of range; with 2 it goes from 0 to 1"),
            _wrong(0, [-1], IndexError, r"index -1 is out of range"),
            _wrong(0, [[0]], IndexError, r"must be a vector, got shape \(1, 1\)"),
            _wrong(0, [0.0], RuntimeError, r"must be int64 or int32, got float64"),
            ErrorInput(((),), {"dim": 0, "places": np.array([0, 0])}, RuntimeError, r"one element to select"),
        ),
    ),
    OpSpec(
        "index_add",
        slices(2, alpha=st.sampled_from([1, -0.5])),
        affine=True,
        written=_added,
        errors=(
            _wrong(1, [2], RuntimeError, r"index 2 is out of range", alpha=1),
            _wrong(1, [-1], RuntimeError, r"index -1 is out of range", alpha=1),
            _wrong(1, [[0]], IndexError, r"must be a vector", alpha=1),
            _wrong(1, [0, 1], RuntimeError, r"source must have shape \(2, 3\), got \(1, 3\)", alpha=1),
        ),
    ),
    OpSpec(
        "index_put",
        put(),
        affine=True,
        written=_put,
        errors=(
            ErrorInput(((2, 3), ()), {"places": (np.array([2]),), **PUT}, IndexError, r"index 2 is out of bounds"),
            ErrorInput(((2, 3), ()), {"places": (np.array([0.0]),), **PUT}, IndexError, r"int64, int32 or bool, got"),
            ErrorInput(((2, 3), (4,)), {"places": (np.array([0]),), **PUT}, RuntimeError, r"\(4,\) does not broadcast"),
            ErrorInput(((2, 3), ()), {"places": np.array([0]), **PUT}, TypeError, r"must be a tuple of tensors"),
        ),
    ),
    OpSpec(
        "take_along_dim",
        taken(),
        affine=True,
        written=between,
        errors=(
            ErrorInput(
                ((2, 3),),
                {"places": np.array([0]), "dim": 0},
                RuntimeError,
                r"must have the input's 2 dimensions, got 1",
            ),
            ErrorInput(((2, 3),), {"places": np.array([[0.0]]), "dim": 0}, RuntimeError, r"got float64"),
            ErrorInput(((2, 3),), {"places": np.array([[0, 0]]), "dim": 0}, RuntimeError, r"do not broadcast"),
            ErrorInput(((2, 3),), {"places": np.array([[0]]), "dim": 2}, IndexError, r"dim 2 is out of range"),
        ),
    ),
    OpSpec(
        "masked_select",
        chosen(),
        affine=True,
        errors=(
            ErrorInput(((2,),), {"mask": np.array([1, 0])}, RuntimeError, r"must have dtype bool, got int64"),
            ErrorInput(((2,),), {"mask": np.array([True] * 3)}, RuntimeError, r"do not broadcast"),
        ),
    ),
]
