"""Named faults: one small change each that a real engine has had, or easily could. One file a kind.

A fault is a function that gives a context in which the engine is wrong; its docstring says how. To add one, write the
function into the file of its kind, under ``@fault``, with

- its tier: 1, any test of finite differences sees it; 2, it needs the right option, axis or value; 3, a combination, a
  second call or a degenerate shape; 4, most random tests stay green;
- where it must die: ``property[op]``, or ``folder/file::test`` of tests/; of several, in one of them;
- where it comes from: its number in the list of faults to plant, or nothing for one of our own.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from ..seams import Planted

KINDS = {
    "ACC": "accumulation",
    "OWN": "ownership and aliasing",
    "BRD": "broadcasting",
    "DTY": "dtype",
    "NSM": "non-smooth points",
    "SNG": "singular points",
    "STB": "stability",
    "IDX": "indexing and scatter",
    "AXS": "axes",
    "FRM": "wrong local rule",
    "VIW": "views and in-place writes",
    "TRV": "traversal and memory",
    "DBL": "double backward",
    "OPT": "optimizers",
    "MOD": "modules and state",
    "NGR": "no_grad and detach",
    "ERR": "refusals",
    "GCK": "the checker itself",
    "DAT": "data and randomness",
    "PRF": "cost",
}

Plant = Callable[[], Planted]


@dataclass(frozen=True)
class Named:
    """A fault, how well it hides, and the test that it must not survive."""

    plant: Plant
    kind: str
    tier: int
    dies_in: tuple[str, ...]
    origin: str

    @property
    def name(self) -> str:
        return self.plant.__name__

    @property
    def says(self) -> str:
        """What is wrong, in a line."""
        return (inspect.getdoc(self.plant) or "").splitlines()[0]

    @property
    def op(self) -> str:
        """The op whose property must notice it; nothing where another test must."""
        return self.dies_in[0].partition("[")[2].removesuffix("]")

    def __repr__(self) -> str:
        return self.name


NAMED: list[Named] = []


def faults_of(kind: str) -> Callable[..., Callable[[Plant], Plant]]:
    """The decorator ``fault(tier, dies_in, origin)`` of the file of ``kind``."""

    def fault(tier: int, dies_in: str | tuple[str, ...], origin: str = "own") -> Callable[[Plant], Plant]:
        def enter(plant: Plant) -> Plant:
            NAMED.append(Named(plant, kind, tier, (dies_in,) if isinstance(dies_in, str) else dies_in, origin))
            return plant

        return enter

    return fault


for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
NAMED.sort(key=lambda fault: (list(KINDS).index(fault.kind), fault.tier, fault.origin == "own"))
BY_NAME = {fault.name: fault for fault in NAMED}
