"""The pullback of every op: against finite differences and the laws that any pullback obeys, in both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from spec.case import Case
from spec.generate import values
from spec.harness import DIFFERENTIABLE, Properties
from spec.oracles import finite_differences, scalar

FLOAT32 = np.float32
ULPS = 64 * float(np.finfo(FLOAT32).eps)  # what a few float32 operations in a row may lose of the largest number

pullbacks = Properties()


@pullbacks.of(DIFFERENTIABLE)
def values_and_gradients_are_finite_in_the_domain(case: Case, data: st.DataObject) -> None:
    for x in (*case.floating_outputs(), *case.gradients()):
        case.require(bool(np.isfinite(x).all()), "an output or gradient in the domain", f"not finite: {x}")


@pullbacks.of(DIFFERENTIABLE)
def vjp_matches_finite_differences(case: Case, data: st.DataObject) -> None:
    slopes = case.slopes()
    for i, (gradient, slope) in enumerate(zip(case.gradients(), slopes, strict=True)):
        case.require_narrow(slope)
        votes = scalar.votes(case, 1 + i)
        case.compare(f"the gradient of input {i}", gradient, slope.value, slope.allowed(), votes)


@pullbacks.of(DIFFERENTIABLE)
def second_order_matches_finite_differences_of_the_gradient(case: Case, data: st.DataObject) -> None:
    # The gradients are a function of inputs and cotangents; each of these is moved as a whole, along a drawn velocity.
    weights = [data.draw(values.cotangents(a.shape), label="weight") for a in case.arrays]
    start = [*case.arrays, *case.cotangents]
    velocities = [data.draw(values.cotangents(a.shape), label="velocity") / 4 for a in start]

    def gradients(times: Any) -> list[np.ndarray]:
        moved = [a + t * v for a, t, v in zip(start, times, velocities, strict=True)]
        count = len(case.arrays)
        return case.using(arrays=tuple(moved[:count]), cotangents=tuple(moved[count:])).gradients()

    slopes = finite_differences.slopes(gradients, [np.zeros(())] * len(start), weights, case.spec.affine)
    second = case.second_gradients(weights)
    for i, (g, v, slope) in enumerate(zip(second, velocities, slopes, strict=True)):
        case.require_narrow(slope)
        got = np.asarray((g * v).sum())
        rounding = 4 * np.finfo(float).eps * np.abs(g * v).sum()  # of this sum, where a coefficient is not dyadic
        case.compare(
            f"the second gradient of {case.named(i)}, along a velocity", got, slope.value, slope.allowed() + rounding
        )


@pullbacks.of(DIFFERENTIABLE)
def pullback_is_the_adjoint_of_the_derivative(case: Case, data: st.DataObject) -> None:
    # <J v, w> = <v, J' w>; J v is the pullback of the map w -> J' w, which is linear.
    directions = [data.draw(values.cotangents(a.shape), label="direction") for a in case.arrays]
    pushed = case.second_gradients(directions)[len(case.arrays) :]
    forward = sum(float((w * jv).sum()) for w, jv in zip(case.cotangents, pushed, strict=True))
    backward = sum(float((v * g).sum()) for v, g in zip(directions, case.gradients(), strict=True))
    case.compare("<v, J'w>, against <Jv, w>", np.float64(backward), np.float64(forward))


@pullbacks.of(DIFFERENTIABLE)
def pullback_is_linear_in_the_cotangent(case: Case, data: st.DataObject) -> None:
    others = [data.draw(values.cotangents(w.shape), label="another cotangent") for w in case.cotangents]
    both = case.using(cotangents=tuple(2 * w - 3 * v for w, v in zip(case.cotangents, others, strict=True)))
    parts = zip(case.gradients(), case.using(cotangents=tuple(others)).gradients(), strict=True)
    case.compare_gradients(both.gradients(), [2 * a - 3 * b for a, b in parts])


@pullbacks.of(spec for spec in DIFFERENTIABLE if spec.name in scalar.EXPRESSIONS)
def values_and_gradients_match_the_scalar_engine(case: Case, data: st.DataObject) -> None:
    value, *gradients = scalar.answers(case)
    case.compare("the output", case.outputs()[0], value)
    case.compare_gradients(case.gradients(), gradients)


def _single(case: Case) -> Case:
    return case.using(
        arrays=tuple(a.astype(FLOAT32) for a in case.arrays),
        cotangents=tuple(w.astype(FLOAT32) for w in case.cotangents),
    )


@pullbacks.of(DIFFERENTIABLE)
def results_and_gradients_have_their_inputs_dtype(case: Case, data: st.DataObject) -> None:
    for same in (case, _single(case)):
        dtype = same.arrays[0].dtype
        found = [*same.floating_outputs(), *same.gradients(), *same.second_gradients(same.arrays)]
        dtypes = {str(x.dtype) for x in found}
        same.require(
            dtypes <= {str(dtype)}, "dtypes of outputs, gradients and second gradients", f"{dtypes}, want {dtype}"
        )


@pullbacks.of(DIFFERENTIABLE)
def float32_follows_float64(case: Case, data: st.DataObject) -> None:
    single = _single(case)
    pairs = [
        *zip(single.floating_outputs(), case.floating_outputs(), strict=True),
        *zip(single.gradients(), case.gradients(), strict=True),
    ]
    # What cancels in one of them may be as large as another: a constant weight's gradient is 0, of terms like the loss.
    size = max(np.max(np.abs(want), where=np.isfinite(want), initial=1) for _, want in pairs)
    for got, want in pairs:
        single.compare("float32, against float64", got.astype(np.float64), want, ULPS * size)


test_pullbacks = pullbacks.test()
