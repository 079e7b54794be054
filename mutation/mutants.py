"""Which mutants there are, and a sample of them. What a mutant is comes from cosmic-ray."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from .running import Mutant

ROOT = Path(__file__).parent.parent

# Operators that are left out. Numbers do not shift and masks do not multiply: TypeError, which any test notices. And
# ``is`` for ``==`` makes no difference to what is compared here: None, numbers, strings.
_ARITHMETIC, _BITWISE = "Add|Sub|Mul|Div|FloorDiv|Mod|Pow", "RShift|LShift|BitOr|BitAnd|BitXor"
_VALUE, _IDENTITY = "Eq|NotEq|Lt|LtE|Gt|GtE", "Is|IsNot"
_LEFT_OUT = re.compile(
    "|".join(
        f"_({one})_({other})$"
        for pair in ((_ARITHMETIC, _BITWISE), (_VALUE, _IDENTITY))
        for one, other in (pair, pair[::-1])
    )
)

# Tokens that no operator changes, which are most: whether one does need not be asked of each.
_INERT = {"name", "string", "newline", "endmarker"}
_PUNCTUATION = set("()[]{},.:;=")


@dataclass(frozen=True)
class Place:
    """A place in a file, and the operators that change something there, each with its number of occurrence."""

    file: str  # relative to the root, with slashes
    line: int
    column: int
    operators: tuple[tuple[str, int], ...]

    @cached_property
    def text(self) -> str:
        """The line."""
        return _source(self.file).splitlines()[self.line - 1].strip()


def sample(files: Iterable[str], size: int, seed: int) -> list[Mutant]:
    """``size`` mutants, one of each file among them, in the order of the files.

    Each place has a rank, which depends on the seed and the text of its line alone, and those of the lowest ranks are
    taken: so a change elsewhere changes nothing in the sample.
    """
    in_order = sorted(
        (place for file in files for place in places(file)),
        key=lambda place: _rank(seed, place.file, place.text, place.column),
    )
    firsts = {place.file: place for place in reversed(in_order)}  # the last that is written is the first
    chosen: dict[tuple[str, ...], Mutant] = {}
    for place in dict.fromkeys((*firsts.values(), *in_order)):
        if len(chosen) >= size:
            break
        mutant = _mutant(place, seed)
        if mutant:
            chosen.setdefault(mutant.key, mutant)
    return sorted(chosen.values(), key=lambda mutant: (mutant.file, mutant.line))


def places(file: str) -> Iterator[Place]:
    """The places of a file at which something can be changed. Annotations are no code."""
    found: dict[tuple[int, int], list[tuple[str, int]]] = {}
    counts: Counter[str] = Counter()
    annotations = list(_annotations(file))
    for node in ast_nodes(get_ast(_source(file))):
        if node.type in _INERT or getattr(node, "value", "") in _PUNCTUATION:
            continue
        for family in _families():
            for start, _ in family[0][1].mutation_positions(node):
                for name, _ in family:
                    if not any(begin <= start < end for begin, end in annotations):
                        found.setdefault(start, []).append((name, counts[name]))
                    counts[name] += 1
    for (line, column), operators in found.items():
        yield Place(file, line, column, tuple(operators))


def _mutant(place: Place, seed: int) -> Mutant | None:
    """One of the mutants of ``place``, or None where all are no Python."""
    source = _source(place.file)
    for name, occurrence in sorted(place.operators, key=lambda op: _rank(seed, *op[:1], place.text, place.column)):
        mutated = mutate_code(source, _operators()[name], occurrence)
        assert mutated is not None, (place, name)
        try:
            compile(mutated, place.file, "exec")
        except SyntaxError:
            continue
        if ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(source)):  # 1e100 for 1e+100
            continue
        line, before, after = _changed(source, mutated)
        return Mutant(place.file, name.removeprefix("core/"), line, before, after, mutated)
    return None


def _changed(source: str, mutated: str) -> tuple[int, str, str]:
    """The first line that differs: its number, what it was, what it is; nothing where it is gone."""
    old, new = ([line.strip() for line in text.splitlines()] for text in (source, mutated))
    line = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    return line + 1, old[line], new[line] if len(new) == len(old) else ""


@cache
def _operators() -> dict[str, Any]:
    made = {name: get_operator(name) for name in operator_names() if not _LEFT_OUT.search(name)}
    return {name: operator() for name, operator in made.items() if not operator.arguments()}


@cache
def _families() -> list[list[tuple[str, Any]]]:
    """Operators that change the same thing, Add_Sub and Add_Mul: what one can change, all can."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for name, operator in _operators().items():
        changed = name if "_Delete_" in name else name.rpartition("_")[0] or name
        found.setdefault(changed, []).append((name, operator))
    return list(found.values())


@cache
def _source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def _annotations(file: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations begin and end; columns are counted in characters, which are bytes in them."""
    for node in ast.walk(ast.parse(_source(file))):
        for name in ("annotation", "returns"):
            found = getattr(node, name, None)
            if found is not None:
                yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def _rank(seed: int, *what: object) -> bytes:
    return hashlib.sha256(repr((seed, *what)).encode()).digest()
