"""Where the engine is opened to plant a fault in it, all in one place.

Rules and forwards are changed through ``Primitive`` itself, which is public, and found by their primitive's name. What
is private to the engine, the sweep above all, is named in the second half of this file and nowhere else among the
faults: an engine that is rewritten asks for changes here alone.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import smolgrad
import smolgrad.primitives
from smolgrad import autograd, versions
from smolgrad.autograd import Node, Primitive, value_of

Planted = AbstractContextManager[Any]


def together(*contexts: Planted) -> Planted:
    """Several contexts as one: what was entered is left again where a later one cannot be entered."""
    stack = _Together(contexts)
    return stack


class _Together(ExitStack):
    def __init__(self, contexts: tuple[Planted, ...]):
        super().__init__()
        self._contexts = contexts

    def __enter__(self) -> _Together:
        with ExitStack() as entered:
            for context in self._contexts:
                entered.enter_context(context)
            self.push(entered.pop_all())
        return self


# --- rules and forwards -----------------------------------------------------------------------------------------------


@functools.cache
def primitive(name: str) -> Primitive:
    """The primitive called ``name``."""
    found = {p.name: p for module in _modules() for p in vars(module).values() if isinstance(p, Primitive)}
    if name in found:
        return found[name]
    return getattr(smolgrad, name).primitive  # of an elementwise op: made along with it


def _modules() -> Iterator[Any]:
    yield autograd
    for module in pkgutil.iter_modules(smolgrad.primitives.__path__):
        yield importlib.import_module(f"smolgrad.primitives.{module.name}")


def rules(name: str, *wrong: Callable[..., Any] | None) -> Planted:
    """The primitive ``name`` with other pullbacks; None keeps the right one, and ``reads`` stays as it was."""
    at = primitive(name)
    return patch.object(at, "pullbacks", tuple(w or right for w, right in zip(wrong, at.pullbacks, strict=True)))


def changed(name: str, position: int, change: Callable[..., Any]) -> Planted:
    """One pullback of ``name`` followed by ``change(gradient, cotangent, output, *inputs, **static)``."""
    right = primitive(name).pullbacks[position]

    def rule(g: Any, y: Any, *inputs: Any, **static: Any) -> Any:
        return change(right(g, y, *inputs, **static), g, y, *inputs, **static)

    return rules(name, *(rule if i == position else None for i in range(len(primitive(name).pullbacks))))


def forward(name: str, wrong: Callable[..., Any]) -> Planted:
    """The primitive ``name`` with another forward."""
    return patch.object(primitive(name), "forward", wrong)


def forward_changed(name: str, change: Callable[..., Any]) -> Planted:
    """The forward of ``name`` followed by ``change(output, *inputs, **static)``."""
    right = primitive(name).forward
    return forward(name, lambda *inputs, **static: change(right(*inputs, **static), *inputs, **static))


def like(x: Any, value: Any) -> Any:
    """``value``, whose 0-d results NumPy makes scalars, as what ``x`` is: an array or a constant tensor."""
    return autograd.like(x, np.asarray(value))


def dense(x: Any, gradient: Any) -> Any:
    """The gradient of ``x``: an array of zeros and all where a rule gave a Scatter."""
    if isinstance(gradient, autograd.Scatter):
        buffer = np.zeros_like(value_of(x))
        gradient.add_to(buffer)
        return buffer
    return gradient


# --- the sweep, its order and its cotangents --------------------------------------------------------------------------


def adding(change: Callable[[Callable[..., None], Any, Node, Any], None]) -> Planted:
    """``change(right, cotangents, node, value)`` for adding a second or later contribution, or a Scatter."""
    right = autograd._Cotangents.add
    return patch.object(autograd._Cotangents, "add", lambda self, node, value: change(right, self, node, value))


def giving_away(wrong: Callable[..., Any]) -> Planted:
    """``wrong(node, value)`` for making a target's gradient the caller's own."""
    return patch.object(autograd._Cotangents, "given_away", lambda self, node, value: wrong(node, value))


def all_owned() -> Planted:
    """Whatever a rule returns is taken for an array of its own."""
    return patch.object(autograd, "_is_fresh", lambda *_: True)


def cotangents(kept: Any) -> Planted:
    """``kept(right)``, a class made from that of the sweep's cotangents, with one instance for all sweeps."""
    one = kept(autograd._Cotangents)(())

    def again(nodes: list[Node]) -> Any:
        for node in nodes:
            one.setdefault(node)
        return one

    return patch.object(autograd, "_Cotangents", again)


