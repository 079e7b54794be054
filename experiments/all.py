"""Every experiment, one after the other: ``python -m experiments.all``, in minutes with ``--quick``.

Without ``--quick`` these are the runs that README.md quotes, which take hours; ``--out experiments/results`` renews
what it quotes. Where no data can be had, an experiment is listed as not run; the digits, which need none, are run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.table import Table

from . import char, digits, divergence, gpt, mnist, run

MAIN = {module.__name__.rpartition(".")[2]: module.main for module in (digits, mnist, divergence, char, gpt)}
FULL = [
    "digits",
    "mnist --torch-twin --dtype float64 --epochs 3 --tag float64-twin",
    "mnist --torch-twin --tag float32-twin",
    "mnist",
    "divergence",
    "char --torch-twin 200",
    "gpt --torch-twin 50 --dtype float64 --steps 50 --tag float64-twin",
    "gpt --torch-twin 100 --steps 100 --tag float32-twin",
    "gpt",
]
QUICK = [
    "digits",
    "mnist --quick",
    "mnist --quick --torch-twin --dtype float64 --tag float64-twin",
    "divergence --quick",
    "char --quick --torch-twin --dtype float64",
    "gpt --quick --torch-twin --dtype float64",
]
OUTCOMES = {0: "[green]ok[/]", 1: "[red]a bound was missed[/]", 2: "[yellow]not run: no data[/]"}
STOPPED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run all, and show how each ended: 0 where no bound was missed, 1 otherwise, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m experiments.all", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="at reduced size, in less than 3 minutes")
    parser.add_argument("--out", type=Path, help="the directory for what is written")
    options = parser.parse_args(arguments)
    where = ["--out", str(options.out or (run.QUICK_RESULTS if options.quick else run.OWN_RESULTS))]
    codes = {}
    for line in QUICK if options.quick else FULL:
        run.console.rule(line)
        name, *rest = line.split()
        codes[line] = run.command(MAIN[name], [*rest, *where])
        if codes[line] == STOPPED:
            return STOPPED
    table = Table("python -m experiments.", "")
    for line, code in codes.items():
        table.add_row(line, OUTCOMES[code])
    run.console.print(table)
    return 1 if 1 in codes.values() else 0


if __name__ == "__main__":
    sys.exit(main())
