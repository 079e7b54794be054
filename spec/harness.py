"""A test function is one property; it runs for each entry that it concerns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .entry import OpSpec
from .ops import SPECS
from .report import ledger

PROPERTIES: dict[str, list[OpSpec]] = {}  # by the name of its test: the entries that a property runs for

DIFFERENTIABLE = [spec for spec in SPECS if not spec.constant]


def for_each(specs: Iterable[OpSpec]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make ``test(engine, spec, data)`` one property, run by Hypothesis for each of ``specs``."""
    chosen = list(specs)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        name = test.__name__.removeprefix("test_")
        PROPERTIES[name] = chosen

        @functools.wraps(test)
        def one_example(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
            with ledger.during(spec.name, name):
                test(engine, spec, data)

        assert list(inspect.signature(test).parameters) == ["engine", "spec", "data"], test
        return pytest.mark.parametrize("spec", chosen, ids=lambda spec: spec.name)(given(data=st.data())(one_example))

    return decorate