def ordering(change: Callable[[Any, Any, Any], list[Node]]) -> Planted:
    """``change(right, roots, targets)`` for the order of a graph: every node after its inputs."""
    right = autograd._order
    return patch.object(autograd, "_order", lambda roots, targets: change(right, roots, targets))


def inputs(node: Node) -> list[Node]:
    """The tensors that ``node`` was made from and that require grad."""
    return [x for x in autograd._inputs_of(node) if isinstance(x, Node) and x._requires_grad]


def inputs_as_they_were(change: Callable[[Any, tuple[Any, ...], tuple[Any, ...]], Any]) -> Planted:
    """``change(node, recorded, found)`` for the inputs of a node, some of which were written in place since."""
    right = autograd._inputs_of

    def inputs_of(node: Node) -> Any:
        recorded = node._inputs or ()
        return change(node, recorded, right(node))

    return patch.object(autograd, "_inputs_of", inputs_of)


def sweeping(change: Callable[..., Any]) -> Planted:
    """``change(right, roots, seeds, targets, keep, create_graph)`` for a sweep."""
    right = autograd._sweep
    return patch.object(autograd, "_sweep", lambda *args: change(right, *args))


def depositing(change: Callable[[Callable[..., None], Any, Any], None]) -> Planted:
    """``change(right, leaf, gradient)`` for adding to a leaf's ``.grad``."""
    right = autograd._deposit
    return patch.object(autograd, "_deposit", lambda leaf, g: change(right, leaf, g))


def seeding(change: Callable[..., Any]) -> Planted:
    """``change(right, outputs, given, create_graph)`` for the checked cotangents of a sweep's roots."""
    right = autograd._seeds
    return patch.object(autograd, "_seeds", lambda *args: change(right, *args))


def recording(change: Callable[..., Any]) -> Planted:
    """``change(node, inputs)`` after a primitive was applied to ``inputs``, for a node that was recorded."""
    right = Primitive.__call__

    def call(self: Primitive, *given: Any, **static: Any) -> Any:
        node = right(self, *given, **static)
        if isinstance(node, Node) and node._primitive is not None:
            change(node, given)
        return node

    return patch.object(Primitive, "__call__", call)


def summed_down(change: Callable[[Any, np.ndarray, tuple[int, ...]], Any]) -> Planted:
    """``change(right, x, shape)`` for the sum of a stretched operand's gradient down to its shape."""
    right = primitive("unbroadcast").forward
    return forward("unbroadcast", lambda x, shape: change(right, x, shape))


# --- modes and versions -----------------------------------------------------------------------------------------------


def mode() -> Any:
    """Whether ops are recorded (``enabled``), and the values to go back to (``before``)."""
    return autograd._mode


@contextmanager
def modes(**wrong: Callable[..., Any]) -> Iterator[None]:
    """Methods of ``no_grad`` and ``enable_grad``; a mode that these forget to leave does not outlive them."""
    enabled, before = mode().enabled, [*mode().before]
    try:
        with patch.multiple(autograd._SetMode, **wrong):
            yield
    finally:
        mode().enabled, mode().before[:] = enabled, before


@contextmanager
def generators(step: Callable[[Any, Any], Any]) -> Iterator[None]:
    """``step(mode, generator)``, a generator, for a decorated function that is one."""
    made: list[Any] = []

    def start(mode: Any, generator: Any) -> Any:
        made.append(step(mode, generator))
        return made[-1]

    with patch.object(autograd, "_InMode", start):
        yield
    for generator in reversed(made):  # one that was left in the middle would leave its mode to later tests
        generator.close()


def mode_of_all_threads() -> Planted:
    """One mode for all threads."""
    return patch.object(autograd, "_mode", type("Mode", (), {"enabled": True, "before": []})())


def unnoticed(which: Callable[[np.ndarray], bool]) -> Planted:
    """A value of which ``which`` holds never counts as written since it was recorded."""
    right = versions.written_after
    return patch.object(versions, "written_after", lambda x, when: not which(x) and right(x, when))
