"""The suite goes red for every wrong engine that we can think of.

By default a sample is planted that the run's seed chooses: some faults in every op, every fault in some op, and all the
named ones. Everything: ``pytest -m everything`` or ``--hypothesis-profile=nightly``.
"""

from __future__ import annotations

import functools
import importlib
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spec.engines.smolgrad import Smolgrad
from spec.entry import OpSpec
from spec.faults import equivalents
from spec.faults.generic import FAULTS, Fault, applicable, planted
from spec.faults.killing import NOTICED, fails, killer, primitives, randomness
from spec.faults.named import NAMED, Named
from spec.harness import DIFFERENTIABLE
from spec.ops import BY_NAME
from tests.properties import test_dtypes, test_kinks, test_layouts, test_ownership, test_sweeps, test_vjp

pytestmark = pytest.mark.everything

PER_OP = 1  # faults planted in an op by default
ENGINE = Smolgrad()


def _properties() -> list[Callable[..., Any]]:
    """All properties, those first that notice most."""
    first = (
        test_vjp.test_vjp_matches_finite_differences,
        test_ownership.test_gradients_share_no_memory_and_nothing_is_written,
        test_vjp.test_second_order_matches_finite_differences_of_the_gradient,
    )
    modules = (test_vjp, test_ownership, test_sweeps, test_dtypes, test_layouts, test_kinks)
    found = [value for module in modules for name, value in vars(module).items() if name.startswith("test_")]
    return [*first, *(test for test in found if test not in first)]


PROPERTIES = _properties()
BY_PROPERTY = {test.__name__.removeprefix("test_"): test for test in PROPERTIES}


@functools.cache
def _applicable(op: str) -> list[tuple[Fault, Any]]:
    spec = BY_NAME[op]
    return [
        (fault, primitive)
        for fault, primitive in applicable(spec, primitives(ENGINE, spec))
        if not equivalents.reason(fault.name, op, primitive.name)
    ]


def _survivors(pairs: list[tuple[Fault, Any]], spec: OpSpec) -> Iterator[str]:
    for fault, primitive in pairs:
        with planted(fault, primitive):
            if killer(PROPERTIES, ENGINE, spec) is None:
                yield f"{fault.name} in the rules of {primitive.name}"


def _score(record_property: Any, planted: int, survivors: int = 0, equivalents: int = 0) -> None:
    record_property("planted faults", [planted, planted - survivors, equivalents])


@pytest.mark.parametrize("spec", DIFFERENTIABLE, ids=repr)
def test_wrong_rules_of_an_op_fail_a_property(spec: OpSpec, everything: bool, record_property: Any) -> None:
    pairs = _applicable(spec.name)
    if not everything:
        pairs = randomness(spec.name).sample(pairs, PER_OP)
    survivors = list(_survivors(pairs, spec))
    _score(record_property, len(pairs), len(survivors))
    assert not survivors


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_wrong_rule_fails_a_property_of_some_op(fault: Fault, everything: bool, record_property: Any) -> None:
    if everything:
        pytest.skip("planted in all ops")
    specs = list(DIFFERENTIABLE)
    randomness(fault.name).shuffle(specs)
    for spec in specs:
        pairs = [pair for pair in _applicable(spec.name) if pair[0] is fault]
        if pairs:
            survivors = list(_survivors(pairs[:1], spec))
            _score(record_property, 1, len(survivors))
            assert not survivors, spec
            return
    pytest.fail(f"no op shows {fault.name}")


@pytest.mark.parametrize("row", equivalents.EQUIVALENTS, ids=lambda row: f"{row.op}-{row.faults[0]}")
def test_an_equivalent_is_no_fault(row: equivalents.Equivalent, everything: bool, record_property: Any) -> None:
    spec = BY_NAME[row.op]
    (primitive,) = (p for p in primitives(ENGINE, spec) if p.name == row.primitive)
    names = row.faults if everything else [randomness(row.reason).choice(row.faults)]
    for name in names:
        with planted(FAULTS[name], primitive):
            assert killer(PROPERTIES, ENGINE, spec, rounds=(25,) if everything else (5,)) is None
    _score(record_property, 0, equivalents=len(names))


# --- named faults -----------------------------------------------------------------------------------------------------


def _calls(test: Callable[..., Any]) -> list[dict[str, Any]]:
    """The arguments of each call that pytest would make of ``test``."""
    calls: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
            rows = [getattr(row, "values", (row,) if len(names) == 1 else row) for row in mark.args[1]]
            rows = [row if isinstance(row, (tuple, list)) else (row,) for row in rows]
            calls = [{**call, **dict(zip(names, row, strict=True))} for call in calls for row in rows]
    return calls


def _fails(test: Callable[..., Any]) -> bool:
    for call in _calls(test):
        try:
            test(**call)
        except (*NOTICED, pytest.fail.Exception):
            return True
        except Exception as error:
            # A test that trips over what a wrong engine gives it, but not over a mistake in the fault itself.
            return Path(traceback.extract_tb(error.__traceback__)[-1].filename).name != "named.py"
    return False


def _is_noticed(fault: Named) -> bool:
    """Whether the test that is meant for ``fault`` fails now."""
    file, _, name = fault.dies_in.partition("::")
    if name:
        return _fails(getattr(importlib.import_module(f"tests.regressions.{file}"), name))
    name, _, op = fault.dies_in.removesuffix("]").partition("[")
    return any(fails(BY_PROPERTY[name], ENGINE, BY_NAME[op], max_examples=n) for n in (50, 500, 5000))


@pytest.mark.parametrize("fault", NAMED, ids=lambda fault: fault.name)
def test_a_named_fault_dies_where_it_is_meant_to(fault: Named, record_property: Any) -> None:
    with fault.plant():
        dead = _is_noticed(fault)
    _score(record_property, 1, not dead)
    assert dead, f"{fault.dies_in} does not notice: {fault.plant.__doc__}"
