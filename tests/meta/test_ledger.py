"""The ledger's rare conditions: read off cases rightly, asked of the right functions, and missed where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from rich.console import Console

from spec.case import Case, draw_case
from spec.engines.smolgrad import Smolgrad
from spec.entry import OpSpec
from spec.faults.killing import LIGHT
from spec.generate import layouts
from spec.ops import BY_NAME, SPECS
from spec.report import catalogue, coverage, ledger
from spec.report.conditions import CONDITIONS

pytestmark = pytest.mark.usefixtures("lines")
ENGINE = Smolgrad()
NAMES = [f"{group}: {name}" for group, found in CONDITIONS.items() for name in found]
NAN, INF = np.nan, np.inf


def case(op: str, *arrays: Any, cotangent: Any = None, **params: Any) -> Case:
    weights = () if cotangent is None else (np.asarray(cotangent),)
    return Case(ENGINE, BY_NAME[op], params, tuple(map(np.asarray, arrays)), weights)


MATRIX = np.arange(6.0).reshape(2, 3)
ONE = np.ones(3)

# For each condition, a case that meets it and one that nearly does.
EXAMPLES: dict[str, tuple[Case, Case]] = {
    "shapes and slots: size 0": (case("exp", np.ones((2, 0))), case("exp", 1.0)),
    "shapes and slots: 0-d": (case("exp", 1.0), case("exp", [1.0])),
    "shapes and slots: square": (case("exp", np.ones((2, 2))), case("exp", np.ones((1, 1)))),
    "shapes and slots: first stretched": (case("add", [1.0], ONE), case("add", ONE, [1.0])),
    "shapes and slots: other stretched": (case("add", ONE, 1.0), case("setitem", ONE, np.ones((2, 3)), cotangent=ONE)),
    "shapes and slots: one tensor twice": (case("add", ONE, ONE[:1]), case("add", ONE, ONE.copy())),
    "values: both signs": (case("exp", [1.0, 0.0, -1.0]), case("exp", [0.0, -1.0])),
    "values: tie": (case("amax", [2.0, 1.0, 2.0]), case("sum", [2.0, 1.0, 2.0])),
    "values: kink": (case("relu", [1.0, 0.0]), case("relu", [1.0, 2.0])),
    "values: NaN or infinity": (case("exp", [1.0, NAN]), case("exp", [1e300])),
    "values: huge or tiny": (case("exp", [-1e-300]), case("exp", [0.0, INF, 1.0])),
    "axes: None": (case("sum", MATRIX, dim=None), case("exp", MATRIX)),
    "axes: one": (case("sum", MATRIX, dim=0), case("sum", MATRIX, dim=(0,))),
    "axes: from the end": (case("permute", MATRIX, dims=(-2, 1)), case("sum", MATRIX, dim=0, keepdim=True)),
    "axes: several": (case("sum", MATRIX, dim=(0, 1)), case("sum", MATRIX, dim=(0,))),
    "axes: none ()": (case("sum", MATRIX, dim=()), case("sum", MATRIX, dim=None)),
    "axes: kept": (case("sum", MATRIX, dim=0, keepdim=True), case("sum", MATRIX, dim=0, keepdim=False)),
    "indices: repeat": (
        case("getitem", MATRIX, index=np.array([0, -2])),
        case("getitem", MATRIX, index=(np.array([0, 0]), np.array([0, 1]))),
    ),
    "indices: both signs": (
        case("getitem", MATRIX, index=(0, np.array([0, -1]))),
        case("getitem", MATRIX, index=np.array([0, 1])),
    ),
    "indices: mask": (case("getitem", MATRIX, index=MATRIX > 1), case("getitem", MATRIX, index=np.array([1]))),
    "indices: step < 0": (
        case("getitem", MATRIX, index=slice(None, None, -1)),
        case("getitem", MATRIX, index=(slice(-1, None), -1)),
    ),
    "indices: ...": (case("getitem", MATRIX, index=(..., 0)), case("getitem", MATRIX, index=slice(None))),
    "indices: new axis": (case("getitem", MATRIX, index=(0, None)), case("sum", MATRIX, dim=None)),
    "indices: none picked": (
        case("getitem", MATRIX, index=np.zeros((0, 2), int)),
        case("getitem", MATRIX, index=MATRIX < 0),
    ),
    **{
        f"layouts of {what}: {name}": (
            case("exp", layout(MATRIX)) if what == "inputs" else case("exp", MATRIX, cotangent=layout(MATRIX)),
            case("exp", layout(ONE[:1]) if name != "read-only" else MATRIX),
        )
        for what in ("inputs", "cotangents")
        for name, layout in {
            "Fortran": layouts.fortran,
            "reversed": layouts.reversed_,
            "strided": layouts.strided,
            "0 stride": layouts.zero_stride,
            "read-only": layouts.read_only,
        }.items()
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_a_condition_is_read_off_a_case(name: str) -> None:
    meets, nearly = EXAMPLES[name]
    assert name in meets.conditions
    assert name not in nearly.conditions


def test_every_condition_has_an_example() -> None:
    assert list(EXAMPLES) == NAMES


# --- what functions can meet ------------------------------------------------------------------------------------------

CAN: dict[str, tuple[str, str]] = {  # a function that can, and one that cannot
    "shapes and slots: 0-d": ("stack", "cat"),
    "shapes and slots: first stretched": ("matmul", "setitem"),
    "shapes and slots: other stretched": ("functional.linear", "cat"),
    "shapes and slots: one tensor twice": ("cat", "sum"),
    "values: both signs": ("div", "log"),
    "values: tie": ("maximum", "sum"),
    "values: kink": ("clamp", "amax"),
    "values: NaN or infinity": ("exp", "bitwise_and"),
    "axes: None": ("squeeze", "functional.softmax"),
    "axes: one": ("max", "permute"),
    "axes: from the end": ("permute", "exp"),
    "axes: several": ("squeeze", "max"),
    "axes: none ()": ("amax", "argmax"),
    "axes: kept": ("argmax", "squeeze"),
    "indices: repeat": ("functional.embedding", "where"),
    "indices: mask": ("setitem", "functional.embedding"),
    "layouts of cotangents: Fortran": ("exp", "eq"),
}


@pytest.mark.parametrize("name", CAN)
def test_a_function_is_asked_what_it_can_meet(name: str) -> None:
    group, _, condition = name.partition(": ")
    can, cannot = (coverage.Function(ENGINE, BY_NAME[op]) for op in CAN[name])
    assert CONDITIONS[group][condition].possible(can)
    assert not CONDITIONS[group][condition].possible(cannot)


# --- a run ------------------------------------------------------------------------------------------------------------


def run(spec: OpSpec, examples: int = 60) -> None:
    """Cases of ``spec`` that are compared with themselves, under every property."""
    properties = catalogue.properties()  # which imports the tests: Hypothesis wants none made within another

    @seed(0)
    @settings(**{**LIGHT, "max_examples": examples})
    @given(data=st.data())
    def look(data: st.DataObject) -> None:
        drawn = draw_case(data, ENGINE, spec)
        for name, specs in properties.items():
            if BY_NAME[spec.name] in specs:
                with ledger.during(spec.name, name):
                    drawn.require(True, "a case")

    look()


@pytest.fixture
def narrow() -> OpSpec:
    """``sum`` with a generator that has forgotten ``dim=None``, and what the function can do unchanged."""
    spec = BY_NAME["sum"]
    forgetful = spec.calls.map(lambda call: replace(call, params={**call.params, "dim": call.params["dim"] or 0}))
    return replace(spec, calls=forgetful)


def test_a_condition_that_a_narrow_generator_never_meets_fails_the_run(narrow: OpSpec) -> None:
    run(narrow)
    found = coverage.never_met(ENGINE)
    assert ("sum", "axes: None") in found
    assert ("sum", "axes: none ()") in found
    assert ("sum", "axes: one") not in found
    assert {op for op, _ in found} == {"sum"}


def test_a_run_of_few_examples_or_few_properties_is_not_judged(narrow: OpSpec, lines: dict[Any, ledger.Line]) -> None:
    run(narrow, examples=5)
    assert coverage.never_met(ENGINE) == []
    lines.clear()
    run(narrow)
    del lines["sum", "vjp_matches_finite_differences"]
    assert coverage.never_met(ENGINE) == []


def test_a_layout_that_one_of_few_ops_has_not_met_is_chance(lines: dict[Any, ledger.Line]) -> None:
    spec = BY_NAME["sum"]
    run(spec)
    one = next(name for name in catalogue.properties() if name != "vjp_matches_finite_differences")
    lines["sum", one].conditions["layouts of cotangents: reversed"] = 1
    assert not [name for _, name in coverage.never_met(ENGINE) if name.startswith("layouts of cotangents")]


def test_an_example_counts_a_condition_once_and_processes_add_up(lines: dict[Any, ledger.Line]) -> None:
    for _ in range(2):
        with ledger.during("relu", "a property"):
            for _ in range(3):
                case("relu", [0.0, 1.0]).require(True, "a case")
    ledger.merge(ledger.export())
    assert lines["relu", "a property"].conditions == {"values: kink": 4}


def test_the_tables_fit_and_show_what_is_missing() -> None:
    for spec in SPECS:
        with ledger.during(spec.name, "a property"):
            ledger.count(spec.name, 1, conditions=[name for name in NAMES if name != "shapes and slots: 0-d"])
    console = Console(width=80)
    with console.capture() as printed:
        for table in coverage.tables(ledger.lines, [("exp", "shapes and slots: 0-d")], 80):
            assert console.measure(table).minimum <= 80
            console.print(table)
    rows = [line.split() for line in printed.get().splitlines()]
    assert ["exp", "1", "0", "1", "1", "1", "1"] in rows
    assert ["log", "1", "·", "1", "1", "1", "1"] in rows
