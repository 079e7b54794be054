"""What a benchmark found, as a table of at most 100 columns and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .timing import Ratio

WIDTH = 100
SLOW = 2  # a ratio above it is shown in red

console = Console(highlight=False)
console.width = min(console.width, WIDTH)


@dataclass(frozen=True)
class Claim:
    """A sentence that the numbers bear out, or do not."""

    text: str
    holds: bool


@dataclass(frozen=True)
class Result:
    """The rows of one benchmark, titles to values, and what is claimed of them."""

    title: str
    rows: list[dict[str, Any]]
    claims: list[Claim]


def show(name: str, result: Result) -> None:
    """Print the table and the claims."""
    console.print(f"\n[bold]{name}[/bold]: {escape(result.title)}")
    table = Table(box=None, pad_edge=False)
    for title, value in result.rows[0].items():
        table.add_column(escape(title), justify="left" if isinstance(value, str) else "right")
    for row in result.rows:
        table.add_row(*map(_cell, row.values()))
    console.print(table)
    for claim in result.claims:
        console.print(f"{'[green]holds[/green]' if claim.holds else '[red]does not hold[/red]'}: {escape(claim.text)}")


def _cell(value: Any) -> str:
    if isinstance(value, Ratio):
        return f"[red]{value}[/red]" if value.median > SLOW else str(value)
    if isinstance(value, float):
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else escape(value)


def show_environment(found: dict[str, Any]) -> None:
    """Print what the run stands on."""
    lines = [
        ", ".join(f"{name} {version}" for name, version in found["versions"].items()),
        f"{found['CPU']}, {found['cores']} cores, load average {', '.join(map(str, found['load average']))}",
    ]
    for blas in found["BLAS"]:
        lines.append("BLAS of NumPy: {library} {version}, kernel {kernel}, threads: {threads}".format(**blas))
    if found["torch"]:
        lines.append("PyTorch: {capability}, threads: {threads}".format(**found["torch"]))
    switches = (f"{name} is {value or 'unset'}" for name, value in found["switches"].items())
    lines.append(", ".join(switches))
    lines.append("times are CPU times; the garbage collector is on where a table does not say otherwise")
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    for name in found["missing"]:
        hint = 'pip install -e ".[benchmarks]"'
        console.print(f"[yellow]{name} is not installed, so nothing is shown beside it:[/yellow] {escape(hint)}")
