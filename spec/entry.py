"""An entry: facts about one function, from which generators, oracles and properties follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis.strategies import SearchStrategy

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One way of calling an op: the shapes of its differentiable inputs, and everything else by keyword."""

    shapes: tuple[Shape, ...]
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Domain:
    """Where an op is smooth in one input.

    ``low`` and ``high`` bound the open interval that finite differences can cope with; ``kinks`` are the points in it
    at which the op is continuous and its slope jumps (or, of a constant one, its value), ``poles`` those near which it
    is unbounded. ``spread`` is the least difference that two elements of a lane must have, where the op divides by a
    lane's spread or norm.
    """

    low: float = -math.inf
    high: float = math.inf
    kinks: tuple[float, ...] = ()
    poles: tuple[float, ...] = ()
    spread: float = 0.0


@dataclass(frozen=True)
class ErrorInput:
    """A call that must be refused: by ``error``, with a message that names the op and matches ``match``."""

    shapes: tuple[Shape, ...]
    params: dict[str, Any]
    error: type[Exception]
    match: str
    dtype: Any = "float64"
    theirs: type[Exception] | None = None  # what PyTorch raises, where that says less, or refuses what is not offered


def plainly(op: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``op(a, b, key=value)``: the way that most ops are written."""
    return op(*inputs, **params)


def as_list(op: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``op([a, b], key=value)``."""
    return op(list(inputs), **params)


def by_position(op: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """``op(a, b, value)``: where PyTorch's functions and methods name a parameter differently."""
    return op(*inputs, *params.values())


@dataclass(frozen=True)
class OpSpec:
    """Facts about one op; see docs/adding-an-op.md for each field by example."""

    name: str
    calls: SearchStrategy[Call]
    domain: Domain | tuple[Domain, ...] | Callable[[dict[str, Any]], tuple[Domain, ...]] = Domain()
    affine: bool = False  # in each input separately
    unique: bool = False  # no two elements of one input may be equal
    apart: bool = False  # no element of one input may equal one of another
    constant: bool = False  # piecewise constant: its outputs are bools or integers, or their slope is 0
    integer: bool = False  # its inputs hold integers or bools, and floats are refused
    written: Callable[[Any, Sequence[Any], dict[str, Any]], Any] = plainly  # how a call of it is written
    seed: int | None = None  # of what it draws: each call drops the same elements, say
    errors: tuple[ErrorInput, ...] = ()
    ref: Callable[..., Any] | None = None  # the oracle, where it is not PyTorch's op of the same name

    def domains(self, call: Call) -> tuple[Domain, ...]:
        """The domain of each input of ``call``."""
        found = self.domain(call.params) if callable(self.domain) else self.domain
        return found[: len(call.shapes)] if isinstance(found, tuple) else (found,) * len(call.shapes)

    @property
    def kinked(self) -> bool:
        """Whether the op has ties or kinks: points at which its slope is a convention."""
        domains = self.domain if isinstance(self.domain, tuple) else (self.domain,)
        return self.unique or self.apart or any(callable(d) or bool(d.kinks) for d in domains)

    def __repr__(self) -> str:
        return self.name

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(self.name)
