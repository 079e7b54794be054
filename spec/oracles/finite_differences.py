"""Finite differences with an error bar: ``smolgrad.gradcheck``'s, and exact ones of affine functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smolgrad.gradcheck import EPS, Move, allowed, estimate, moves, weighted

Function = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


@dataclass
class Slope:
    """A gradient by finite differences, its error bar, and whether it is exact."""

    value: np.ndarray
    bar: np.ndarray
    exact: bool = False

    def allowed(self) -> np.ndarray:
        """How far from ``value`` a right gradient may lie."""
        return np.zeros(self.value.shape) if self.exact else allowed(self.value, self.bar)


def slopes(
    function: Function, arrays: Sequence[np.ndarray], weights: Sequence[np.ndarray], affine: bool
) -> list[Slope]:
    """The gradient of ``function``'s outputs, weighted, for each element of each of ``arrays``.

    An affine function needs one step, and its slope is exact where every number on the way is dyadic. At a kink the bar
    is infinite.
    """
    value = weighted(function, weights)
    here = 0.0 if affine else value(arrays)[0]
    found = [Slope(np.zeros(a.shape), np.zeros(a.shape)) for a in arrays]
    for number, place, move in moves(value, arrays):
        slope = found[number]
        slope.value.flat[place], slope.bar.flat[place] = _of_affine(move) if affine else estimate(move, here)
    for slope in found:
        slope.exact = affine and not slope.bar.any()
    return found


def _of_affine(move: Move) -> tuple[float, float]:
    (above, size_above), (below, size_below) = move(1.0), move(-1.0)
    slope, size = (above - below) / 2, (size_above + size_below) / 2
    return slope, 0.0 if dyadic(slope) and dyadic(size) else 4 * EPS * size


def dyadic(x: Any) -> Any:
    """Where ``x`` is a dyadic number of so few digits that sums and products on the way to it were exact."""
    return (x * 2.0**30 == np.rint(x * 2.0**30)) & (np.abs(x) < 2.0**20)
