"""pytest plugins for the processes that mutants are tried in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from coverage import Coverage
from hypothesis import Phase, settings


class Unshrunk:
    """Runs Hypothesis with ``examples`` examples and without shrinking: what is asked is only whether a test fails."""

    def __init__(self, examples: int):
        self.examples = examples

    @pytest.hookimpl(trylast=True)  # after conftest's profile was loaded
    def pytest_configure(self) -> None:
        known = settings.get_profile(settings.get_current_profile_name())
        settings.register_profile(
            "mutation", known, max_examples=self.examples, phases=(Phase.explicit, Phase.generate, Phase.target)
        )
        settings.load_profile("mutation")


class Reaching:
    """Notes the seconds that each test takes, and lets coverage note which lines it reaches."""

    def __init__(self, coverage: Coverage):
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - began
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


class Chosen:
    """Runs the tests of ``ids`` in their order, and notes the first that fails."""

    def __init__(self, ids: list[str]):
        self.place = {nodeid: i for i, nodeid in enumerate(ids)}
        self.functions = {nodeid.partition("[")[0] for nodeid in ids}
        self.killer = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: Any, name: str) -> list[Any] | None:
        """Nothing for what holds none of them: calls with all their parameters would be made in vain."""
        nodeid = f"{collector.nodeid}::{name}"
        return None if any(f"{function}::".startswith(f"{nodeid}::") for function in self.functions) else []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.place), key=lambda item: self.place[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.killer:
            self.killer = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.killer:
            self.killer = f"importing {report.nodeid}"
