"""At ties and kinks a slope is a convention, but one that agrees with the function wherever that has a derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from spec.case import Case
from spec.entry import Call
from spec.generate import values
from spec.harness import DIFFERENTIABLE, Properties
from spec.oracles import finite_differences

kinks = Properties(values.at_kinks)


@kinks.of(spec for spec in DIFFERENTIABLE if spec.kinked)
def gradient_at_a_tie_is_right_along_it(case: Case, data: st.DataObject) -> None:
    # Moving equal elements alike keeps the tie, and along that direction the op is smooth. Elements on a kink stay.
    speeds = data.draw(st.lists(st.integers(-4, 4), min_size=8, max_size=8), label="speeds")
    points = {k for d in case.spec.domains(Call(tuple(a.shape for a in case.arrays), case.params)) for k in d.kinks}

    def speed(x: float) -> float:
        return 0.0 if x in points else speeds[int(x / values.STEP) % len(speeds)] / 8

    moving = [np.asarray(np.vectorize(speed, otypes=[float])(a)) for a in case.arrays]

    def along(time: Any) -> list[np.ndarray]:
        return case.floating_outputs([a + time[0] * v for a, v in zip(case.arrays, moving, strict=True)])

    (slope,) = finite_differences.slopes(along, [np.zeros(())], case.cotangents, affine=False)
    case.require_narrow(slope)
    got = sum(float((g * v).sum()) for g, v in zip(case.gradients(), moving, strict=True))
    case.compare("the slope along the tie", np.float64(got), slope.value, slope.allowed())


test_kinks = kinks.test()
