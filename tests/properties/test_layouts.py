"""How an array lies in memory does not change what is computed from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from spec.case import draw_case
from spec.entry import OpSpec
from spec.generate.layouts import LAYOUTS
from spec.harness import DIFFERENTIABLE, for_each


def _plain(x: np.ndarray) -> np.ndarray:
    return np.array(x, order="C")  # a copy alone would keep the layout


@for_each(DIFFERENTIABLE)
def test_layout_of_inputs_and_cotangents_does_not_matter(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)

    def laid_out(x: np.ndarray) -> np.ndarray:
        return data.draw(st.sampled_from(LAYOUTS), label="layout")(x)

    odd = case.using(arrays=tuple(map(laid_out, case.arrays)), cotangents=tuple(map(laid_out, case.cotangents)))
    plain = case.using(arrays=tuple(map(_plain, odd.arrays)), cotangents=tuple(map(_plain, odd.cotangents)))
    for got, want in zip(odd.floating_outputs(), plain.floating_outputs(), strict=True):
        odd.compare("an output", got, want)
    odd.compare_gradients(odd.gradients(), plain.gradients())
