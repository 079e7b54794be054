"""The pullback of every op, against finite differences and against the laws that any pullback obeys."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from spec.case import draw_case
from spec.entry import OpSpec
from spec.generate import values
from spec.harness import DIFFERENTIABLE, for_each
from spec.oracles import finite_differences, scalar


@for_each(DIFFERENTIABLE)
def test_vjp_matches_finite_differences(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    slopes = case.slopes()
    for i, (gradient, slope) in enumerate(zip(case.gradients(), slopes, strict=True)):
        case.require_narrow(slope)
        votes = scalar.votes(case, 1 + i)
        case.compare(f"the gradient of input {i}", gradient, slope.value, slope.allowed(), votes)


@for_each(DIFFERENTIABLE)
def test_second_order_matches_finite_differences_of_the_gradient(
    engine: Any, spec: OpSpec, data: st.DataObject
) -> None:
    # The gradients are a function of inputs and cotangents; each of these is moved as a whole, along a drawn velocity.
    case = draw_case(data, engine, spec)
    weights = [data.draw(values.cotangents(a.shape), label="weight") for a in case.arrays]
    start = [*case.arrays, *case.cotangents]
    velocities = [data.draw(values.cotangents(a.shape), label="velocity") / 4 for a in start]

    def gradients(times: Any) -> list[np.ndarray]:
        moved = [a + t * v for a, t, v in zip(start, times, velocities, strict=True)]
        count = len(case.arrays)
        return case.using(arrays=tuple(moved[:count]), cotangents=tuple(moved[count:])).gradients()

    slopes = finite_differences.slopes(gradients, [np.zeros(())] * len(start), weights, spec.affine)
    second = case.second_gradients(weights)
    for i, (g, v, slope) in enumerate(zip(second, velocities, slopes, strict=True)):
        case.require_narrow(slope)
        got = np.asarray((g * v).sum())
        rounding = 4 * np.finfo(float).eps * np.abs(g * v).sum()  # of this sum, where a coefficient is not dyadic
        case.compare(
            f"the second gradient of {case.named(i)}, along a velocity", got, slope.value, slope.allowed() + rounding
        )


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
