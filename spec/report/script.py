"""A program as a script: an engine that does what another does, and writes down how a user would say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engines import Engine
from ..entry import OpSpec
from ..program import Program, Run
from .failure import Source, op_source, tensor


@dataclass(frozen=True, eq=False)
class _Named:
    """A tensor, and what it is called."""

    tensor: Any
    name: str

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.tensor, attribute)


class _Scribe:
    """``engine``, whose calls are written down as ``lines``; it is imported as ``engine.name``."""

    def __init__(self, engine: Engine):
        self.engine, self.name = engine, engine.name
        self.lines: list[str] = []
        self.indent = ""
        self.count = 0

    def _say(self, *lines: str) -> None:
        self.lines += [self.indent + line for line in lines]

    def _names(self, how_many: int) -> list[str]:
        self.count += how_many
        return [f"t{i}" for i in range(self.count - how_many, self.count)]

    def leaf(self, array: np.ndarray) -> Any:
        return self._new(self.engine.leaf(array), f"{tensor(array, self.name)}.requires_grad_()")

    def constant(self, array: np.ndarray) -> Any:
        return self._new(self.engine.constant(array), tensor(array, self.name))

    def _new(self, made: Any, text: str) -> Any:
        (name,) = self._names(1)
        self._say(f"{name} = {text}")
        return _Named(made, name)

    def call(self, spec: OpSpec, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        statements: list[str] = []
        xs = [Source(x.name, statements, self.name) for x in inputs]
        text = repr(spec.written(op_source(spec, self.name, statements), xs, params))
        if spec.seed is not None:
            statements.append(f"{self.name}.manual_seed({spec.seed})")
        self._say(*statements)
        found: Any = None
        try:
            found = self.engine.call(spec, [x.tensor for x in inputs], params)
        finally:
            written = [x for x in inputs if x.tensor is found]
            several = isinstance(found, tuple)
            made = list(found) if several else [] if written or found is None else [found]
            names = self._names(len(made))
            if names or not text.isidentifier():  # what an assignment to a place leaves is but a name
                self._say(f"{', '.join(names)}{',' * several} = {text}" if names else text)
        if written:
            return written[0]
        named = tuple(_Named(y, name) for y, name in zip(made, names, strict=True))
        return named if several else named[0]

    def array(self, x: Any) -> np.ndarray:
        return self.engine.array(x.tensor if isinstance(x, _Named) else x)

    def grad(self, outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], **options: Any) -> Any:
        names = self._names(len(inputs))
        told = "".join(f", {option}=True" for option, on in options.items() if on)
        lists = ", ".join(map(_list, (outputs, inputs, cotangents)))
        self._say(f"{', '.join(names)}, = {self.name}.autograd.grad({lists}{told}, allow_unused=True)")
        found = self.engine.grad(_tensors(outputs), _tensors(inputs), _tensors(cotangents), **options)
        for i, gradient in enumerate(found):
            if gradient is None:
                self._say(f"{names[i]} = {self.name}.zeros_like({inputs[i].name})  # None: unused")
                found[i] = self.engine.constant(np.zeros_like(self.array(inputs[i])))
        return [_Named(gradient, name) for gradient, name in zip(found, names, strict=True)]

    def backward(self, outputs: Sequence[Any], cotangents: Sequence[Any], retain_graph: bool) -> None:
        kept = ", retain_graph=True" if retain_graph else ""
        self._say(f"{self.name}.autograd.backward({_list(outputs)}, {_list(cotangents)}{kept})")
        self.engine.backward(_tensors(outputs), _tensors(cotangents), retain_graph)

    @contextmanager
    def no_grad(self) -> Iterator[None]:
        self._say(f"with {self.name}.no_grad():")
        self.indent = "    "
        try:
            with self.engine.no_grad():
                yield
        finally:
            self.indent = ""


def _tensors(named: Sequence[Any]) -> list[Any]:
    return [x.tensor for x in named]


def _list(named: Sequence[Any]) -> str:
    return f"[{', '.join(x.name for x in named)}]"


def script(program: Program, engine: Engine, shown: str = "") -> str:
    """``program`` as lines for a reader to run with ``engine``, up to what it refuses; it prints what is ``shown``."""
    scribe = _Scribe(engine)
    Run(scribe, program)
    return "\n".join(
        ["import numpy as np", f"import {engine.name}", "", *scribe.lines, *([f"print({shown})"] if shown else [])]
    )
