"""The run: its profile, its seed, the engine under test, and the ledger of what was compared."""

from __future__ import annotations

import gc
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one thread a process: pytest-xdist brings the processes

import pytest
from hypothesis import Phase, Verbosity, settings

import smolgrad  # noqa: F401  all of it, so that no drawn stream depends on which test was asked for
from spec.engines.pytorch import PyTorch
from spec.engines.smolgrad import Smolgrad
from spec.faults import killing
from spec.report import coverage, failure, ledger

ENGINES = {engine.name: engine for engine in (Smolgrad, PyTorch)}
CI_SEED = 1

# Every field is spelled out: Hypothesis has other defaults where it sees CI, and under them it would ignore a seed.
for name, examples in {"dev": 30, "ci": 30, "nightly": 1000, "coverage": 4}.items():
    settings.register_profile(
        name,
        max_examples=examples,
        derandomize=False,
        database=None,  # a run depends on its seed alone
        verbosity=Verbosity.normal,
        phases=(Phase.explicit, Phase.generate, Phase.target, Phase.shrink),
        stateful_step_count=30,
        report_multiple_bugs=False,
        suppress_health_check=(),
        deadline=None,  # a machine may be busy; what is slow shows in --durations
        print_blob=True,
        backend="hypothesis",
    )
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("smolgrad")
    group.addoption("--engine", choices=sorted(ENGINES), default="smolgrad", help="the engine under test")
    group.addoption("--examples", type=int, help="examples of each property, instead of the profile's")
    group.addoption("--ledger", type=Path, help="write what was compared to this JSON file")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # Before Hypothesis's own plugin reads it, and before xdist starts its workers.
    option = config.option
    profile = option.hypothesis_profile or settings.get_current_profile_name()
    if option.hypothesis_seed is None:
        picked = CI_SEED if profile == "ci" else random.SystemRandom().randrange(10**6)
        option.hypothesis_seed = getattr(config, "workerinput", {}).get("hypothesis_seed", str(picked))
    if option.examples:
        settings.register_profile(profile, settings.get_profile(profile), max_examples=option.examples)
        settings.load_profile(profile)
    failure.replay = " ".join(_replay(option))
    killing.run_seed = option.hypothesis_seed


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    # xdist hands its workers the command line alone: of a seed that was picked they would know nothing.
    node.workerinput["hypothesis_seed"] = node.config.option.hypothesis_seed


def _replay(option: Any) -> Iterator[str]:
    """The options that make this run again: what is drawn depends on the number of examples, too."""
    yield f"--hypothesis-seed={option.hypothesis_seed}"
    if option.hypothesis_profile:
        yield f"--hypothesis-profile={option.hypothesis_profile}"
    if option.examples:
        yield f"--examples={option.examples}"
    if option.engine != "smolgrad":
        yield f"--engine={option.engine}"


def pytest_report_header(config: pytest.Config) -> str:
    profile = config.option.hypothesis_profile or settings.get_current_profile_name()
    examples = settings.get_profile(profile).max_examples
    return f"spec: engine {config.option.engine}, profile {profile}, {examples} examples, replay with {failure.replay}"


def pytest_collection_finish() -> None:
    gc.freeze()  # what is imported stays: the collector need not walk PyTorch's modules again and again


@pytest.fixture(scope="session")
def engine(pytestconfig: pytest.Config) -> Any:
    """The engine under test."""
    return ENGINES[pytestconfig.option.engine]()


@pytest.fixture(scope="session")
def everything(pytestconfig: pytest.Config) -> bool:
    """Whether to run the whole of what the default run takes a sample of."""
    return "everything" in pytestconfig.option.markexpr or pytestconfig.option.hypothesis_profile == "nightly"


# --- the ledger, gathered from all processes --------------------------------------------------------------------------

never_met: list[tuple[str, str]] = []  # what the run should have met and did not, once it has ended


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node: Any) -> None:
    ledger.merge(getattr(node, "workeroutput", {}).get("ledger", []))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput["ledger"] = ledger.export()
        return
    if session.config.option.ledger:
        session.config.option.ledger.write_text(json.dumps(ledger.export()))
    few = session.config.option.hypothesis_profile == "coverage"  # its examples promise to reach lines, no more
    if few or session.exitstatus != pytest.ExitCode.OK:
        return
    never_met.extend(coverage.never_met(ENGINES[session.config.option.engine]()))
    if ledger.empty() or never_met:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    total = sum(line.comparisons for line in ledger.lines.values())
    if total:
        terminalreporter.write_line(
            f"ledger: {len(ledger.lines)} pairs of op and property, {total:,} comparisons that could have failed"
        )
    for op, name in ledger.empty():
        terminalreporter.write_line(f"ledger: {name} compared nothing for {op}", red=True)
    for op, condition in never_met:
        terminalreporter.write_line(f"ledger: {op} can meet what this run never did: {condition}", red=True)
    scores = [
        score
        for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed"))
        for name, score in report.user_properties
        if name == "planted faults" and report.when == "call"
    ]
    if scores:
        planted, dead, equivalent = map(sum, zip(*scores, strict=True))
        terminalreporter.write_line(f"planted faults: {dead} of {planted} dead, {equivalent} equivalents")
