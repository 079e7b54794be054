"""What is under test: an engine is its tensors, its ops by name, and its gradients."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..entry import OpSpec

# How an engine refuses a call. Anything else that it raises is an error of its own.
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError)


class Engine(Protocol):
    """What the specification asks of an engine. PyTorch, the oracle, is one too."""

    name: str

    def call(self, spec: OpSpec, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """What the op of an entry makes of ``inputs``; AttributeError where the engine has no such op."""

    def leaf(self, array: np.ndarray) -> Any:
        """A tensor of ``array``, in its layout where the engine can, that requires grad where its dtype can."""

    def constant(self, array: np.ndarray) -> Any:
        """The same, requiring no grad."""

    def array(self, tensor: Any) -> np.ndarray:
        """The value of a tensor."""

    def grad(
        self, outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], **options: Any
    ) -> list[Any]:
        """The gradients of ``outputs`` weighted by ``cotangents``; None where an input is not used."""

    def backward(self, outputs: Sequence[Any], cotangents: Sequence[Any], retain_graph: bool) -> None:
        """Add the gradients to the leaves' ``.grad``."""

    def no_grad(self) -> Any:
        """A context in which nothing is recorded."""


def find(name: str, *homes: Any) -> Callable[..., Any]:
    """What ``name`` is in the first of ``homes`` that has it; a property becomes a function of its owner."""
    for home in (*homes, operator):
        found = home
        for part in name.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found
        if found is not None:
            return operator.attrgetter(name.rpartition(".")[2])
    raise AttributeError(f"{name} is none of the names in {', '.join(getattr(h, '__name__', str(h)) for h in homes)}")


def apply(engine: Engine, spec: OpSpec, inputs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The outputs of a call, in a list."""
    result = engine.call(spec, inputs, params)
    return list(result) if isinstance(result, tuple) else [result]


def floating(engine: Engine, outputs: Sequence[Any]) -> list[Any]:
    """Those of ``outputs`` that can have a gradient."""
    return [y for y in outputs if engine.array(y).dtype.kind == "f"]


def forward(engine: Engine, spec: OpSpec, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> list[np.ndarray]:
    """The values of a call's outputs."""
    with engine.no_grad(), np.errstate(all="ignore"):
        return [engine.array(y) for y in apply(engine, spec, [engine.constant(a) for a in arrays], params)]


def gradients_of(
    engine: Engine, outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], **options: Any
) -> list[Any]:
    """``engine.grad``, with zeros for an input that the outputs do not depend on."""
    pairs = [(y, w) for y, w in zip(outputs, cotangents, strict=True) if y.requires_grad]
    found: list[Any] = [None] * len(inputs)
    if pairs:
        found = engine.grad([y for y, _ in pairs], inputs, [w for _, w in pairs], **options)
    return [
        engine.constant(np.zeros_like(engine.array(x))) if g is None else g for g, x in zip(found, inputs, strict=True)
    ]


class Backward:
    """Sweeps from ``outputs``, weighted by ``cotangents``, that add to the leaves' ``.grad``."""

    def __init__(self, engine: Engine, outputs: Sequence[Any], cotangents: Sequence[Any]):
        self.engine = engine
        self.roots = [(y, w) for y, w in zip(outputs, cotangents, strict=True) if y.requires_grad]

    def sweep(self, retain_graph: bool = False) -> None:
        """One sweep."""
        if self.roots:
            self.engine.backward([y for y, _ in self.roots], [w for _, w in self.roots], retain_graph)
