"""Whether a fault dies: the tests that could notice it are run until they fail, and how soon they do is told."""

from __future__ import annotations

import functools
import importlib
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from smolgrad.autograd import Node, Primitive

from .. import engines, harness
from ..case import draw_case
from ..engines import Engine
from ..entry import Call, OpSpec
from ..ops import BY_NAME
from ..report import catalogue, ledger

run_seed = ""  # conftest enters the run's seed

# As conftest.py has it, but for more examples and no blob. What Hypothesis has otherwise where it sees CI is spelled
# out: no fault's death may depend on where it is planted.
PROFILE: dict[str, Any] = {
    "max_examples": 50,
    "database": None,
    "deadline": None,
    "suppress_health_check": (),
    "print_blob": False,
    "derandomize": False,
    "report_multiple_bugs": False,
    "phases": (Phase.explicit, Phase.generate, Phase.target, Phase.shrink),
}

# Nothing is shrunk: what is asked is only whether a property fails.
LIGHT = {**PROFILE, "max_examples": 25, "phases": (Phase.generate,)}

LIMIT = 20.0  # seconds of this process's own time for one example or call: a fault may make it go on for ever


def randomness(name: str) -> random.Random:
    """Random choices that depend on the run's seed and ``name`` alone."""
    return random.Random(f"{run_seed} {name}")


# --- one test ---------------------------------------------------------------------------------------------------------


class BrokenFaultError(Exception):
    """A fault that fails by itself, which shows nothing of the suite."""


class _TooLong(BaseException):
    """An example has run for longer than ``LIMIT``. No ``except Exception`` of a test may swallow it."""


@dataclass(frozen=True)
class Death:
    """How a test noticed a fault."""

    test: str  # ``vjp_matches_finite_differences[log]`` or ``regressions/test_axes::test_...``
    examples: int | None  # to the first that failed; None for a test without examples
    seconds: float  # to that, without the shrinking
    elements: int | None  # of the arrays that were drawn for the shrunk example; None where nothing was drawn
    error: str


@dataclass
class _Trial:
    """What happens while one test runs."""

    began: float = field(default_factory=time.monotonic)
    examples: int = 0
    first: BaseException | None = None  # what failed first, and when
    seconds: float = 0.0
    elements: int | None = None

    @contextmanager
    def example(self, draws: Iterable[_Counted] = ()) -> Iterator[None]:
        """One example or call; it counts as long as none has failed, and what it raises is raised on."""
        if self.first is None:
            self.examples += 1
        try:
            with _in_time(LIMIT):
                yield
        # A wrong engine may make the code raise anything: a Counterexample, NumPy's refusal of a shape, a TypeError or
        # a RecursionError deep inside, pytest's own failure (no Exception), or nothing in time.
        except (Exception, pytest.fail.Exception, _TooLong) as error:
            if self.first is None:
                self.first, self.seconds = error, time.monotonic() - self.began
            # The last one that fails is the smallest that Hypothesis has found.
            self.elements = sum(data.elements for data in draws) if draws else None
            raise

    def death(self, test: str, drawing: bool) -> Death | None:
        """The death that was seen, if one was."""
        if self.first is None:
            return None
        _refuse_own_mistake(self.first)
        examples = self.examples if drawing else None
        return Death(test, examples, self.seconds, self.elements, type(self.first).__name__)


def _refuse_own_mistake(error: BaseException) -> None:
    """BrokenFaultError where ``error`` is a slip in the code of a fault itself. Shapes that do not fit are none."""
    where = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    slip = isinstance(error, (TypeError, AttributeError, NameError, KeyError))
    if slip and where.is_relative_to(Path(__file__).parent) and where != Path(__file__):
        raise BrokenFaultError(f"{where.name}: {type(error).__name__}: {error}") from error


class _Counted:
    """Hypothesis's ``data``, which counts the elements of the arrays drawn."""

    def __init__(self, data: st.DataObject):
        self._data, self.elements = data, 0

    def draw(self, strategy: Any, label: Any = None) -> Any:
        drawn = self._data.draw(strategy, label)
        self.elements += _elements(drawn)
        return drawn


def _elements(drawn: Any) -> int:
    if isinstance(drawn, Call):
        return _elements(tuple(drawn.params.values()))
    if isinstance(drawn, tuple):
        return sum(map(_elements, drawn))
    return drawn.size if isinstance(drawn, np.ndarray) else 0


