"""Whether a fault dies: properties run one after the other until one fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from smolgrad.autograd import Node, Primitive

from .. import engines, harness
from ..case import draw_case
from ..engines import Engine
from ..entry import OpSpec
from ..report import ledger
from ..report.failure import Counterexample

run_seed = ""  # conftest enters the run's seed

# Few examples, and none shrunk: what is asked is only whether a property fails.
LIGHT = {
    "max_examples": 25,
    "phases": (Phase.generate,),
    "database": None,
    "deadline": None,
    "print_blob": False,
    "derandomize": False,
    "suppress_health_check": tuple(HealthCheck),
}

# What a fault may be noticed by: a property that does not hold, the engine's own refusal, or NumPy's where a shape or
# an index does not fit or an array is read-only. An error of any other kind is an error of the fault.
NOTICED = (Counterexample, RuntimeError, ValueError, IndexError)


def randomness(name: str) -> random.Random:
    """Random choices that depend on the run's seed and ``name`` alone."""
    return random.Random(f"{run_seed} {name}")


def lightly(test: Callable[..., Any], **changes: Any) -> Callable[..., Any]:
    """A property's test with few examples."""
    body = given(data=st.data())(test.hypothesis.inner_test)  # type: ignore[attr-defined]
    return settings(**{**LIGHT, **changes})(body)


def fails(test: Callable[..., Any], engine: Engine, spec: OpSpec, **changes: Any) -> bool:
    """Whether the property ``test`` fails for ``spec``. What it compares does not count in the run's ledger."""
    with patch.object(ledger, "lines", {}):
        try:
            lightly(test, **changes)(engine=engine, spec=spec)
        except NOTICED:
            return True
    return False


def killer(
    tests: Iterable[Callable[..., Any]], engine: Engine, spec: OpSpec, rounds: Iterable[int] = (25, 250, 2500)
) -> str | None:
    """The name of the first of ``tests`` that fails for ``spec``.

    What lives through a round gets more examples, of the first few properties: Hypothesis draws much alike, and a rare
    case may be missing from a hundred examples.
    """
    concerned = [test for test in tests if spec in harness.PROPERTIES[test.__name__.removeprefix("test_")]]
    for examples in rounds:
        for test in concerned[: max(1, 1000 // examples)]:
            if fails(test, engine, spec, max_examples=examples):
                return test.__name__
    return None


_primitives: dict[str, tuple[Primitive, ...]] = {}


def primitives(engine: Engine, spec: OpSpec) -> tuple[Primitive, ...]:
    """The primitives that calls of ``spec`` record, found once."""
    if spec.name not in _primitives:
        _primitives[spec.name] = _recorded(engine, spec)
    return _primitives[spec.name]


def _recorded(engine: Engine, spec: OpSpec) -> tuple[Primitive, ...]:
    found: dict[str, Primitive] = {}

    @seed(0)  # what an op is made of is a fact, whatever the run's seed
    @settings(**{**LIGHT, "max_examples": 12})
    @given(data=st.data())
    def look(data: st.DataObject) -> None:
        case = draw_case(data, engine, spec)
        with np.errstate(all="ignore"):
            stack = engines.apply(engine, spec, [engine.leaf(a) for a in case.arrays], case.params)
        while stack:
            node = stack.pop()
            if isinstance(node, Node) and node._primitive is not None:
                found[node._primitive.name] = node._primitive
                stack += node._inputs or ()

    look()
    return tuple(found[name] for name in sorted(found))
