"""A pytest plugin that tells ``python -m spec verify`` how far the run is: a line of JSON an event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("smolgrad")
    group.addoption("--events", type=Path, help="append what happens to this file")
    group.addoption("--only", default="", help="ops, separated by commas: run the tests of these alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    only = set(filter(None, config.option.only.split(",")))
    if not only:
        return
    dropped = [item for item in items if _op(item) not in only]
    items[:] = [item for item in items if _op(item) in only]
    config.hook.pytest_deselected(items=dropped)


def _op(item: Any) -> str | None:
    spec = item.callspec.params.get("spec") if hasattr(item, "callspec") else None
    return getattr(spec, "name", None)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.events and not hasattr(config, "workerinput"):  # a worker's events come through its controller
        config.pluginmanager.register(_Teller(config.option.events))


class _Teller:
    def __init__(self, path: Path):
        self.path = path
        self.total = 0

    def _tell(self, **event: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(event) + "\n")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._tell(total=len(session.items))

    @pytest.hookimpl(optionalhook=True)  # of pytest-xdist
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:  # noqa: ARG002
        self._tell(total=len(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self._tell(test=report.nodeid, outcome=report.outcome)
