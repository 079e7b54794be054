"""Elementwise ops: forward and pullback of each, and PyTorch's names, kinks and promotion."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..autograd import Node, Primitive, broadcast_shape, like, value_of, wrap
from ..dtypes import Number, result_type
from .operands import cast, factor, floating, integer, must_float, one_dtype, operands, refuse_bool, tensor

__all__ = [
    "abs", "acos", "add", "asin", "atan", "atan2", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "ceil", "clamp", "cos", "cosh", "div", "eq", "erf", "exp", "expm1", "floor", "floor_divide", "fmod", "frac",
    "ge", "gt", "hypot", "isfinite", "isinf", "isnan", "le", "lerp", "log", "log1p", "log2", "log10", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "maximum", "minimum", "mul", "nan_to_num",
    "ne", "neg", "pow", "reciprocal", "relu", "remainder", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh",
    "sqrt", "square", "sub", "tan", "tanh", "trunc", "where",
]  # fmt: skip

# --- how an op is made ------------------------------------------------------------------------------------------------


def _unary(name: str, forward: Any, pullback: Any, doc: str, take: Callable[[str, Any], Any] = floating) -> Any:
    """The public op of one input, which ``take`` checks and promotes: by default integers and bools are float32."""
    primitive = Primitive(name, forward, pullback)

    def op(input: Any) -> Any:
        return primitive(take(name, input))

    return _named(name, op, doc, primitive)


def _binary(name: str, forward: Any, *pullbacks: Any, doc: str, take: Callable[..., Any] = operands) -> Any:
    """The public op of two inputs, which ``take`` checks and promotes."""
    primitive = Primitive(name, forward, *pullbacks, broadcasts=True)

    def op(input: Any, other: Any) -> Any:
        return primitive(*take(name, input, other))

    return _named(name, op, doc, primitive)


def _named(name: str, op: Any, doc: str, primitive: Primitive | None = None) -> Any:
    op.__name__ = op.__qualname__ = name
    op.__doc__, op.primitive = doc, primitive
    return op


def _number(op: str, x: Any, error: type[Exception] = RuntimeError) -> Any:
    x = tensor(op, x)
    refuse_bool(op, x, error=error)
    return x


_no_bool = partial(_number, error=NotImplementedError)
_fraction = partial(must_float, error=NotImplementedError)


def _numbers(op: str, a: Any, b: Any) -> Any:
    refuse_bool(op, a, b)
    return operands(op, a, b)


def _quotient(op: str, a: Any, b: Any) -> Any:
    return (x if isinstance(x, Number) else floating(op, x) for x in operands(op, a, b))


def _tensors(op: str, a: Any, b: Any) -> Any:
    return operands(op, tensor(op, a), tensor(op, b))


def _floats(op: str, a: Any, b: Any) -> Any:
    return (floating(op, x) for x in _tensors(op, a, b))


def _both_floating(op: str, a: Any, b: Any) -> Any:
    return (must_float(op, x, NotImplementedError) for x in _tensors(op, a, b))


def _bits(op: str, a: Any, b: Any) -> Any:
    a, b = operands(op, a, b)
    if result_type(a, b).kind == "f":
        raise NotImplementedError(f"{op}(): needs integers or bools, got {result_type(a, b)}")
    return a, b


def _number_or_bool(op: str, x: Any) -> Any:
    x = tensor(op, x)
    return cast(x, "int64") if x.dtype.kind == "b" else x


# --- arithmetic -------------------------------------------------------------------------------------------------------

add = _binary(
    "add", operator.add, lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: g,
    doc="``input + other``, broadcast and promoted.",
)  # fmt: skip
sub = _binary(
    "sub", operator.sub, lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: -g,
    doc="``input - other``, broadcast and promoted. RuntimeError for bools.", take=_numbers,
)  # fmt: skip
mul = _binary(
    "mul", operator.mul, lambda g, _y, _a, b: g * b, lambda g, _y, a, _b: g * a,
    doc="``input * other``, broadcast and promoted.",
)  # fmt: skip
_div = Primitive("div", operator.truediv, lambda g, _y, _a, b: g / b, lambda g, y, _a, b: -g * (y / b), broadcasts=True)
neg = _unary("neg", operator.neg, lambda g, _y, _x: -g, "``-input``. RuntimeError for bools.", take=_number)


def _no_zero(op: str, a: Any, b: Any) -> Any:
    a, b = operands(op, a, b)
    if result_type(a, b) == np.bool_:
        refuse_bool(op, a, b, error=NotImplementedError)
    if result_type(a, b).kind != "f" and not np.all(value_of(b)):
        raise RuntimeError(f"{op}(): an integer is divided by 0")
    return a, b


def _trunc_divide(a: Any, b: Any) -> Any:
    if result_type(a, b).kind == "f":
        return np.trunc(a / b)
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)) if result_type(a, b).kind == "i" else a // b


def _remainder(a: Any, b: Any) -> Any:
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


# By rounding mode: a jump is of no measure, so the slopes are 0.
_ROUNDED = {
    name: Primitive(
        f"{name}_divide", forward, lambda g, _y, _a, _b: zero(g), lambda g, _y, _a, _b: zero(g), broadcasts=True
    )
    for name, forward in (("trunc", _trunc_divide), ("floor", np.floor_divide))
}


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """``input / other``, broadcast; of integers in float32.

    With ``rounding_mode`` "trunc" (towards 0) or "floor" an integer of the operands' dtype, whose slopes are 0.
    RuntimeError where an integer is then divided by 0; for bools NotImplementedError.
    """
    if rounding_mode is None:
        return _div(*_quotient("div", input, other))
    if rounding_mode not in _ROUNDED:
        raise RuntimeError(f"div(): rounding_mode must be None, 'trunc' or 'floor', got {rounding_mode!r}")
    return _ROUNDED[rounding_mode](*_no_zero("div", input, other))


def floor_divide(input: Any, other: Any) -> Any:
    """``div`` with ``rounding_mode="floor"``."""
    return div(input, other, rounding_mode="floor")


fmod = _binary(
    "fmod", np.fmod, lambda g, _y, _a, _b: g, lambda g, _y, a, b: -g * div(a, b, rounding_mode="trunc"),
    doc="What is left of ``input`` after whole times ``other``, with the sign of ``input``; not for bools.",
    take=lambda op, a, b: _no_zero(op, tensor(op, a), b),
)  # fmt: skip
remainder = _binary(
    "remainder", _remainder, lambda g, _y, _a, _b: g, lambda g, _y, a, b: -g * div(a, b, rounding_mode="floor"),
    doc="What is left of ``input`` after whole times ``other``, with the sign of ``other``; not for bools.",
    take=_no_zero,
)  # fmt: skip


def _slope_in_base(g: Any, _y: Any, a: Any, b: Any) -> Any:
    # d/da a^b = b a^(b-1), and 0 where b = 0, though 1/a is infinite or NaN: there the power is taken of 1 instead, so
    # that no 0 * inf arises. Elsewhere the product with b = 0 gives the 0, and keeps the mixed derivative 1/a.
    if isinstance(b, Number):
        return g * (b * pow(a, b - 1)) if b else zero(g)
    usual = (b != 0) | (abs(1 / a) < np.inf)
    return g * (b * where(usual, a, 1) ** (b - 1))


def _slope_in_exponent(g: Any, y: Any, a: Any, b: Any) -> Any:
    # d/db a^b = a^b log a, and 0 where a = 0 and b >= 0: there a^b is flat in b (at b = 0 too, as in PyTorch).
    flat = (a == 0) & (b >= 0)
    return where(flat, 0, g * (y * log(where(flat, 1, a))))


def _power(a: Any, b: Any) -> Any:
    # Half powers are roots, as in PyTorch: NaN at -inf, and -inf at -0.0 for the power -1/2.
    if isinstance(b, float) and b in (0.5, -0.5):
        return np.sqrt(a) if b > 0 else 1 / np.sqrt(a)
    if (isinstance(b, Number) and np.abs(b) <= 2**24) or a.dtype.kind != "f":
        return a**b
    # np.power takes a single 0.5 for a root, but with a tensor it is a power, and rounds a large number.
    return np.float_power(a, b).astype(a.dtype)


_pow = Primitive("pow", _power, _slope_in_base, _slope_in_exponent, broadcasts=True)


def pow(input: Any, exponent: Any) -> Any:
    """``input ** exponent``, where one or both are tensors. RuntimeError for integers to a negative integer power."""
    a, b = operands("pow", input, exponent)
    if result_type(a, b) == np.bool_:
        refuse_bool("pow", a, b, error=NotImplementedError)
    if isinstance(a, Number):
        a = wrap(np.asarray(a, dtype=b.dtype))
    if a.dtype.kind != "f" and np.any(np.less(value_of(b), 0)):
        raise RuntimeError(f"pow(): integers to negative powers are no integers, got exponent {b}; cast to float")
    return _pow(a, b)


def zero(g: Any) -> Any:
    """Zeros of the shape and dtype of ``g``, NaN or not."""
    return where(True, 0, g)


# --- smooth functions -------------------------------------------------------------------------------------------------


_erf = np.vectorize(math.erf, otypes=[float])


def _logistic(x: Any) -> Any:
    # Of exp only the branch that cannot overflow, which keeps the tail exact: e^x where x is very negative.
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


exp = _unary("exp", np.exp, lambda g, y, _x: g * y, "e to the power of each element.")
expm1 = _unary("expm1", np.expm1, lambda g, y, _x: g * (y + 1), "exp(x) - 1, right near 0.")
log = _unary("log", np.log, lambda g, _y, x: g / x, "The natural logarithm of each element; NaN below 0.")
log1p = _unary("log1p", np.log1p, lambda g, _y, x: g / (x + 1), "log(1 + x), right near 0; NaN below -1.")
log2 = _unary("log2", np.log2, lambda g, _y, x: g / (x * math.log(2)), "The logarithm to base 2; NaN below 0.")
log10 = _unary("log10", np.log10, lambda g, _y, x: g / (x * math.log(10)), "The logarithm to base 10; NaN below 0.")
sqrt = _unary("sqrt", np.sqrt, lambda g, y, _x: g / (2 * y), "The square root of each element; NaN below 0.")
rsqrt = _unary("rsqrt", lambda x: 1 / np.sqrt(x), lambda g, y, _x: g * (y * y * y) / -2, "1 / sqrt(x); NaN below 0.")
reciprocal = _unary("reciprocal", lambda x: 1 / x, lambda g, y, _x: -g * (y * y), "1 / x of each element.")
square = _unary("square", np.square, lambda g, _y, x: g * (2 * x), "The square of each element.", take=_number_or_bool)
sin = _unary("sin", np.sin, lambda g, _y, x: g * cos(x), "The sine of each element, in radians.")
cos: Any = _unary("cos", np.cos, lambda g, _y, x: g * -sin(x), "The cosine of each element, in radians.")
tan = _unary("tan", np.tan, lambda g, y, _x: g * (y * y + 1), "The tangent of each element, in radians.")
asin = _unary("asin", np.arcsin, lambda g, _y, x: g * rsqrt(1 - x * x), "The inverse sine; NaN outside [-1, 1].")
acos = _unary("acos", np.arccos, lambda g, _y, x: g * -rsqrt(1 - x * x), "The inverse cosine; NaN outside [-1, 1].")
atan = _unary("atan", np.arctan, lambda g, _y, x: g / (x * x + 1), "The inverse tangent of each element.")
sinh = _unary("sinh", np.sinh, lambda g, _y, x: g * cosh(x), "The hyperbolic sine of each element.")
cosh: Any = _unary("cosh", np.cosh, lambda g, _y, x: g * sinh(x), "The hyperbolic cosine of each element.")
tanh = _unary("tanh", np.tanh, lambda g, y, _x: g * (1 - y * y), "The hyperbolic tangent of each element.")
sigmoid = _unary("sigmoid", _logistic, lambda g, y, _x: g * (1 - y) * y, "1 / (1 + exp(-x)), right in both tails.")
erf = _unary(
    "erf", lambda x: np.asarray(_erf(x), x.dtype), lambda g, _y, x: g * (2 / math.sqrt(math.pi) * exp(-x * x)),
    "The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x: the C library's, element by element.",
)  # fmt: skip


def _inverse_square(a: Any, b: Any) -> Any:
    r = 1 / (a * a + b * b)
    return where(r == np.inf, 0, r)  # PyTorch's convention at the origin


atan2 = _binary(
    "atan2", np.arctan2,
    lambda g, _y, a, b: g * b * _inverse_square(a, b),
    lambda g, _y, a, b: g * -a * _inverse_square(a, b),
    doc="The angle of the point (other, input) from the x-axis, in (-pi, pi]; its slopes at the origin are 0.",
    take=_floats,
)  # fmt: skip
hypot = _binary(
    "hypot", np.hypot, lambda g, y, a, _b: g * a / y, lambda g, y, _a, b: g * b / y,
    doc="sqrt(input^2 + other^2), without overflow between; its slopes at the origin are NaN.", take=_both_floating,
)  # fmt: skip
logaddexp = _binary(
    "logaddexp", np.logaddexp, lambda g, _y, a, b: g / (1 + exp(b - a)), lambda g, _y, a, b: g / (1 + exp(a - b)),
    doc="log(exp(input) + exp(other)), without overflow between.", take=_both_floating,
)  # fmt: skip

# --- kinks ------------------------------------------------------------------------------------------------------------

_HALVES = "The {} of two elements, NaN where either is; where they are equal each has half the slope."


def _where_not(beaten: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda g, _y, a, b: where(a == b, g / 2, where(beaten(a, b), 0, g))


_LESS, _MORE = _where_not(operator.lt), _where_not(operator.gt)
maximum = _binary("maximum", np.maximum, _LESS, _MORE, doc=_HALVES.format("larger"), take=_tensors)
minimum = _binary("minimum", np.minimum, _MORE, _LESS, doc=_HALVES.format("smaller"), take=_tensors)


def _signs(x: Any) -> Any:
    return x if x.dtype.kind == "b" else np.where(x == x, np.sign(x), 0)  # 0 of NaN, as in PyTorch


sign: Any = _unary(
    "sign", _signs, lambda g, _y, _x: zero(g),
    "-1, 0 or 1 by the sign of each element; its slope is 0 everywhere.", take=tensor,
)  # fmt: skip
abs = _unary(
    "abs", np.abs, lambda g, _y, x: g * sign(x),
    "The absolute value of each element; its slope at 0 is 0.", take=_no_bool,
)  # fmt: skip
relu = _unary(
    "relu", lambda x: np.maximum(x, 0), lambda g, y, _x: where(y <= 0, 0, g),
    "max(x, 0) of each element; its slope at 0 is 0. RuntimeError for bools.", take=_number,
)  # fmt: skip
_STEP = "{} of each element; its slope is 0 everywhere. Not for bools."
floor = _unary("floor", np.floor, lambda g, _y, _x: zero(g), _STEP.format("The integer below"), take=_no_bool)
ceil = _unary("ceil", np.ceil, lambda g, _y, _x: zero(g), _STEP.format("The integer above"), take=_no_bool)
trunc = _unary("trunc", np.trunc, lambda g, _y, _x: zero(g), _STEP.format("The integer towards 0"), take=_no_bool)
frac = _unary("frac", lambda x: x - np.trunc(x), lambda g, _y, _x: g, "x - trunc(x); its slope is 1.", take=_fraction)
_round = Primitive("round", np.round, lambda g, _y, _x, *, decimals: zero(g))
_nan_to_num = Primitive("nan_to_num", np.nan_to_num, lambda g, _y, x, *, nan, posinf, neginf: where(isfinite(x), g, 0))


def round(input: Any, *, decimals: int = 0) -> Any:
    """Each element rounded to ``decimals`` places, halves to even; its slope is 0. RuntimeError for bools."""
    return _round(_no_bool("round", input), decimals=integer("round", "decimals", decimals))


def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """NaN, inf and -inf replaced: by 0 and the dtype's largest and least unless given. Their slope is 0."""
    return _nan_to_num(tensor("nan_to_num", input), nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


def _between(a: Any, b: Any, w: Any) -> Any:
    # From the nearer end, as in PyTorch: exact at both.
    return np.where(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))


