"""Entries of ``smolgrad.functional``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Call, Domain, ErrorInput, OpSpec
from ..generate import shapes
from .common import along, wrong_axes
from .elementwise import AT_ZERO, NOT_A_TENSOR, elementwise

AXIS = wrong_axes(several=False)
REDUCTIONS = st.sampled_from(["mean", "sum", "none"])
WRONG_REDUCTION = ErrorInput(((2,), (2,)), {"reduction": "max"}, ValueError, r"reduction must be .* got 'max'")


@st.composite
def layers(draw: Any) -> Call:
    """Inputs of any rank, a weight, and a bias or none."""
    batch = draw(shapes.shapes(max_dims=2, min_side=0))
    width, out = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    bias = draw(st.booleans())
    return Call(((*batch, width), (out, width), *([(out,)] if bias else [])))


@st.composite
def classified(draw: Any) -> Call:
    """Logits (C,), (N, C) or (N, C, ...), and a class for each, some ignored; a mean is over one at the least."""
    batch = draw(shapes.shapes(max_dims=3, max_side=2, min_side=0))
    classes = draw(st.integers(1, 4))
    count = int(np.prod(batch))
    ignore = draw(st.sampled_from([-100, 0]))
    target = draw(st.lists(st.integers(0, classes - 1) | st.just(ignore), min_size=count, max_size=count))
    reduction = draw(REDUCTIONS)
    if reduction == "mean":
        target[:1] = [classes - 1] * min(count, 1)
        ignore, reduction = -100, reduction if count else "sum"
    params = {"target": np.array(target, np.int64).reshape(batch), "reduction": reduction, "ignore_index": ignore}
    return Call(((*batch[:1], classes, *batch[1:]),), params)


@st.composite
def compared(draw: Any) -> Call:
    """Two inputs that broadcast; a mean is over one element at the least."""
    found = draw(shapes.broadcastable(2))
    reduction = draw(REDUCTIONS)
    if reduction == "mean" and 0 in np.broadcast_shapes(*found):
        reduction = "sum"
    return Call(found, {"reduction": reduction})


@st.composite
def lookups(draw: Any) -> Call:
    """Rows of a table by number: repeated, never picked, none at all."""
    rows, width = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    shape = draw(shapes.shapes(max_dims=2, min_side=0))
    count = int(np.prod(shape))
    numbers = draw(st.lists(st.integers(0, rows - 1), min_size=count, max_size=count))
    dtype = draw(st.sampled_from(["int64", "int32"]))
    return Call(((rows, width),), {"input": np.array(numbers, dtype).reshape(shape)})


@st.composite
def normalised(draw: Any) -> Call:
    """An input, and over its last axes a weight, a weight and a bias, or neither."""
    lane = draw(shapes.shapes(min_dims=1, max_dims=2))
    batch = draw(shapes.shapes(max_dims=2, max_side=2, min_side=0))
    affine = draw(st.integers(0, 2))
    return Call(
        ((*batch, *lane), *[lane] * affine), {"normalized_shape": lane, "eps": draw(st.sampled_from([1e-5, 0.5]))}
    )


def _with_lanes(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    others = dict(params)
    return op(xs[0], others.pop("normalized_shape"), *xs[1:], **others)


NO_METHOD = (replace(NOT_A_TENSOR[0], theirs=AttributeError),)
TARGETS = np.array([0, 1])

SPECS = [
    OpSpec("functional.relu", elementwise(), domain=AT_ZERO, errors=NOT_A_TENSOR),
    OpSpec("functional.sigmoid", elementwise(), errors=NO_METHOD),
    OpSpec("functional.tanh", elementwise(), errors=NO_METHOD),
    OpSpec(
        "functional.linear",
        layers(),
        affine=True,
        errors=(
            ErrorInput(((2, 3), (4, 2)), {}, RuntimeError, r"linear\(\): got shapes \(2, 3\) and \(4, 2\)"),
            ErrorInput(((2, 3), (4, 3), (3,)), {}, RuntimeError, r"linear\(\): got shapes"),
        ),
    ),
    OpSpec("functional.softmax", along(), errors=AXIS),
    OpSpec("functional.log_softmax", along(), errors=AXIS),
    OpSpec(
        "functional.cross_entropy",
        classified(),
        errors=(
            ErrorInput(((2, 3),), {"target": np.array([0, 3])}, IndexError, r"index 3 is out of range.*0 to 2"),
            ErrorInput(((2, 3),), {"target": np.array([0, -1])}, IndexError, r"index -1 is out of range"),
            ErrorInput(((2, 3),), {"target": np.array([0, 1, 2])}, ValueError, r"target must have shape \(2,\)"),
            ErrorInput(((2, 3),), {"target": np.array([0, 1], np.int32)}, RuntimeError, r"in int64, got int32"),
            ErrorInput(((2, 3),), {"target": TARGETS, "reduction": "max"}, ValueError, r"got 'max'"),
            ErrorInput(
                ((2, 3),), {"target": TARGETS, "label_smoothing": 0.1}, NotImplementedError, r"option label_smoothing"
            ),
        ),
    ),
    OpSpec(
        "functional.mse_loss",
        compared(),
        errors=(WRONG_REDUCTION, ErrorInput(((2,), (3,)), {}, RuntimeError, r"do not broadcast")),
    ),
    OpSpec(
        "functional.embedding",
        lookups(),
        affine=True,
        written=lambda op, xs, params: op(params["input"], *xs),
        errors=(
            ErrorInput(((3, 2),), {"input": np.array([3])}, IndexError, r"index 3 is out of range"),
            ErrorInput(((3, 2),), {"input": np.array([-1])}, IndexError, r"index -1 is out of range"),
            ErrorInput(((3, 2),), {"input": np.array([0.0])}, RuntimeError, r"must be int64 or int32, got float64"),
            ErrorInput(((3,),), {"input": np.array([0])}, RuntimeError, r"weight must be \(rows, width\)"),
        ),
    ),
    OpSpec(
        "functional.layer_norm",
        normalised(),
        domain=(Domain(spread=1 / 4), Domain(), Domain()),
        written=_with_lanes,
        errors=(
            ErrorInput(
                ((2, 3),), {"normalized_shape": (2,)}, RuntimeError, r"normalized_shape \(2,\) must be the last"
            ),
            ErrorInput(((2, 3),), {"normalized_shape": ()}, RuntimeError, r"normalized_shape"),
            ErrorInput(((2, 3), (2,)), {"normalized_shape": (3,)}, RuntimeError, r"must have shape \(3,\), got \(2,\)"),
        ),
    ),
]
