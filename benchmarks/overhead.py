"""What an op costs where there is nothing to compute: a chain of 2,000 one-element multiplies, swept."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.progress import track

from .libraries import Library, libraries, must_agree
from .report import Claim, Result, console
from .timing import Effort, interleaved, ratio

LENGTH = 2_000
TITLE = f"a chain of {LENGTH:,} one-element multiplies, forward and backward; a row an op of it"
FULL, QUICK = Effort(blocks=30, seconds=0.02), Effort(blocks=3, seconds=0.001)


def run(quick: bool) -> Result:
    """A row for a constant factor and one for a leaf, each with the garbage collector off and on."""
    rows = []
    kinds = list(itertools.product((False, True), (False, True)))
    for of_leaf, collector in track(kinds, "overhead", console=console, transient=True, auto_refresh=False):
        found = {name: contender(library, of_leaf) for name, library in libraries().items()}
        must_agree("a chain", {name: call() for name, call in found.items()}, "smolgrad")
        times = interleaved(found, QUICK if quick else FULL, collector)
        row = {"factor": "a leaf" if of_leaf else "a constant", "collector": "on" if collector else "off"}
        row |= {f"{name} µs": min(times[name]) / LENGTH * 1e6 for name in found}
        if "PyTorch" in found:
            row |= {"best ÷ best": min(times["smolgrad"]) / min(times["PyTorch"])}
            row |= {"÷ PyTorch": ratio(times, "smolgrad", "PyTorch")}
        rows.append(row)
    cheaper = [row["best ÷ best"] < 1 for row in rows if "best ÷ best" in row]
    claim = Claim("a one-element multiply, forward and backward, costs less than PyTorch's", all(cheaper))
    return Result(TITLE, rows, [claim] if cheaper and not quick else [])


def contender(library: Library, of_leaf: bool) -> Callable[[], Sequence[Any]]:
    """Build the chain, sweep it, and give the gradients of its leaves."""
    x = library.leaf(np.ones(1, np.float32))
    factor = (library.leaf if of_leaf else library.constant)(np.full(1, 1 + 2**-12, np.float32))
    leaves = [x, factor] if of_leaf else [x]

    def both() -> Sequence[Any]:
        y = x
        for _ in range(LENGTH):
            y = y * factor
        for leaf in leaves:
            leaf.grad = None
        y.backward()
        return [leaf.grad for leaf in leaves]

    return both