_lerp = Primitive(
    "lerp",
    _between,
    lambda g, _y, _a, _b, w: g * (1 - w),
    lambda g, _y, _a, _b, w: g * w,
    lambda g, _y, a, b, _w: g * (b - a),
    broadcasts=True,
)


def lerp(input: Any, end: Any, weight: Any) -> Any:
    """``input + weight * (end - input)``: three tensors that broadcast, or a number as ``weight``."""
    a, *others = (must_float("lerp", x) for x in (input, end, *([] if isinstance(weight, Number) else [weight])))
    one_dtype("lerp", a, *others)
    return _lerp(a, others[0], factor("lerp", "weight", weight, a.dtype) if isinstance(weight, Number) else weight)


_clamp = Primitive(
    "clamp",
    lambda x, low, high: np.clip(x, low, high),
    lambda g, _y, x, *, low, high: where(_within(x, low, high), g, 0),
)
_where = Primitive(
    "where",
    lambda a, b, condition: np.where(condition, a, b),
    lambda g, _y, _a, _b, *, condition: where(condition, g, 0),
    lambda g, _y, _a, _b, *, condition: where(condition, 0, g),
    broadcasts=True,
)


def _within(x: Any, low: Any, high: Any) -> Any:
    if low is None:
        return x <= high
    return x >= low if high is None else (x >= low) & (x <= high)


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """``input`` held between ``min`` and ``max``, two numbers or two tensors that broadcast with it; one may be None.

    ``max`` wins where it is below ``min``. The slope is 1 at the bounds themselves and 0 outside, where a bound that is
    a tensor has it. RuntimeError without either bound, TypeError for a number beside a tensor.
    """
    x = tensor("clamp", input)
    bounds = [bound for bound in (min, max) if bound is not None]
    if not bounds:
        raise RuntimeError("clamp(): at least one of min and max must be given")
    tensors = [isinstance(bound, (Node, np.ndarray)) for bound in bounds]
    if all(tensors):
        return _between_tensors(x, min, max)
    for bound in bounds:
        if not isinstance(bound, Number):
            told = " beside a number" if any(tensors) else ""
            raise TypeError(f"clamp(): a bound must be a number, got {type(bound).__name__}{told}")
        x, _ = operands("clamp", x, bound)
    refuse_bool("clamp", x, error=NotImplementedError)
    low, high = (b if b is None else factor("clamp", "a bound", b, x.dtype) for b in (min, max))
    return _clamp(x, low=low, high=high)


