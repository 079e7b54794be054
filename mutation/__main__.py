"""Mutation testing at the command line: ``python -m mutation [smolgrad|spec] [FILE ...]``."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is imported, as conftest.py has it

try:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from . import running
    from .equivalents import EQUIVALENTS
    from .mutants import ROOT, Mutant, sample
    from .running import Verdict
except ImportError as error:
    sys.exit(f'python -m mutation needs {error.name}, which is not installed: pip install -e ".[test,mutation]"')

console = Console()


@dataclass(frozen=True)
class Package:
    """What is mutated: so many places of it, and the tests that must notice."""

    size: int
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()  # folders that are left as they are
    most: float = math.inf  # seconds of the tests that are tried on a mutant, the likeliest to notice first


def _of_the_suite() -> tuple[str, ...]:
    files = (path.relative_to(ROOT) for path in sorted((ROOT / "tests/meta").glob("test_*.py")))
    return tuple(map(str, (file for file in files if file.stem not in ("test_benchmarks", "test_mutation"))))


PACKAGES = {
    "smolgrad": Package(400, ("tests/properties", "tests/parity", "tests/regressions", "tests/trajectories")),
    # A planted fault that is changed is another fault, and an entry that is changed states something else of its op,
    # which that op's own tests hold it to. What looks at other things than spec/ tells nothing of it.
    "spec": Package(150, _of_the_suite(), without=("spec/faults/named", "spec/ops"), most=120.0),
}


def files_of(package: str) -> list[str]:
    """The files of a package, in order."""
    found = sorted(str(path.relative_to(ROOT)) for path in (ROOT / package).rglob("*.py"))
    without = PACKAGES[package].without
    return [file for file in found if not file.startswith(without)]


def main() -> int:
    """Mutate, run, and show what survived: 0, or 1 where a survivor is no known equivalent."""
    parser = argparse.ArgumentParser(
        prog="python -m mutation", description="Change the source at random places: the suite must notice each."
    )
    parser.add_argument("package", choices=PACKAGES, help="spec is judged by tests/meta alone, smolgrad by the others")
    parser.add_argument("files", nargs="*", metavar="FILE", help="in these alone; by default in every file")
    parser.add_argument("--sample", type=int, metavar="N", help="that many mutants: 400 of smolgrad, 150 of spec")
    parser.add_argument("--seed", type=int, default=0, help="of the sample and of what the tests draw; 0 by default")
    parser.add_argument("--examples", type=int, default=10, metavar="N", help="of each property; 10 by default")
    parser.add_argument("-n", type=int, default=os.cpu_count() or 1, metavar="WORKERS", help="processes at a time")
    parser.add_argument(
        "--verdicts", type=Path, metavar="FILE", help="keep them in FILE; what is dead in it is not tried again"
    )
    args = parser.parse_args()
    package = PACKAGES[args.package]
    known = files_of(args.package)
    unknown = [file for file in args.files if file not in known]
    if unknown:
        parser.error(f"{unknown[0]} is no file of {args.package}: paths are relative to {ROOT}")

    began = time.monotonic()
    with console.status("choosing mutants"):
        mutants = [m for m in sample(known, args.sample or package.size, args.seed) if m.file in (args.files or known)]
    kept = _read(args.verdicts)
    waiting = [mutant for mutant in mutants if not kept.get(mutant.key)]
    console.print(f"{len(mutants)} mutants in {len({m.file for m in mutants})} files, seed {args.seed}")
    verdicts = [Verdict(mutant, kept[mutant.key], 0.0) for mutant in mutants if mutant not in waiting]
    with _progress() as progress:
        task = progress.add_task("the suite as it is", total=None)
        settings = (package.tests, args.seed, args.examples, args.n, package.most, _told_unfit)
        for verdict in running.verdicts(ROOT, waiting, known, *settings):
            progress.update(task, description="mutants", total=len(waiting), advance=1)
            verdicts.append(verdict)
            kept[verdict.mutant.key] = verdict.killer
            _write(args.verdicts, kept)
    return _told(verdicts, time.monotonic() - began)


def _told_unfit(tests: list[str]) -> None:
    for test in tests:
        console.print(f"no judge, since it fails without any mutant: {escape(test)}", soft_wrap=True)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


# --- verdicts that are kept -------------------------------------------------------------------------------------------


def _read(path: Path | None) -> dict[tuple[str, ...], str | None]:
    if path is None or not path.exists():
        return {}
    return {tuple(key): killer for key, killer in json.loads(path.read_text())}


def _write(path: Path | None, kept: dict[tuple[str, ...], str | None]) -> None:
    if path is not None:
        path.write_text(json.dumps([[key, killer] for key, killer in kept.items()], indent=0))


# --- what is shown ----------------------------------------------------------------------------------------------------


def _told(verdicts: list[Verdict], seconds: float) -> int:
    dead = [v for v in verdicts if v.killer]
    survivors = [v.mutant for v in verdicts if not v.killer and v.mutant.key not in EQUIVALENTS]
    wrong = [v for v in dead if v.mutant.key in EQUIVALENTS]
    for mutant in sorted(survivors, key=lambda mutant: (mutant.file, mutant.line)):
        _show(mutant)
    for verdict in wrong:
        console.print(
            f"[red]said to be equivalent, and noticed by {escape(verdict.killer or '')}[/red]", soft_wrap=True
        )
        _show(verdict.mutant)
    equivalent = len(verdicts) - len(dead) - len(survivors)
    share = len(dead) / max(1, len(verdicts) - equivalent)
    console.print(
        f"{len(dead)} of {len(verdicts)} mutants dead, {equivalent} equivalents, {len(survivors)} survivors, "
        f"{seconds:.0f} s\nof those that are not equivalent {share:.1%} are dead"
    )
    return int(bool(survivors or wrong))


def _show(mutant: Mutant) -> None:
    console.print(f"[bold]{mutant.file}:{mutant.line}[/bold] {mutant.operator}")
    console.print(f"  [red]- {escape(mutant.before)}[/red]\n  [green]+ {escape(mutant.after)}[/green]", soft_wrap=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
