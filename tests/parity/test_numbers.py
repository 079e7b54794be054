"""Values, gradients and second derivatives, against PyTorch's in float64."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

import smolgrad
from spec import engines
from spec.case import Case
from spec.engines.pytorch import PyTorch
from spec.entry import OpSpec
from spec.generate import values
from spec.harness import DIFFERENTIABLE, Properties
from spec.ops import SPECS
from spec.oracles import scalar
from spec.oracles.differences import STRICTER
from spec.oracles.finite_differences import Slope

TORCH = PyTorch()

numbers, at_kinks, special = Properties(), Properties(values.at_kinks), Properties(values.special)


def _vote(slopes: Callable[[], Sequence[Slope]], i: int) -> Callable[[], np.ndarray]:
    """The ``i``-th of ``slopes``, to be asked where PyTorch and the engine differ."""
    return lambda: slopes()[i].value


@numbers.of(SPECS)
def values_match_pytorch(case: Case, data: st.DataObject) -> None:
    for i, (got, want) in enumerate(zip(case.outputs(), case.using(engine=TORCH).outputs(), strict=True)):
        case.compare(f"output {i}", got, want, votes=scalar.votes(case, 0))


def optional(spec: OpSpec) -> list[str]:
    """The parameters that have a default, in order."""
    op = engines.find(spec.name, smolgrad, smolgrad.Tensor)
    if not inspect.isfunction(op):  # an attribute
        return []
    return [p.name for p in inspect.signature(op).parameters.values() if p.default is not inspect.Parameter.empty]


@numbers.of(spec for spec in SPECS if optional(spec))
def arguments_left_out_have_pytorchs_defaults(case: Case, data: st.DataObject) -> None:
    spec = case.spec
    given = [name for name in optional(spec) if name in case.params]
    left_out = given[data.draw(st.integers(0, len(given)), label="given") :]
    case = case.using(params={name: value for name, value in case.params.items() if name not in left_out})
    try:
        outputs = case.outputs()
    except engines.REFUSALS:
        if spec.name not in STRICTER:
            with pytest.raises(engines.REFUSALS):
                case.using(engine=TORCH).outputs()
        return
    for i, (got, want) in enumerate(zip(outputs, case.using(engine=TORCH).outputs(), strict=True)):
        case.compare(f"output {i}", got, want)


@numbers.of(DIFFERENTIABLE)
def gradients_match_pytorch(case: Case, data: st.DataObject) -> None:
    for i, (got, want) in enumerate(zip(case.gradients(), case.using(engine=TORCH).gradients(), strict=True)):
        votes = {"finite differences": _vote(case.slopes, i), **scalar.votes(case, 1 + i)}
        case.compare(f"the gradient of input {i}", got, want, votes=votes)


def _second_gradients(case: Case, data: st.DataObject) -> tuple[list[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]:
    """Drawn directions, and the second gradients along them in both engines, in pairs."""
    directions = [data.draw(values.cotangents(a.shape), label="direction") for a in case.arrays]
    theirs = case.using(engine=TORCH).second_gradients(directions)
    return directions, list(zip(case.second_gradients(directions), theirs, strict=True))


@numbers.of(DIFFERENTIABLE)
def second_derivatives_match_pytorch(case: Case, data: st.DataObject) -> None:
    directions, pairs = _second_gradients(case, data)
    for i, (got, want) in enumerate(pairs):
        votes = {"finite differences of the gradient": _vote(lambda: case.second_slopes(directions), i)}
        case.compare(f"the second gradient of {case.named(i)}", got, want, votes=votes)


@at_kinks.of(spec for spec in DIFFERENTIABLE if spec.kinked)
def conventions_at_kinks_are_pytorchs(case: Case, data: st.DataObject) -> None:
    torch_case = case.using(engine=TORCH)
    for got, want in zip(case.outputs(), torch_case.outputs(), strict=True):
        case.compare("an output at a kink", got, want)
    case.compare_gradients(case.gradients(), torch_case.gradients())


@at_kinks.of(spec for spec in DIFFERENTIABLE if spec.kinked)
def second_derivatives_at_kinks_are_pytorchs(case: Case, data: st.DataObject) -> None:
    for i, (got, want) in enumerate(_second_gradients(case, data)[1]):
        case.compare(f"the second gradient of {case.named(i)} at a kink", got, want)


@special.of(DIFFERENTIABLE)
def special_values_are_pytorchs(case: Case, data: st.DataObject) -> None:
    # Signed zeros, infinities, NaN, subnormal and huge numbers: where there is NaN or infinity first, then the numbers.
    torch_case = case.using(engine=TORCH)
    nudged = case.using(engine=TORCH, arrays=values.nudged(case.arrays))
    for got, want, near in zip(case.outputs(), torch_case.outputs(), nudged.outputs(), strict=True):
        case.compare("an output at special values", got, want, values.relative(want, near))
    for i, (got, want, near) in enumerate(
        zip(case.gradients(), torch_case.gradients(), nudged.gradients(), strict=True)
    ):
        case.compare(f"the gradient of input {i} at special values", got, want, values.relative(want, near))


@special.of(spec for spec in SPECS if spec.constant)
def special_values_of_constants_are_pytorchs(case: Case, data: st.DataObject) -> None:
    # The places where they jump among them; where an output is floating, its slope is 0 there too.
    torch_case = case.using(engine=TORCH)
    for got, want in zip(case.outputs(), torch_case.outputs(), strict=True):
        case.compare("an output at special values", got, want)
    case.compare_gradients(case.gradients(), torch_case.gradients(), 0.0)


test_numbers, test_at_kinks, test_special_values = numbers.test(), at_kinks.test(), special.test()