def _between_tensors(x: Any, low: Any, high: Any) -> Any:
    dtype = result_type(*(t for t in (x, low, high) if t is not None))
    if dtype == np.bool_ and low is not None and high is not None:
        refuse_bool("clamp", x, error=NotImplementedError)
    x, low, high = (t if t is None else cast(tensor("clamp", t), dtype) for t in (x, low, high))
    v, least, most = map(value_of, (x, low, high))
    broadcast_shape("clamp", *(bound.shape for bound in (v, least, most) if bound is not None))
    # A bound has the slope where it is the value, and where nothing can be compared, as at a NaN, there is none.
    y = np.clip(v, least, most)
    if high is not None:
        y = where(v > most if low is None else ((v > most) & (least == least)) | ((most < least) & (v == v)), high, y)
    if low is not None:
        y = where(v < least if high is None else (v < least) & (least <= most), low, y)
    return where(_within(v, least, most), x, y)


def where(condition: Any, input: Any, other: Any) -> Any:
    """``input`` where ``condition`` holds, ``other`` elsewhere; the three broadcast. One or both may be numbers.

    The gradient of the one not taken is 0, whatever its value: it is selected, never multiplied. RuntimeError for a
    condition that is not bool, and for a number that does not fit the dtype.
    """
    condition = condition._data.copy() if isinstance(condition, Node) else np.array(condition)
    if condition.dtype != bool:
        raise RuntimeError(f"where(): condition must have dtype bool, got {condition.dtype}")
    if type(input) in Number and type(other) in Number:  # Python's: a rule may have NumPy's
        input = wrap(factor("where", "value", input, result_type(input, other)))
    a, b = operands("where", input, other)
    a, b = (factor("where", "value", x, y.dtype) if isinstance(x, Number) else x for x, y in ((a, b), (b, a)))
    broadcast_shape("where", condition.shape, np.shape(a), np.shape(b))
    return _where(a, b, condition=condition)


