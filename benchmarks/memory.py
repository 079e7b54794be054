"""Peaks of memory, each taken in an interpreter of its own: what ran before leaves the allocator in another state."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def fresh(function: Callable[..., Any], *arguments: Any) -> Any:
    """What ``function`` of a module gives in a new interpreter; arguments and result are plain data."""
    call = f"from {function.__module__} import {function.__name__} as f; print(json.dumps(f(*{arguments!r})))"
    ran = subprocess.run([sys.executable, "-c", f"import json; {call}"], cwd=ROOT, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{function.__name__}{arguments} ended with {ran.returncode}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


def resident_growth(function: Callable[[], Any]) -> int | None:
    """By how many bytes the resident set grew at its peak while ``function`` ran; None where Linux does not tell."""
    if not CLEAR.exists():
        return None
    CLEAR.write_text("5")  # lets the peak begin at what is resident now: proc(5)
    before = _status("VmRSS")
    function()
    return _status("VmHWM") - before


def _status(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def traced_peak(function: Callable[[], Any]) -> int:
    """How many bytes Python and NumPy had allocated at the peak, of what they allocate while ``function`` runs."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