@contextmanager
def _in_time(limit: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLong(f"longer than {limit} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(name: str, test: Callable[..., Any], calls: Iterable[dict[str, Any]], **changes: Any) -> Death | None:
    """Call ``test`` with each of ``calls`` until it fails: how, or None where it passes.

    A Hypothesis test runs with ``PROFILE`` and ``changes``, from a seed that the run's and ``name`` make. What is
    compared does not count in the run's ledger.
    """
    trial = _Trial()
    drawing = hasattr(test, "hypothesis")
    called = _drawing(test, trial, name, changes) if drawing else _plain(test, trial)
    with patch.object(ledger, "lines", {}):
        for call in calls:
            trial.examples = 0
            try:
                called(**call)
            except BaseException as error:  # as in _Trial.example, which knows it; all else is our own trouble
                if trial.first is None or isinstance(error, KeyboardInterrupt):
                    raise
                break
    return trial.death(name, drawing)


def _plain(test: Callable[..., Any], trial: _Trial) -> Callable[..., Any]:
    def call(**arguments: Any) -> None:
        with trial.example():
            test(**arguments)

    return call


def _drawing(test: Any, trial: _Trial, name: str, changes: dict[str, Any]) -> Callable[..., Any]:
    inner = test.hypothesis.inner_test

    @functools.wraps(inner)
    def example(**arguments: Any) -> None:
        counted = {key: _Counted(x) if isinstance(x, st.DataObject) else x for key, x in arguments.items()}
        with trial.example([x for x in counted.values() if isinstance(x, _Counted)]):
            inner(**counted)

    strategies = test.hypothesis._given_kwargs  # what the test was given; Hypothesis has no public name for it
    return seed(f"{run_seed} {name}")(settings(**{**PROFILE, **changes})(given(**strategies)(example)))


def fails(test: Callable[..., Any], engine: Engine, spec: OpSpec, **changes: Any) -> bool:
    """Whether the property ``test`` fails for ``spec``, with few examples."""
    return (
        run(f"{test.__name__}[{spec.name}]", test, [{"engine": engine, "spec": spec}], **{**LIGHT, **changes})
        is not None
    )


# --- the tests that could notice a fault ------------------------------------------------------------------------------

# Those first that notice most.
_FIRST = (
    "vjp_matches_finite_differences",
    "gradients_share_no_memory_and_nothing_is_written",
    "second_order_matches_finite_differences_of_the_gradient",
)


@functools.cache
def properties() -> dict[str, Callable[..., Any]]:
    """The properties by name, those first that notice most; those against PyTorch where it is installed."""
    known = catalogue.properties()
    modules = [module for folder in ("properties", "parity") for module in _modules(folder)]
    found = {name: value for module in modules for name, value in vars(module).items()}
    return {name: found[name] for name in dict.fromkeys((*_FIRST, *known)) if name in found}


def _modules(folder: str) -> Iterator[Any]:
    for file in sorted((catalogue.ROOT / "tests" / folder).glob("test_*.py")):
        yield importlib.import_module(f"tests.{folder}.{file.stem}")


def concerned(spec: OpSpec) -> list[str]:
    """The properties that run for ``spec``."""
    return [name for name in properties() if spec in harness.PROPERTIES[name]]


def found(where: str, engine: Engine) -> tuple[Callable[..., Any], list[dict[str, Any]]]:
    """A test by what it is called in ``Death``, and its calls. To be found before anything is planted."""
    file, _, name = where.partition("::")
    if name:
        test = getattr(importlib.import_module("tests." + file.replace("/", ".")), name)
        return test, _calls(test)
    name, _, op = where.removesuffix("]").partition("[")
    return properties()[name], [{"engine": engine, "spec": BY_NAME[op]}]


def _calls(test: Callable[..., Any]) -> list[dict[str, Any]]:
    """The arguments of each call that pytest would make of ``test``."""
    calls: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
            rows = [getattr(row, "values", (row,) if len(names) == 1 else row) for row in mark.args[1]]
            rows = [row if isinstance(row, (tuple, list)) else (row,) for row in rows]
            calls = [{**call, **dict(zip(names, row, strict=True))} for call in calls for row in rows]
    return calls


# --- primitives -------------------------------------------------------------------------------------------------------

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
