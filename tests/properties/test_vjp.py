"""The pullback of every op, against finite differences and against the laws that any pullback obeys."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from spec.case import draw_case
from spec.entry import OpSpec
from spec.generate import values
from spec.harness import DIFFERENTIABLE, for_each
from spec.oracles import finite_differences


@for_each(DIFFERENTIABLE)
def test_vjp_matches_finite_differences(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    slopes = case.slopes()
    for i, (gradient, slope) in enumerate(zip(case.gradients(), slopes, strict=True)):
        case.require_narrow(slope)
        case.compare(f"the gradient of input {i}", gradient, slope.value, slope.allowed())


@for_each(DIFFERENTIABLE)
def test_second_order_matches_finite_differences_of_the_gradient(
    engine: Any, spec: OpSpec, data: st.DataObject
) -> None:
    case = draw_case(data, engine, spec)
    directions = [data.draw(values.cotangents(a.shape), label="direction") for a in case.arrays]
    count = len(case.arrays)

    def gradient(arrays: Any) -> list[np.ndarray]:
        return case.using(arrays=tuple(arrays[:count]), cotangents=tuple(arrays[count:])).gradients()

    slopes = finite_differences.slopes(gradient, [*case.arrays, *case.cotangents], directions, spec.affine)
    for i, (second, slope) in enumerate(zip(case.second_gradients(directions), slopes, strict=True)):
        case.require_narrow(slope)
        case.compare(f"the second gradient of {case.named(i)}", second, slope.value, slope.allowed())


@for_each(DIFFERENTIABLE)
def test_pullback_is_the_adjoint_of_the_derivative(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    # <J v, w> = <v, J' w>; J v is the pullback of the map w -> J' w, which is linear.
    case = draw_case(data, engine, spec)
    directions = [data.draw(values.cotangents(a.shape), label="direction") for a in case.arrays]
    pushed = case.second_gradients(directions)[len(case.arrays) :]
    forward = sum(float((w * jv).sum()) for w, jv in zip(case.cotangents, pushed, strict=True))
    backward = sum(float((v * g).sum()) for v, g in zip(directions, case.gradients(), strict=True))
    case.compare("<v, J'w>, against <Jv, w>", np.float64(backward), np.float64(forward))


@for_each(DIFFERENTIABLE)
def test_pullback_is_linear_in_the_cotangent(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    others = [data.draw(values.cotangents(w.shape), label="another cotangent") for w in case.cotangents]
    both = case.using(cotangents=tuple(2 * w - 3 * v for w, v in zip(case.cotangents, others, strict=True)))
    parts = zip(case.gradients(), case.using(cotangents=tuple(others)).gradients(), strict=True)
    case.compare_gradients(both.gradients(), [2 * a - 3 * b for a, b in parts])
