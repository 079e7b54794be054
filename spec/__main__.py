"""The specification at the command line: ``python -m spec``, with a subcommand for each thing that it does."""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Table

    from .ops import BY_NAME, SPECS
    from .report import catalogue
except ImportError as error:
    sys.exit(f'python -m spec needs {error.name}, which is not installed: pip install -e ".[test]"')

console = Console(highlight=False)
if not console.is_terminal and "COLUMNS" not in os.environ:
    console.width = 200  # nobody's window: the longest row of any table, in one line

EVERY = 10  # seconds between two lines that tell how far a run is, where there is no terminal for a bar

FEW = 4  # ops that one process has verified before a second has imported what it needs


# --- what a long run shows --------------------------------------------------------------------------------------------


def _progress() -> Progress:
    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    columns += [TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()]
    return Progress(*columns, console=console, transient=True)


def _has_bars() -> bool:
    return console.is_terminal and not console.is_dumb_terminal


@dataclass
class _Work:
    """How much of something is done: a bar of ``progress``, and a line every ``EVERY`` seconds where there are none."""

    progress: Progress
    doing: str
    total: int | None = None
    bad: str = "failed"  # what is said of that which is not well
    done: int = 0
    count: int = 0  # of what is not well

    def __post_init__(self) -> None:
        self.task = self.progress.add_task(self.doing, total=self.total)
        self.began = self.told = time.monotonic()

    def tell(self, **changes: Any) -> None:
        """Show how far it is, after ``changes`` of the fields."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.progress.update(self.task, description=self.doing, total=self.total, completed=self.done)
        now = time.monotonic()
        if not _has_bars() and now - self.told >= EVERY:
            self.told = now
            far = f" {self.done:,} of {self.total:,}, {self.count} {self.bad}," if self.total else ""
            console.print(f"{self.doing}:{far} {now - self.began:.0f} s")


def _status(doing: str) -> Any:
    """Show what is being done meanwhile."""
    if _has_bars():
        return console.status(doing)
    console.print(doing)
    return nullcontext()


# --- list and show ----------------------------------------------------------------------------------------------------


def list_entries(_args: argparse.Namespace) -> int:
    """Every entry, one a line."""
    properties = catalogue.properties()
    count = Counter(spec.name for specs in properties.values() for spec in specs)
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for title in ("op", "inputs", "facts", "rule in smolgrad/", "line", "props"):
        table.add_column(title, no_wrap=title != "facts", justify="right" if title in ("line", "props") else "left")
    home = ""
    for spec in SPECS:
        file, _, line = catalogue.entry(spec).partition(":")
        if file != home:
            home = file
            table.add_row(f"[bold]{file}[/bold]")
        rule = re.sub(r"smolgrad/|primitives/|\.py", "", catalogue.rule(spec))
        table.add_row(
            catalogue.folded(spec.name, console.width - 56),
            catalogue.inputs(spec),
            ", ".join(catalogue.facts(spec)),
            rule,
            line,
            str(count[spec.name]),
        )
    console.print(table)
    console.print(f"{len(SPECS)} entries, {len(properties)} properties")
    return 0


def show(args: argparse.Namespace) -> int:
    """All about one entry."""
    spec = BY_NAME[_known(args.op)]
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_row("inputs", catalogue.inputs(spec))
    facts.add_row("facts", ", ".join(catalogue.facts(spec)) or "smooth everywhere")
    facts.add_row("rule", catalogue.rule(spec))
    facts.add_row("entry", catalogue.entry(spec))
    try:
        facts.add_row("oracle", "\n".join(map(escape, catalogue.oracle(spec))))
    except ImportError:
        facts.add_row("oracle", "PyTorch's op of that name (torch is not installed here)")
    console.print(f"[bold]{spec.name}[/bold]")
    console.print(facts)
    console.print("\n[bold]Calls that are generated[/bold]")
    for program in catalogue.programs(spec, 3):
        console.print(f"\n{catalogue.wrapped(program, console.width)}", markup=False, soft_wrap=True)
    console.print("\n[bold]Properties that are checked[/bold]\n")
    for name, specs in sorted(catalogue.properties().items()):
        if spec in specs:
            console.print(f"  {name.replace('_', ' ')}", soft_wrap=True)
    console.print("\n[bold]Calls that are refused[/bold]\n")
    errors = Table("inputs and parameters", "exception", "its message matches", box=None)
    for wrong in spec.errors:
        errors.add_row(*map(escape, catalogue.refused(wrong)))
    console.print(errors)
    return 0


def _known(name: str) -> str:
    """``name``, which must be an entry's."""
    if name not in BY_NAME:
        near = difflib.get_close_matches(name, BY_NAME, n=5, cutoff=0.5) + [op for op in BY_NAME if name in op]
        hint = f"near it: {', '.join(dict.fromkeys(near))}" if near else "python -m spec list shows all"
        sys.exit(f"no entry is called {name!r}; {hint}")
    return name


