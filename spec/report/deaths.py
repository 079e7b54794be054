"""What became of planted faults, in tables that fit a terminal."""

from __future__ import annotations

import statistics
import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from rich.markup import escape
from rich.table import Table

from ..faults.campaign import GENERIC, Outcome, Trial

Results = Sequence[tuple[Trial, Outcome]]

LIMITS = {1: 5, 2: 5, 4: 50}  # the examples to death that are wanted, as medians, by tier


def survivors(results: Results) -> list[Trial]:
    """The trials that nothing noticed and that no row of the table of equivalents explains."""
    return [trial for trial, found in results if not found.death and not found.trouble and not trial.equivalent]


def noticed_equivalents(results: Results) -> list[Trial]:
    """What is called no fault, and was noticed."""
    return [trial for trial, found in results if found.death and trial.equivalent]


def _table(*columns: tuple[str, Literal["left", "right"]]) -> Table:
    """A table that wraps what is too long, in its widest columns first, and cuts nothing."""
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for title, justify in columns:
        table.add_column(title, justify=justify, overflow="fold")
    return table


def _words(test: str) -> str:
    """A test's name as words, without the op, which has a column of its own."""
    return test.rpartition("::")[2].removeprefix("test_").partition("[")[0].replace("_", " ")


def table_of_named(results: Results) -> Table:
    """One line a named fault: what it is, who noticed it, after how much, and how small the shrunk example is."""
    table = _table(
        ("kind", "left"), ("tier", "right"), ("from", "left"), ("fault", "left"), ("op", "left"),
        ("ex", "right"), ("s", "right"), ("size", "right"), ("killed by", "left"),
    )  # fmt: skip
    for trial, found in results:
        if trial.kind != GENERIC:
            head = (trial.kind, str(trial.tier), trial.origin, trial.fault.replace("_", " "), _short(trial.place))
            table.add_row(*head, *_end(trial, found))
    return table


def _short(op: str) -> str:
    return op.removeprefix("functional.").removeprefix("Tensor.")


def _end(trial: Trial, found: Outcome) -> tuple[str, ...]:
    if found.trouble:
        return "", "", "", f"[red]{escape(found.trouble)}[/red]"
    if not found.death:
        return "", "", "", f"no fault: {trial.equivalent}" if trial.equivalent else "[red]survived[/red]"
    death = found.death
    size = "" if death.elements is None else str(death.elements)
    return str(death.examples or ""), f"{death.seconds:.1f}", size, _words(death.test)


def table_of_generic(results: Results) -> Table:
    """One line a generic fault: in how many ops it was planted and noticed, and by what."""
    table = _table(
        ("wrong rule", "left"), ("ops", "right"), ("dead", "right"), ("equivalent", "right"),
        ("ex", "right"), ("killed by", "left"),
    )  # fmt: skip
    by_fault: dict[str, list[tuple[Trial, Outcome]]] = defaultdict(list)
    for trial, found in results:
        if trial.kind == GENERIC:
            by_fault[trial.fault].append((trial, found))
    for fault, rows in by_fault.items():
        deaths = [found.death for _, found in rows if found.death]
        killers = Counter(_words(death.test) for death in deaths).most_common(3)
        table.add_row(
            fault.replace("_", " "),
            str(len(rows)),
            str(len(deaths)),
            str(sum(bool(trial.equivalent) for trial, _ in rows)),
            f"{statistics.median(death.examples or 1 for death in deaths):g}" if deaths else "",
            ", ".join(f"{name} {count}" for name, count in killers),
        )
    return table


def matrix(results: Results) -> Iterable[Table]:
    """Faults × properties: which of the properties that ran noticed, and what each property is for."""
    asked = [(trial, found) for trial, found in results if found.noticed]
    names = list(dict.fromkeys(name for _, found in asked for name in found.noticed))
    letters = dict(zip(names, string.ascii_letters, strict=False))
    table = _table(("kind", "left"), ("fault", "left"), ("".join(letters.values()), "left"))
    for trial, found in asked:
        cells = {None: " ", True: "●", False: "·"}
        row = "".join(cells[found.noticed.get(name)] for name in names)
        table.add_row(trial.kind if trial.kind != GENERIC else "any", trial.fault.replace("_", " "), row)
    yield table
    legend = _table(("", "left"), ("property", "left"), ("noticed", "right"), ("of", "right"), ("alone", "right"))
    for name in names:
        ran = [found.noticed for _, found in asked if name in found.noticed]
        noticed = [row for row in ran if row[name]]
        alone = sum(sum(row.values()) == 1 for row in noticed)
        legend.add_row(letters[name], name.replace("_", " "), str(len(noticed)), str(len(ran)), str(alone or ""))
    yield legend


def medians(results: Results) -> Table:
    """Examples to death, by tier, beside what is wanted, and the size of the shrunk examples."""
    table = _table(
        ("tier", "left"), ("faults", "right"), ("dead", "right"), ("examples, median", "right"),
        ("most", "right"), ("elements, median", "right"),
    )  # fmt: skip
    tiers: dict[str, list[Outcome]] = defaultdict(list)
    for trial, found in results:
        if not trial.equivalent:
            tiers[str(trial.tier or GENERIC)].append(found)
    for tier, rows in sorted(tiers.items()):
        deaths = [found.death for found in rows if found.death]
        examples = [death.examples for death in deaths if death.examples is not None] or [0]
        sizes = [death.elements for death in deaths if death.elements is not None]
        wanted = LIMITS.get(int(tier)) if tier != GENERIC else None
        middle = statistics.median(examples)
        said = f"{middle:g}" + (f" (wanted: at most {wanted})" if wanted else "")
        table.add_row(
            tier,
            str(len(rows)),
            str(len(deaths)),
            f"[red]{said}[/red]" if wanted and middle > wanted else said,
            str(max(examples)),
            f"{statistics.median(sizes):g}" if sizes else "",
        )
    return table


def tables(results: Results) -> Iterable[tuple[str, Table]]:
    """All that there is to show, each table under its title."""
    if any(trial.kind != GENERIC for trial, _ in results):
        yield "Named faults: examples and seconds to death, elements of the shrunk example", table_of_named(results)
    if any(trial.kind == GENERIC for trial, _ in results):
        yield "Wrong rules, planted in every op", table_of_generic(results)
    if any(found.noticed for _, found in results):
        shown, legend = matrix(results)
        yield "Which properties notice: ● noticed, · not", shown
        yield "What each property is for: the faults that it noticed, of how many, and those that no other did", legend
    yield "By tier", medians(results)


def is_bad(results: Results) -> bool:
    """Whether a fault survived, could not be planted, or was called none and noticed."""
    return any(found.trouble for _, found in results) or bool(survivors(results) or noticed_equivalents(results))


def verdict(results: Results) -> str:
    """The score in a line, and what is wrong with it in more."""
    lines = [f"[red]{trial.fault} {trial.place} survives[/red]" for trial in survivors(results)]
    lines += [f"[red]{trial.fault}: {escape(found.trouble)}[/red]" for trial, found in results if found.trouble]
    lines += [f"[red]{trial.fault} {trial.place} is called no fault, and was noticed[/red]"
              for trial in noticed_equivalents(results)]  # fmt: skip
    dead = sum(bool(found.death) for trial, found in results if not trial.equivalent)
    equivalent = sum(bool(trial.equivalent) for trial, _ in results)
    lines.append(f"{dead} of {len(results) - equivalent} faults dead, {equivalent} equivalents")
    return "\n".join(lines)
