"""The gradient of an embedding, where rows repeat: smolgrad's way of adding them up, and others."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.progress import track

import smolgrad
from smolgrad.autograd import Primitive, Scatter

from .libraries import must_agree
from .report import Claim, Result, console
from .timing import FULL, QUICK, interleaved, ratio

# rows of the table, its width, how many are picked
SIZES = ((64, 1, 256), (64, 16, 64), (1024, 16, 4096), (1024, 64, 256), (1024, 64, 4096), (4096, 512, 1024))
TITLE = "the gradient of an embedding, float32: the same sweep with other ways to add repeated rows"


def run(quick: bool) -> Result:
    """A row for each size and kind of repeats; ValueError where the contenders do not agree."""
    rows = []
    kinds = list(itertools.product(SIZES, REPEATS))
    for (count, width, picks), repeats in track(kinds, "scatter", console=console, transient=True, auto_refresh=False):
        found = contenders(count, width, REPEATS[repeats](count, picks))
        must_agree(f"scatter {count}x{width}", {name: [call()] for name, call in found.items()}, ADD_AT)
        times = interleaved(found, QUICK if quick else FULL)
        row = {"table": f"{count}x{width}", "picks": picks, "repeats": repeats, "µs": min(times["smolgrad"]) * 1e6}
        rows.append(row | {f"÷ {name}": ratio(times, "smolgrad", name) for name in found if name != "smolgrad"})
    slowest = max(row[f"÷ {ADD_AT}"].median for row in rows)
    # Of few values it is np.add.at itself, and what it takes to see that is a few hundredths.
    text = f"not slower than np.add.at of rows by a tenth (the worst ratio is {slowest:.2f})"
    return Result(TITLE, rows, [] if quick else [Claim(text, slowest <= 1.1)])


def zipf(count: int, picks: int) -> np.ndarray:
    """As words of a text: the n-th most frequent row, at a place of its own, 1/n times as often as the first."""
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, count + 1)
    return rng.permutation(count)[rng.choice(count, size=picks, p=weights / weights.sum())]


REPEATS: dict[str, Callable[[int, int], np.ndarray]] = {
    "few": lambda count, picks: np.resize(np.random.default_rng(0).permutation(count), picks),
    "as words": zipf,
    "one row": lambda count, picks: np.full(picks, count // 2),
}


def contenders(count: int, width: int, rows: np.ndarray) -> dict[str, Callable[[], np.ndarray]]:
    """Each gives the gradient of a table of ``count`` rows of which ``rows`` were picked, in a sweep of the engine."""
    rng = np.random.default_rng(1)
    table = smolgrad.from_numpy(rng.standard_normal((count, width), dtype=np.float32)).requires_grad_()
    cotangent = smolgrad.from_numpy(rng.standard_normal((len(rows), width), dtype=np.float32))

    def sweep(output: Any) -> Callable[[], np.ndarray]:
        return lambda: smolgrad.grad(output, [table], cotangent, retain_graph=True)[0].data

    ours = {"smolgrad": sweep(smolgrad.functional.embedding(smolgrad.from_numpy(rows), table))}
    return ours | {name: sweep(pick(table, rows=rows)) for name, pick in WAYS.items()}


def pick_with(add: Callable[[np.ndarray, np.ndarray, np.ndarray], None]) -> Primitive:
    """Picking rows as an op of the engine, whose rule adds with ``add(buffer, rows, values)``: all else is the same."""
    return Primitive(
        "pick",
        lambda x, *, rows: x[rows],
        lambda g, _y, _x, *, rows: Scatter(lambda buffer: add(buffer, rows, g)),
    )


def flat(buffer: np.ndarray, rows: np.ndarray, g: np.ndarray) -> None:
    """np.add.at with a place for every element: the form for which NumPy has a fast loop."""
    width = buffer.shape[1]
    places = rows[:, None] * width + np.arange(width)
    np.add.at(buffer.reshape(-1), places.reshape(-1), g.reshape(-1))


def sorted_runs(buffer: np.ndarray, rows: np.ndarray, g: np.ndarray) -> None:
    """Bring equal rows together and add up each run."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    buffer[ordered[starts]] = np.add.reduceat(g[order], starts, axis=0)


ADD_AT = "add.at"
WAYS = {ADD_AT: pick_with(np.add.at), "flat add.at": pick_with(flat), "sorted": pick_with(sorted_runs)}
