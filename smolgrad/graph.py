"""The graph made visible: as records, as DOT text, and for a module as a table of its layers.

``python -m smolgrad.graph`` draws a small example.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import autograd, versions
from .autograd import Node, enable_grad
from .scalar import Value, topological


@dataclass(frozen=True)
class Record:
    """One value of a graph, and the op that made it."""

    id: int  # its place in topological order
    op: str  # "leaf" and "constant" where no op made it
    inputs: tuple[int, ...]  # the ids of its operands in order, one that was used twice twice
    shape: tuple[int, ...]
    dtype: str
    static: dict[str, Any]  # what else the op was given, numbers among its operands included
    saved: dict[str, int]  # the bytes of each value that the op's pullback will read
    node: Any = field(repr=False, compare=False)  # the tensor or Value itself


def records(root: Any) -> list[Record]:
    """All that ``root``, a tensor or a Value, was made from, each after its operands, and it last.

    RuntimeError where a sweep has let a tensor's graph go; TypeError for anything else.
    """
    if not isinstance(root, (Node, Value)):
        raise TypeError(f"records(): needs a Tensor or a Value, got {type(root).__name__}")
    order = topological([root], _operands)
    ids = {node: i for i, node in enumerate(order)}
    describe = _of_value if isinstance(root, Value) else _of_tensor
    return [Record(ids[x], inputs=tuple(ids[p] for p in _operands(x)), node=x, **describe(x)) for x in order]


def _operands(x: Any) -> Sequence[Any]:
    return x.parents if isinstance(x, Value) else [p for p in autograd._inputs_of(x) if isinstance(p, Node)]


def _of_value(x: Value) -> dict[str, Any]:
    # A pullback is a function that has kept the numbers that it reads.
    kept = x.pullback.__code__.co_freevars if x.pullback else ()
    static = {"data": x.data, "grad": x.grad}
    return {"op": x.op or "leaf", "shape": (), "dtype": "float64", "static": static, "saved": dict.fromkeys(kept, 8)}


def _of_tensor(x: Node) -> dict[str, Any]:
    op = x._primitive.name if x._primitive else "leaf" if x._requires_grad else "constant"
    numbers = {f"input {i}": v for i, v in enumerate(autograd._inputs_of(x)) if not isinstance(v, Node)}
    saved = {name: array.nbytes for name, array in _saved(x).items()}
    static = {**numbers, **(x._static or {})}
    return {"op": op, "shape": x._data.shape, "dtype": str(x._data.dtype), "static": static, "saved": saved}


def _saved(x: Node) -> dict[str, np.ndarray]:
    """The arrays that the pullbacks of ``x`` will read: of its operands, its own, and of its static arguments."""
    if x._primitive is None:
        return {}
    rules, inputs = x._primitive.reads, autograd._inputs_of(x)
    wanted = [i for i, v in enumerate(inputs) if isinstance(v, Node) and v._requires_grad]
    reads = sorted({place for i in wanted for place in rules[0 if x._primitive.variadic else i]})
    values = {f"input {place - 1}" if place else "output": inputs[place - 1] if place else x for place in reads}
    found = {name: v._data for name, v in values.items() if isinstance(v, Node)}
    for name, given in (x._static or {}).items():
        for i, part in enumerate(given if isinstance(given, tuple) else [given]):
            if isinstance(part, np.ndarray):
                found[f"{name} {i}" if isinstance(given, tuple) else name] = part
    return found


# --- DOT --------------------------------------------------------------------------------------------------------------


def to_dot(root: Any) -> str:
    """The graph of ``root`` in the language of Graphviz, operands before results. Errors as in ``records``."""
    lines = ["digraph {", "  rankdir=LR", '  node [shape=box fontname="monospace" fontsize=10]']
    for r in records(root):
        told = [f"{r.op}  {r.dtype} {r.shape}", *(f"{name}={_shown(value)}" for name, value in r.static.items())]
        told += [f"keeps {name}: {size:,} bytes" for name, size in r.saved.items()]
        label = "\n".join(told).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        style = "" if r.inputs else " style=filled fillcolor=" + ("lightgray" if r.op == "constant" else "lightblue")
        lines += [f'  n{r.id} [label="{label}"{style}]', *(f"  n{i} -> n{r.id}" for i in r.inputs)]
    return "\n".join([*lines, "}", ""])


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else f"{value!r}"


# --- modules ----------------------------------------------------------------------------------------------------------


def summary(module: Any, *inputs: Any) -> str:
    """A table of the layers of ``module``, as a call with ``inputs`` comes to them, with those that they hold included.

    For each: the shape of its output, its parameters, and the bytes that the sweep will read, but for parameters.
    """
    rows: list[list[str]] = [["layer", "output", "parameters", "bytes saved"]]
    layers = dict(module.named_modules())

    def watched(name: str, layer: Any, forward: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            row = ["  " * name.count(".") + (f"  {name.rpartition('.')[2]}: " if name else "") + type(layer).__name__]
            rows.append(row)
            output = forward(*args, **kwargs)
            outputs = [y for y in (output if isinstance(output, (tuple, list)) else [output]) if isinstance(y, Node)]
            parameters = list(layer.parameters())
            saved = _bytes_saved(outputs, [*args, *kwargs.values()], parameters)
            shapes = ", ".join(str(y._data.shape) for y in outputs)
            row += [shapes, f"{sum(p.size for p in parameters):,}", f"{saved:,}"]
            return output

        return run

    try:
        for name, layer in layers.items():
            layer.forward = watched(name, layer, layer.forward)  # found before the method of its class
        with enable_grad():
            module(*inputs)
    finally:
        for layer in layers.values():
            layer.__dict__.pop("forward", None)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = [[row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2].rjust(widths[2]), row[3].rjust(widths[3])]
               for row in rows]  # fmt: skip
    return "\n".join("  ".join(row).rstrip() for row in aligned)


def _bytes_saved(outputs: Sequence[Node], given: Sequence[Any], parameters: Iterable[Node]) -> int:
    """The bytes of what was made between ``given`` and ``outputs`` and will be read, memory that is shared once."""
    before = {x for x in given if isinstance(x, Node)}
    order = topological(outputs, lambda x: [] if x in before else _operands(x))
    arrays = [a for x in order if x not in before for a in _saved(x).values()]
    apart = {id(versions.owner(p._data)) for p in parameters}
    return sum({id(versions.owner(a)): a.nbytes for a in arrays if id(versions.owner(a)) not in apart}.values())


# --- the command ------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the graph of a small loss: as SVG where Graphviz is installed, otherwise write its DOT text, and say so."""
    from . import functional, tensor  # of the whole package, which imports this module

    parser = argparse.ArgumentParser(prog="python -m smolgrad.graph", description=main.__doc__)
    parser.add_argument("--out", type=Path, default=Path("graph.svg"), help="the file to write (default: %(default)s)")
    out: Path = parser.parse_args(arguments).out
    x = tensor([[1.0, -2.0], [0.5, 3.0]])
    w, b = tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True), tensor([0.1, -0.1], requires_grad=True)
    hidden = functional.tanh(x @ w + b)
    text = to_dot(functional.cross_entropy(hidden * hidden, tensor([0, 1])))
    dot = shutil.which("dot")
    if dot is None:
        out = out.with_suffix(".dot")
        out.write_text(text)
        print(f"Graphviz (its command dot) is not installed, so there is no SVG; wrote {out}", file=sys.stderr)
        return 1
    subprocess.run([dot, "-Tsvg", "-o", str(out)], input=text, text=True, check=True)
    print(f"wrote {out}")
    return 0


if __name__ == "__main__":  # pragma: no cover - a process of its own
    sys.exit(main())
