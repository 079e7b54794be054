"""How an array lies in memory does not change what is computed from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from spec.case import BITS, Case
from spec.generate.layouts import LAYOUTS
from spec.harness import Properties
from spec.ops import SPECS

layouts = Properties()

TURNS = st.integers(0, len(LAYOUTS) - 1)


def _plain(x: np.ndarray) -> np.ndarray:
    return np.array(x, order="C")  # a copy alone would keep the layout


def _laid_out(case: Case, chosen: Sequence[Callable[[np.ndarray], np.ndarray]]) -> Case:
    """``case`` with one of the ``chosen`` layouts for each input and, after them, cotangent."""
    arrays = [layout(x) for layout, x in zip(chosen, (*case.arrays, *case.cotangents), strict=True)]
    count = len(case.arrays)
    return case.using(arrays=tuple(arrays[:count]), cotangents=tuple(arrays[count:]))


@layouts.of(SPECS)
def layout_of_inputs_and_cotangents_does_not_matter(case: Case, data: st.DataObject) -> None:
    count = len(case.arrays) + len(case.cotangents)
    turn = data.draw(TURNS, label="how many layouts one array is ahead of the next")
    for first in range(len(LAYOUTS)):  # each array in each layout, beside another one in the same or another
        odd = _laid_out(case, [LAYOUTS[(first + turn * i) % len(LAYOUTS)] for i in range(count)])
        plain = _laid_out(odd, [_plain] * count)
        (outputs, gradients), (wanted_outputs, wanted_gradients) = odd.results(), plain.results()
        # NumPy adds up in an order that depends on strides: where something is rounded, a few ulps may differ.
        allowed = BITS if plain.is_exact([*wanted_outputs, *wanted_gradients]) else None
        for i, (got, want) in enumerate(zip(outputs, wanted_outputs, strict=True)):
            odd.compare(f"output {i}", got, want, allowed)
        odd.compare_gradients(gradients, wanted_gradients, allowed)


test_layouts = layouts.test()
