"""The benchmarks at the command line: ``python -m benchmarks [NAME ...] [--quick] [--json FILE]``."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
from pathlib import Path

from .environment import environment, restart_where_it_is_not_plain

BENCHMARKS = {
    "chain": "a million one-element ops: time and memory of one, no recursion",
    "overhead": "a one-element multiply in a chain of 2,000, beside PyTorch's",
    "ops": "typical ops, forward and backward, beside NumPy by hand, PyTorch and HIPS autograd",
    "step": "one training step of a perceptron with AdamW: time and memory",
    "scatter": "the gradient of an embedding, beside other ways to add repeated rows",
}


def main() -> int:
    """Run what is asked for: 0, or 1 where a claim does not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="smolgrad beside NumPy by hand and beside its peers, interleaved in one run.",
        epilog="\n".join(f"  {name:<10}{what}" for name, what in BENCHMARKS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="one of those below; all of them by default")
    parser.add_argument("--quick", action="store_true", help="few and short turns: results are checked, times are not")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that is shown, and its spread, to FILE")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    restart_where_it_is_not_plain()

    try:
        from . import report

        found = environment()
    except ImportError as error:
        sys.exit(f'python -m benchmarks needs {error.name}, which is not installed: pip install -e ".[benchmarks]"')
    report.show_environment(found)
    results = {}
    for name in options.names or BENCHMARKS:
        results[name] = importlib.import_module(f"benchmarks.{name}").run(options.quick)
        report.show(name, results[name])
    if options.json:
        told = {name: dataclasses.asdict(result) for name, result in results.items()}
        options.json.write_text(json.dumps({"environment": found, "quick": options.quick, "results": told}, indent=2))
    return int(not all(claim.holds for result in results.values() for claim in result.claims))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
