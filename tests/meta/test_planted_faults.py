"""The suite goes red for every wrong engine that we can think of.

By default a sample is planted that the run's seed chooses: some faults in every op, every fault in some op, and some of
each kind of the named ones. Everything: ``python -m spec faults``; here ``pytest -m everything`` or
``--hypothesis-profile=nightly``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from smolgrad import is_grad_enabled
from spec.entry import OpSpec
from spec.faults import campaign, equivalents, killing, seams
from spec.faults.campaign import ENGINE, GENERIC, Outcome, Trial
from spec.faults.generic import FAULTS, Fault, applicable, planted
from spec.faults.killing import primitives, randomness
from spec.faults.named import BY_NAME as NAMED_BY_NAME
from spec.faults.named import KINDS, NAMED, Named
from spec.harness import DIFFERENTIABLE
from spec.ops import BY_NAME
from spec.report import deaths

pytestmark = pytest.mark.everything

PER_OP = 1  # faults planted in an op by default
PER_KIND = 2  # named faults of a kind


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "named" in metafunc.fixturenames:
        chosen = NAMED if _everything(metafunc.config) else [fault for kind in KINDS for fault in _some_of(kind)]
        metafunc.parametrize("named", chosen, ids=repr)


def _everything(config: pytest.Config) -> bool:
    return "everything" in config.option.markexpr or config.option.hypothesis_profile == "nightly"


def _some_of(kind: str) -> list[Named]:
    found = [fault for fault in NAMED if fault.kind == kind]
    return randomness(kind).sample(found, min(PER_KIND, len(found)))


def _score(record_property: Any, planted: int, survivors: int = 0, equivalents: int = 0) -> None:
    record_property("planted faults", [planted, planted - survivors, equivalents])


# --- wrong rules ------------------------------------------------------------------------------------------------------


@functools.cache
def _applicable(op: str) -> list[tuple[Fault, Any]]:
    spec = BY_NAME[op]
    return [
        (fault, primitive)
        for fault, primitive in applicable(spec, primitives(ENGINE, spec))
        if not equivalents.reason(fault.name, op, primitive.name)
    ]


def _trial(fault: Fault, primitive: Any, spec: OpSpec) -> Trial:
    tests = tuple(f"{name}[{spec.name}]" for name in killing.concerned(spec))
    return Trial(fault.name, campaign.GENERIC, spec.name, lambda: planted(fault, primitive), tests, shrink=False)


def _survivors(pairs: list[tuple[Fault, Any]], spec: OpSpec) -> Iterator[str]:
    for fault, primitive in pairs:
        found = campaign.outcome(_trial(fault, primitive, spec))
        if not found.death:
            yield f"{fault.name} in the rules of {primitive.name} {found.trouble}"


@pytest.mark.parametrize("spec", DIFFERENTIABLE, ids=repr)
def test_wrong_rules_of_an_op_fail_a_property(spec: OpSpec, everything: bool, record_property: Any) -> None:
    pairs = _applicable(spec.name)
    if not everything:
        pairs = randomness(spec.name).sample(pairs, PER_OP)
    survivors = list(_survivors(pairs, spec))
    _score(record_property, len(pairs), len(survivors))
    assert not survivors


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_wrong_rule_fails_a_property_of_some_op(fault: Fault, record_property: Any) -> None:
    specs = list(DIFFERENTIABLE)
    randomness(fault.name).shuffle(specs)
    spec, pair = next((spec, pair) for spec in specs for pair in _applicable(spec.name) if pair[0] is fault)
    survivors = list(_survivors([pair], spec))
    _score(record_property, 1, len(survivors))
    assert not survivors, spec


@pytest.mark.parametrize("row", equivalents.EQUIVALENTS, ids=lambda row: f"{row.op}-{row.faults[0]}")
def test_an_equivalent_is_no_fault(row: equivalents.Equivalent, everything: bool, record_property: Any) -> None:
    spec = BY_NAME[row.op]
    (primitive,) = (p for p in primitives(ENGINE, spec) if p.name == row.primitive)
    names = row.faults if everything else [randomness(row.reason).choice(row.faults)]
    for name in names:
        with planted(FAULTS[name], primitive):
            for test in killing.concerned(spec):
                found = killing.run(test, *killing.found(f"{test}[{spec.name}]", ENGINE), max_examples=5)
                assert found is None, found
    _score(record_property, 0, equivalents=len(names))


# --- named faults -----------------------------------------------------------------------------------------------------


def test_a_named_fault_dies_where_it_is_meant_to(named: Named, record_property: Any) -> None:
    (trial,) = (trial for trial in campaign.named() if trial.fault == named.name)
    found = campaign.outcome(replace(trial, row=(), shrink=False))
    dead = found.death is not None
    _score(record_property, int(not trial.equivalent), int(not dead and not trial.equivalent), bool(trial.equivalent))
    assert dead != bool(trial.equivalent), f"{', '.join(named.dies_in)}: {named.says} {found.trouble}"
    assert is_grad_enabled()  # or tests that come later in this process would fail


def test_every_kind_has_as_many_faults_of_our_own_as_were_given() -> None:
    own = {kind: sum(fault.kind == kind and fault.origin == "own" for fault in NAMED) for kind in KINDS}
    given = {kind: sum(fault.kind == kind and fault.origin != "own" for fault in NAMED) for kind in KINDS}
    assert [kind for kind in KINDS if own[kind] < given[kind] or not own[kind]] == []
    assert len(NAMED_BY_NAME) == len(NAMED)


# --- the campaign -----------------------------------------------------------------------------------------------------


def _trial_of(plant: Any, **changes: Any) -> Trial:
    log = "vjp_matches_finite_differences[log]"
    return Trial(**{"fault": "x", "kind": "FRM", "place": "log", "plant": plant, "meant": (log,), "tier": 1} | changes)


def test_a_fault_that_fails_by_itself_shows_nothing() -> None:
    slip = _trial_of(lambda: seams.changed("log", 0, lambda gradient: gradient))  # a change takes more than that
    found = campaign.outcome(slip)
    assert found == Outcome(None, trouble=found.trouble)
    assert "TypeError" in found.trouble
    assert deaths.is_bad([(slip, found)])


def test_what_changes_nothing_survives() -> None:
    nothing = _trial_of(nullcontext, row=("vjp_matches_finite_differences",))
    found = campaign.outcome(nothing)
    assert found == Outcome(None, {"vjp_matches_finite_differences": False})
    assert deaths.is_bad([(nothing, found)])
    assert not deaths.is_bad([(replace(nothing, equivalent="it changes nothing"), found)])
    assert "x log survives" in deaths.verdict([(nothing, found)])


def test_an_equivalent_that_is_noticed_fails_the_run() -> None:
    trial = _trial_of(NAMED_BY_NAME["a_fudge_in_the_denominator"].plant, equivalent="it is said")
    found = campaign.outcome(trial)
    assert found.death
    assert deaths.is_bad([(trial, found)])


def test_a_process_that_dies_has_noticed() -> None:
    ((_, found),) = campaign.outcomes([_trial_of(lambda: os._exit(3))], workers=1)
    assert found.death
    assert found.death.error == "exit code 3"


def test_a_shrunk_example_is_small() -> None:
    trial = _trial_of(NAMED_BY_NAME["a_fudge_in_the_denominator"].plant)
    death = campaign.outcome(trial).death
    assert death
    assert death.elements == 2  # one number and its cotangent


def _column(table: Any, title: str) -> list[str]:
    (column,) = (column for column in table.columns if column.header == title)
    return list(column.cells)


def test_the_tables_count_examples_and_faults_by_tier() -> None:
    def death(examples: int | None, elements: int | None = 3) -> Outcome:
        return Outcome(killing.Death("x[log]", examples, 0.1, elements, "Counterexample"))

    generic = {"kind": GENERIC, "tier": 0}
    results = [
        *(
            (_trial_of(nullcontext, **generic), found)
            for found in (death(2), death(8), death(None, None), Outcome(None))
        ),
        *((_trial_of(nullcontext, tier=4), found) for found in (death(3), death(5, 9))),
        (_trial_of(nullcontext, tier=4, equivalent="it changes nothing"), Outcome(None)),
    ]
    (row,) = zip(*(_column(deaths.table_of_generic(results), title) for title in ("ops", "dead", "ex")), strict=True)
    assert row == ("4", "3", "2")  # a death without examples counts as one
    table = deaths.medians(results)
    rows = zip(*(_column(table, title) for title in ("tier", "faults", "dead", "elements, median")), strict=True)
    assert list(rows) == [("4", "2", "2", "6"), (GENERIC, "4", "3", "3")]
    assert _column(table, "examples, median") == ["4 (wanted: at most 50)", "5"]
    assert _column(deaths.table_of_generic([(_trial_of(nullcontext, **generic), Outcome(None))]), "ex") == [""]
