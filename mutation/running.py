"""Running tests on a private copy of the checkout, in processes forked from one that has imported what is slow."""

from __future__ import annotations

import ast
import compileall
import contextlib
import gc
import importlib
import io
import math
import multiprocessing
import os
import py_compile
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import accumulate
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

from .plugin import Chosen, Reaching, Unshrunk

# What the tests import from elsewhere, and what of it is imported at the first use.
HEAVY = ("numpy", "torch", "torch.fx.experimental.symbolic_shapes", "hypothesis.extra.numpy", "hypothesis.stateful")
WHOLE = 3600.0  # seconds that the whole suite may take, as it is
PATIENCE = 20.0  # seconds of its own time that a process may take beyond five times the usual
FEW = 1.5  # seconds of the tests that are tried before all that reach a mutant
UNFIT = 0.01  # of the tests may fail without any mutant: those that need more examples than they get, or shrinking
MEMORY = 8 << 30  # bytes of address space that a mutant may take


@dataclass(frozen=True)
class Mutant:
    """A changed file. It is known by file, operator and the text of the line, as it was and as it is."""

    file: str  # relative to the root, with slashes
    operator: str
    line: int
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.file, self.operator, self.before, self.after


@contextlib.contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of the files of a checkout, but for those that git ignores: no mutant is ever written anywhere else."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder).resolve()
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        # By hash: a mutant may have the size of the original, and the second in which it was written.
        compileall.compile_dir(copy, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        yield copy


@contextlib.contextmanager
def changed(file: Path, source: str) -> Iterator[None]:
    """``file`` has ``source`` as its text."""
    before = file.read_text(encoding="utf-8")
    file.write_text(source, encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(before, encoding="utf-8")


# --- a process --------------------------------------------------------------------------------------------------------


def prepare() -> None:
    """Import what every forked process needs."""
    for name in HEAVY:
        importlib.import_module(name)
    gc.freeze()  # a child's collector need not walk, and so copy, what it has from its parent


def forked(copy: Path, limit: float, task: Callable[[], Any]) -> Any:
    """What ``task`` returns in a process of its own, at home in ``copy``; None where it ends before it returns.

    It may take ``limit`` seconds of its own time, and ten times as many by the clock.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_settle, args=(theirs, copy, limit, task))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(10 * limit) else None
    except EOFError:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):  # where it has not come to be a group of its own
            os.killpg(process.pid, signal.SIGKILL)  # with what it has started
        process.kill()
        process.join()
        ours.close()


def _settle(pipe: Connection, copy: Path, limit: float, task: Callable[[], Any]) -> None:
    os.setsid()
    for kind, most in ((resource.RLIMIT_CPU, int(limit) + 1), (resource.RLIMIT_AS, MEMORY)):
        resource.setrlimit(kind, (most, most))
    here = Path(__file__).parent.parent  # what is imported from now on comes from the copy instead
    sys.path[:] = [str(copy), *(path for path in sys.path if Path(path).resolve() != here)]
    os.chdir(copy)
    with (copy / ".output").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    sys.stdout, sys.stderr = io.TextIOWrapper(io.FileIO(1, "w")), io.TextIOWrapper(io.FileIO(2, "w"))
    found = task()
    sys.stdout.flush()
    pipe.send(found)
    os._exit(0)


def _pytest(tests: Sequence[str], seed: int, *plugins: Any) -> int:
    options = ["--quiet", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=coverage"]
    return int(pytest.main([*options, f"--hypothesis-seed={seed}", *tests], plugins=list(plugins)))


# --- which tests reach what -------------------------------------------------------------------------------------------


@dataclass
class Reach:
    """By test, the seconds it takes; by file and line, the tests that reach it, and "" where importing it does."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    unfit: list[str] = field(default_factory=list)  # tests that fail without any mutant, and are not among the others
    kills: Counter[str] = field(default_factory=Counter)

    def tests(self, file: str, line: int, source: str) -> list[str]:
        """The tests that reach ``line``, or else the least statement around it that some do. And after them all others,
        where none does, or where importing the file runs what stands in a function: what it makes may be used anywhere.
        """
        found, everything = self.lines.get(file, {}), set(self.seconds)
        reaching: set[str] = set()
        for first, last in [(line, line), *_around(source, line)]:
            reaching = {test for n in range(first, last + 1) for test in found.get(n, ()) if test in everything}
            if reaching:
                break
        anywhere = not reaching or ("" in found.get(line, ()) and _is_in_function(source, line))
        return [*self._in_order(reaching), *(self._in_order(everything - reaching) if anywhere else ())]

    def few(self, tests: list[str]) -> list[str]:
        """Those of ``tests`` that come first: two of each function, in four files, in ``FEW`` seconds."""
        seconds = FEW
        chosen: list[str] = []
        functions: Counter[str] = Counter()
        files: set[str] = set()
        for test in tests:
            function, file = _function(test), test.partition("::")[0]
            if functions[function] >= 2 or self.seconds[test] > seconds or len(files | {file}) > 4:
                continue
            chosen.append(test)
            functions[function] += 1
            files.add(file)
            seconds -= self.seconds[test]
        return chosen

    def within(self, tests: list[str], seconds: float) -> list[str]:
        """As many of ``tests`` from the front as take ``seconds``."""
        spent = accumulate(self.seconds[test] for test in tests)
        return [test for test, so_far in zip(tests, spent, strict=True) if so_far <= seconds]

    def _in_order(self, tests: set[str]) -> list[str]:
        """Those first whose function has killed most for the time that it takes."""
        return sorted(tests, key=lambda test: (-(1 + self.kills[_function(test)]) / (0.02 + self.seconds[test]), test))


def _function(test: str) -> str:
    """The test without its parameters."""
    return test.partition("[")[0]


def _around(source: str, line: int) -> list[tuple[int, int]]:
    """The first and last lines of the statements around ``line``, the least first."""
    found = [
        (min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]), node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt)
    ]
    return sorted((span for span in found if span[0] <= line <= span[1]), key=lambda span: span[1] - span[0])


