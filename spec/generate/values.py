"""Values: integers times 2^-5, exact in float32, short to print, shrinking to 0.

A finite-difference stencil reaches an eighth of a step (gradcheck.STEP), so it never meets a kink, a bound or a tie:
kinks and bounds are stepped over, ``unique`` spreads the elements of an input, ``apart`` gives each input its own
residue class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..entry import Call, Domain, OpSpec, Shape

Draw = Callable[[st.SearchStrategy[Any]], Any]  # what a composite strategy draws with

STEP = 2.0**-5
_WIDEST = 128  # steps from 0
FROM_POLE = 16  # steps that values keep from a pole, so that finite differences stay sharp

# What a byte stands for: 0, 1, -1, 2, -2, ... A small number has many codes, so that zeros and ties are common.
_ZIGZAG = np.array([(i + 1) // 2 * (1 if i % 2 else -1) for i in range(2 * _WIDEST)])
_CODES = np.concatenate([_ZIGZAG[:17]] * 6 + [_ZIGZAG[17:121], _ZIGZAG[-50:]])

WHOLE = st.sampled_from(["int64", "bool", "int32", "uint8"])


@cache
def integer_array(shape: Shape) -> st.SearchStrategy[np.ndarray]:
    """Small integers, at most 128 from 0: one byte an element, so that a draw is one choice and shrinks as one."""
    size = math.prod(shape)
    return st.binary(min_size=size, max_size=size).map(
        lambda codes: _CODES[np.frombuffer(codes, np.uint8)].reshape(shape)
    )


def in_domain(steps: np.ndarray, domain: Domain, gap: int = 0) -> np.ndarray:
    """``steps`` moved into ``domain``, any two at least ``gap`` apart: the values, times ``STEP`` already.

    0 becomes what is nearest to 0 there, so that it is what values shrink to.
    """
    if gap:
        flat = steps.reshape(-1)
        rank = np.empty(flat.size, int)
        rank[np.argsort(flat, kind="stable")] = np.arange(flat.size)
        steps = (flat + gap * (rank - flat.size // 2)).reshape(steps.shape)
    first, last = domain.low / STEP, domain.high / STEP
    first = math.floor(first) + 1 if math.isfinite(first) else first
    last = math.ceil(last) - 1 if math.isfinite(last) else last
    if math.isfinite(first) and math.isfinite(last):
        steps = first + np.mod(steps + min(max(first, 0), last) - first, last - first + 1)
    elif math.isfinite(first):
        steps = _at_least(first, steps, gap)
    elif math.isfinite(last):
        steps = -_at_least(-last, -steps, gap)
    for pole in domain.poles:
        steps = np.where(steps >= pole / STEP, steps + FROM_POLE, steps - FROM_POLE)
    for kink in sorted(domain.kinks):
        steps = np.where(steps >= kink / STEP, steps + 1, steps)
    return np.asarray(steps * STEP)  # NumPy's 0-d results are no arrays


def _at_least(first: int, steps: np.ndarray, gap: int) -> np.ndarray:
    """``steps`` from ``first`` up: where they must stay apart moved together, otherwise reflected one by one."""
    steps = steps + max(first, 0)
    return steps + max(0, first - steps.min(initial=first)) if gap else first + np.abs(steps - first)


def inputs(draw: Draw, spec: OpSpec, call: Call) -> list[np.ndarray]:
    """A float64 array an input, at which ``spec`` is smooth; where floats are refused, integers and bools."""
    if spec.integer:
        return [_whole(draw(integer_array(shape)), draw(WHOLE)) for shape in call.shapes]
    count = len(call.shapes)
    arrays = []
    for i, (shape, domain) in enumerate(zip(call.shapes, spec.domains(call), strict=True)):
        steps = draw(integer_array(shape))
        if spec.apart:
            steps = steps * count + i
        gap = max(int(spec.unique), math.ceil(domain.spread / STEP))
        arrays.append(in_domain(steps, domain, gap))
    return arrays


def _whole(steps: np.ndarray, dtype: str) -> np.ndarray:
    """``steps`` in ``dtype``; as bools, the odd ones."""
    whole = steps & 1 if dtype == "bool" else steps
    return np.asarray(whole.astype(dtype))  # NumPy's 0-d results are no arrays


def at_kinks(draw: Draw, spec: OpSpec, call: Call) -> list[np.ndarray]:
    """Arrays in the domain of ``spec`` that sit on its kinks and tie, on purpose and often."""
    arrays = []
    for shape, domain in zip(call.shapes, spec.domains(call), strict=True):
        steps = draw(integer_array(shape))
        if domain.kinks:
            points = np.array([0.0, STEP, *domain.kinks, *(k + STEP for k in domain.kinks)])
            arrays.append(np.asarray(points[np.mod(steps, len(points))]))
        else:
            arrays.append(in_domain(np.mod(steps, 3), Domain(domain.low, domain.high)))
    return arrays


# Huge and tiny are powers of two: their products are exact, so that a fused multiply-add leaves no residue of its own.
_HUGE, _TINY = 2.0**500, 2.0**-1000
SPECIAL_INTEGERS = np.array([0, -1, 1, np.iinfo(np.int64).min, np.iinfo(np.int64).max])
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, _HUGE, -_HUGE, _TINY, 0.5, 2.0])


def special(draw: Draw, spec: OpSpec, call: Call) -> list[np.ndarray]:
    """Arrays of what arithmetic is special about: signed zeros, infinities, NaN, subnormal, huge and tiny numbers.

    What multiplies a lane that is divided by its spread stays finite: of an infinity there the gradient is a difference
    of infinities, and its sign a matter of the order of subtraction. Where floats are refused, it is integers that are
    special: the least and the largest.
    """
    domains = spec.domains(call)
    divides = any(domain.spread for domain in domains)
    arrays = []
    for shape, domain in zip(call.shapes, domains, strict=True):
        choices = SPECIAL[np.isfinite(SPECIAL)] if divides and not domain.spread else SPECIAL
        choices = SPECIAL_INTEGERS if spec.integer else choices
        arrays.append(np.asarray(choices[np.mod(draw(integer_array(shape)), len(choices))]))
    return arrays


def nudged(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """``special`` arrays with each number moved by a few units in its last place, equal ones by as many.

    Only where one is so large that 1 is lost beside it: elsewhere nothing cancels.
    """
    eps = np.finfo(float).eps
    if not any(np.any(np.isfinite(a) & (np.abs(a) > 1 / eps)) for a in arrays):
        return tuple(arrays)
    known = np.unique(SPECIAL)
    moves = np.random.default_rng(0).uniform(-4, 4, len(known))
    return tuple(np.asarray(a * (1 + eps * moves[np.searchsorted(known, a)])) for a in arrays)


def relative(want: np.ndarray, near: np.ndarray) -> np.ndarray:
    """What two right computations may differ by where numbers of every size stand side by side.

    That is a fraction of ``want``, unless it is a sum in which huge terms cancelled: what is left of it depends on the
    order of summation. Then ``near``, the same of ``nudged`` inputs, is somewhere else.
    """
    with np.errstate(all="ignore"):
        # inf - inf: what a nudge makes infinite or NaN may be anything, and is not counted as compared.
        moved = np.where(near == want, 0, np.nan_to_num(np.abs(near - want), nan=np.inf))
        return np.where(np.isfinite(want), 1e-9 * np.abs(want) + 1e-12 + 16 * moved, 0)


@cache
def cotangents(shape: Shape) -> st.SearchStrategy[np.ndarray]:
    """A cotangent of ``shape``: drawn, hardly ever of ones, shrinking to a one-hot one."""
    size = math.prod(shape)

    def weights(codes: bytes) -> np.ndarray:  # one an element, and one for all: a draw is one choice
        if codes[-1] >= 240:
            return np.ones(shape)
        found = _CODES[np.frombuffer(codes[:-1], np.uint8)] * STEP
        if size and not found.any():
            found[codes[-1] % size] = 1
        return found.reshape(shape)

    return st.binary(min_size=size + 1, max_size=size + 1).map(weights)
