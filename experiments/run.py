"""What every experiment shares: both libraries, a training beside its twin, checkpoints, and the record of a run.

An experiment writes its model once, against a ``Library``, and says what a batch, the rate and an evaluation are. Here
it is trained, alone or beside a PyTorch twin that starts from the same weights and sees the same batches; Ctrl-C stops
it after a step, and the same command goes on from there, to the same bits.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import smolgrad

from . import missing
from .data import DataError

try:
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from threadpoolctl import threadpool_info, threadpool_limits
except ImportError as error:
    sys.exit(missing(error))

RESULTS = Path(__file__).parent / "results"  # those that README.md quotes, which --out renews
OWN_RESULTS = RESULTS / "own"
QUICK_RESULTS = RESULTS / "quick"
Data = tuple[np.ndarray, np.ndarray]  # inputs and targets
console = Console(highlight=False)


# --- two libraries ----------------------------------------------------------------------------------------------------


class Library(NamedTuple):
    """smolgrad or PyTorch: the same names in both, but for what stands here."""

    name: str
    root: Any  # tensor, no_grad, where, tanh, the dtypes
    functional: Any
    gelu: Callable[[Any], Any]

    @property
    def nn(self) -> Any:
        return self.root.nn


def _gelu(x: Any) -> Any:
    """x·Φ(x) by its tanh formula: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016)."""
    return 0.5 * x * (1 + smolgrad.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


SMOLGRAD = Library("smolgrad", smolgrad, smolgrad.functional, _gelu)
PYTORCH = Library("PyTorch", torch, torch.nn.functional, lambda x: torch.nn.functional.gelu(x, approximate="tanh"))


@dataclass
class Task:
    """What is trained: ``model`` and ``optimizer`` make one in a library, the rest says what it is fed.

    ``batch`` gives inputs and targets of a step, from its number alone, so that a run can go on from any step. ``rate``
    is the learning rate of a step. ``evaluate`` measures a model, every ``every`` steps.
    """

    model: Callable[[Library], Any]
    optimizer: Callable[[Library, Any], Any]
    batch: Callable[[int], Data]
    rate: Callable[[int], float]
    evaluate: Callable[[Side], dict[str, float]]
    steps: int
    every: int
    observe: Callable[[], dict[str, float]] = dict  # more columns for each logged step
    best: str = ""  # the measure whose highest value chooses the weights to keep, if any


class Side:
    """One library's model and optimizer, and the time that they took."""

    def __init__(self, library: Library, task: Task):
        self.library = library
        self.model = task.model(library)
        self.optimizer = task.optimizer(library, self.model.parameters())
        self.seconds: list[float] = []  # of each step

    def tensor(self, array: np.ndarray) -> Any:
        return self.library.root.tensor(array)

    def loss(self, inputs: np.ndarray, targets: np.ndarray, reduction: str = "mean") -> Any:
        """The cross-entropy of the model's logits (N, classes) with all N of ``targets``, of any shape."""
        logits = self.model(self.tensor(inputs))
        return self.library.functional.cross_entropy(logits, self.tensor(targets.reshape(-1)), reduction=reduction)

    def step(self, inputs: np.ndarray, targets: np.ndarray, rate: float) -> float:
        """One step, and the loss before it."""
        began = time.perf_counter()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self.loss(inputs, targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        found = float(loss.item())
        self.seconds.append(time.perf_counter() - began)
        return found

    def mean_loss(self, inputs: np.ndarray, targets: np.ndarray, size: int) -> float:
        """The loss over all of a set, ``size`` inputs at a time."""
        with self.library.root.no_grad():
            sums = [self.loss(*part, "sum").item() for part in chunks(size, inputs, targets)]
        return float(sum(sums) / targets.size)

    def logits(self, inputs: np.ndarray) -> np.ndarray:
        """What the model says of ``inputs``, with no graph."""
        with self.library.root.no_grad():
            return self.model(self.tensor(inputs)).numpy()

    def classes(self, inputs: np.ndarray, size: int = 1000) -> np.ndarray:
        """The likeliest class of each input."""
        return np.concatenate([self.logits(part).argmax(axis=1) for (part,) in chunks(size, inputs)])

    def accuracy(self, inputs: np.ndarray, classes: np.ndarray) -> float:
        """The fraction of ``inputs`` that gets its own class."""
        return float((self.classes(inputs) == classes).mean())

    def weights(self) -> dict[str, np.ndarray]:
        """The parameters' own memory, by name."""
        return {name: p.detach().numpy() for name, p in self.model.named_parameters()}

    # The optimizer's state is read and written through ``state``, which has the same form in both libraries.

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a step changes."""
        found = {f"weight/{name}": value for name, value in self.weights().items()}
        for i, p in enumerate(self.model.parameters()):
            found |= {f"state/{i}/{key}": np.asarray(value) for key, value in self.optimizer.state.get(p, {}).items()}
        return found

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.restore_weights(below("weight", arrays))
        parameters = list(self.model.parameters())
        for path, value in below("state", arrays).items():
            place, key = path.split("/")
            kept = self.tensor(value) if self.library is PYTORCH else value.item() if value.ndim == 0 else value
            self.optimizer.state.setdefault(parameters[int(place)], {})[key] = kept

    def restore_weights(self, weights: dict[str, np.ndarray]) -> None:
        for name, value in self.weights().items():
            value[...] = weights[name]


def below(name: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose paths begin with ``name/``, by the rest of the path."""
    return {path.removeprefix(f"{name}/"): value for path, value in arrays.items() if path.startswith(f"{name}/")}


def batch(data: Data, size: int, seed: int, step: int) -> Data:
    """The batch of a step: every epoch shows all of ``data``, in an order that depends on seed and epoch alone."""
    epoch, place = divmod(step, batches(data, size))
    order = np.random.default_rng([seed, epoch]).permutation(len(data[0]))
    picked = order[place * size : (place + 1) * size]
    return data[0][picked], data[1][picked]


def batches(data: Data, size: int) -> int:
    """How many there are in an epoch; the last one may be smaller."""
    return -(-len(data[0]) // size)


def chunks(size: int, *arrays: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """``size`` rows of each array at a time."""
    for start in range(0, len(arrays[0]), size):
        yield tuple(array[start : start + size] for array in arrays)


def largest_difference(a: Side, b: Side) -> float:
    """Between two weights of the same place."""
    pairs = zip(a.weights().values(), b.weights().values(), strict=True)
    return max(float(np.abs(x - y).max()) for x, y in pairs)


def twins(task: Task, libraries: tuple[Library, Library] = (SMOLGRAD, PYTORCH)) -> tuple[Side, Side]:
    """Two sides that start from the weights of the first."""
    ours, other = (Side(library, task) for library in libraries)
    other.restore_weights(ours.weights())
    return ours, other


# --- the command line -------------------------------------------------------------------------------------------------


def parser(module: str, doc: str | None, *, dtype: str | None = "float32") -> argparse.ArgumentParser:
    """The options that all experiments have; ``--dtype`` where there is one to choose."""
    found = argparse.ArgumentParser(prog=f"python -m {module}", description=(doc or "").split("\n")[0])
    add = found.add_argument
    add("--quick", action="store_true", help="at a reduced size, in seconds")
    if dtype:
        add("--dtype", choices=("float32", "float64"), default=dtype, help=f"of the weights ({dtype})")
    add("--seed", type=int, default=0, help="of weights and batches (0)")
    add("--threads", type=positive, default=1, help="of BLAS and of PyTorch (1)")
    add("--tag", default="", help="added to the names of the files that are written")
    add("--out", type=Path, help="the directory for them (own/ or, with --quick, quick/ in experiments/results)")
    add("--fresh", action="store_true", help="begin anew, where an interrupted run left a checkpoint")
    return found


def add_twin(found: argparse.ArgumentParser) -> None:
    """The option of a PyTorch twin."""
    text = "train a PyTorch twin on the same batches, step by step, or for the first STEPS alone"
    found.add_argument(
        "--torch-twin", nargs="?", type=positive, const=sys.maxsize, default=0, metavar="STEPS", help=text
    )


def positive(word: str) -> int:
    """An integer from 1 on, for argparse."""
    if (number := int(word)) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


class Interrupted(Exception):
    """Ctrl-C; what has been done is in the checkpoint."""


def command(main: Callable[[list[str] | None], int], arguments: list[str] | None = None) -> int:
    """``main``'s exit code: 0 where all bounds were met, 1 where not, 2 without data, 130 after Ctrl-C."""
    try:
        return main(arguments)
    except DataError as error:
        console.print(f"[red]no data:[/] {error}", soft_wrap=True)
        console.print("python -m experiments.digits needs no download: its data comes with scikit-learn")
        return 2
    except Interrupted as stopped:
        console.print(f"[yellow]interrupted[/] {stopped}", soft_wrap=True)
        return 130


# --- a run ------------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One run of an experiment, as far as it has come, and what is written of it."""

    name: str
    options: argparse.Namespace
    step: int = 0
    rows: list[dict[str, float]] = field(default_factory=list)  # the CSV: a row for each logged step
    evaluations: list[dict[str, float]] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)
    chosen: dict[str, np.ndarray] = field(default_factory=dict)  # the weights of the best evaluation
    best: float = -math.inf
    cpu: float = 0.0  # seconds, of all threads, with evaluations

    def __post_init__(self) -> None:
        threadpool_limits(self.options.threads)
        torch.set_num_threads(self.options.threads)
        smolgrad.manual_seed(self.options.seed)
        self.environment = environment()

    def file(self, ending: str) -> Path:
        """The path of a file of this run: ``mnist-TAG`` and the ending."""
        folder = self.options.out or (QUICK_RESULTS if self.options.quick else OWN_RESULTS)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.name}{'-' if self.options.tag else ''}{self.options.tag}{ending}"

    def check(self, text: str, value: float, *, at_most: float = math.inf, at_least: float = -math.inf) -> None:
        """Hold a result against its bound: what is out of it makes the exit code 1."""
        bound = f"at most {at_most:g}" if at_most < math.inf else f"at least {at_least:g}"
        good = bool(at_least <= value <= at_most)  # a NaN is not
        self.checks.append({"what": text, "value": value, "bound": bound, "met": good})

    def check_twins(self, at_most: float) -> None:
        """Hold the weight difference of the twins, the largest that was logged, against its bound."""
        logged = [row["weight difference"] for row in (*self.rows, *self.evaluations) if "weight difference" in row]
        worst = float(np.nanmax(logged))
        self.check("largest weight difference to PyTorch", worst, at_most=at_most)

    def sample(self, written: str) -> None:
        """Text that a model wrote: shown, and kept as a file."""
        console.print(written, markup=False)
        self.file("-sample.txt").write_text(written + "\n")

    def finish(self) -> int:
        """Write the CSV and the JSON, say how the checks went, drop the checkpoint; the exit code."""
        record = {
            "experiment": self.name,
            "options": self.identity(),
            "environment": self.environment | {"load average at the end": load_average()},
            "results": self.results,
            "checks": self.checks,
            "evaluations": self.evaluations,
        }
        self.file(".json").write_text(json.dumps(record, indent=1) + "\n")
        if self.rows:
            with self.file(".csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, list(self.rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(self.rows)
        for check in self.checks:
            mark = "[green]ok  [/]" if check["met"] else "[red]FAIL[/]"
            console.print(f"{mark} {check['what']}: {check['value']:.6g} ({check['bound']})")
        console.print(f"written: {self.file('.json')}", soft_wrap=True)
        self.file(".checkpoint.npz").unlink(missing_ok=True)
        return 0 if all(check["met"] for check in self.checks) else 1

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def identity(self) -> dict[str, Any]:
        """The options that a result depends on."""
        return {name: value for name, value in vars(self.options).items() if name not in ("out", "fresh")}

    STATE = ("step", "rows", "evaluations", "best", "cpu")

    def save(self, sides: list[Side]) -> None:
        """Write the checkpoint, or leave the one before."""
        arrays = {f"chosen/{name}": value for name, value in self.chosen.items()}
        for side in sides:
            own = side.arrays() | {"seconds": np.array(side.seconds)}
            arrays |= {f"{side.library.name}/{name}": value for name, value in own.items()}
        state = {name: getattr(self, name) for name in self.STATE} | {"options": self.identity()}
        part = self.file(".checkpoint.part")
        with part.open("wb") as file:
            np.savez(file, json=np.array(json.dumps(state)), **arrays)
        part.replace(self.file(".checkpoint.npz"))

    def resume(self, sides: list[Side]) -> None:
        """Go back to where the checkpoint was written, if there is one. SystemExit where it is of another run."""
        path = self.file(".checkpoint.npz")
        if self.options.fresh or not path.exists():
            return
        with np.load(path) as file:
            arrays = dict(file)
        state = json.loads(str(arrays.pop("json")))
        if state["options"] != self.identity():
            differ = sorted(k for k, v in self.identity().items() if state["options"].get(k) != v)
            sys.exit(f"{path} is of a run with other options ({', '.join(differ)}): give --fresh to begin anew")
        for name in self.STATE:
            setattr(self, name, state[name])
        self.chosen = below("chosen", arrays)
        for side in sides:
            own = below(side.library.name, arrays)
            side.seconds = own.pop("seconds").tolist()
            side.restore(own)
        console.print(f"goes on from step {self.step}, where {path.name} was written")

    # --- training -----------------------------------------------------------------------------------------------------

    def train(self, task: Task) -> list[Side]:
        """All steps of ``task``: our side, and the twin's if there is one."""
        self.options.torch_twin = together = min(self.options.torch_twin, task.steps)
        sides = list(twins(task)) if together else [Side(SMOLGRAD, task)]
        self.resume(sides)
        logged, cpu = max(1, task.steps // 500), self.cpu - time.process_time()
        with _progress() as progress, _stoppable() as stop:
            bar = progress.add_task("", total=task.steps, completed=self.step)
            while self.step < task.steps:
                active = sides if self.step < together else sides[:1]
                batch, rate = task.batch(self.step), task.rate(self.step)
                losses = {side.library.name: side.step(*batch, rate) for side in active}
                self.step += 1
                last = self.step == task.steps
                if self.step % logged == 0 or last:
                    self.rows.append(self._row(sides, active, losses) | task.observe())
                progress.update(bar, advance=1, description=f"{self.name}  loss {losses['smolgrad']:.3f}")
                if self.step % task.every == 0 or last:
                    self._evaluate(task, active)
                self.cpu = cpu + time.process_time()
                if stop or last or self.step % task.every == 0:
                    self.save(sides)
                if stop:
                    raise Interrupted(f"after step {self.step} of {task.steps}; the same command goes on from there")
        self._times(sides, together)
        return sides

    def _row(self, sides: list[Side], active: list[Side], losses: dict[str, float]) -> dict[str, float]:
        row: dict[str, float] = {"step": self.step}
        for side in sides:
            row[f"{side.library.name} loss"] = losses.get(side.library.name, math.nan)
            row[f"{side.library.name} seconds"] = side.seconds[-1] if side in active else math.nan
        if len(sides) > 1:
            row["weight difference"] = largest_difference(*sides) if sides == active else math.nan
        return row

    def _evaluate(self, task: Task, active: list[Side]) -> None:
        found: dict[str, float] = {"step": self.step}
        for side in active:
            found |= {f"{side.library.name} {name}": value for name, value in task.evaluate(side).items()}
        if len(active) > 1:
            found["weight difference"] = largest_difference(*active)
        self.evaluations.append(found)
        console.print(*(f"{name} {value:.6g}" for name, value in found.items()), sep=", ")
        if task.best and found[f"smolgrad {task.best}"] > self.best:
            self.best = found[f"smolgrad {task.best}"]
            self.chosen = {name: value.copy() for name, value in active[0].weights().items()}

    def _times(self, sides: list[Side], together: int) -> None:
        digest = hashlib.sha256(b"".join(value.tobytes() for value in sides[0].weights().values()))
        self.results |= {"steps": self.step, "SHA-256 of the weights": digest.hexdigest()}
        self.results["seconds of CPU, with evaluations"] = self.cpu
        self.results["seconds of smolgrad's steps"] = sum(sides[0].seconds)
        for side in sides if together else []:
            part = side.seconds[:together]
            median = float(np.median(part))
            self.results[f"{side.library.name}, {together} interleaved steps"] = {
                "seconds": sum(part),
                "median": median,
            }
            console.print(
                f"{side.library.name}: {sum(part):.1f} s for {together} interleaved steps, median {median:.4f}"
            )


class _Rate(ProgressColumn):
    """Steps a second."""

    def render(self, task: Any) -> str:
        return f"{task.speed:.3g} steps/s" if task.speed else ""


def _progress() -> Progress:
    text, left = TextColumn("{task.description}"), TimeRemainingColumn()
    return Progress(text, BarColumn(), MofNCompleteColumn(), _Rate(), left, TextColumn("left"), console=console)


@contextmanager
def _stoppable() -> Iterator[list[int]]:
    """A list that is empty until Ctrl-C is pressed. The second one acts as ever."""
    asked: list[int] = []

    def ask(number: int, _frame: Any) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


# --- where it ran -----------------------------------------------------------------------------------------------------


def environment() -> dict[str, Any]:
    """What a number may depend on: versions, BLAS and its kernel, threads, the processor and its load, the commit."""
    blas = ("user_api", "internal_api", "version", "architecture", "threading_layer", "num_threads")
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "git commit": _said("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"),
        "versions": {
            "python": platform.python_version(),
            **{module.__name__: module.__version__ for module in (smolgrad, np, torch)},
        },
        "libraries": [{key: pool[key] for key in blas if key in pool} for pool in threadpool_info()],
        "threads of PyTorch": torch.get_num_threads(),
        "variables": {
            name: os.environ[name] for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ
        },
        "processor": f"{platform.machine()}, {os.cpu_count()} cores",
        "load average": load_average(),
    }


def load_average() -> list[float] | None:
    """Of 1, 5 and 15 minutes, where the system tells."""
    return [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None


def _said(*words: str) -> str | None:
    """What a command prints, or None where it fails: a copy of the sources need not be a checkout."""
    try:
        done = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