# --- running the suite ------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """What became of one run of the properties and of the comparisons with PyTorch."""

    seed: int
    outcomes: dict[str, str]  # of each test
    lines: list[tuple[str, str, dict[str, Any]]]  # of the ledger
    code: int  # pytest's
    output: str
    seconds: float

    def failed(self) -> list[str]:
        return [test for test, outcome in self.outcomes.items() if outcome == "failed"]

    def blind(self) -> list[str]:
        """What compared nothing: in a run of a few examples that is no failure, but proves nothing either."""
        return [
            f"{name} compared nothing for {op}"
            for op, name, line in self.lines
            if line["examples"] and not line["comparisons"]
        ]


def _run_suite(args: argparse.Namespace, seed: int, progress: Progress) -> Run:
    """Run the suite in a process of its own, and show how far it is."""
    with tempfile.TemporaryDirectory() as folder:
        events, ledger, output = (Path(folder) / name for name in ("events", "ledger", "output"))
        events.touch()
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "tests/properties", "tests/parity", "-q", "-p", "spec.report.live"]
        workers = args.n if args.n is not None else "0" if 0 < len(args.ops) <= FEW else "auto"
        command += [f"--events={events}", f"--ledger={ledger}", f"--only={','.join(args.ops)}", f"-n{workers}"]
        command += [f"--hypothesis-seed={seed}", *([f"--examples={args.examples}"] if args.examples else [])]
        command += [f"--engine={args.engine}"] if args.engine else []
        with output.open("w") as out, _ended(command, out) as process:
            outcomes = _follow(process, events, progress, seed)
        lines = json.loads(ledger.read_text()) if ledger.exists() else []
        return Run(seed, outcomes, lines, process.wait(), output.read_text(), time.monotonic() - began)


def _announced(args: argparse.Namespace, doing: str) -> None:
    """Refuse what cannot be run, and say what will be."""
    for module in ("torch", "xdist"):
        if importlib.util.find_spec(module) is None:
            sys.exit(f'{args.command} needs {module}, which is not installed: pip install -e ".[test]"')
    ops = list(map(_known, args.ops))
    what = ", ".join(ops) if 0 < len(ops) <= FEW else f"{len(ops) or len(SPECS)} ops"
    times = f", at most {args.examples} examples of each property" if args.examples else ""
    engine = f", engine {args.engine}" if args.engine else ""
    console.print(f"{doing} {what}{times}{engine}, seed {args.seed}")


# --- verify -----------------------------------------------------------------------------------------------------------


def verify(args: argparse.Namespace) -> int:
    """Run the properties and the comparisons with PyTorch, and tell what was compared."""
    _announced(args, "verifying")
    with _progress() as progress:
        run = _run_suite(args, args.seed, progress)
    if run.code:
        console.print(_failures(run.output), markup=False, soft_wrap=True)
    wanting = run.blind()
    wanting += [
        f"{op} has no row in EXPRESSIONS, spec/oracles/scalar.py: the scalar engine does not vote on it"
        for op in args.ops or BY_NAME
        if catalogue.unvoted(BY_NAME[op])
    ]
    console.print(_table(run.lines, run.outcomes))
    console.print("worst: the largest error, as a fraction of what is allowed, and the property that had it")
    comparisons = sum(line["comparisons"] for _, _, line in run.lines)
    for line in wanting:
        console.print(f"[red]{line}[/red]", soft_wrap=True)
    result = "[red]not verified[/red]" if run.code or wanting else "[green]verified[/green]"
    console.print(
        f"{result}: {len(run.outcomes) - len(run.failed())} of {len(run.outcomes)} tests passed, {comparisons:,} "
        f"comparisons that could have failed, {run.seconds:.0f} s, seed {args.seed}"
    )
    return int(bool(run.code or wanting))


