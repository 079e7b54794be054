"""Entries of ``smolgrad.functional``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Call, Domain, ErrorInput, OpSpec
from ..generate import shapes
from .common import along, not_offered, wrong_axes
from .elementwise import AT_ZERO, NOT_A_TENSOR, POSITIVE, elementwise

AXIS = wrong_axes(several=False)
REDUCTIONS = st.sampled_from(["mean", "sum", "none"])
RARELY = st.sampled_from([False, False, True])
WRONG_REDUCTION = ErrorInput(((2,), (2,)), {"reduction": "max"}, ValueError, r"reduction must be .* got 'max'")


@st.composite
def layers(draw: Any) -> Call:
    """Inputs of any rank, a weight, and a bias or none."""
    batch = draw(shapes.shapes(max_dims=2, min_side=0))
    width, out = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    bias = draw(st.booleans())
    return Call(((*batch, width), (out, width), *([(out,)] if bias else [])))


# One class alone has a loss of 0 whatever its logit is, and no sample has none: both come, but not often.
CLASSES = st.sampled_from([2, 3, 4, 3, 2, 1])
SAMPLES = st.sampled_from([1, 1, 0]).flatmap(lambda least: shapes.shapes(max_dims=3, max_side=2, min_side=least))


@st.composite
def classified(draw: Any, **params: st.SearchStrategy[Any]) -> Call:
    """Logits (C,), (N, C) or (N, C, ...), and a class for each, some ignored; a mean is over one at the least."""
    batch, classes = draw(SAMPLES), draw(CLASSES)
    count = int(np.prod(batch))
    ignore = draw(st.sampled_from([-100, 0]))
    target = draw(st.lists(st.integers(0, classes - 1) | st.just(ignore), min_size=count, max_size=count))
    reduction = draw(REDUCTIONS)
    if reduction == "mean":
        target[:1] = [classes - 1] * min(count, 1)
        ignore, reduction = -100, reduction if count else "sum"
    weight = np.arange(1, classes + 1) / 4 if draw(RARELY) else None
    others = {
        "reduction": reduction,
        "ignore_index": ignore,
        "weight": weight,
        **{k: draw(v) for k, v in params.items()},
    }
    return Call(((*batch[:1], classes, *batch[1:]),), {"target": np.array(target, np.int64).reshape(batch), **others})


@st.composite
def distributed(draw: Any) -> Call:
    """Logits and a distribution for each sample, which need not add up to 1, or a class for each."""
    form = draw(st.integers(0, 5))  # half of them the fused loss, a third of them probabilities
    smoothing = 0.25 if form in (3, 5) else 0.0
    if form < 4:
        return draw(classified(label_smoothing=st.just(smoothing)))
    batch, classes = draw(shapes.shapes(max_dims=3, max_side=2)), draw(CLASSES)
    shape = (*batch[:1], classes, *batch[1:])
    weight = np.arange(1, classes + 1) / 4 if draw(RARELY) else None
    return Call((shape, shape), {"reduction": draw(REDUCTIONS), "label_smoothing": smoothing, "weight": weight})


def _like(x: Any, array: Any) -> Any:
    """What is drawn as an array of numbers that float32 can hold, in float32 where ``x`` is."""
    if not str(x.dtype).endswith("float32"):
        return array
    return array.float() if hasattr(array, "float") else array.astype("float32")


def _with_weights(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``plainly``, with weights in the inputs' dtype."""
    return op(*xs, **{k: _like(xs[0], v) if "weight" in k and v is not None else v for k, v in params.items()})


