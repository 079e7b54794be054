"""When things were made and memory was written: one clock for both.

Every tensor is made at a tick of its own. A version belongs to memory, not to a tensor: a write stamps the array that
owns the buffer with the next tick, and a value that was written later than a record was made is stale to it. So
whatever shares memory (views, ``.T``, ``detach``, ``numpy``, ``as_tensor``) shares its version by itself.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from functools import partial

import numpy as np

tick = itertools.count(1).__next__
latest = 0  # when memory was written last
_lock = threading.Lock()
_owners: dict[int, weakref.ref[np.ndarray]] = {}
_written: dict[int, int] = {}
_recorded: dict[int, int] = {}


def owner(array: np.ndarray) -> np.ndarray:
    """The array at the end of ``array``'s chain of bases: the one that stands for the memory."""
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            array = base
        base = getattr(base, "base", None)
    return array


def stamp(array: np.ndarray, recorded: bool = False) -> None:
    """Note that the memory of ``array`` has just been written; ``recorded`` where the graph knows of the write."""
    global latest
    buffer = owner(array)
    key = id(buffer)
    with _lock:
        latest = tick()
        if key not in _owners:
            _owners[key] = weakref.ref(buffer, partial(_forget, key))
        _written[key] = latest
        if recorded:
            _recorded[key] = latest


def _forget(key: int, _: weakref.ref[np.ndarray]) -> None:
    for table in (_owners, _written, _recorded):
        table.pop(key, None)


def written_after(array: np.ndarray, time: int) -> bool:
    """Whether the memory of ``array`` was written later than ``time``."""
    return _written.get(id(owner(array)), 0) > time


def rewritten_after(array: np.ndarray, time: int) -> bool:
    """Whether a write that the graph knows of reached the memory of ``array`` later than ``time``."""
    return _recorded.get(id(owner(array)), 0) > time
