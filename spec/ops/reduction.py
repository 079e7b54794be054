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
    call = draw(over_axes(min_side=1))
    (shape,), dim = call.shapes, call.params["dim"]
    lane = np.mean(np.empty(shape), axis=dim if shape else None).size
    count = int(np.prod(shape)) // lane
    return Call(call.shapes, {**call.params, "correction": draw(st.sampled_from([0, 0.5, 1, 1.5][: 2 * count]))})


SPECS = [
    OpSpec("sum", over_axes(), affine=True, errors=(*AXES, not_offered(((2,),), "dtype", np.dtype("float32")))),
    OpSpec("mean", over_axes(min_side=1), affine=True, errors=(*AXES, *INTEGERS)),
    OpSpec("amax", over_axes(min_side=1), unique=True, errors=(*AXES, *EMPTY)),
    OpSpec("amin", over_axes(min_side=1), unique=True, errors=(*AXES, *EMPTY)),
    OpSpec("max", over_axes(min_side=1, single=True), unique=True, errors=(*AXIS, *EMPTY)),
    OpSpec(
        "var",
        variances(),
        errors=(*AXES, *INTEGERS, not_offered(((2,),), "unbiased", True, dim=0)),
    ),
    OpSpec("logsumexp", over_axes(min_side=1), errors=AXES),
    OpSpec("argmax", along(min_side=1, keepdim=st.booleans()), unique=True, constant=True, errors=(*AXIS, *EMPTY)),
]
