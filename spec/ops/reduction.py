"""Entries of the reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Call, ErrorInput, OpSpec
from .common import along, not_offered, over_axes, wrong_axes

AXES = wrong_axes(several=True)
AXIS = wrong_axes(several=False)
INTEGERS = (ErrorInput(((2,),), {"dim": 0}, RuntimeError, r"needs a floating dtype, got int64", dtype="int64"),)
EMPTY = (ErrorInput(((2, 0),), {"dim": 1}, IndexError, r"dim 1 of shape \(2, 0\) has size 0"),)


@st.composite
def variances(draw: Any) -> Call:
    """A correction below the number of elements in a lane."""
    call = draw(over_axes(lane=1))
    (shape,), dim = call.shapes, call.params["dim"]
    count = np.ones([max(n, 1) for n in shape]).sum(axis=dim).size
    lane = int(np.prod([max(n, 1) for n in shape])) // count
    return Call(call.shapes, {**call.params, "correction": draw(st.sampled_from([0, 0.5, 1, 1.5][: 2 * lane]))})


@st.composite
def picks_of_largest(draw: Any) -> Call:
    """Over one axis, or of all elements: then there are no indices, and nothing is kept."""
    call = draw(over_axes(lane=1, single=True))
    ((shape,), params) = (call.shapes, call.params)
    if draw(st.integers(0, 3)) == 3:
        return Call((tuple(max(n, 1) for n in shape),), {"dim": None})
    return Call((shape,), params)


SPECS = [
    OpSpec("sum", over_axes(), affine=True, errors=(*AXES, not_offered(((2,),), "dtype", np.dtype("float32")))),
    OpSpec("mean", over_axes(lane=1), affine=True, errors=(*AXES, *INTEGERS)),
    OpSpec("amax", over_axes(lane=1), unique=True, errors=(*AXES, *EMPTY)),
    OpSpec("amin", over_axes(lane=1), unique=True, errors=(*AXES, *EMPTY)),
    OpSpec("max", picks_of_largest(), unique=True, errors=(*AXIS, *EMPTY)),
    OpSpec(
        "var",
        variances(),
        errors=(*AXES, *INTEGERS, not_offered(((2,),), "unbiased", True, dim=0)),
    ),
    OpSpec("logsumexp", over_axes(lane=1), errors=AXES),
    OpSpec(
        "argmax", along(lane=1, all_too=True, keepdim=st.booleans()), unique=True, constant=True, errors=(*AXIS, *EMPTY)
    ),
]
