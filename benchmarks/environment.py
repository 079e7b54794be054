"""What a run stands on: an environment made right before NumPy is there, and told with every result."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

# OpenBLAS's switches for another kernel, or other blocks, than it would choose for the machine.
SWITCHES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PEERS = ("torch", "autograd")


def restart_where_it_is_not_plain() -> None:
    """Start this command again without the switches and with one thread. BLAS reads both as it is loaded, only then."""
    plain = {name: value for name, value in os.environ.items() if name not in SWITCHES} | ONE_THREAD
    if plain == os.environ:
        return
    changed = [f"without {name} (it was {os.environ[name]})" for name in SWITCHES if name in os.environ]
    changed += [f"with {name}=1" for name in ONE_THREAD if os.environ.get(name) != "1"]
    print(f"benchmarks: starting again {', '.join(changed)}", file=sys.stderr, flush=True)
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], plain)


def peer(name: str) -> Any:
    """The module of a peer, PyTorch with one thread, or None where it is not installed."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    if name == "torch":
        module.set_num_threads(1)
    return module


def environment() -> dict[str, Any]:
    """The software, the machine, its load, and which BLAS runs which kernel with how many threads."""
    import numpy  # not before the environment is right
    import threadpoolctl

    import smolgrad

    torch = peer("torch")
    return {
        "versions": {
            "smolgrad": smolgrad.__version__,
            "Python": platform.python_version(),
            "NumPy": numpy.__version__,
            **{name: importlib.metadata.version(name) for name in PEERS if peer(name)},
        },
        "missing": [name for name in PEERS if not peer(name)],
        "CPU": _cpu(),
        "cores": os.cpu_count(),
        "load average": [round(load, 2) for load in os.getloadavg()],
        "BLAS": [
            {
                "library": found["internal_api"],
                "version": found["version"],
                "kernel": found.get("architecture"),  # not every library tells
                "threads": found["num_threads"],
            }
            for found in threadpoolctl.threadpool_info()
            if found["user_api"] == "blas"
        ],
        "torch": torch and {"capability": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads()},
        "switches": {name: os.environ.get(name) for name in SWITCHES},
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].partition(":")[2].strip() if names else platform.processor()
