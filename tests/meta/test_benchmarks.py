"""``python -m benchmarks``: every benchmark runs, on a plain environment, and none times wrong work."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smolgrad
from benchmarks import chain, memory, ops, overhead, scatter, step, timing
from benchmarks.__main__ import BENCHMARKS
from benchmarks.cases import Case, cases
from benchmarks.environment import ONE_THREAD, PEERS, SWITCHES
from benchmarks.report import WIDTH

ROOT = Path(__file__).parents[2]


def ran(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | variables
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True)


# --- the command line -------------------------------------------------------------------------------------------------


def test_a_quick_run_of_all_is_on_a_plain_environment_and_every_claim_holds(tmp_path: Path) -> None:
    switches = {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_L2_SIZE": "65536"}
    done = ran(["-m", "benchmarks", "--quick", "--json", str(tmp_path / "found.json")], COLUMNS="200", **switches)
    assert done.returncode == 0, done.stderr
    for name, value in switches.items():
        assert f"without {name} (it was {value})" in done.stderr
    assert max(map(len, done.stdout.splitlines())) <= WIDTH
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["environment"]["switches"] == dict.fromkeys(SWITCHES)
    assert {blas["threads"] for blas in found["environment"]["BLAS"]} == {1}
    assert all(blas["kernel"] != "Prescott" for blas in found["environment"]["BLAS"])
    assert list(found["results"]) == list(BENCHMARKS)
    assert all(result["rows"] for result in found["results"].values())


def test_a_peer_that_is_missing_is_named_and_the_rest_is_shown() -> None:
    without = f"import sys; sys.modules.update(dict.fromkeys({PEERS})); import runpy; "
    start = "sys.argv = ['', 'overhead', 'ops', 'step', '--quick']; runpy.run_module('benchmarks', run_name='__main__')"
    done = ran(["-c", without + start], **ONE_THREAD)
    assert done.returncode == 0, done.stderr
    for name in PEERS:
        assert f"{name} is not installed" in done.stdout
    assert "÷ NumPy" in done.stdout
    assert "÷ PyTorch" not in done.stdout


def test_what_it_cannot_do_without_is_named_with_its_remedy() -> None:
    without = "import sys; sys.modules['threadpoolctl'] = None; sys.argv = ['benchmarks']; import runpy; "
    done = ran(["-c", without + "runpy.run_module('benchmarks', run_name='__main__')"], **ONE_THREAD)
    assert done.returncode == 1
    assert "needs threadpoolctl" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_name_is_told_what_there_is() -> None:
    done = ran(["-m", "benchmarks", "opps"])
    assert done.returncode == 2
    assert f"no benchmark is called 'opps'; there are {', '.join(BENCHMARKS)}" in done.stderr


# --- no wrong work is timed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.op} {case.size}")
def test_a_case_is_timed_where_all_agree_and_only_there(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "cases", lambda: [case])
    assert len(ops.run(quick=True).rows) == 1

    for position in range(1 + len(case.shapes)):

        def wrong(*given: Any, position: int = position) -> Any:
            y, gradients = case.by_hand(*given)
            results = [y, *gradients]
            results[position] = results[position] * np.float32(1.001)
            return results[0], tuple(results[1:])

        monkeypatch.setattr(ops, "cases", lambda wrong=wrong: [dataclasses.replace(case, by_hand=wrong)])
        with pytest.raises(ValueError, match=f"result {position} of smolgrad is off"):
            ops.run(quick=True)


def test_a_scatter_that_loses_repeats_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def last_write_wins(buffer: np.ndarray, rows: np.ndarray, g: np.ndarray) -> None:
        buffer[rows] += g

    monkeypatch.setitem(scatter.WAYS, "flat add.at", scatter.pick_with(last_write_wins))
    with pytest.raises(ValueError, match="result 0 of flat add.at is off"):
        scatter.run(quick=True)


def test_a_training_step_with_another_decay_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    adamw = smolgrad.optim.AdamW
    monkeypatch.setattr(smolgrad.optim, "AdamW", lambda params, **given: adamw(params, **given | {"weight_decay": 0.5}))
    with pytest.raises(ValueError, match="a training step: result .* of smolgrad is off"):
        step.run(quick=True)


def test_a_chain_with_another_gradient_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(library: Any, of_leaf: bool) -> Any:  # noqa: ARG001
        return lambda: [np.full(1, 1.0 if library.module is smolgrad else 1.001, np.float32)]

    monkeypatch.setattr(overhead, "contender", found)
    with pytest.raises(ValueError, match="a chain: result 0 of PyTorch is off"):
        overhead.run(quick=True)


def test_recursion_in_a_chain_is_noticed() -> None:
    def deep(levels: int) -> int:
        return levels and 1 + deep(levels - 1)

    assert chain.shallow(lambda: deep(10)) == 10
    with pytest.raises(RecursionError):
        chain.shallow(lambda: deep(chain.FRAMES))
    assert deep(200) == 200  # the limit is as it was


def test_memory_that_is_not_linear_is_noticed() -> None:
    assert chain.linear("swept", [400.0, 420.0]).holds
    assert not chain.linear("swept", [400.0, 4000.0]).holds


# --- how it measures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("collector", [True, False])
def test_contenders_take_turns(collector: bool) -> None:
    turns: list[tuple[str, bool]] = []
    effort = timing.Effort(blocks=3, seconds=1e-9)  # every block is a call
    contenders = {name: lambda name=name: turns.append((name, gc.isenabled())) for name in "abc"}
    times = timing.interleaved(contenders, effort, collector)
    assert [name for name, _ in turns[-9:]] == list("abcbcacab")
    assert {on for _, on in turns[-9:]} == {collector}
    assert gc.isenabled()
    assert {name: len(blocks) for name, blocks in times.items()} == dict.fromkeys("abc", 3)


def test_a_ratio_is_taken_block_by_block() -> None:
    times = {"a": [2.0, 40.0, 3.0, 4.0, 5.0], "b": [2.0, 20.0, 1.0, 1.0, 1.0]}
    assert timing.ratio(times, "a", "b") == timing.Ratio(median=3.0, low=2.0, high=4.0)


def test_a_block_that_took_no_time_the_clock_can_tell_has_no_ratio() -> None:
    some = {"a": [1.0, 2.0, 9.0, 3.0], "b": [1.0, 1.0, 0.0, 1.0]}
    assert timing.ratio(some, "a", "b") == timing.Ratio(median=2.0, low=1.5, high=2.5)
    assert str(timing.ratio({"a": [1.0, 1.0], "b": [0.0, 0.0]}, "a", "b")) == "unknown"


@pytest.mark.parametrize("peak", [memory.resident_growth, memory.traced_peak], ids=lambda peak: peak.__name__)
def test_a_peak_is_that_of_the_function(peak: Any) -> None:
    np.ones(2**24)  # 128 MiB, before it
    found = peak(lambda: np.ones(2**23).sum())  # 64 MiB, let go before it ends
    untold = peak is memory.resident_growth and not memory.CLEAR.exists()  # of Linux alone
    assert found is None if untold else found == pytest.approx(64 * 2**20, rel=0.05)


def test_a_process_of_its_own_that_fails_is_told_of() -> None:
    with pytest.raises(RuntimeError, match=r"measured\('many', True\) ended with 1: (?s:.*)TypeError"):
        memory.fresh(chain.measured, "many", True)
