"""Entries of the elementwise ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Call, Domain, ErrorInput, OpSpec, by_position
from ..generate import indices, shapes
from .common import DO_NOT_BROADCAST, elementwise, not_offered

POSITIVE = Domain(low=1 / 4)
BASE = Domain(low=1)  # of a power whose exponent goes down to -4: nearer to 0 its derivatives are too steep
NOT_ZERO = Domain(poles=(0.0,))
AT_ZERO = Domain(kinks=(0.0,))

NOT_A_TENSOR = (ErrorInput((), {"input": [1.0, 2.0]}, TypeError, r"needs a Tensor, got list"),)

PAIR = DO_NOT_BROADCAST
ARITHMETIC = (*PAIR, ErrorInput(((2,),), {"other": "3"}, TypeError, r"needs a Tensor, got str"))

BITWISE = (
    *(replace(wrong, dtype="int64") for wrong in ARITHMETIC),
    ErrorInput(
        ((2,), (2,)), {}, NotImplementedError, r"needs integers or bools, got float64", theirs=NotImplementedError
    ),
)


NO_BOOLS = (
    *NOT_A_TENSOR,
    ErrorInput(((2,),), {}, NotImplementedError, r"not defined for bools", dtype="bool", theirs=NotImplementedError),
)
BOTH_TENSORS = (*PAIR, ErrorInput(((2,),), {"other": 2.0}, TypeError, r"needs a Tensor, got float"))
NO_INTEGERS = ErrorInput(
    ((2,), (2,)),
    {},
    NotImplementedError,
    r"needs a floating dtype, got int64",
    dtype="int64",
    theirs=NotImplementedError,
)
BETWEEN_JUMPS = {
    "floor": Domain(low=-2, high=-1),
    "ceil": Domain(low=1, high=2),
    "trunc": Domain(low=-2, high=-1),
}


NONE_OR_2 = st.sampled_from([None, 2.0])
# Between whole quotients: the first by the second is from -3 to -2.
QUOTIENTS = (Domain(low=-6, high=-9 / 2), Domain(low=2, high=9 / 4))
DIVIDED_BY_ZERO = ErrorInput(
    ((2,),), {"other": np.array([1, 0])}, RuntimeError, r"an integer is divided by 0", dtype="int64"
)
DIVIDED_BY_ZERO_IN_MODE = replace(DIVIDED_BY_ZERO, params={**DIVIDED_BY_ZERO.params, "rounding_mode": "trunc"})


def between_halves(params: dict[str, Any]) -> tuple[Domain, ...]:
    """Rounding is flat between two halves: of a one, of a tenth, of ten."""
    low, high = {0: (3 / 2, 5 / 2), 1: (49 / 32, 53 / 32), -1: (-5, 5)}[params.get("decimals", 0)]
    return (Domain(low=low, high=high),)


def of_logarithms(op: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``op(log(x))``: of NaN and infinities too."""
    return op(*(x.log() for x in inputs), **params)


@st.composite
def filled(draw: Any) -> Call:
    """A mask that broadcasts with the input, and a number."""
    mask, shape = draw(shapes.broadcastable(2))
    return Call((shape,), {"mask": draw(indices.masks(mask)), "value": draw(st.sampled_from([0.5, -2, 0]))})


@st.composite
def selections(draw: Any) -> Call:
    """A condition, an input and another that broadcast together."""
    condition, a, b = draw(shapes.broadcastable(3))
    return Call((a, b), {"condition": draw(indices.masks(condition))})


@st.composite
def bounds(draw: Any) -> Call:
    """A lower bound, an upper one, or both, the lower sometimes the higher.

    They are never equal: there the slope is 1 by PyTorch's convention, and the function flat.
    """
    shape = draw(shapes.shapes(min_side=0))
    low = draw(st.integers(-8, 8)) / 16
    high = low + draw(st.sampled_from([1, 2, 4, 8, 16, -1, -2, -8])) / 16
    which = draw(st.integers(0, 2))
    return Call((shape,), {"min": low if which != 1 else None, "max": high if which != 0 else None})


@st.composite
def tensor_bounds(draw: Any) -> Call:
    """An input and one bound or both, which broadcast."""
    which = draw(st.sampled_from(["min", "max", "both"]))
    return Call(draw(shapes.broadcastable(2 + (which == "both"))), {"which": which})


