"""Entries of picking and writing by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Call, ErrorInput, OpSpec
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
]