def _classified(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Of one input beside a class for each, or of two: the second are probabilities."""
    others = dict(params)
    pair = (xs[0], others.pop("target")) if len(xs) == 1 else xs
    return _with_weights(op, pair, others)


def _reduction(draw: Any, size: int) -> str:
    """A mean is over one element at the least."""
    reduction: str = draw(REDUCTIONS)
    return reduction if size else {"mean": "sum"}.get(reduction, reduction)


@st.composite
def compared(draw: Any, weighed: bool = False, **params: st.SearchStrategy[Any]) -> Call:
    """Two inputs that broadcast; where ``weighed``, sometimes a weight of the first one's shape."""
    found = draw(shapes.broadcastable(2))
    others = {
        "reduction": _reduction(draw, 0 not in np.broadcast_shapes(*found)),
        **{k: draw(v) for k, v in params.items()},
    }
    return Call((*found, *[found[0]] * (weighed and draw(st.booleans()))), others)


def _weighed(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    return op(*xs[:2], **params, **dict(zip(["weight"], xs[2:], strict=False)))


@st.composite
def likenesses(draw: Any, *weights: str) -> Call:
    """Two inputs of one shape, and of each of ``weights`` sometimes one that broadcasts to it."""
    shape = draw(shapes.shapes(min_side=0))
    params: dict[str, Any] = {"reduction": _reduction(draw, int(np.prod(shape)))}
    for name in weights:
        if draw(st.booleans()):
            of = draw(shapes.stretched(shape))
            params[name] = np.asarray((np.arange(np.prod(of)) + 2).reshape(of) / 4)
    return Call((shape, shape), params)


def of_probabilities(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``op`` of inputs held in [0, 1]."""
    return _with_weights(op, [x.masked_fill(x.isnan(), 0.5).clamp(0, 1) for x in xs], params)


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
    eps, affine = draw(st.sampled_from([1e-5, 0.5])), draw(st.integers(0, 2))
    running: tuple[Any, Any] = (None, None)
    training = draw(st.booleans())
    if not training:
        n, running = draw(st.integers(0, 3)), (np.arange(channels) / 4, np.arange(1, channels + 1) / 4)
    params = {"running_mean": running[0], "running_var": running[1], "training": training, "eps": eps}
    return Call(((n, channels, *rest), *[(channels,)] * affine), params)


def _by_channel(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    others = dict(params)
    running = (others.pop("running_mean"), others.pop("running_var"))
    return op(xs[0], *(None if r is None else _like(xs[0], r) for r in running), *xs[1:], **others)


@st.composite
def in_groups(draw: Any) -> Call:
    """Channels in groups of one or more, of two values at the least, and a weight, a weight and a bias, or neither."""
    groups, each = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2), (1, 3)]))
    rest = draw(shapes.shapes(max_dims=2, max_side=2, min_side=0))
    if each * int(np.prod(rest)) == 1:
        rest = (*rest, 2)
    shape = (draw(st.integers(0, 2)), groups * each, *rest)
    params = {"num_groups": groups, "eps": draw(st.sampled_from([1e-5, 0.5]))}
    return Call((shape, *[shape[1:2]] * draw(st.integers(0, 2))), params)


def _in_groups(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    others = dict(params)
    return op(xs[0], others.pop("num_groups"), *xs[1:], **others)


@st.composite
def directions(draw: Any) -> Call:
    """Two inputs that broadcast on all axes but that of the lanes, which have two elements at the least."""
    batch = draw(shapes.broadcastable(2, max_dims=2, max_side=2))
    ndim, long = max(map(len, batch)) + 1, draw(st.integers(2, 3))
    lane = draw(st.integers(0, ndim - 1))
    found = []
    for shape in batch:
        whole = (1,) * (ndim - 1 - len(shape)) + shape
        found.append((*whole[:lane], long, *whole[lane:]))
    eps = draw(st.sampled_from([1e-8, 64.0]))  # every norm is above the one and below the other
    return Call(tuple(found), {"dim": draw(st.sampled_from([lane, lane - ndim])), "eps": eps})


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
def pools(draw: Any, **options: st.SearchStrategy[Any]) -> Call:
    """Windows that overlap or leave gaps, and reach over the edge by at most half of their size."""
    kernel = draw(st.tuples(st.integers(1, 2), st.integers(1, 3)))
    padding = tuple(draw(st.integers(0, k // 2)) for k in kernel)
    others = {name: draw(strategy) for name, strategy in options.items()}
    dilation = others.get("dilation", 1)
    sides = tuple(dilation * (k - 1) + 1 + draw(st.integers(0, 1)) for k in kernel)
    params = {"kernel_size": kernel, "stride": draw(st.sampled_from([None, 1, 2])), "padding": padding}
    params["ceil_mode"] = draw(st.booleans())
    return Call(((*draw(st.sampled_from([(1,), (2,), (1, 1), (1, 2), (2, 2), (0, 1)])), *sides),), {**params, **others})


def _attention_by_formula(
    query: Any, key: Any, value: Any, attn_mask: Any = None, is_causal: bool = False, scale: float | None = None
) -> Any:
    """The formula in PyTorch's ops. Its own op scales query and key apart, and so overflows elsewhere, and its fused
    kernel has no second derivative; tests/regressions/test_modules.py compares with that."""
    import torch  # here, so that the entries are listed without it

    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is None:
        return torch.softmax(scores, -1) @ value
    scores = scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    blind = (scores == -torch.inf).all(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(blind, 0), -1).masked_fill(blind, 0) @ value


@st.composite
def attentions(draw: Any) -> Call:
    """Queries, keys and values with a batch, masked in one way or another; a query may see no key at all."""
    batch = draw(shapes.shapes(max_dims=2, max_side=2, min_side=0))
    length, keys, width, out = (draw(st.integers(1, 3)) for _ in range(4))
    kind = draw(st.sampled_from(["none", "causal", "bools", "numbers"]))
    mask = None
    if kind in ("bools", "numbers"):
        elements = st.booleans() if kind == "bools" else st.sampled_from([0.0, 0.5, -np.inf])
        mask = np.array(draw(st.lists(elements, min_size=length * keys, max_size=length * keys)))
        mask = mask if kind == "bools" else mask.astype(np.float32)  # which PyTorch adds to both
        mask = mask.reshape(length, keys)
    params = {"attn_mask": mask, "is_causal": kind == "causal", "scale": draw(st.sampled_from([None, 0.5]))}
    return Call(((*batch, length, width), (*batch, keys, width), (*batch, keys, out)), params)


@st.composite
def halved(draw: Any) -> Call:
    """One input and an axis of even size, which may be 0."""
    shape = list(draw(shapes.shapes(min_dims=1, min_side=0)))
    dim = draw(shapes.one_axis(len(shape)))
    shape[dim] = 2 * draw(shapes.side(0, 2))
    return Call((tuple(shape),), {"dim": dim})


def between_bounds(params: dict[str, Any]) -> tuple[Domain, ...]:
    """The kinks of a hard tanh are its bounds."""
    return (Domain(kinks=(params.get("min_val", -1.0), params.get("max_val", 1.0))),)


def below_the_threshold(params: dict[str, Any]) -> tuple[Domain, ...]:
    """At its threshold softplus jumps to the identity."""
    return (Domain(high=params.get("threshold", 20.0) / params.get("beta", 1.0)),)


def of_argmax(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``op`` of integers: where the largest stand along an axis."""
    others = {name: value for name, value in params.items() if name != "dim"}
    return op(*(x.argmax(params["dim"]) for x in xs), **others)


@st.composite
def largest(draw: Any) -> Call:
    """Lanes to take the place of the largest of, and how many classes there are, or -1 for as many as needed."""
    call = draw(along(lane=1))
    (shape,) = call.shapes
    needed = shape[call.params["dim"]] if shape else 1
    classes = draw(st.sampled_from([needed, needed + 1] + [-1] * (0 not in shape)))
    return Call(call.shapes, {**call.params, "num_classes": classes})


NO_METHOD = (replace(NOT_A_TENSOR[0], theirs=AttributeError),)
TARGETS = np.array([0, 1])
WRONG_CLASSES = (
    ErrorInput(((2, 3),), {"target": np.array([0, 3])}, IndexError, r"index 3 is out of range.*0 to 2"),
    ErrorInput(((2, 3),), {"target": np.array([0, -1])}, IndexError, r"index -1 is out of range"),
    ErrorInput(((2, 3),), {"target": np.array([0, 1, 2])}, ValueError, r"target must have shape \(2,\)"),
    ErrorInput(((2, 3),), {"target": np.array([0, 1], np.int32)}, RuntimeError, r"int64 or uint8, got int32"),
    ErrorInput(((2, 3),), {"target": TARGETS, "reduction": "max"}, ValueError, r"got 'max'"),
    ErrorInput(
        ((2, 3),), {"target": TARGETS, "weight": np.ones(2)}, RuntimeError, r"one element a class, 3, got \(2,\)"
    ),
)
UNLIKE = (WRONG_REDUCTION, ErrorInput(((2,), (3,)), {}, RuntimeError, r"do not broadcast"))
WRONG_WEIGHT = ErrorInput(((2,), (2,)), {"weight": np.ones(1)}, ValueError, r"must have the input's shape \(2,\)")
UNEQUAL = (
    WRONG_REDUCTION,
    ErrorInput(((2,), (1,)), {}, ValueError, r"must have one shape, got \(2,\) and \(1,\)"),
    ErrorInput(((2,), (2,)), {"weight": np.ones((2, 2))}, RuntimeError, r"weight must broadcast to .*\(2,\)"),
)
BENDS = st.sampled_from([17 / 64, 65 / 64])  # half a step from every number that is drawn: no stencil crosses one
NO_FLOATS = ErrorInput(
    ((2,),), {}, NotImplementedError, r"needs a floating dtype, got int64", dtype="int64", theirs=NotImplementedError
)
ACTIVATION = (*NOT_A_TENSOR, NO_FLOATS)
IN_PLACE = (*ACTIVATION, not_offered(((2,),), "inplace", True))

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
        distributed(),
        written=_classified,
        errors=(
            *WRONG_CLASSES,
            ErrorInput(
                ((2, 3),), {"target": TARGETS, "label_smoothing": 1.5}, RuntimeError, r"must be in \[0, 1\], got 1.5"
            ),
            ErrorInput(
                ((2, 3),), {"target": np.zeros((2, 3), np.int64)}, RuntimeError, r"holds probabilities: .*int64"
            ),
            ErrorInput(((2, 3), (2, 3)), {"ignore_index": 1}, RuntimeError, r"without ignore_index, got 1"),
            ErrorInput(((2, 3), (2, 3)), {"weight": np.ones(2)}, RuntimeError, r"one element a class, 3, got \(2,\)"),
        ),
    ),
    OpSpec("functional.nll_loss", classified(), affine=True, written=_classified, errors=WRONG_CLASSES),
    OpSpec(
        "functional.mse_loss",
        compared(weighed=True),
        domain=(Domain(), Domain(), POSITIVE),
        written=_weighed,
        errors=(*UNLIKE, WRONG_WEIGHT),
    ),
    OpSpec(
        "functional.l1_loss",
        compared(weighed=True),
        domain=(Domain(), Domain(), POSITIVE),
        apart=True,
        written=_weighed,
        errors=(*UNLIKE, WRONG_WEIGHT),
    ),
    OpSpec(
        "functional.smooth_l1_loss",
        compared(beta=BENDS),
        errors=(
            *UNLIKE,
            ErrorInput(((2,), (2,)), {"beta": -1}, RuntimeError, r"must not be negative or infinite, got -1"),
        ),
    ),
    OpSpec(
        "functional.huber_loss",
        compared(weighed=True, delta=BENDS),
        written=_weighed,
        errors=(
            *UNLIKE,
            WRONG_WEIGHT,
            ErrorInput(((2,), (2,)), {"delta": 0}, RuntimeError, r"delta must be positive, got 0"),
        ),
    ),
    OpSpec(
        "functional.kl_div",
        st.one_of(compared(log_target=st.just(True)), compared()),
        domain=(Domain(), POSITIVE),
        errors=(*UNLIKE, ErrorInput(((2,), (2,)), {}, RuntimeError, r"floating dtype, got int64", dtype="int64")),
    ),
    OpSpec(
        "functional.binary_cross_entropy",
        likenesses("weight"),
        domain=(Domain(low=1 / 4, high=3 / 4), Domain(low=0, high=1)),
        written=of_probabilities,
        errors=(
            *UNEQUAL,
            ErrorInput(
                ((2,), (2,)), {}, NotImplementedError, r"floating dtype", dtype="int64", theirs=NotImplementedError
            ),
        ),
    ),
    OpSpec(
        "functional.binary_cross_entropy_with_logits",
        likenesses("weight", "pos_weight"),
        written=_with_weights,
        errors=(
            *UNEQUAL,
            ErrorInput(((2,), (2,)), {"pos_weight": np.ones((2, 2))}, RuntimeError, r"pos_weight must broadcast to"),
        ),
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
        "functional.one_hot",
        largest(),
        unique=True,
        constant=True,
        written=of_argmax,
        errors=(
            ErrorInput(((3,),), {"dim": 0, "num_classes": 0}, RuntimeError, r"index 0 is out of range"),
            ErrorInput(((0, 3),), {"dim": 1, "num_classes": -1}, RuntimeError, r"of no elements it needs num_classes"),
            ErrorInput((), {"input": np.array([-1])}, RuntimeError, r"index -1 is out of range"),
        ),
    ),
    OpSpec(
        "functional.layer_norm",
        normalised(),
        domain=(Domain(spread=1 / 2), Domain(), Domain()),
        written=_with_lanes,
        errors=(
            ErrorInput(
                ((2, 3),), {"normalized_shape": (2,)}, RuntimeError, r"normalized_shape \(2,\) must be the last"
            ),
            ErrorInput(((2, 3),), {"normalized_shape": ()}, RuntimeError, r"normalized_shape"),
            ErrorInput(
                ((2, 3), (2,)),
                {"normalized_shape": (3,)},
                RuntimeError,
                r"the shape of weight and bias, got shapes \(2, 3\) and \(2,\)",
            ),
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
            ErrorInput(
                ((2, 3), (2,)),
                {"normalized_shape": (3,)},
                RuntimeError,
                r"the shape of weight and bias, got shapes \(2, 3\) and \(2,\)",
            ),
        ),
    ),
    OpSpec(
        "functional.batch_norm",
        by_channel(),
        domain=(Domain(spread=1 / 2), Domain(), Domain()),
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
        elementwise(1, p=st.sampled_from([0.0, 0.5, 0.75, 1.0]), training=st.booleans()),
        affine=True,
        seed=0,
        errors=(
            ErrorInput(((2,),), {"p": 1.5}, ValueError, r"p must be in \[0, 1\], got 1.5"),
            ErrorInput(((2,),), {"p": -0.5}, ValueError, r"p must be in"),
        ),
    ),
    OpSpec(
        "functional.leaky_relu",
        elementwise(1, negative_slope=st.sampled_from([0.25, 0.0, 2.0])),
        domain=AT_ZERO,
        errors=IN_PLACE,
    ),
    OpSpec("functional.elu", elementwise(1, alpha=st.sampled_from([1.0, 0.5])), domain=AT_ZERO, errors=IN_PLACE),
    OpSpec("functional.selu", elementwise(), domain=AT_ZERO, errors=IN_PLACE),
    OpSpec("functional.silu", elementwise(), errors=IN_PLACE),
    OpSpec("functional.mish", elementwise(), errors=IN_PLACE),
    OpSpec("functional.logsigmoid", elementwise(), errors=ACTIVATION),
    OpSpec(
        "functional.softplus",
        elementwise(1, beta=st.sampled_from([1.0, 0.5, 2.0]), threshold=st.sampled_from([20.0, 1.0])),
        domain=below_the_threshold,
        errors=ACTIVATION,
    ),
    OpSpec(
        "functional.hardtanh",
        elementwise(1, min_val=st.sampled_from([-1.0, -0.5]), max_val=st.sampled_from([1.0, 0.25])),
        domain=between_bounds,
        errors=(
            not_offered(((2,),), "inplace", True),
            ErrorInput(((2,),), {"min_val": 1, "max_val": 0.5}, ValueError, r"min_val 1 must not be above max_val 0.5"),
            ErrorInput(((2,),), {}, RuntimeError, r"not defined for bools", dtype="bool"),
            ErrorInput(((2,),), {}, RuntimeError, r"out of range for uint8", dtype="uint8"),
        ),
    ),
    OpSpec(
        "functional.hardswish",
        elementwise(),
        domain=Domain(kinks=(-3 / 16, 3 / 16)),
        written=lambda op, xs, params: op(
            *(x.mul(16) for x in xs), **params
        ),  # so that its kinks lie among small numbers
        errors=IN_PLACE,
    ),
    OpSpec(
        "functional.glu",
        halved(),
        errors=(
            ErrorInput(((2, 3),), {}, RuntimeError, r"dim -1 must have an even size, got shape \(2, 3\)"),
            ErrorInput(((),), {}, RuntimeError, r"even size"),
            ErrorInput(((2,),), {"dim": 1}, IndexError, r"dim 1 is out of range"),
        ),
    ),
    OpSpec(
        "functional.gelu",
        elementwise(1, approximate=st.sampled_from(["none", "tanh"])),
        errors=(ErrorInput(((2,),), {"approximate": "exp"}, RuntimeError, r"approximate must be .* got 'exp'"),),
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
        pools(dilation=st.integers(1, 2)),
        unique=True,
        errors=(
            ErrorInput(((1, 1, 2, 2),), {"kernel_size": 3}, RuntimeError, r"does not fit"),
            ErrorInput(((1, 1, 4, 4),), {"kernel_size": 2, "padding": 2}, RuntimeError, r"at most half"),
            ErrorInput(((4, 4),), {"kernel_size": 2}, RuntimeError, r"needs \(N, C, H, W\)"),
        ),
    ),
    OpSpec(
        "functional.avg_pool2d",
        pools(count_include_pad=st.booleans(), divisor_override=st.sampled_from([None, None, 4, -1])),
        affine=True,
        errors=(
            ErrorInput(((1, 1, 2, 2),), {"kernel_size": 3}, RuntimeError, r"does not fit"),
            ErrorInput(((1, 1, 4, 4),), {"kernel_size": 2, "padding": 2}, RuntimeError, r"at most half"),
            ErrorInput(((1, 1, 4, 4),), {"kernel_size": 2, "divisor_override": 0}, RuntimeError, r"must not be 0"),
            ErrorInput(((1, 1, 4, 4),), {"kernel_size": 2, "stride": 0}, RuntimeError, r"stride must be"),
        ),
    ),
    OpSpec(
        "functional.cosine_similarity",
        directions(),
        domain=Domain(spread=1 / 2),
        errors=(
            ErrorInput(((2,), (2,)), {}, IndexError, r"dim 1 is out of range"),
            ErrorInput(((2,), (3,)), {"dim": 0}, RuntimeError, r"do not broadcast"),
            ErrorInput(((2,), (2,)), {"dim": 0}, RuntimeError, r"floating dtype, got int64", dtype="int64"),
        ),
    ),
    OpSpec(
        "functional.group_norm",
        in_groups(),
        domain=(Domain(spread=1 / 2), Domain(), Domain()),
        written=_in_groups,
        errors=(
            ErrorInput(((2, 3),), {"num_groups": 2, "eps": 0.5}, RuntimeError, r"must divide the channels of \(2, 3\)"),
            ErrorInput(((2, 2), (3,)), {"num_groups": 1, "eps": 0.5}, RuntimeError, r"got \(2, 2\), \(3,\)"),
            ErrorInput(((1, 2),), {"num_groups": 2, "eps": 0.5}, ValueError, r"more than one value a group"),
        ),
    ),
    OpSpec(
        "functional.scaled_dot_product_attention",
        attentions(),
        ref=_attention_by_formula,
        errors=(ErrorInput(((2, 3), (2, 2), (2, 2)), {}, RuntimeError, r"do not fit"),),
    ),
]
