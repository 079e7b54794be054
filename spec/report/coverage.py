"""Which rare conditions a run has met, and which it has not, though the function can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from rich.table import Table

from .. import engines
from ..engines import Engine
from ..entry import Call, Domain, OpSpec, Shape
from ..harness import SHARING
from ..ops import BY_NAME, SPECS
from . import ledger
from .catalogue import drawn, folded, properties
from .conditions import CONDITIONS
from .ledger import Line

Lines = Mapping[tuple[str, str], Line]

# In so many cases each condition should have come: the rarest come in one of 28, and 0.964²⁰⁰ is 7·10⁻⁴.
ENOUGH = 200


class Function:
    """What an op can be asked: its entry's facts, and calls like those of the entry, some of which it may refuse."""

    def __init__(self, engine: Engine, spec: OpSpec):
        self.engine, self.spec = engine, spec

    @cached_property
    def calls(self) -> list[Call]:
        """Some calls of the entry, the same ones each time."""
        return drawn(self.spec.calls, 40)

    def most_inputs(self) -> int:
        return max(len(call.shapes) for call in self.calls)

    def domains(self) -> Iterator[Domain]:
        """Those of each input."""
        for call in self.calls:
            yield from self.spec.domains(call)

    def takes(self, **params: Any) -> bool:
        """Whether some call is taken with other values of parameters that it has."""
        changed = (
            replace(call, params=call.params | params) for call in self.calls if params.keys() <= call.params.keys()
        )
        return any(self._outputs(call) is not None for call in changed)

    def takes_0d(self) -> bool:
        """Whether some call is taken with one of its inputs made 0-d, one whose lanes need not be spread."""
        return any(
            self._outputs(Call(call.shapes[:i] + ((),) + call.shapes[i + 1 :], call.params)) is not None
            for call in self.calls
            for i, domain in enumerate(self.spec.domains(call))
            if not domain.spread
        )

    def takes_matrices(self) -> bool:
        """Whether some call has an input of two dimensions or more, or is taken with all of its inputs so."""
        return any(
            max(map(len, call.shapes), default=0) > 1
            or self._outputs(Call(((2, 2),) * len(call.shapes), call.params)) is not None
            for call in self.calls
        )

    def stretches(self, *shapes: Shape) -> bool:
        """Whether some call is taken with inputs of these ``shapes``, and its output is of all of them together."""
        whole = np.broadcast_shapes(*shapes)
        return any(
            [y.shape for y in self._outputs(Call(shapes, call.params)) or ()] == [whole]
            for call in self.calls
            if len(call.shapes) >= len(shapes)
        )

    def _outputs(self, call: Call) -> list[np.ndarray] | None:
        arrays = [np.ones(shape, "int64" if self.spec.integer else "float64") for shape in call.shapes]
        try:
            return engines.forward(self.engine, self.spec, arrays, call.params)
        except engines.REFUSALS:
            return None


def totals(lines: Lines) -> dict[str, Counter[str]]:
    """For each op, the examples that met each condition, under all properties."""
    found: dict[str, Counter[str]] = {}
    for (op, _), line in lines.items():
        found.setdefault(op, Counter()).update(line.conditions)
    return found


def missed(lines: Lines, engine: Engine, ops: Iterable[str]) -> list[tuple[str, str]]:
    """The pairs of op and condition, as ``group: name``, that were never met, though the op's function can."""
    met = totals(lines)
    found = []
    for op in ops:
        function = Function(engine, BY_NAME[op])
        for group, conditions in CONDITIONS.items():
            for name, condition in conditions.items():
                if not met.get(op, Counter())[f"{group}: {name}"] and condition.possible(function):
                    found.append((op, f"{group}: {name}"))
    return found


def _chances(lines: Lines, op: str, condition: str, everything: bool) -> int:
    """The cases of ``op`` under the properties that ever met ``condition``, for any op; of all, if none did.

    In a run that is not of ``everything`` those count that met another condition of its group: that none of a few ops
    met one is chance. Properties that share a draw see the same cases.
    """
    group = condition.partition(": ")[0]
    sought = [condition] if everything else [f"{group}: {name}" for name in CONDITIONS[group]]
    meeting = {name for (_, name), line in lines.items() if any(other in line.conditions for other in sought)}
    examples = {
        name: line.examples for (o, name), line in lines.items() if o == op and (name in meeting or not meeting)
    }
    return sum(max((examples.get(name, 0) for name in names), default=0) for names in SHARING)


def never_met(engine: Engine) -> list[tuple[str, str]]:
    """``missed`` of this run's ledger, where that is no matter of chance, for the ops that every property ran for."""
    lines = ledger.lines
    if not lines:
        return []
    some_missing = {
        spec.name for name, specs in properties().items() for spec in specs if (spec.name, name) not in lines
    }
    whole = [spec.name for spec in SPECS if spec.name not in some_missing]
    return [
        (op, name)
        for op, name in missed(lines, engine, whole)
        if _chances(lines, op, name, everything=not some_missing) >= ENOUGH
    ]


def tables(lines: Lines, never: Iterable[tuple[str, str]], width: int) -> Iterator[Table]:
    """For each group of conditions, one row an op: the examples that met each, red where none did and one should.

    They fit ``width`` columns.
    """
    met, gaps = totals(lines), {*never}
    for group, conditions in CONDITIONS.items():
        keys = [f"{group}: {name}" for name in conditions]
        counts = {spec.name: met.get(spec.name, Counter()) for spec in SPECS}
        shown = [op for op in counts if any(counts[op][key] or (op, key) in gaps for key in keys)]
        # A column is as wide as its longest number or word; a title of several words is wrapped.
        columns = [max(map(len, [*name.split(), *(f"{counts[op][key]:,}" for op in shown)]))
                   for name, key in zip(conditions, keys, strict=True)]  # fmt: skip
        table = Table(title=group, title_justify="left", title_style="bold", box=None, pad_edge=False)
        table.add_column("op", no_wrap=True)
        for name, column in zip(conditions, columns, strict=True):
            table.add_column(name, justify="right", width=column)
        for op in shown:
            cells = ["[red]0[/red]" if (op, key) in gaps else f"{counts[op][key]:,}" if counts[op][key] else "·"
                     for key in keys]  # fmt: skip
            table.add_row(folded(op, width - sum(columns) - 2 * len(columns)), *cells)
        if shown:
            yield table
