"""The scalar engine as an oracle: elementwise ops, written for one element in the ops of ``Value``."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from smolgrad.scalar import Value

if TYPE_CHECKING:
    from ..case import Case, Votes


def _abs(x: Any) -> Any:
    return x.relu() + (-x).relu()


def _maximum(a: Any, b: Any) -> Any:
    return (a + b + _abs(a - b)) / 2


def _minimum(a: Any, b: Any) -> Any:
    return (a + b - _abs(a - b)) / 2


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + (-x).exp())


def _clamp(x: Any, min: float | None, max: float | None) -> Any:
    x = x if min is None else _maximum(x, min)
    return x if max is None else _minimum(x, max)


def _of_math(function: Callable[..., float], *slopes: Callable[..., float]) -> Callable[..., Value]:
    """A function of the math module as an op of ``Value``, with its slope in each operand."""

    def op(*xs: Value) -> Value:
        at = [x.data for x in xs]
        local = [slope(*at) for slope in slopes]
        return Value(function(*at), xs, lambda g: tuple(g * slope for slope in local), function.__name__)

    return op


def _between(x: Any, *bounds: Any, which: str) -> Any:
    x = x if which == "max" else _maximum(x, bounds[0])
    return x if which == "min" else _minimum(x, bounds[-1])


# Each op of one element an input, with its parameters by name.
EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda x: -x,
    "pow": lambda a, b: (a.log() * b).exp(),
    "Tensor.__pow__": lambda x, exponent: x**exponent,
    "Tensor.__rpow__": lambda x, base: (x * math.log(base)).exp(),
    "exp": Value.exp,
    "expm1": lambda x: x.exp() - 1,
    "log": Value.log,
    "log1p": lambda x: (x + 1).log(),
    "log2": lambda x: x.log() / math.log(2),
    "log10": lambda x: x.log() / math.log(10),
    "logaddexp": lambda a, b: (a.exp() + b.exp()).log(),
    "sqrt": lambda x: x**0.5,
    "rsqrt": lambda x: x**-0.5,
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "sinh": lambda x: (x.exp() - (-x).exp()) / 2,
    "cosh": lambda x: (x.exp() + (-x).exp()) / 2,
    "sin": _of_math(math.sin, math.cos),
    "cos": _of_math(math.cos, lambda x: -math.sin(x)),
    "tan": _of_math(math.tan, lambda x: 1 / math.cos(x) ** 2),
    "asin": _of_math(math.asin, lambda x: 1 / math.sqrt(1 - x * x)),
    "acos": _of_math(math.acos, lambda x: -1 / math.sqrt(1 - x * x)),
    "atan": _of_math(math.atan, lambda x: 1 / (1 + x * x)),
    "atan2": _of_math(math.atan2, lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b)),
    "hypot": _of_math(math.hypot, lambda a, b: a / math.hypot(a, b), lambda a, b: b / math.hypot(a, b)),
    "fmod": lambda a, b: a - math.trunc(a.data / b.data) * b,
    "remainder": lambda a, b: a - math.floor(a.data / b.data) * b,
    "Tensor.clamp": _between,
    "erf": _of_math(math.erf, lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x)),
    "tanh": Value.tanh,
    "functional.tanh": Value.tanh,
    "sigmoid": _sigmoid,
    "functional.sigmoid": _sigmoid,
    "abs": _abs,
    "relu": Value.relu,
    "functional.relu": Value.relu,
    "maximum": _maximum,
    "minimum": _minimum,
    "clamp": _clamp,
    "where": lambda a, b, condition: a if condition else b,
    "clone": lambda x: x,
    "frac": lambda x: x - math.trunc(x.data),
    "lerp": lambda a, b, w: a + w * (b - a),
    "masked_fill": lambda x, mask, value: Value(value) if mask else x,
    "nan_to_num": lambda x, nan, posinf, neginf: x,
}


def answers(case: Case) -> list[np.ndarray]:
    """The value of the case's one output, and after it each input's gradient. KeyError without an expression.

    Broadcasting repeats a Value, so that its uses add up by themselves.
    """
    expression, names, count = EXPRESSIONS[case.spec.name], list(case.params), len(case.arrays)

    def element(*args: Any) -> Any:
        return expression(*args[:count], **dict(zip(names, args[count:], strict=True)))

    inputs = [_each(Value, x) for x in case.arrays]
    output = _each(element, *inputs, *(np.array(x, dtype=object) for x in case.params.values()))
    value = _each(attrgetter("data"), output).astype(float)
    (cotangent,) = case.cotangents
    sum((w * y for w, y in zip(cotangent.flat, output.flat, strict=True)), Value(0.0)).backward()
    return [value, *(_each(attrgetter("grad"), x).astype(float) for x in inputs)]


def _each(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """What ``function`` makes of the elements of ``arrays``, which broadcast."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def votes(case: Case, place: int) -> Votes:
    """One of the answers as a vote, where the op has an expression."""
    return {"scalar engine": lambda: answers(case)[place]} if case.spec.name in EXPRESSIONS else {}