def held_between(op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``op`` of an input and the bounds that are tensors."""
    names = ("min", "max") if params["which"] == "both" else (params["which"],)
    return op(xs[0], **dict(zip(names, xs[1:], strict=True)))


def at_bounds(params: dict[str, Any]) -> tuple[Domain, ...]:
    """A clamp's kinks are its bounds; one that is below the other is none, as the function is flat there."""
    low, high = params.get("min"), params.get("max")
    if low is not None and high is not None and low > high:
        return (Domain(),)
    return (Domain(kinks=tuple(b for b in (low, high) if b is not None)),)


SPECS = [
    OpSpec("add", elementwise(2), affine=True, errors=(*ARITHMETIC, not_offered(((2,), (2,)), "alpha", 2))),
    OpSpec("sub", elementwise(2), affine=True, errors=(*ARITHMETIC, not_offered(((2,), (2,)), "alpha", 2))),
    OpSpec("mul", elementwise(2), affine=True, errors=ARITHMETIC),
    OpSpec(
        "div",
        elementwise(2),
        domain=(Domain(), NOT_ZERO),
        errors=(
            *ARITHMETIC,
            ErrorInput(((2,), (2,)), {"rounding_mode": "ceil"}, RuntimeError, r"must be None, 'trunc' or 'floor'"),
        ),
    ),
    OpSpec(
        "Tensor.div",
        elementwise(2, rounding_mode=st.sampled_from(["trunc", "floor"])),
        domain=QUOTIENTS,
        constant=True,
        errors=(DIVIDED_BY_ZERO_IN_MODE, *PAIR),
    ),
    OpSpec("floor_divide", elementwise(2), domain=QUOTIENTS, constant=True, errors=(DIVIDED_BY_ZERO, *ARITHMETIC)),
    OpSpec("fmod", elementwise(2), domain=QUOTIENTS, errors=(DIVIDED_BY_ZERO, *ARITHMETIC)),
    OpSpec("remainder", elementwise(2), domain=QUOTIENTS, errors=(DIVIDED_BY_ZERO, *ARITHMETIC)),
    OpSpec("neg", elementwise(), affine=True, errors=NOT_A_TENSOR),
    OpSpec("pow", elementwise(2), domain=(BASE, Domain()), errors=PAIR),
    OpSpec(
        "Tensor.__pow__",
        elementwise(1, exponent=st.sampled_from([2, 3, 0, 1, -1, 2.0, 0.5, -0.5, 0.0])),
        domain=POSITIVE,
        written=lambda op, xs, params: xs[0] ** params["exponent"],
        errors=(ErrorInput(((2,),), {"exponent": "2"}, TypeError, r"for \*\* or pow\(\): 'Tensor' and 'str'"),),
    ),
    OpSpec(
        "Tensor.__rpow__",
        elementwise(1, base=st.sampled_from([2, 0.5, 3.0, 1])),
        written=lambda op, xs, params: params["base"] ** xs[0],
        errors=(ErrorInput(((2,),), {"base": "2"}, TypeError, r"for \*\* or pow\(\): 'str' and 'Tensor'"),),
    ),
    OpSpec("exp", elementwise(), errors=NOT_A_TENSOR),
    OpSpec("expm1", elementwise(), errors=NOT_A_TENSOR),
    *(
        OpSpec(name, elementwise(), domain=POSITIVE, errors=NOT_A_TENSOR)
        for name in ("log", "log2", "log10", "sqrt", "rsqrt")
    ),
    OpSpec("log1p", elementwise(), domain=Domain(low=-3 / 4), errors=NOT_A_TENSOR),
    OpSpec("reciprocal", elementwise(), domain=NOT_ZERO, errors=NOT_A_TENSOR),
    *(
        OpSpec(name, elementwise(), errors=NOT_A_TENSOR)
        for name in ("square", "sin", "cos", "atan", "sinh", "cosh", "tanh", "sigmoid", "erf")
    ),
    OpSpec("tan", elementwise(), domain=Domain(low=-5 / 4, high=5 / 4), errors=NOT_A_TENSOR),
    OpSpec("asin", elementwise(), domain=Domain(low=-3 / 4, high=3 / 4), errors=NOT_A_TENSOR),
    OpSpec("acos", elementwise(), domain=Domain(low=-3 / 4, high=3 / 4), errors=NOT_A_TENSOR),
    OpSpec("atan2", elementwise(2), domain=(POSITIVE, Domain()), errors=BOTH_TENSORS),
    OpSpec("hypot", elementwise(2), domain=(POSITIVE, Domain()), errors=(*BOTH_TENSORS, NO_INTEGERS)),
    OpSpec("logaddexp", elementwise(2), errors=(*BOTH_TENSORS, NO_INTEGERS)),
    *(
        OpSpec(name, elementwise(), domain=domain, constant=True, errors=NO_BOOLS)
        for name, domain in BETWEEN_JUMPS.items()
    ),
    OpSpec(
        "round",
        elementwise(1, decimals=st.sampled_from([0, 1, -1])),
        domain=between_halves,
        constant=True,
        errors=(*NO_BOOLS, ErrorInput(((2,),), {"decimals": 0.5}, TypeError, r"decimals must be an integer, got 0.5")),
    ),
    OpSpec("frac", elementwise(), domain=Domain(low=1, high=2), errors=NOT_A_TENSOR),
    OpSpec(
        "lerp",
        elementwise(3),
        affine=True,
        written=by_position,
        errors=(ErrorInput(((2,), (2,)), {"weight": np.ones(2, "float32")}, RuntimeError, r"must have one dtype"),),
    ),
    OpSpec(
        "masked_fill",
        filled(),
        affine=True,
        errors=(
            ErrorInput(
                ((2,),), {"mask": np.array([1.0, 0.0]), "value": 1}, RuntimeError, r"must have dtype bool, got float64"
            ),
            ErrorInput(
                ((2,),), {"mask": np.ones(2, bool), "value": 300}, RuntimeError, r"300 is out of range", dtype="int8"
            ),
        ),
    ),
    OpSpec(
        "nan_to_num",
        elementwise(1, nan=st.sampled_from([None, 0.5]), posinf=NONE_OR_2, neginf=NONE_OR_2),
        affine=True,
        errors=NOT_A_TENSOR,
    ),
    OpSpec("abs", elementwise(), domain=AT_ZERO, errors=NOT_A_TENSOR),
    OpSpec("sign", elementwise(), domain=AT_ZERO, constant=True, errors=NOT_A_TENSOR),
    OpSpec("relu", elementwise(), domain=AT_ZERO, errors=NOT_A_TENSOR),
    OpSpec("maximum", elementwise(2), apart=True, errors=PAIR),
    OpSpec("minimum", elementwise(2), apart=True, errors=PAIR),
    OpSpec(
        "clamp",
        bounds(),
        domain=at_bounds,
        errors=(
            ErrorInput(((2,),), {}, RuntimeError, r"at least one of min and max"),
            ErrorInput(((2,),), {"min": "0"}, TypeError, r"a bound must be a number, got str"),
            ErrorInput(((2,),), {"min": np.ones(2), "max": 1.0}, TypeError, r"got ndarray beside a number"),
        ),
    ),
    OpSpec(
        "Tensor.clamp",
        tensor_bounds(),
        apart=True,
        written=held_between,
        errors=(ErrorInput(((2,), (3,)), {"which": "min"}, RuntimeError, r"do not broadcast"),),
    ),
    OpSpec(
        "where",
        selections(),
        affine=True,
        written=lambda op, xs, params: op(params["condition"], *xs),
        errors=(
            ErrorInput(((2,), (3,)), {"condition": np.array(True)}, RuntimeError, r"do not broadcast"),
            ErrorInput(
                ((2,), (2,)), {"condition": np.array([1.0, 0.0])}, RuntimeError, r"must have dtype bool, got float64"
            ),
        ),
    ),
    OpSpec("clone", elementwise(), affine=True, errors=NOT_A_TENSOR),
    *(OpSpec(name, elementwise(2), constant=True, errors=ARITHMETIC) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(
        OpSpec(name, elementwise(2), constant=True, integer=True, errors=BITWISE)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ),
    OpSpec(
        "bitwise_not",
        elementwise(),
        constant=True,
        integer=True,
        errors=(
            *NOT_A_TENSOR,
            ErrorInput(((2,),), {}, NotImplementedError, "needs integers or bools", theirs=NotImplementedError),
        ),
    ),
    *(
        OpSpec(name, elementwise(2), constant=True, errors=BOTH_TENSORS)
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    *(OpSpec(name, elementwise(), constant=True, errors=NOT_A_TENSOR) for name in ("isfinite", "logical_not")),
    *(
        OpSpec(name, elementwise(), constant=True, written=of_logarithms, errors=NOT_A_TENSOR)
        for name in ("isinf", "isnan")
    ),
]