def _is_in_function(source: str, line: int) -> bool:
    """Whether ``line`` stands in the body of a function that has a name, below its first line."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return any(node.body[0].lineno <= line <= (node.end_lineno or line) for node in functions)


def reach(copy: Path, files: list[str], tests: Sequence[str], seed: int, examples: int) -> Reach:
    """Run ``tests`` on the source as it is, and see what they reach of ``files``. RuntimeError where too many fail."""

    def look() -> Any:
        coverage = Coverage(data_file=None, include=[str(copy / file) for file in files], config_file=False)
        noting = Reaching(coverage)
        coverage.start()
        code = _pytest(tests, seed, Unshrunk(examples), noting)
        coverage.stop()
        data = coverage.get_data()
        lines = {}
        for file in files:
            by_line = data.contexts_by_lineno(str(copy / file))
            lines[file] = by_line
        return code, noting.failed, noting.seconds, lines

    told = forked(copy, WHOLE, look)
    code, failed, seconds, lines = told or (None, ["the process ended"], {}, {})
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or len(failed) > UNFIT * len(seconds):
        raise RuntimeError(f"without any mutant: {', '.join(failed)}\n{(copy / '.output').read_text()[-3000:]}")
    return Reach({test: took for test, took in seconds.items() if test not in failed}, lines, failed)


def killer(copy: Path, ids: list[str], seed: int, examples: int, limit: float) -> str | None:
    """The first of the tests ``ids`` that fails in ``copy``, or what else went wrong; None where all pass."""

    def run() -> Any:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        chosen = Chosen(ids)
        files = sorted({test.partition("::")[0] for test in ids})
        code = _pytest(["--exitfirst", "--tb=no", *files], seed, Unshrunk(examples), chosen)
        return code, chosen.killer

    told = forked(copy, limit, run)
    if told is None:
        return "the process ended, or took too long"
    code, test = told
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError(f"none of {ids} was collected")
    return None if code == pytest.ExitCode.OK else test or f"pytest ended with {code}"


# --- verdicts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What noticed a mutant, nothing where it survived, and the seconds that it took."""

    mutant: Mutant
    killer: str | None
    seconds: float


_worker: tuple[Path, Reach, int, int, float]  # of a worker's process: its copy, what reaches what, and the settings


def verdicts(
    root: Path,
    mutants: list[Mutant],
    files: list[str],
    tests: Sequence[str],
    seed: int,
    examples: int,
    workers: int,
    most: float = math.inf,
    unfit: Callable[[list[str]], None] = lambda tests: None,
) -> Iterator[Verdict]:
    """What becomes of each of ``mutants``, as it is known, after the suite was run as it is.

    Tests of at most so many seconds are tried on each; ``unfit`` is told those that fail without any mutant.
    """
    if not mutants:
        return
    prepare()
    with copied(root) as copy:
        reached = reach(copy, files, tests, seed, examples)
        unfit(reached.unfit)
        settings = (copy, reached, seed, examples, most)
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _settle_worker, settings)
        try:
            for future in as_completed([pool.submit(_verdict, mutant) for mutant in mutants]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _settle_worker(copy: Path, *rest: Any) -> None:
    global _worker
    own = copy / f".worker-{os.getpid()}"
    shutil.copytree(copy, own, ignore=shutil.ignore_patterns(".worker-*"))
    _worker = own, *rest


def _verdict(mutant: Mutant) -> Verdict:
    copy, reached, seed, examples, most = _worker
    began = time.monotonic()
    file = copy / mutant.file
    tests = reached.tests(mutant.file, mutant.line, file.read_text(encoding="utf-8"))
    with changed(file, mutant.source):
        found = None
        for ids in (reached.few(tests), reached.within(tests, most)):
            usual = sum(reached.seconds[test] for test in ids)
            found = found or (killer(copy, ids, seed, examples, limit=PATIENCE + 5 * usual) if ids else None)
    reached.kills[_function(found or "")] += 1
    return Verdict(mutant, found, time.monotonic() - began)
