"""A property is one function; it runs for each entry that it concerns, and shares its draws with others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .case import Case, DrawInputs, draw_case
from .entry import OpSpec
from .generate import values
from .ops import SPECS
from .report import ledger

Check = Callable[[Case, st.DataObject], None]

PROPERTIES: dict[str, list[OpSpec]] = {}  # by name: the entries that a property runs for
SHARING: list[list[str]] = []  # the names of the properties that share one draw

DIFFERENTIABLE = [spec for spec in SPECS if not spec.constant]


class Properties:
    """Properties that share a draw: each case that is drawn for an entry is held against all that concern it.

    To draw a case takes longer than to hold a property against it.
    """

    def __init__(self, inputs: DrawInputs = values.inputs):
        self._inputs = inputs
        self._checks: list[tuple[Check, set[str]]] = []
        self._names: list[str] = []
        SHARING.append(self._names)

    def of(self, specs: Iterable[OpSpec]) -> Callable[[Check], Callable[..., None]]:
        """Make ``check(case, data)`` a property of ``specs``. What is returned holds it alone against one entry."""
        chosen = list(specs)

        def decorate(check: Check) -> Callable[..., None]:
            PROPERTIES[check.__name__] = chosen
            self._names.append(check.__name__)
            self._checks.append((check, {spec.name for spec in chosen}))
            return self._held(check.__name__, lambda _spec: [check])

        return decorate

    def test(self) -> Callable[..., None]:
        """The test of them all, for pytest: one for each entry."""
        checks = {spec.name: [check for check, names in self._checks if spec.name in names] for spec in SPECS}
        concerned = [spec for spec in SPECS if checks[spec.name]]
        test = self._held("example", lambda spec: checks[spec.name])
        return pytest.mark.parametrize("spec", concerned, ids=lambda spec: spec.name)(test)

    def _held(self, name: str, checks: Callable[[OpSpec], list[Check]]) -> Callable[..., None]:
        def example(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
            case = draw_case(data, engine, spec, self._inputs)
            for check in checks(spec):
                with ledger.during(spec.name, check.__name__):
                    check(case.copied(), data)  # some write to what they get

        example.__name__ = name
        return given(data=st.data())(example)
