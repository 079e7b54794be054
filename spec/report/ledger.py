"""The ledger: for each op and property, how many comparisons could have failed, how near the worst one came, and in how
many examples the rare conditions were met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass
class Line:
    """One op under one property."""

    examples: int = 0
    comparisons: int = 0  # with a finite, nonzero number: a wrong zero or a NaN would have shown
    worst: float = 0.0  # the largest error, as a fraction of what is allowed
    conditions: dict[str, int] = field(default_factory=dict)  # examples in which what was compared met each

    def add(self, other: Line) -> None:
        self.examples += other.examples
        self.comparisons += other.comparisons
        self.worst = max(self.worst, other.worst)
        self.meet(other.conditions)

    def meet(self, counts: Mapping[str, int]) -> None:
        """Add examples that met conditions."""
        for name, examples in counts.items():
            self.conditions[name] = self.conditions.get(name, 0) + examples


lines: dict[tuple[str, str], Line] = {}
_property: list[str] = []
_met: set[str] = set()  # by the example that is being checked


@contextmanager
def during(op: str, name: str) -> Iterator[None]:
    """One example of the property ``name`` for ``op``."""
    line = lines.setdefault((op, name), Line())
    line.examples += 1
    _property.append(name)
    _met.clear()
    try:
        yield
    finally:
        _property.pop()
        line.meet(dict.fromkeys(_met, 1))


def current_property() -> str:
    """The property that is being checked."""
    return _property[-1] if _property else "no property"


def count(op: str, comparisons: int, ratios: Any = 0.0, conditions: Iterable[str] = ()) -> None:
    """Note comparisons, their errors as fractions of what was allowed, and the conditions that their case meets."""
    _met.update(conditions)
    worst = float(np.max(ratios, initial=0.0))
    lines.setdefault((op, current_property()), Line()).add(Line(0, comparisons, worst))


def export() -> list[tuple[str, str, dict[str, Any]]]:
    """The lines as plain data, to be sent from one process to another."""
    return [(op, name, asdict(line)) for (op, name), line in lines.items()]


def merge(exported: list[tuple[str, str, dict[str, Any]]]) -> None:
    """Add the lines of another process."""
    for op, name, line in exported:
        lines.setdefault((op, name), Line()).add(Line(**line))


SOME = 20  # examples that compare something, if not by chance: where nothing but zeros and masks is drawn, few do


def empty() -> list[tuple[str, str]]:
    """The pairs of op and property that ran, for more than a few examples, and compared nothing."""
    return sorted(pair for pair, line in lines.items() if line.examples >= SOME and not line.comparisons)
