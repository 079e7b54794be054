"""mpmath as an oracle of single numbers: by how many units in the last place an op is off, on its whole range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np

from .. import engines
from ..engines import Engine
from ..entry import plainly
from ..ops import BY_NAME

# Enough digits for 1 + x of the smallest x, in float64, not to be 1.
PRECISION = 1200  # bits

# By the name of the op, each of as many numbers as the op has inputs.
EXACT: dict[str, Callable[..., Any]] = {
    "exp": lambda x: mpmath.exp(x),
    "expm1": lambda x: mpmath.expm1(x),
    "log": lambda x: mpmath.log(x),
    "log1p": lambda x: mpmath.log1p(x),
    "log2": lambda x: mpmath.log(x, 2),
    "log10": lambda x: mpmath.log10(x),
    "logaddexp": lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)),
    "sqrt": lambda x: mpmath.sqrt(x),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sinh": lambda x: mpmath.sinh(x),
    "cosh": lambda x: mpmath.cosh(x),
    "tanh": lambda x: mpmath.tanh(x),
    "sin": lambda x: mpmath.sin(x),
    "cos": lambda x: mpmath.cos(x),
    "tan": lambda x: mpmath.tan(x),
    "asin": lambda x: mpmath.asin(x),
    "acos": lambda x: mpmath.acos(x),
    "atan": lambda x: mpmath.atan(x),
    "hypot": lambda a, b: mpmath.hypot(a, b),
    "erf": lambda x: mpmath.erf(x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "functional.softplus": lambda x: x if x > 20 else mpmath.log1p(mpmath.exp(x)),
    "functional.logsigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "functional.elu": lambda x: mpmath.expm1(x) if x < 0 else x,
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
}


# These add up terms as large as their inputs, which may cancel: the unit is that of the largest of result and inputs.
SUMS = {"logaddexp"}

FEW = 3  # units in the last place that an op may be off by


@dataclass(frozen=True)
class Worst:
    """Where an op is off the most."""

    ulps: float
    at: tuple[float, ...]
    got: float
    want: float


def _numbers(dtype: str, count: int) -> np.ndarray:
    """Numbers of every size and either sign, 0 and both ends of the range; half of them between 2⁻⁸ and 2⁸."""
    limits, rng = np.finfo(dtype), np.random.default_rng(0)
    ranges = [(limits.minexp - limits.nmant, limits.maxexp - 0.01), (-8, 8)]
    sizes = np.concatenate([rng.uniform(low, high, count // 2) for low, high in ranges])
    drawn = np.exp2(sizes) * rng.choice([-1.0, 1.0], len(sizes))
    ends = [0.0, limits.smallest_subnormal, limits.tiny, limits.max, 1.0]
    return np.concatenate([drawn.astype(dtype), np.array([*ends, *(-x for x in ends)], dtype)])


def worst(engine: Engine, name: str, dtype: str, count: int = 200) -> Worst:
    """Where the op ``name`` is off the most among ``count`` numbers or pairs, where the right result is finite.

    Where that is beyond the range of ``dtype`` an infinity is right, and all else is infinitely wrong.
    """
    exact = EXACT[name]
    rng = np.random.default_rng(1)
    xs = [_numbers(dtype, count)] + [rng.permutation(_numbers(dtype, count))] * (exact.__code__.co_argcount - 1)
    (got,) = engines.forward(engine, replace(BY_NAME[name], written=plainly), xs, {})
    return max(_off(name, xs, got), key=lambda found: found.ulps)


def _off(name: str, xs: list[np.ndarray], got: np.ndarray) -> Iterator[Worst]:
    exact, limits = EXACT[name], np.finfo(got.dtype)
    with mpmath.workprec(PRECISION):
        for at, y in zip(zip(*(x.tolist() for x in xs), strict=True), got.tolist(), strict=True):
            try:
                want = exact(*map(mpmath.mpf, at))
            except (ValueError, ZeroDivisionError):  # a pole
                continue
            if isinstance(want, mpmath.mpc) or not mpmath.isfinite(want):  # outside of the domain
                continue
            if abs(want) > limits.max * (1 + mpmath.mpf(float(limits.eps)) / 4):  # and not rounded to the largest
                off = 0.0 if np.isinf(y) and (y > 0) == (want > 0) else np.inf
            else:
                largest = max(map(abs, (float(want), *(at if name in SUMS else ()))))
                unit = float(np.spacing(np.minimum(largest, limits.max / 2).astype(got.dtype)))
                off = float(abs(mpmath.mpf(y) - want) / unit) if np.isfinite(y) else np.inf
            yield Worst(off, at, y, float(want))
