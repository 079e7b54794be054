"""The public checker passes every op, and rejects every generic fault. Everywhere, not in a sample: -m everything."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from smolgrad.gradcheck import gradcheck, gradgradcheck
from spec import engines
from spec.case import draw_case
from spec.engines.smolgrad import Smolgrad
from spec.entry import OpSpec
from spec.faults import equivalents
from spec.faults.generic import FAULTS, Fault, applicable, planted
from spec.faults.killing import LIGHT, primitives, randomness
from spec.harness import DIFFERENTIABLE

pytestmark = pytest.mark.everything

ENGINE = Smolgrad()


def check(spec: OpSpec, examples: int, *passed_over: type[Exception]) -> None:
    """``gradcheck`` and ``gradgradcheck`` of drawn calls of an op, but for those that raise what is passed over."""

    @seed(0)
    @settings(**{**LIGHT, "max_examples": examples})
    @given(data=st.data())
    def look(data: st.DataObject) -> None:
        case = draw_case(data, ENGINE, spec)
        inputs = [ENGINE.leaf(a) for a in case.arrays]

        def op(*xs: Any) -> list[Any]:
            return engines.apply(ENGINE, spec, xs, case.params)

        with suppress(*passed_over):
            assert gradcheck(op, inputs)
            assert gradgradcheck(op, inputs)

    look()


@pytest.mark.parametrize("spec", DIFFERENTIABLE, ids=repr)
def test_right_rules_pass(spec: OpSpec) -> None:
    check(spec, examples=5)


def rejected(fault: Fault, spec: OpSpec, primitive: Any) -> bool:
    """Whether the checker, or on its way the engine, refuses an op with a fault."""
    with planted(fault, primitive):
        for examples in (10, 250):
            try:
                check(spec, examples, ValueError)  # a wrong gradient may have kinks, at which it is not judged
            except RuntimeError:  # GradcheckError, or the engine's own
                return True
    return False


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_generic_faults_are_rejected(fault: Fault, pytestconfig: pytest.Config) -> None:
    specs = list(DIFFERENTIABLE)
    randomness(fault.name).shuffle(specs)
    pairs = [
        (spec, primitive)
        for spec in specs
        for f, primitive in applicable(spec, primitives(ENGINE, spec))
        if f is fault and not equivalents.reason(f.name, spec.name, primitive.name)
    ]
    assert pairs
    for spec, primitive in pairs if "everything" in pytestconfig.option.markexpr else pairs[:2]:
        assert rejected(fault, spec, primitive), (spec, primitive)
