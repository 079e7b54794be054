"""Elementwise ops: forward and pullback of each, and PyTorch's names, kinks and promotion."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import Node, Primitive, wrap
from ..dtypes import result_type
from .operands import Number, broadcast_shape, floating, operands, refuse, refuse_bool, tensor

# --- arithmetic -------------------------------------------------------------------------------------------------------

_add = Primitive("add", operator.add, lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: g, broadcasts=True)
_sub = Primitive("sub", operator.sub, lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: -g, broadcasts=True)
_mul = Primitive("mul", operator.mul, lambda g, _y, _a, b: g * b, lambda g, _y, a, _b: g * a, broadcasts=True)
_div = Primitive("div", operator.truediv, lambda g, _y, _a, b: g / b, lambda g, y, _a, b: -g * (y / b), broadcasts=True)
_neg = Primitive("neg", operator.neg, lambda g, _y, _x: -g)


def add(input: Any, other: Any, **options: Any) -> Any:
    """``input + other``, broadcast and promoted."""
    if options:
        refuse("add", options, "alpha out")
    return _add(*operands("add", input, other))


def sub(input: Any, other: Any, **options: Any) -> Any:
    """``input - other``, broadcast and promoted. RuntimeError where one is of bools."""
    if options:
        refuse("sub", options, "alpha out")
    refuse_bool("sub", input, other)
    return _sub(*operands("sub", input, other))


def mul(input: Any, other: Any, **options: Any) -> Any:
    """``input * other``, broadcast and promoted."""
    if options:
        refuse("mul", options, "out")
    return _mul(*operands("mul", input, other))


def div(input: Any, other: Any, **options: Any) -> Any:
    """``input / other``, broadcast and promoted; integers are divided in float32."""
    if options:
        refuse("div", options, "rounding_mode out")
    a, b = operands("div", input, other)
    return _div(*(x if isinstance(x, Number) else floating("div", x) for x in (a, b)))


def neg(input: Any) -> Any:
    """``-input``. RuntimeError for bools."""
    x = tensor("neg", input)
    refuse_bool("neg", x)
    return _neg(x)


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
    return a**b if isinstance(b, Number) else np.power(a, b)


_pow = Primitive("pow", _power, _slope_in_base, _slope_in_exponent, broadcasts=True)


def pow(input: Any, exponent: Any) -> Any:
    """``input ** exponent``, where one or both are tensors. RuntimeError for integers to a negative integer power."""
    a, b = operands("pow", input, exponent)
    if result_type(a, b) == np.bool_:
        refuse_bool("pow", a, b, error=NotImplementedError)
    if isinstance(a, Number):
        a = wrap(np.asarray(a, dtype=b.dtype))
    if a.dtype.kind != "f" and np.any(np.less(b._data if isinstance(b, Node) else b, 0)):
        raise RuntimeError(
            f"pow(): integers to negative integer powers are not allowed, got exponent {b}; cast to float"
        )
    return _pow(a, b)


def zero(g: Any) -> Any:
    """Zeros of the shape and dtype of ``g``, NaN or not."""
    return where(True, 0, g)


# --- smooth functions -------------------------------------------------------------------------------------------------


def _unary(name: str, forward: Callable[[Any], Any], pullback: Callable[..., Any], doc: str) -> Callable[[Any], Any]:
    """The public op of one floating input: integers and bools are taken as float32."""
    primitive = Primitive(name, forward, pullback)

    def op(input: Any) -> Any:
        return primitive(floating(name, input))

    op.__name__ = op.__qualname__ = name
    op.__doc__ = doc
    return op


def _logistic(x: Any) -> Any:
    # Of exp only the branch that cannot overflow, which keeps the tail exact: e^x where x is very negative.
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


exp = _unary("exp", np.exp, lambda g, y, _x: g * y, "e to the power of each element.")
log = _unary("log", np.log, lambda g, _y, x: g / x, "The natural logarithm of each element; NaN below 0.")
sqrt = _unary("sqrt", np.sqrt, lambda g, y, _x: g / (2 * y), "The square root of each element; NaN below 0.")
tanh = _unary("tanh", np.tanh, lambda g, y, _x: g * (1 - y * y), "The hyperbolic tangent of each element.")
sigmoid = _unary("sigmoid", _logistic, lambda g, y, _x: g * (1 - y) * y, "1 / (1 + exp(-x)), right in both tails.")

# --- kinks ------------------------------------------------------------------------------------------------------------

_abs = Primitive("abs", np.abs, lambda g, _y, x: g * sign(x))
_relu = Primitive("relu", lambda x: np.maximum(x, 0), lambda g, y, _x: where(y <= 0, 0, g))
_maximum = Primitive(
    "maximum",
    np.maximum,
    lambda g, _y, a, b: where(a == b, g / 2, where(a < b, 0, g)),
    lambda g, _y, a, b: where(a == b, g / 2, where(b < a, 0, g)),
    broadcasts=True,
)
_minimum = Primitive(
    "minimum",
    np.minimum,
    lambda g, _y, a, b: where(a == b, g / 2, where(a > b, 0, g)),
    lambda g, _y, a, b: where(a == b, g / 2, where(b > a, 0, g)),
    broadcasts=True,
)
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
_sign = Primitive("sign", lambda x: np.where(x == x, np.sign(x), 0), lambda g, _y, _x: zero(g))


def abs(input: Any) -> Any:
    """The absolute value of each element; its slope at 0 is 0."""
    x = tensor("abs", input)
    refuse_bool("abs", x, error=NotImplementedError)
    return _abs(x)


def sign(input: Any) -> Any:
    """-1, 0 or 1 by the sign of each element; its slope is 0 everywhere."""
    return _sign(tensor("sign", input))


def relu(input: Any) -> Any:
    """max(x, 0) of each element; its slope at 0 is 0. RuntimeError for bools."""
    x = tensor("relu", input)
    refuse_bool("relu", x)
    return _relu(x)


def maximum(input: Any, other: Any, **options: Any) -> Any:
    """The larger of two elements, NaN where either is; where they are equal each has half the slope."""
    if options:
        refuse("maximum", options, "out")
    return _maximum(*operands("maximum", tensor("maximum", input), tensor("maximum", other)))


def minimum(input: Any, other: Any, **options: Any) -> Any:
    """The smaller of two elements, NaN where either is; where they are equal each has half the slope."""
    if options:
        refuse("minimum", options, "out")
    return _minimum(*operands("minimum", tensor("minimum", input), tensor("minimum", other)))


def clamp(input: Any, min: float | None = None, max: float | None = None, **options: Any) -> Any:
    """``input`` held between the numbers ``min`` and ``max``; its slope is 1 at the bounds themselves, 0 outside.

    ``max`` wins where it is below ``min``. RuntimeError without either bound. Tensor bounds are not offered.
    """
    refuse("clamp", options, "out")
    x = tensor("clamp", input)
    if min is None and max is None:
        raise RuntimeError("clamp(): at least one of min and max must be given")
    bounds = [bound for bound in (min, max) if bound is not None]
    for bound in bounds:
        if isinstance(bound, (Node, np.ndarray)):
            raise NotImplementedError("clamp(): a tensor as a bound is not offered here; give a number")
        if not isinstance(bound, Number):
            raise TypeError(f"clamp(): a bound must be a number, got {type(bound).__name__}")
    return _clamp(operands("clamp", x, *bounds)[0], low=min, high=max)


def _within(x: Any, low: float | None, high: float | None) -> Any:
    if low is None:
        return x <= high
    return x >= low if high is None else (x >= low) & (x <= high)


def where(condition: Any, input: Any, other: Any) -> Any:
    """``input`` where ``condition`` holds, ``other`` elsewhere; the three broadcast. RuntimeError if it is not bool.

    The gradient of the one not taken is 0, whatever its value: it is selected, never multiplied.
    """
    condition = condition._data.copy() if isinstance(condition, Node) else np.array(condition)
    if condition.dtype != bool:
        raise RuntimeError(f"where(): condition must have dtype bool, got {condition.dtype}")
    a, b = operands("where", input, other)
    broadcast_shape("where", condition.shape, np.shape(a), np.shape(b))
    return _where(a, b, condition=condition)


# --- comparisons and masks --------------------------------------------------------------------------------------------


def _constant(name: str, function: Callable[[Any, Any], Any], doc: str) -> Callable[[Any, Any], Any]:
    """The public op of two inputs whose result is constant: nothing is recorded."""

    def op(input: Any, other: Any) -> Any:
        a, b = operands(name, input, other)
        try:
            result = np.asarray(function(*(x._data if isinstance(x, Node) else x for x in (a, b))))
        except TypeError:
            raise NotImplementedError(f"{name}(): needs integers or bools, got {a.dtype}") from None
        return wrap(result) if isinstance(a, Node) or isinstance(b, Node) else result

    op.__name__ = op.__qualname__ = name
    op.__doc__ = doc
    return op


eq = _constant("eq", np.equal, "A bool tensor: where two elements are equal.")
ne = _constant("ne", np.not_equal, "A bool tensor: where two elements differ.")
lt = _constant("lt", np.less, "A bool tensor: where the first is smaller.")
le = _constant("le", np.less_equal, "A bool tensor: where the first is not larger.")
gt = _constant("gt", np.greater, "A bool tensor: where the first is larger.")
ge = _constant("ge", np.greater_equal, "A bool tensor: where the first is not smaller.")
bitwise_and = _constant("bitwise_and", np.bitwise_and, "Logical and of bools, bitwise and of integers.")
bitwise_or = _constant("bitwise_or", np.bitwise_or, "Logical or of bools, bitwise or of integers.")
