"""A comparison can fail: for each way of being wrong there is one that does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spec.case import BITS, ROUNDING, Case
from spec.engines.smolgrad import Smolgrad
from spec.ops import BY_NAME
from spec.oracles.finite_differences import Slope
from spec.report import ledger
from spec.report.failure import Counterexample

pytestmark = pytest.mark.usefixtures("lines")
ROOT = Path(__file__).parents[2]
NAN, INF = np.nan, np.inf


def case() -> Case:
    return Case(Smolgrad(), BY_NAME["neg"], {}, (np.ones(2),), (np.ones(2),))


def compare(got: Any, want: Any, allowed: Any = None) -> None:
    case().compare("a number", np.asarray(got), np.asarray(want), allowed)


UNEQUAL = {
    "another number": ([1.0, 2.0], [1.0, 3.0]),
    "NaN for 0": ([NAN, 1.0], [0.0, 1.0]),
    "0 for NaN": ([0.0, 1.0], [NAN, 1.0]),
    "inf for -inf": ([INF, 1.0], [-INF, 1.0]),
    "inf for NaN": ([INF, 1.0], [NAN, 1.0]),
    "inf for the largest number": ([INF], [1e308]),
    "the largest number for inf": ([1e308], [INF]),
    "NaN in one place, and in another": ([NAN, 1.0], [1.0, NAN]),
    "one integer off": ([1, 2], [1, 3]),
    "a bool": ([True, False], [True, True]),
    "a large one, one part in 10⁹ off": ([1e9 + 1], [1e9]),
    "a small one beside a large": ([1e-3, 1e3], [2e-3, 1e3]),
    "a 0-d shape for one element": (1.0, [1.0]),
    "a row for a column": ([[1.0, 1.0]], [[1.0], [1.0]]),
    "nothing for nothing of another shape": (np.zeros((0, 2)), np.zeros((2, 0))),
    "float32 for float64": (np.ones(2, np.float32), np.ones(2)),
    "int32 for int64": (np.ones(2, np.int32), np.ones(2, np.int64)),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_what_is_not_equal_fails(name: str) -> None:
    with pytest.raises(Counterexample):
        compare(*UNEQUAL[name])


EQUAL = {
    "the same": ([1.0, -2.0], [1.0, -2.0]),
    "NaN and infinities in the same places": ([NAN, INF, -INF, 1.0], [NAN, INF, -INF, 1.0]),
    "zeros of either sign": ([0.0], [-0.0]),
    "nothing": (np.zeros((0, 2)), np.zeros((0, 2))),
    "rounded": ([1.0 + 2.0**-52, 1e6], [1.0, 1e6]),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_passes(name: str) -> None:
    compare(*EQUAL[name])


@pytest.mark.parametrize(("want", "allowed"), [(4.0, None), (4.0, 2.0**-10), (1e6, 2.0**-10)])
def test_the_tolerance_is_what_it_says(want: float, allowed: float | None) -> None:
    tolerance = ROUNDING * (1 + want) if allowed is None else allowed
    compare([want + 0.9 * tolerance], [want], allowed)
    with pytest.raises(Counterexample):
        compare([want + 1.1 * tolerance], [want], allowed)


def test_an_exact_comparison_allows_nothing() -> None:
    compare([1.0, -0.0], [1.0, 0.0], 0.0)
    with pytest.raises(Counterexample):
        compare([1.0 + 2.0**-52], [1.0], 0.0)


@pytest.mark.parametrize("got", [1.0 + 2.0**-52, -1.0, NAN], ids=str)
def test_a_comparison_of_bits_notices_any_bit(got: float) -> None:
    compare([1.0, NAN, -0.0, INF], [1.0, NAN, -0.0, INF], BITS)
    with pytest.raises(Counterexample):
        compare([got], [1.0], BITS)


def test_a_comparison_of_bits_tells_zeros_apart() -> None:
    with pytest.raises(Counterexample, match=r"got: -0\.0\s+want: 0\.0"):
        compare([-0.0], [0.0], BITS)


def test_what_is_exact_has_few_digits_everywhere() -> None:
    assert case().is_exact([np.array([1.0, -(2.0**-10)]), np.zeros((0, 2)), np.array(3)])
    assert not case().is_exact([np.ones(2), np.array([1.0, 1 / 3])])
    assert not case().using(spec=BY_NAME["exp"]).is_exact([np.ones(2)])


def test_a_failure_names_the_first_wrong_element() -> None:
    with pytest.raises(Counterexample, match=r"at \[1, 0\]\s+got: 7\.0\s+want: 3\.0"):
        compare([[1.0, 2.0], [7.0, 8.0]], [[1.0, 2.0], [3.0, 4.0]])


def test_gradients_are_compared_for_each_input() -> None:
    with pytest.raises(ValueError, match="zip"):
        case().compare_gradients([np.ones(2)], [])
    with pytest.raises(Counterexample, match="input 1"):
        case().compare_gradients([np.ones(2), np.ones(2)], [np.ones(2), np.zeros(2)])


def test_what_is_required_and_does_not_hold_fails() -> None:
    case().require(True, "a law")
    with pytest.raises(Counterexample, match="a law"):
        case().require(False, "a law")


@pytest.mark.parametrize(("value", "widest"), [(0.0, 1e-6), (1e3, 1e-3)])
def test_finite_differences_that_are_too_uncertain_fail(value: float, widest: float) -> None:
    case().require_narrow(Slope(np.array([value]), np.array([0.9 * widest])))
    for bar in (1.1 * widest, INF, NAN):
        with pytest.raises(Counterexample, match="domain is wrong"):
            case().require_narrow(Slope(np.array([value]), np.array([bar])))


# --- the ledger -------------------------------------------------------------------------------------------------------

NOTHING = {"size 0": np.zeros((0, 3)), "zeros": np.zeros(3), "NaN": np.full(3, NAN), "infinities": np.full(3, INF)}


@pytest.mark.parametrize("name", NOTHING)
def test_what_could_not_have_failed_does_not_count(name: str, lines: dict[Any, ledger.Line]) -> None:
    for examples in range(ledger.SOME):
        assert ledger.empty() == [], examples
        with ledger.during("neg", "a property"):
            compare(NOTHING[name], NOTHING[name])
            compare([1.0], [1.0], INF)  # anything is allowed
    assert lines["neg", "a property"].comparisons == 0
    assert ledger.empty() == [("neg", "a property")]
    with ledger.during("neg", "a property"):
        compare([0.0, 2.0, NAN], [0.0, 2.0, NAN])
    assert (lines["neg", "a property"].comparisons, lines["neg", "a property"].examples) == (1, ledger.SOME + 1)
    assert ledger.empty() == []


def test_the_lines_of_two_processes_add_up(lines: dict[Any, ledger.Line]) -> None:
    for worst in (0.25, 0.5):
        with ledger.during("neg", "a property"):
            ledger.count("neg", 3, worst)
    exported = ledger.export()
    ledger.merge(exported)
    assert lines["neg", "a property"] == ledger.Line(4, 12, 0.5)


def test_a_property_that_compares_nothing_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "blind.py").write_text("from spec.report import ledger\nledger.count = lambda *args, **kwargs: None\n")
    test = "tests/properties/test_vjp.py::test_pullbacks[neg]"
    command = [sys.executable, "-m", "pytest", "-p", "blind", "-p", "no:cacheprovider", "--examples=25", test]
    run = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": str(tmp_path), "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout + run.stderr
    assert "1 passed" in run.stdout
    assert "ledger: vjp_matches_finite_differences compared nothing for neg" in run.stdout
