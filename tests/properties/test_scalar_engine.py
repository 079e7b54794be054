"""Elementwise ops, one element at a time, against the scalar engine."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from spec.case import draw_case
from spec.entry import OpSpec
from spec.harness import DIFFERENTIABLE, for_each
from spec.oracles import scalar


@for_each(spec for spec in DIFFERENTIABLE if spec.name in scalar.EXPRESSIONS)
def test_values_and_gradients_match_the_scalar_engine(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    value, *gradients = scalar.answers(case)
    case.compare("the output", case.outputs()[0], value)
    case.compare_gradients(case.gradients(), gradients)