# --- comparisons and masks --------------------------------------------------------------------------------------------


def _constant(name: str, function: Any, doc: str, take: Callable[..., Any] = operands) -> Any:
    """The public op of two inputs whose result is constant: nothing is recorded."""

    def op(input: Any, other: Any) -> Any:
        a, b = take(name, input, other)
        x, y = value_of(a), value_of(b)
        broadcast_shape(name, np.shape(x), np.shape(y))
        result = np.asarray(function(x, y))
        return wrap(result) if isinstance(a, Node) or isinstance(b, Node) else result

    return _named(name, op, doc)


eq = _constant("eq", np.equal, "A bool tensor: where two elements are equal.")
ne = _constant("ne", np.not_equal, "A bool tensor: where two elements differ.")
lt = _constant("lt", np.less, "A bool tensor: where the first is smaller.")
le = _constant("le", np.less_equal, "A bool tensor: where the first is not larger.")
gt = _constant("gt", np.greater, "A bool tensor: where the first is larger.")
ge = _constant("ge", np.greater_equal, "A bool tensor: where the first is not smaller.")
bitwise_and = _constant("bitwise_and", np.bitwise_and, "Logical and of bools, bitwise and of integers.", _bits)
bitwise_or = _constant("bitwise_or", np.bitwise_or, "Logical or of bools, bitwise or of integers.", _bits)
bitwise_xor = _constant("bitwise_xor", np.bitwise_xor, "Exclusive or, logical of bools, bitwise of integers.", _bits)


def _mask(name: str, function: Any, doc: str, take: Callable[[str, Any], Any] = tensor) -> Any:
    """The public op of one input whose result is constant."""

    def op(input: Any) -> Any:
        x = take(name, input)
        return like(x, np.asarray(function(value_of(x))))

    return _named(name, op, doc)


isnan = _mask("isnan", lambda x: np.not_equal(x, x), "A bool tensor: where an element is NaN.")
isinf = _mask("isinf", np.isinf, "A bool tensor: where an element is infinite.")
isfinite: Any = _mask("isfinite", np.isfinite, "A bool tensor: where an element is a number.")
bitwise_not = _mask(
    "bitwise_not", np.invert, "Not, logical of bools, bitwise of integers.", lambda op, x: _bits(op, x, x)[0]
)
logical_not = _mask("logical_not", np.logical_not, "A bool tensor: where an element is 0.")
logical_and = _constant("logical_and", np.logical_and, "A bool tensor: where both elements are not 0.", _tensors)
logical_or = _constant("logical_or", np.logical_or, "A bool tensor: where one element or both are not 0.", _tensors)
logical_xor = _constant("logical_xor", np.logical_xor, "A bool tensor: where exactly one element is not 0.", _tensors)