@contextmanager
def _ended(command: list[str], out: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The process of ``command``, which does not outlive the block, whatever ends that."""
    process = subprocess.Popen(command, cwd=catalogue.ROOT, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _follow(process: subprocess.Popen[bytes], events: Path, progress: Progress, seed: int) -> dict[str, str]:
    """Show how far the run is until it ends: the outcome of each test."""
    outcomes: dict[str, str] = {}
    work = _Work(progress, f"seed {seed}: collecting")
    ended = False
    with events.open() as told:
        while not ended:
            ended = process.poll() is not None  # asked before reading, so that the last events are read
            for event in map(json.loads, told):
                if "total" in event:
                    work.tell(total=event["total"], doing=f"seed {seed}: checking")
                    continue
                outcomes[event["test"]] = event["outcome"]
                failed = event["outcome"] == "failed"
                work.tell(done=len(outcomes), count=work.count + failed)
                if failed:
                    progress.console.print(f"[red]failed[/red] {escape(event['test'])}", soft_wrap=True)
            work.tell()
            time.sleep(0.1)
    progress.remove_task(work.task)
    return outcomes


def _failures(output: str) -> str:
    """What pytest printed, from the first failure on; all of it where it did not come so far."""
    lines = [line for line in output.splitlines() if not re.fullmatch(r"[.FsxE]+ *\[ *\d+%\]", line)]
    titles = [i for i, line in enumerate(lines) if line.startswith("=") and line.strip("= ") in ("FAILURES", "ERRORS")]
    return "\n".join(lines[titles[0] :] if titles else lines)


def _table(lines: list[Any], outcomes: dict[str, str]) -> Table:
    """One row an op: its properties, how much was compared, and the worst error as a fraction of what is allowed."""
    by_op: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for op, name, line in lines:
        by_op[op].append((name, line))
    ran = {_op_of(test) for test in outcomes}
    failed = Counter(_op_of(test) for test, outcome in outcomes.items() if outcome == "failed")
    table = Table(box=None, pad_edge=False)
    table.add_column("op", no_wrap=True)
    for title in ("props", "compared", "worst"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("in")
    for spec in SPECS:
        if spec.name not in ran:
            continue
        found = [line for _, line in by_op[spec.name]]
        name, worst = max(((n, line["worst"]) for n, line in by_op[spec.name]), key=lambda x: x[1], default=("", 0.0))
        table.add_row(
            catalogue.folded(spec.name, console.width - 56),
            f"[red]{failed[spec.name]} failed[/red]" if failed[spec.name] else str(len(found)),
            f"{sum(line['comparisons'] for line in found):,}",
            f"{worst:.1g}" if worst else "exact",
            name.replace("_", " ") if worst else "",
        )
    return table


def _op_of(test: str) -> str:
    """The op in the id of a test: ``test_pullbacks[log]``, ``test_wrong_calls[log-0]``."""
    return test.partition("[")[2].removesuffix("]").partition("-")[0]


# --- ulps -------------------------------------------------------------------------------------------------------------


def ulps(args: argparse.Namespace) -> int:
    """Measure ops against mpmath: the worst error of each, in both precisions, and where; 1 where it is too large."""
    from .engines.smolgrad import Smolgrad
    from .oracles import exact

    if unknown := set(args.ops) - set(exact.EXACT):
        sys.exit(f"mpmath is not asked of {', '.join(sorted(unknown))}; it is of {', '.join(exact.EXACT)}")
    names = args.ops or list(exact.EXACT)
    table = Table("op", "dtype", "ulps", "at", box=None, pad_edge=False)
    largest = 0.0
    with _progress() as progress:
        work = _Work(progress, "measuring", len(names), "too large")
        for name in names:
            for dtype in ("float32", "float64"):
                worst = exact.worst(Smolgrad(), name, dtype, args.numbers)
                largest = max(largest, worst.ulps)
                table.add_row(name, dtype, f"{worst.ulps:.2f}", ", ".join(f"{x:.6g}" for x in worst.at))
                work.count += worst.ulps > exact.FEW
            work.tell(done=work.done + 1)
    console.print(table)
    console.print(f"units in the last place of the right result; {exact.FEW} are allowed")
    return int(largest > exact.FEW)


# --- faults -----------------------------------------------------------------------------------------------------------


def faults(args: argparse.Namespace) -> int:
    """Plant faults one by one, and tell who noticed each; 1 where one survives."""
    for module in ("torch", "pytest"):
        if importlib.util.find_spec(module) is None:
            sys.exit(f'faults needs {module}, which is not installed: pip install -e ".[test]"')
    from .faults import campaign, killing
    from .faults.named import KINDS
    from .report import deaths

    ops = set(map(_known, args.op))
    if unknown := set(args.kind) - {*KINDS, campaign.GENERIC}:
        known = ", ".join([*KINDS, campaign.GENERIC])
        sys.exit(f"no kind is called {', '.join(sorted(unknown))}; they are {known}")
    killing.run_seed = str(args.seed)
    with _status("importing the suite"):
        named = set(args.kind) != {campaign.GENERIC}
        generic = not args.kind or campaign.GENERIC in args.kind
        trials = campaign.named() * named + (campaign.wrong_rules(str(args.seed)) if generic else [])
    trials = [t for t in trials if (not args.kind or t.kind in args.kind) and (not ops or t.place in ops)]
    if unknown := set(args.fault) - {trial.fault for trial in trials}:
        sys.exit(f"no fault among these is called {', '.join(sorted(unknown))}")
    trials = [trial for trial in trials if not args.fault or trial.fault in args.fault]
    if args.sample and args.sample < len(trials):
        trials = sorted(random.Random(args.seed).sample(trials, args.sample), key=trials.index)
    console.print(f"planting {len(trials)} faults, seed {args.seed}")
    began, found = time.monotonic(), {}
    with _progress() as progress:
        work = _Work(progress, "planting", len(trials), "survive")
        for trial, outcome in campaign.outcomes(trials, args.n):
            found[trial] = outcome
            survives = bool(outcome.trouble) or not (outcome.death or trial.equivalent)
            work.tell(done=len(found), count=work.count + survives)
            if survives:
                progress.console.print(f"[red]survives[/red] {trial.fault} {trial.place}", soft_wrap=True)
    results = [(trial, found[trial]) for trial in trials]
    for title, table in deaths.tables(results):
        console.print(f"\n[bold]{title}[/bold]\n")
        console.print(table)
    console.print(f"\n{deaths.verdict(results)}, {time.monotonic() - began:.0f} s, seed {args.seed}", soft_wrap=True)
    return int(deaths.is_bad(results))


# --- coverage ---------------------------------------------------------------------------------------------------------


def coverage(args: argparse.Namespace) -> int:
    """Run the suite, and show how often each op met each rare condition; 1 where it can meet one and never did."""
    from .engines.smolgrad import Smolgrad
    from .report import coverage as rare
    from .report.ledger import Line

    _announced(args, "counting the rare conditions of")
    with _progress() as progress:
        run = _run_suite(args, args.seed, progress)
    if run.code:
        console.print(_failures(run.output), markup=False, soft_wrap=True)
    lines = {(op, name): Line(**line) for op, name, line in run.lines}
    with _status("asking the functions what they can meet"):
        never = rare.missed(lines, Smolgrad(), args.ops or BY_NAME)
    for table in rare.tables(lines, never, console.width):
        console.print(table)
        console.print()
    nothing = run.blind()
    for told in nothing:
        console.print(f"[red]{told}[/red]", soft_wrap=True)
    cells = sum(count > 0 for op in rare.totals(lines).values() for count in op.values())
    console.print(
        f"examples of all properties in which an op met a condition; 0: it can, and never did\n"
        f"{cells:,} cells met, {len(never)} empty, {len(nothing)} properties that compared nothing, "
        f"{run.seconds:.0f} s, seed {args.seed}"
    )
    return int(bool(run.code or never or nothing))


# --- alarms -----------------------------------------------------------------------------------------------------------


def alarms(args: argparse.Namespace) -> int:
    """Run the suite from many seeds, in processes of their own: on a right engine each failure is a false alarm."""
    _announced(args, f"{args.seeds} runs, {args.at_once} at a time, of")
    seeds = range(args.seed, args.seed + args.seeds)
    found, runs = 0, 0
    began = time.monotonic()
    with _progress() as progress, ThreadPoolExecutor(args.at_once) as pool:
        work = _Work(progress, "runs", len(seeds), "alarms")
        try:
            for future in as_completed([pool.submit(_run_suite, args, seed, progress) for seed in seeds]):
                run = future.result()
                runs += 1
                count = len(run.failed()) or bool(run.code)
                found += count
                work.tell(done=runs, count=found)
                if count:
                    console.print(_failures(run.output), markup=False, soft_wrap=True)
                console.print(f"seed {run.seed}: {len(run.outcomes)} tests, {int(count)} alarms, {run.seconds:.0f} s")
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    verdict = f"[red]{found} alarms[/red]" if found else "[green]no alarms[/green]"
    console.print(f"{verdict} in {runs} runs, seeds {seeds[0]} to {seeds[-1]}, {time.monotonic() - began:.0f} s")
    return int(found > 0)


def main() -> int:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m spec", description="An executable specification of autograd.")
    commands = parser.add_subparsers(title="commands", dest="command")
    listing = commands.add_parser("list", help="every entry, one a line")
    listing.set_defaults(run=list_entries)
    showing = commands.add_parser("show", help="one entry: its facts, its oracle, calls, properties, refusals")
    showing.add_argument("op", metavar="OP")
    showing.set_defaults(run=show)
    seed = random.SystemRandom().randrange(10**6)
    running = argparse.ArgumentParser(add_help=False)
    running.add_argument("--ops", nargs="+", default=[], metavar="OP", help="these alone")
    running.add_argument("--examples", type=int, metavar="N", help="of each property, instead of the profile's")
    running.add_argument("--seed", type=int, default=seed, help="of everything that is drawn; a new one by default")
    running.add_argument("--engine", metavar="NAME", help="the engine under test, instead of smolgrad: torch, or yours")
    workers = argparse.ArgumentParser(add_help=False)
    workers.add_argument("-n", metavar="WORKERS", help="processes: 0 is one alone, auto one a core")
    verifying = commands.add_parser(
        "verify", parents=[running, workers], help="run every property, and show what was compared"
    )
    verifying.set_defaults(run=verify)
    planting = commands.add_parser("faults", help="plant wrong rules and other faults: each must be noticed")
    planting.add_argument("fault", nargs="*", metavar="FAULT", help="these alone, by name")
    planting.add_argument(
        "--kind", nargs="+", default=[], metavar="K", help="of these kinds: ACC, OWN, FRM, ... or generic"
    )
    planting.add_argument("--op", nargs="+", default=[], metavar="OP", help="in these ops alone")
    planting.add_argument("--sample", type=int, metavar="N", help="that many of them, which the seed chooses")
    planting.add_argument("--seed", type=int, default=seed, help="of everything that is drawn; a new one by default")
    planting.add_argument("-n", type=int, default=os.cpu_count() or 1, metavar="WORKERS", help="processes at a time")
    planting.set_defaults(run=faults)
    covering = commands.add_parser(
        "coverage", parents=[running, workers], help="run every property, and count the rare conditions that were met"
    )
    covering.set_defaults(run=coverage)
    measuring = commands.add_parser("ulps", help="measure elementwise ops against mpmath, on the whole range")
    measuring.add_argument("--ops", nargs="+", default=[], metavar="OP", help="these alone")
    measuring.add_argument(
        "--numbers", type=int, default=1000, metavar="N", help="or pairs, of each op and dtype (1000)"
    )
    measuring.set_defaults(run=ulps)
    alarming = commands.add_parser(
        "alarms", parents=[running], help="run every property from many seeds, and count the false alarms"
    )
    alarming.add_argument("--seeds", type=int, default=10, metavar="N", help="that many runs, --seed being the first's")
    alarming.add_argument("--at-once", type=int, default=2, metavar="RUNS", help="each in one process")
    alarming.set_defaults(run=alarms, n=0)
    args = parser.parse_args()
    if not hasattr(args, "run"):
        parser.print_help()
        return 0
    with warnings.catch_warnings():
        # NumPy's, of what is fed to every op on purpose; pytest ignores them by its configuration.
        warnings.simplefilter("ignore", RuntimeWarning)
        found: int = args.run(args)
    return found


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
