"""Values, gradients and second derivatives, against PyTorch's in float64."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from spec.case import draw_case
from spec.engines.pytorch import PyTorch
from spec.entry import OpSpec
from spec.generate import values
from spec.harness import DIFFERENTIABLE, for_each
from spec.ops import SPECS
from spec.oracles import scalar

TORCH = PyTorch()


@for_each(SPECS)
def test_values_match_pytorch(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    for i, (got, want) in enumerate(zip(case.outputs(), case.using(engine=TORCH).outputs(), strict=True)):
        case.compare(f"output {i}", got, want, votes=scalar.votes(case, 0))


@for_each(DIFFERENTIABLE)
def test_gradients_match_pytorch(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    slopes = {"finite differences": lambda: [slope.value for slope in case.slopes()]}
    for i, (got, want) in enumerate(zip(case.gradients(), case.using(engine=TORCH).gradients(), strict=True)):
        votes = {name: lambda i=i, ask=ask: ask()[i] for name, ask in slopes.items()}
        case.compare(f"the gradient of input {i}", got, want, votes={**votes, **scalar.votes(case, 1 + i)})


@for_each(DIFFERENTIABLE)
def test_second_derivatives_match_pytorch(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    directions = [data.draw(values.cotangents(a.shape), label="direction") for a in case.arrays]
    got = case.second_gradients(directions)
    for i, want in enumerate(case.using(engine=TORCH).second_gradients(directions)):
        case.compare(f"the second gradient of {case.named(i)}", got[i], want)


@for_each(spec for spec in DIFFERENTIABLE if spec.kinked)
def test_conventions_at_kinks_are_pytorchs(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec, values.at_kinks)
    torch_case = case.using(engine=TORCH)
    for got, want in zip(case.outputs(), torch_case.outputs(), strict=True):
        case.compare("an output at a kink", got, want)
    case.compare_gradients(case.gradients(), torch_case.gradients())


@for_each(DIFFERENTIABLE)
def test_special_values_are_pytorchs(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    # Signed zeros, infinities, NaN, subnormal and huge numbers: where there is NaN or infinity first, then the numbers.
    case = draw_case(data, engine, spec, values.special)
    torch_case = case.using(engine=TORCH)
    for got, want in zip(case.outputs(), torch_case.outputs(), strict=True):
        case.compare("an output at special values", got, want, values.relative(want))
    for i, (got, want) in enumerate(zip(case.gradients(), torch_case.gradients(), strict=True)):
        case.compare(f"the gradient of input {i} at special values", got, want, values.relative(want))


@for_each(spec for spec in SPECS if spec.constant)
def test_special_values_of_constants_are_pytorchs(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec, values.special)
    for got, want in zip(case.outputs(), case.using(engine=TORCH).outputs(), strict=True):
        case.compare("an output at special values", got, want)
