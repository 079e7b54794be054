"""What the entries say, told to a reader."""

from __future__ import annotations

import importlib
import io
import math
import operator
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from ..case import Case, draw_case
from ..engines.smolgrad import Smolgrad
from ..entry import Domain, ErrorInput, OpSpec
from ..harness import PROPERTIES
from ..ops import elementwise
from ..oracles.scalar import EXPRESSIONS
from . import failure

ROOT = Path(__file__).parents[2]


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """``count`` examples of ``strategy``, the same ones each time."""
    found: list[Any] = []

    @seed(1)
    @settings(max_examples=count, database=None, phases=[Phase.generate], deadline=None)
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found


@st.composite
def _cases(draw: Any, spec: OpSpec) -> Case:
    return draw_case(draw(st.data()), Smolgrad(), spec)


def programs(spec: OpSpec, count: int) -> list[str]:
    """Generated calls as source, neither the smallest nor the largest."""
    found: list[Case] = drawn(_cases(spec), 30)
    found.sort(key=lambda case: abs(sum(x.size for x in case.arrays) - 4))
    return [failure.program(case, "smolgrad").split("\n\n", 1)[1] for case in found[:count]]


def folded(name: str, room: int) -> str:
    """An op's name in lines of at most ``room`` columns, broken after a dot or an underscore."""
    return "\n".join(re.findall(rf".{{1,{max(room, 24)}}}(?:$|(?<=[._]))", name))


def wrapped(source: str, width: int) -> str:
    """``source`` with its longer lines broken after commas in brackets, which changes nothing of what it means."""
    lines = []
    for line in source.splitlines():
        start, depth, last = 0, 0, 0
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
            if last > start and token.end[1] + 4 * bool(start) - start > width:
                lines.append(" " * 4 * bool(start) + line[start:last].rstrip())
                start = last
            if token.string == "," and depth:
                last = token.end[1] + 1  # with the space
        lines.append(" " * 4 * bool(start) + line[start:])
    return "\n".join(lines)


def inputs(spec: OpSpec) -> str:
    """How many differentiable inputs the op has."""
    counts = {len(call.shapes) for call in drawn(spec.calls, 10)}
    return str(*counts) if len(counts) == 1 else f"{min(counts)}-{max(counts)}"


def facts(spec: OpSpec) -> Iterator[str]:
    """What the entry says of the function, a few words each."""
    yield from (fact for fact in ("affine", "unique", "apart", "constant", "integer") if getattr(spec, fact))
    if callable(spec.domain):
        yield "kinks by call"
    elif isinstance(spec.domain, tuple):
        for i, domain in enumerate(spec.domain):
            yield from (f"input {i}: {words}" for words in _of_domain(domain))
    else:
        yield from _of_domain(spec.domain)


def _of_domain(domain: Domain) -> Iterator[str]:
    if math.isfinite(domain.low):
        yield f"x > {domain.low:g}"
    if math.isfinite(domain.high):
        yield f"x < {domain.high:g}"
    yield from (f"kink at {kink:g}" for kink in domain.kinks)
    yield from (f"pole at {pole:g}" for pole in domain.poles)
    if domain.spread:
        yield f"lanes spread by {domain.spread:g}"


def rule(spec: OpSpec) -> str:
    """Where the op's rule is: the file and line of its primitive, or of the function that composes it."""
    name = spec.name.rpartition(".")[2]
    bare = name.strip("_")
    primitives = sorted((ROOT / "smolgrad" / "primitives").glob("*.py"))
    composed = [ROOT / "smolgrad" / "functional.py", *primitives, ROOT / "smolgrad" / "tensor.py"]
    return _place(rf'^\w+(: \w+)? = \w+\(\s*"{bare}"', primitives) or _place(
        rf"^ *def {name}\(|^ *(\w+, )*{name}(, \w+)* = ", composed
    )


def entry(spec: OpSpec) -> str:
    """The file and line of the entry."""
    files = sorted((ROOT / "spec" / "ops").glob("*.py"))
    name = re.escape(spec.name)
    return _place(rf'OpSpec\(\s*"{name}"', files) or _place(rf'"{name}"', files)


def _place(pattern: str, files: list[Path]) -> str:
    for file in files:
        text = file.read_text()
        if match := re.search(pattern, text, re.MULTILINE):
            return f"{file.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
    return ""


def properties() -> dict[str, list[OpSpec]]:
    """The properties, by name, and the entries that each runs for; those against PyTorch only where it is installed."""
    for file in sorted(ROOT.glob("tests/properties/test_*.py")) + sorted(ROOT.glob("tests/parity/test_*.py")):
        try:
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
        except ImportError as error:
            if error.name != "torch":
                raise
    return PROPERTIES


def oracle(spec: OpSpec) -> list[str]:
    """What PyTorch is asked, and the rows of the table of differences. ImportError where torch is not installed."""
    from ..oracles.differences import DIFFERENCES

    if spec.ref:
        asked = f"{spec.ref.__module__}.{spec.ref.__qualname__}"
    else:
        found = failure.op_source(spec, "torch", [])
        asked = f"torch.{spec.name}" if isinstance(found, operator.attrgetter) else repr(found)
    return [asked, *(f"but: {row.reason}" for row in DIFFERENCES if spec.name in row.ops)]


def unvoted(spec: OpSpec) -> bool:
    """Whether the scalar engine should vote on the op, which is elementwise, and has no expression for it."""
    name = spec.name.removeprefix("functional.")
    is_elementwise = any(other.name == name and not other.constant for other in elementwise.SPECS)
    return is_elementwise and spec.name not in EXPRESSIONS


def refused(wrong: ErrorInput) -> tuple[str, str, str]:
    """A call that must be refused: its inputs and parameters, the exception, and the pattern of the message."""
    called = [*map(str, wrong.shapes), *(f"{name}={failure.literal(value)}" for name, value in wrong.params.items())]
    types = wrong.error if isinstance(wrong.error, tuple) else (wrong.error,)
    return ", ".join(called), " or ".join(error.__name__ for error in types), wrong.match
