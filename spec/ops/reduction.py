"""Entries of the reductions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Call, Domain, ErrorInput, OpSpec
from ..generate import shapes
from .common import along, not_offered, over_axes, wrong_axes

AXES = wrong_axes(several=True)
AXIS = wrong_axes(several=False)
INTEGERS = (ErrorInput(((2,),), {"dim": 0}, RuntimeError, r"needs a floating dtype, got int64", dtype="int64"),)
WRONG_DTYPE = ErrorInput(((2,),), {"dtype": 5}, TypeError, r"dtype must be one of .*, got 5")
NO_BOOLS = ErrorInput(((2,),), {}, NotImplementedError, r"not defined for bools", "bool", theirs=NotImplementedError)
NO_BOOL_RESULT = ErrorInput(
    ((2,),), {"dim": 0, "dtype": np.dtype("bool")}, NotImplementedError, r"not defined for bools",
    theirs=NotImplementedError,
)  # fmt: skip
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


@st.composite
def counts(draw: Any) -> Call:
    """Over axes that are not kept."""
    call = draw(over_axes())
    return Call(call.shapes, {"dim": call.params["dim"]})


@st.composite
def tops(draw: Any) -> Call:
    """As many as there are or fewer, from either end."""
    call = draw(along())
    (shape,), dim = call.shapes, call.params["dim"]
    k = draw(st.integers(0, shape[dim] if shape else 1))
    return Call(
        (shape,), {"k": k if shape else 1, "dim": dim, "largest": draw(st.booleans()), "sorted": draw(st.booleans())}
    )


POWERS = ["fro", 2, 1, 0, 4, 3, 1.5, 0.5, -1, math.inf, -math.inf]


@st.composite
def norms(draw: Any) -> Call:
    """Of every kind of power; over one element at least where a norm of nothing has no value."""
    p = draw(st.sampled_from(POWERS))
    call = draw(over_axes(lane=1 if p in (-1, math.inf, -math.inf) else 0, p=st.just(p)))
    dim = call.params["dim"]
    if p == "fro" and isinstance(dim, tuple):  # of vectors and matrices alone
        return Call(call.shapes, {**call.params, "dim": dim[:2]})
    return call


def of_norm(params: dict[str, Any]) -> tuple[Domain, ...]:
    """Where a norm is smooth: away from 0, and the largest or smallest of positive numbers where it is one alone."""
    p = params.get("p", 2)
    if p in ("fro", 2, 4):
        return (Domain(kinks=(0.0,), spread=1.0),)
    if p in (0, 1):
        return (Domain(kinks=(0.0,)),)
    return (Domain(low=0.0, spread=1 / 32) if math.isinf(p) else Domain(low=1 / 4),)


SPECS = [
    OpSpec("sum", over_axes(), affine=True, errors=(*AXES, WRONG_DTYPE)),
    OpSpec("nansum", over_axes(), affine=True, errors=(*AXES, WRONG_DTYPE)),
    OpSpec(
        "mean",
        over_axes(lane=1),
        affine=True,
        errors=(
            *AXES,
            *INTEGERS,
            ErrorInput(((2,),), {"dtype": np.dtype("int64")}, RuntimeError, r"needs a floating dtype, got int64"),
        ),
    ),
    OpSpec("amax", over_axes(lane=1), unique=True, errors=(*AXES, *EMPTY)),
    OpSpec("amin", over_axes(lane=1), unique=True, errors=(*AXES, *EMPTY)),
    OpSpec("max", picks_of_largest(), unique=True, errors=(*AXIS, *EMPTY)),
    OpSpec("min", picks_of_largest(), unique=True, errors=(*AXIS, *EMPTY)),
    OpSpec("prod", along(all_too=True, keepdim=st.booleans()), errors=(*AXIS, WRONG_DTYPE)),
    OpSpec(
        "median",
        along(lane=1, all_too=True, keepdim=st.booleans()),
        unique=True,
        errors=(*AXIS, *EMPTY, NO_BOOLS),
    ),
    OpSpec("sort", along(descending=st.booleans(), stable=st.booleans()), unique=True, errors=AXIS),
    OpSpec(
        "topk",
        tops(),
        unique=True,
        errors=(
            ErrorInput(((3,),), {"k": 4}, RuntimeError, r"k must be from 0 to 3, .*, got 4"),
            ErrorInput(((3,),), {"k": -1}, RuntimeError, r"got -1"),
            ErrorInput(((3,),), {"k": 1.5}, TypeError, r"k must be an integer, got 1.5"),
            ErrorInput(((3,),), {"k": 1}, RuntimeError, r"not defined for bools", dtype="bool"),
        ),
    ),
    OpSpec("cumsum", along(), affine=True, errors=(*AXIS, NO_BOOL_RESULT)),
    OpSpec("cumprod", along(), errors=(*AXIS, NO_BOOL_RESULT)),
    OpSpec("cummax", along(), unique=True, errors=AXIS),
    OpSpec(
        "trace",
        st.builds(lambda shape: Call((shape,)), shapes.shapes(2, 2, min_side=0)),
        affine=True,
        errors=(
            ErrorInput(((3,),), {}, RuntimeError, r"needs two dimensions, got shape \(3,\)"),
            ErrorInput(
                ((2, 2),), {}, NotImplementedError, r"not defined for bools", "bool", theirs=NotImplementedError
            ),
        ),
    ),
    OpSpec(
        "norm",
        norms(),
        domain=of_norm,
        errors=(
            *AXES,
            *INTEGERS,
            ErrorInput(((2, 2),), {"p": "nuc"}, NotImplementedError, r"nuclear norm .* is not offered"),
            ErrorInput(((2, 2, 2),), {"p": "fro", "dim": (0, 1, 2)}, RuntimeError, r"one dim or two, got \(0, 1, 2\)"),
            ErrorInput(((2, 2),), {"p": "foo"}, RuntimeError, r"p must be a number or 'fro', got 'foo'"),
            ErrorInput(((0, 2),), {"p": math.inf}, RuntimeError, r"no inf-norm of nothing"),
            ErrorInput(((0, 2),), {"p": -1, "dim": 0}, RuntimeError, r"no -1-norm of nothing"),
        ),
    ),
    OpSpec("count_nonzero", counts(), constant=True, errors=AXES),
    OpSpec("any", over_axes(), constant=True, errors=AXES),
    OpSpec("all", over_axes(), constant=True, errors=AXES),
    OpSpec(
        "std",
        variances(),
        domain=Domain(spread=1 / 4),
        errors=(*AXES, *INTEGERS, not_offered(((2,),), "unbiased", True, dim=0)),
    ),
    OpSpec(
        "var",
        variances(),
        errors=(*AXES, *INTEGERS, not_offered(((2,),), "unbiased", True, dim=0)),
    ),
    OpSpec("logsumexp", over_axes(lane=1), errors=AXES),
    *(
        OpSpec(
            name, along(lane=1, all_too=True, keepdim=st.booleans()), unique=True, constant=True, errors=(*AXIS, *EMPTY)
        )
        for name in ("argmax", "argmin")
    ),
]
