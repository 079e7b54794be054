"""Finite differences with an error bar.

Central differences at three halving steps, two levels of Richardson extrapolation: the error of the last level is
estimated by what it changed. Source: Ridders, "Accurate computation of F'(x) and F'(x) F''(x)" (1982).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

STEPS = (2.0**-6, 2.0**-7, 2.0**-8)  # the first is half of the least distance between a value and a kink

Function = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


@dataclass
class Slope:
    """A gradient by finite differences, its error bar, and whether it is exact."""

    value: np.ndarray
    bar: np.ndarray
    exact: bool = False

    def allowed(self) -> np.ndarray:
        """How far from ``value`` a right gradient may lie."""
        return 4 * self.bar + 1e-10 * (1 + np.abs(self.value)) * (not self.exact)


def weighted(
    function: Function, weights: Sequence[np.ndarray]
) -> Callable[[Sequence[np.ndarray]], tuple[float, float]]:
    """The sum of ``function``'s outputs, times weights, and of the magnitudes that went into it."""

    def value(arrays: Sequence[np.ndarray]) -> tuple[float, float]:
        total = size = 0.0
        for y, w in zip(function(arrays), weights, strict=True):
            terms = y * w
            total += float(terms.sum())
            size += float(np.abs(terms).sum())
        return total, size

    return value


def slopes(
    function: Function, arrays: Sequence[np.ndarray], weights: Sequence[np.ndarray], affine: bool
) -> list[Slope]:
    """The gradient of ``function``'s outputs, weighted, for each element of each of ``arrays``.

    An affine function needs one step, and its slope is exact where every number on the way is dyadic. At a kink the bar
    is infinite: central differences agree there on the mean of two slopes, which is none.
    """
    value = weighted(function, weights)
    work = [np.array(a, dtype=np.float64, order="C") for a in arrays]
    here = 0.0 if affine else value(work)[0]
    found = []
    for array in work:
        flat = array.reshape(-1)
        slope, bar = np.zeros(flat.size), np.zeros(flat.size)
        exact = affine
        for i in range(flat.size):
            center = flat[i]

            def central(
                h: float, flat: np.ndarray = flat, i: int = i, center: float = center
            ) -> tuple[float, float, float]:
                flat[i] = center + h
                above, size_above = value(work)
                flat[i] = center - h
                below, size_below = value(work)
                flat[i] = center
                return (above - below) / (2 * h), (size_above + size_below) / (2 * h), (above - 2 * here + below) / h

            if affine:
                slope[i], size, _ = central(1.0)
                few_digits = dyadic(slope[i]) and dyadic(size)
                exact = exact and few_digits
                bar[i] = 0.0 if few_digits else 4 * np.finfo(float).eps * size
            else:
                (d1, _, j1), (d2, _, j2), (d3, size, j3) = map(central, STEPS)
                r1, r2 = (4 * d2 - d1) / 3, (4 * d3 - d2) / 3
                slope[i] = (16 * r2 - r1) / 15
                bar[i] = abs(slope[i] - r2) + np.finfo(float).eps * size
                # What the slope to the right has more than the one to the left: c₁h + c₃h³ + … for a smooth function.
                jump = (8 * (2 * j3 - j2) - (2 * j2 - j1)) / 7
                if abs(jump) > 1e-3 * (1 + abs(slope[i])):
                    bar[i] = np.inf
        found.append(Slope(slope.reshape(array.shape), bar.reshape(array.shape), exact))
    return found


def dyadic(x: Any) -> Any:
    """Where ``x`` is a dyadic number of so few digits that sums and products on the way to it were exact."""
    return (x * 2.0**30 == np.rint(x * 2.0**30)) & (np.abs(x) < 2.0**20)
