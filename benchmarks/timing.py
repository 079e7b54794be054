"""Times of contenders that take turns: what disturbs the machine disturbs them all, and their ratio stays."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Times = dict[str, list[float]]


@dataclass(frozen=True)
class Effort:
    """How long to measure: ``blocks`` turns of each contender, each of at least ``seconds``."""

    blocks: int
    seconds: float


FULL, QUICK = Effort(blocks=15, seconds=0.01), Effort(blocks=3, seconds=0.0005)


@dataclass(frozen=True)
class Ratio:
    """The median of a ratio over the blocks, and its quartiles, or NaN; shown with half of what lies between."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isnan(self.median):
            return "unknown"
        return f"{self.median:.2f} ±{(self.high - self.low) / 2:.2f}"


def interleaved(contenders: dict[str, Callable[[], Any]], effort: Effort, collector: bool = True) -> Times:
    """The CPU seconds of a call, one number a block, of each contender.

    They take turns block by block, and another one begins each time. It is the CPU time of the process, with what its
    threads take and without what other processes do. The garbage ``collector`` is on, as in a program: a contender
    whose records lie on cycles has to wait for it.
    """
    number = {name: _calls_that_last(call, effort.seconds) for name, call in contenders.items()}
    times: Times = {name: [] for name in contenders}
    turns = list(contenders)
    with _garbage_collector(collector):
        for _ in range(effort.blocks):
            for name in turns:
                gc.collect()  # nobody pays for what another one left
                times[name].append(_seconds(contenders[name], number[name]) / number[name])
            turns = turns[1:] + turns[:1]
    return times


def ratio(times: Times, name: str, to: str) -> Ratio:
    """How many times the time of ``to`` does ``name`` take, block by block."""
    # A block may take less than the clock of CPU time can tell: it has no ratio.
    ratios = [a / b for a, b in zip(times[name], times[to], strict=True) if b]
    if len(ratios) < 2:
        return Ratio(math.nan, math.nan, math.nan)
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(median, low, high)


def _calls_that_last(call: Callable[[], Any], seconds: float) -> int:
    """How many calls take that long; they are the warm-up, too."""
    number = 1
    while True:
        took = _seconds(call, number)
        if took >= seconds / 2:
            return max(1, round(number * seconds / took))
        number *= 2


def _seconds(call: Callable[[], Any], number: int) -> float:
    began = time.process_time()
    for _ in range(number):
        call()
    return time.process_time() - began


@contextmanager
def _garbage_collector(on: bool) -> Iterator[None]:
    gc.collect()
    gc.freeze()  # what is imported and prepared is nothing to walk through
    (gc.enable if on else gc.disable)()
    try:
        yield
    finally:
        gc.enable()
