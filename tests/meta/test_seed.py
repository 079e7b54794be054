"""A seed is real: it replays the same failing example, whatever was asked for and however many processes run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spec.faults import killing
from spec.report import failure

ROOT = Path(__file__).parents[2]
FILE = "tests/properties/test_kinks.py"
TEST = f"{FILE}::test_kinks[maximum]"

# A wrong engine, for a run of its own.
PLUGIN = """
from smolgrad.primitives import elementwise
from spec.faults.generic import FAULTS, planted

wrong = planted(FAULTS["doubled"], elementwise.maximum.primitive)
wrong.__enter__()
"""


def _failing_example(folder: Path, *options: str, **environment: str) -> tuple[str, str]:
    """The seed that the header of a run with the planted fault shows, and what the run prints about ``TEST``."""
    (folder / "wrong_engine.py").write_text(PLUGIN)
    kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "ignore", *options],
        cwd=ROOT,
        env=kept | {"PYTHONPATH": str(folder), "PYTEST_PLUGINS": "wrong_engine"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    told = re.search(r"_ test_kinks\[maximum\] _.*?(?=\n_{3,} test_|\n={3,})", run.stdout, re.S)
    assert told, run.stdout + run.stderr
    lines = [line for line in told[0].splitlines() if line.startswith("E ")]
    (seed,) = re.findall(r"replay with --hypothesis-seed=(\d+)", run.stdout)
    return seed, re.sub(r" at 0x[0-9a-f]+", "", "\n".join(lines))


def test_one_test_alone_replays_what_two_processes_found_in_the_whole_file(tmp_path: Path) -> None:
    # Under CI Hypothesis has other defaults, among them one that ignores seeds; the profiles spell out theirs.
    seed, found = _failing_example(tmp_path, "-n", "2", FILE)  # the seed that was picked reaches both
    assert "maximum: gradient_at_a_tie_is_right_along_it" in found
    assert "import smolgrad" in found
    assert f"pytest '{TEST}' --hypothesis-seed={seed}" in found
    assert _failing_example(tmp_path, "-n", "0", f"--hypothesis-seed={seed}", TEST, CI="true") == (seed, found)


# --- the choice of a seed ---------------------------------------------------------------------------------------------


@pytest.fixture
def configured(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run's configuration, by its options: the seed that it has, and its header."""
    (conftest,) = (
        plugin
        for plugin in pytestconfig.pluginmanager.get_plugins()
        if Path(getattr(plugin, "__file__", None) or "") == ROOT / "conftest.py"
    )
    monkeypatch.setattr(failure, "replay", failure.replay)
    monkeypatch.setattr(killing, "run_seed", killing.run_seed)

    def configure(**options: Any) -> tuple[str, str]:
        plain = {"hypothesis_seed": None, "hypothesis_profile": None, "examples": None, "engine": "smolgrad"}
        config = SimpleNamespace(option=SimpleNamespace(**plain | options))
        conftest.pytest_configure(config)
        return config.option.hypothesis_seed, conftest.pytest_report_header(config)

    return configure


def test_a_seed_is_picked_where_none_is_given_and_printed(configured: Any) -> None:
    seeds = set()
    for _ in range(3):
        seed, header = configured(hypothesis_profile="dev")
        assert f"--hypothesis-seed={seed}" in header
        seeds.add(seed)
    assert len(seeds) > 1


def test_a_seed_that_is_given_is_taken_and_printed(configured: Any) -> None:
    for profile in ("dev", "ci", "nightly"):
        seed, header = configured(hypothesis_seed="12345", hypothesis_profile=profile)
        assert seed == "12345"
        assert "--hypothesis-seed=12345" in header


def test_ci_has_a_fixed_seed(configured: Any) -> None:
    assert configured(hypothesis_profile="ci")[0] == configured(hypothesis_profile="ci")[0] == "1"
