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


@st.composite
def by_channel(draw: Any) -> Call:
    """(N, C, ...) in training, and a weight, a weight and a bias, or neither."""
    channels, n = draw(st.integers(1, 3)), draw(st.integers(2, 3))
    rest = draw(shapes.shapes(max_dims=2, max_side=2, min_side=0))
    params = {"running_mean": None, "running_var": None, "training": True, "eps": draw(st.sampled_from([1e-5, 0.5]))}
    return Call(((n, channels, *rest), *[(channels,)] * draw(st.integers(0, 2))), params)


def _by_channel(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    others = dict(params)
    return op(xs[0], others.pop("running_mean"), others.pop("running_var"), *xs[1:], **others)


@st.composite
def convolutions(draw: Any, axes: int) -> Call:
    """An input with or without a batch, a kernel that fits into it, and a bias or none; whole, or in groups."""
    kernel, dilation, padding, extra = (draw(st.tuples(*[st.integers(low, 2)] * axes)) for low in (1, 1, 0, 0))
    named = draw(st.sampled_from([None, "same", "valid"]))
    sides = tuple(
        max(1, d * (k - 1) + 1 - (0 if named else 2 * p)) + e
        for k, d, p, e in zip(kernel, dilation, padding, extra, strict=True)
    )
    groups, channels, out = (draw(st.integers(1, 2)) for _ in range(3))
    batch = draw(st.sampled_from([(), (1,), (2,), (0,)]))
    bias = [(groups * out,)] if draw(st.booleans()) else []
    stride = 1 if named == "same" else draw(st.integers(1, 2))
    params = {"stride": stride, "padding": named or padding, "dilation": dilation, "groups": groups}
    return Call(((*batch, groups * channels, *sides), (groups * out, channels, *kernel), *bias), params)


@st.composite
def pools(draw: Any) -> Call:
    """Windows that overlap or leave gaps, and reach over the edge by at most half of their size."""
    kernel = draw(st.tuples(st.integers(1, 2), st.integers(1, 3)))
    padding = tuple(draw(st.integers(0, k // 2)) for k in kernel)
    sides = tuple(k + draw(st.integers(0, 1)) for k in kernel)
    params = {"kernel_size": kernel, "stride": draw(st.sampled_from([None, 1, 2])), "padding": padding}
    return Call(((*draw(st.sampled_from([(1,), (2,), (1, 1), (1, 2), (2, 2), (0, 1)])), *sides),), params)


def _attention_by_formula(
    query: Any, key: Any, value: Any, attn_mask: Any = None, is_causal: bool = False, scale: float | None = None
) -> Any:
    """The formula in PyTorch's ops. Its own op scales query and key apart, and so overflows elsewhere, and its fused
    kernel has no second derivative; tests/regressions/test_modules.py compares with that."""
    import torch  # here, so that the entries are listed without it

    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    return torch.softmax(scores, -1) @ value


@st.composite
def attentions(draw: Any) -> Call:
    """Queries, keys and values with a batch, masked in one way or another; each query sees the first key."""
    batch = draw(shapes.shapes(max_dims=2, max_side=2, min_side=0))
    length, keys, width, out = (draw(st.integers(1, 3)) for _ in range(4))
    kind = draw(st.sampled_from(["none", "causal", "bools"]))
    mask = None
    if kind == "bools":
        mask = np.array(draw(st.lists(st.booleans(), min_size=length * keys, max_size=length * keys)), bool)
        mask = mask.reshape(length, keys)
        mask[:, 0] = True
    params = {"attn_mask": mask, "is_causal": kind == "causal", "scale": draw(st.sampled_from([None, 0.5]))}
    return Call(((*batch, length, width), (*batch, keys, width), (*batch, keys, out)), params)


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
    OpSpec(
        "functional.rms_norm",
        st.builds(
            lambda call, eps, weighted: Call(
                call.shapes[: 1 + weighted], {"normalized_shape": call.params["normalized_shape"], "eps": eps}
            ),
            normalised(),
            st.sampled_from([0.5, 1.0]),  # a smaller one makes the sign of a lane of one element steep at 0
            st.booleans(),
        ),
        written=_with_lanes,
        errors=(
            ErrorInput(((2, 3),), {"normalized_shape": (2,)}, RuntimeError, r"must be the last sizes of the input"),
            ErrorInput(((2, 3), (2,)), {"normalized_shape": (3,)}, RuntimeError, r"weight's shape, which is \(2,\)"),
        ),
    ),
    OpSpec(
        "functional.batch_norm",
        by_channel(),
        domain=(Domain(spread=1 / 4), Domain(), Domain()),
        written=_by_channel,
        errors=(
            ErrorInput(
                ((1, 2),), {"running_mean": None, "running_var": None, "training": True}, ValueError, r"more than one"
            ),
            ErrorInput(
                ((2, 2), (3,)), {"running_mean": None, "running_var": None, "training": True}, RuntimeError, r"\(C,\)"
            ),
            ErrorInput(((2, 2),), {"running_mean": None, "running_var": None}, RuntimeError, r"unless training"),
        ),
    ),
    OpSpec(
        "functional.dropout",
        elementwise(1, p=st.sampled_from([0.0, 0.5, 1.0]), training=st.booleans()),
        affine=True,
        seed=0,
        errors=(
            ErrorInput(((2,),), {"p": 1.5}, ValueError, r"p must be in \[0, 1\], got 1.5"),
            ErrorInput(((2,),), {"p": -0.5}, ValueError, r"p must be in"),
        ),
    ),
    OpSpec("functional.silu", elementwise(), errors=NOT_A_TENSOR),
    OpSpec(
        "functional.gelu",
        elementwise(1, approximate=st.sampled_from(["none", "tanh"])),
        errors=(ErrorInput(((2,),), {"approximate": "exp"}, RuntimeError, r"approximate must be .* got 'exp'"),),
    ),
    OpSpec(
        "functional.l1_loss",
        compared(),
        apart=True,
        errors=(WRONG_REDUCTION, ErrorInput(((2,), (3,)), {}, RuntimeError, r"do not broadcast")),
    ),
    OpSpec(
        "functional.conv1d",
        convolutions(1),
        affine=True,
        errors=(
            ErrorInput(((1, 2, 3), (1, 1, 2)), {}, RuntimeError, r"conv1d\(\): got shapes \(1, 2, 3\) and \(1, 1, 2\)"),
            ErrorInput(((3,), (1, 1, 2)), {}, RuntimeError, r"needs \(N, C, L\)"),
            ErrorInput(((1, 1, 2), (1, 1, 2)), {"padding": -1}, RuntimeError, r"padding must be a number, at least 0"),
        ),
    ),
    OpSpec(
        "functional.conv2d",
        convolutions(2),
        affine=True,
        errors=(
            ErrorInput(((1, 2, 3, 3), (1, 1, 2, 2)), {}, RuntimeError, r"got shapes \(1, 2, 3, 3\) and \(1, 1, 2, 2\)"),
            ErrorInput(((1, 1, 2, 2), (1, 1, 3, 3)), {}, RuntimeError, r"kernel of \(3, 3\) does not fit .*\(2, 2\)"),
            ErrorInput(((1, 1, 2, 2), (1, 1, 1, 0)), {}, RuntimeError, r"got shapes"),
            ErrorInput(((1, 1, 2, 2), (1, 1, 1, 1)), {"stride": 0}, RuntimeError, r"stride must be"),
            ErrorInput(
                ((1, 1, 2, 2), (1, 1, 1, 1)), {"padding": "full"}, RuntimeError, r"'same' or 'valid', got 'full'"
            ),
            ErrorInput(((1, 1, 2, 2), (1, 1, 1, 1)), {"padding": "same", "stride": 2}, RuntimeError, r"strides of 1"),
            ErrorInput(((1, 4, 2, 2), (3, 2, 1, 1)), {"groups": 2}, RuntimeError, r"groups=2; .* a multiple of groups"),
            ErrorInput(((1, 4, 2, 2), (2, 4, 1, 1)), {"groups": 0}, RuntimeError, r"groups=0"),
        ),
    ),
    OpSpec(
        "functional.max_pool2d",
        pools(),
        unique=True,
        errors=(
            ErrorInput(((1, 1, 2, 2),), {"kernel_size": 3}, RuntimeError, r"does not fit"),
            ErrorInput(((1, 1, 4, 4),), {"kernel_size": 2, "padding": 2}, RuntimeError, r"at most half"),
            ErrorInput(((4, 4),), {"kernel_size": 2}, RuntimeError, r"needs \(N, C, H, W\)"),
        ),
    ),
    OpSpec(
        "functional.scaled_dot_product_attention",
        attentions(),
        ref=_attention_by_formula,
        errors=(ErrorInput(((2, 3), (2, 2), (2, 2)), {}, RuntimeError, r"do not fit"),),
    ),
]
