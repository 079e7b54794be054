"""A chain of one-element ops, built, swept and dropped: memory is linear in its length, and nothing recurses."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich.progress import track

import smolgrad

from .memory import fresh, resident_growth, traced_peak
from .report import Claim, Result, console

LENGTHS, QUICK = (10_000, 100_000, 1_000_000), (2_000, 8_000)
FRAMES, STACK = 50, 256 * 1024  # what a chain may use of Python's stack, and the bytes of the machine's
SWEPT, UNSWEPT = "swept", "unswept"
PARTS = ("built", "swept", "dropped")
GROWTH = 1.5  # sets and dicts grow by doubling: how full the last ones are is a matter of chance

TITLE = (
    "a chain of one-element multiplies: times and peaks, an op of it\n"
    f"no recursion: it runs on {FRAMES} frames of Python and a stack of {STACK // 1024} KiB, or ends here"
)


def run(quick: bool) -> Result:
    """A row for each length, swept and unswept; RuntimeError from the process that measures it where that recurses."""
    rows = []
    lengths = QUICK if quick else LENGTHS
    kinds = [(length, what) for what in (SWEPT, UNSWEPT) for length in lengths]
    for length, what in track(kinds, "chain", console=console, transient=True):
        rows.append({"chain": what, "ops": length} | fresh(measured, length, what == SWEPT))
    claims = [linear(what, [row["traced B"] for row in rows if row["chain"] == what]) for what in (SWEPT, UNSWEPT)]
    return Result(TITLE, rows, claims)


def linear(what: str, bytes_an_op: list[float]) -> Claim:
    """That a longer chain takes no more bytes an op than a shorter one."""
    growth = bytes_an_op[-1] / bytes_an_op[0]
    text = f"{what}: the longest takes {growth:.2f} times as many bytes an op as the shortest, at most {GROWTH:g}"
    return Claim(text, growth <= GROWTH)


def measured(length: int, sweep: bool) -> dict[str, float | None]:
    """An op's microseconds for each part, and its bytes where the resident set, and what is allocated, peaks."""
    took: dict[str, float] = {}
    resident = resident_growth(lambda: shallow(lambda: took.update(_chain(length, sweep))))
    traced = traced_peak(lambda: shallow(lambda: _chain(length, sweep)))
    times = {f"{part} µs": took.get(part) for part in PARTS}
    return times | {"resident B": resident and resident / length, "traced B": traced / length}


def _chain(length: int, sweep: bool) -> dict[str, float]:
    marks = [time.process_time()]
    x, factor = smolgrad.tensor([1.0], requires_grad=True), smolgrad.tensor([1 + 2**-22])
    y = x
    for _ in range(length):
        y = y * factor
    marks.append(time.process_time())
    if sweep:
        y.backward()
        if x.grad.data != y.data:  # the same products in the same order, with the same bits
            raise ValueError(f"the gradient of a chain is {x.grad}, its value {y}: they are the same product")
        marks.append(time.process_time())
    del y
    marks.append(time.process_time())
    parts = PARTS if sweep else (PARTS[0], PARTS[2])
    return {part: (b - a) / length * 1e6 for part, a, b in zip(parts, marks, marks[1:], strict=False)}


def shallow(function: Callable[[], Any]) -> Any:
    """Run ``function`` in a thread with a small stack, of Python's frames and of the machine's."""

    def limited() -> Any:
        sys.setrecursionlimit(FRAMES)
        try:
            return function()
        finally:
            sys.setrecursionlimit(limit)

    limit, before = sys.getrecursionlimit(), threading.stack_size(STACK)
    try:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(limited).result()
    finally:
        threading.stack_size(before)
