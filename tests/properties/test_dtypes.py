"""What is computed, and in which precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from spec.case import draw_case
from spec.entry import OpSpec
from spec.harness import DIFFERENTIABLE, for_each

FLOAT32 = np.float32
ULPS = 64 * float(np.finfo(FLOAT32).eps)  # what a few float32 operations in a row may lose of the largest number


def _single(case: Any) -> Any:
    return case.using(
        arrays=tuple(a.astype(FLOAT32) for a in case.arrays),
        cotangents=tuple(w.astype(FLOAT32) for w in case.cotangents),
    )


@for_each(DIFFERENTIABLE)
def test_results_and_gradients_have_their_inputs_dtype(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    for same in (case, _single(case)):
        dtype = same.arrays[0].dtype
        found = [*same.floating_outputs(), *same.gradients(), *same.second_gradients(same.arrays)]
        dtypes = {str(x.dtype) for x in found}
        case.require(
            dtypes <= {str(dtype)}, "dtypes of outputs, gradients and second gradients", f"{dtypes}, want {dtype}"
        )


@for_each(DIFFERENTIABLE)
def test_float32_follows_float64(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    single = _single(case)
    pairs = [
        *zip(single.floating_outputs(), case.floating_outputs(), strict=True),
        *zip(single.gradients(), case.gradients(), strict=True),
    ]
    for got, want in pairs:
        size = np.max(np.abs(want), where=np.isfinite(want), initial=1)
        case.compare("float32, against float64", got.astype(np.float64), want, ULPS * size)
