"""Forward and backward of typical ops: smolgrad, the same in NumPy by hand, PyTorch and HIPS autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.progress import track

from .cases import Case, cases
from .environment import peer
from .libraries import Library, libraries, must_agree
from .report import Result, console
from .timing import FULL, QUICK, interleaved, ratio

TITLE = "forward and backward, float32, beside NumPy by hand and the peers"
BY_HAND = "NumPy"

Contender = Callable[[], Sequence[Any]]


def run(quick: bool) -> Result:
    """A row a case; ValueError where the contenders do not agree."""
    effort = QUICK if quick else FULL
    rows = []
    for case in track(cases(), "ops", console=console, transient=True, auto_refresh=False):
        found = contenders(case)
        must_agree(f"{case.op} {case.size}", {name: call() for name, call in found.items()}, BY_HAND)
        times = interleaved(found, effort)
        others = [name for name in found if name != "smolgrad"]
        row = {"op": case.op, "size": case.size, "smolgrad µs": min(times["smolgrad"]) * 1e6}
        rows.append(row | {f"÷ {name}": ratio(times, "smolgrad", name) for name in others})
    return Result(TITLE, rows, [])


def contenders(case: Case) -> dict[str, Contender]:
    """Each computes the output of ``case`` and the gradients of its leaves, for one cotangent."""
    leaves = case.leaves()
    shape = case.call(libraries()["smolgrad"], *map(libraries()["smolgrad"].constant, (*leaves, *case.constants))).shape
    g = np.random.default_rng(2).standard_normal(shape, dtype=np.float32)
    found = {name: _in_library(case, library, leaves, g) for name, library in libraries().items()}

    def by_hand() -> Sequence[Any]:
        y, gradients = case.by_hand(g, *leaves, *case.constants)
        return y, *gradients

    found = {"smolgrad": found.pop("smolgrad"), BY_HAND: by_hand, **found}
    return found | ({"autograd": _traced(case, leaves, g)} if peer("autograd") else {})


def _in_library(case: Case, library: Library, leaves: Sequence[np.ndarray], g: np.ndarray) -> Contender:
    tensors, constants, cotangent = (
        list(map(library.leaf, leaves)), list(map(library.constant, case.constants)), library.constant(g)
    )  # fmt: skip

    def both() -> Sequence[Any]:
        y = case.call(library, *tensors, *constants)
        return y, *library.gradients(y, tensors, cotangent)

    return both


def _traced(case: Case, leaves: Sequence[np.ndarray], g: np.ndarray) -> Contender:
    autograd, numpy = peer("autograd"), peer("autograd.numpy")
    pullback_of = autograd.make_vjp(lambda *xs: case.traced(numpy, *xs), tuple(range(len(leaves))))

    def both() -> Sequence[Any]:
        pullback, y = pullback_of(*leaves, *case.constants)
        return y, *pullback(g)

    return both
