"""A program: ops, writes and sweeps as plain data, what an engine makes of them, and how near two engines must come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import engines
from .engines import Engine
from .entry import OpSpec

# --- the steps --------------------------------------------------------------------------------------------------------
# Tensors are numbered in the order in which they are made.


@dataclass(frozen=True)
class Leaf:
    """Make a tensor of ``array``: a leaf that requires grad, or a constant."""

    array: np.ndarray
    requires_grad: bool = False


@dataclass(frozen=True)
class Call:
    """Apply an op to the tensors ``inputs``; it makes ``outputs`` new ones. Unless ``recorded``, under no_grad."""

    spec: OpSpec
    inputs: tuple[int, ...]
    params: dict[str, Any] = field(default_factory=dict)
    recorded: bool = True
    outputs: int = 1


@dataclass(frozen=True)
class Write:
    """Write to the first of the tensors ``inputs`` in place."""

    spec: OpSpec
    inputs: tuple[int, ...]
    params: dict[str, Any] = field(default_factory=dict)
    recorded: bool = True


@dataclass(frozen=True)
class Grad:
    """Make a tensor of the gradient of ``outputs``, weighted by ``cotangents``, with respect to each of ``inputs``."""

    outputs: tuple[int, ...]
    cotangents: tuple[int, ...]
    inputs: tuple[int, ...]
    retain_graph: bool = True
    create_graph: bool = False


@dataclass(frozen=True)
class Backward:
    """Add the gradients of ``outputs``, weighted by ``cotangents``, to the leaves' ``.grad``."""

    outputs: tuple[int, ...]
    cotangents: tuple[int, ...]
    retain_graph: bool = True


Sweep = Grad | Backward
Step = Leaf | Call | Write | Sweep
Program = Sequence[Step]
Seen = list[tuple[str, np.ndarray]]  # what was found, by a name for it that begins with the tensor's


def made(step: Step) -> int:
    """How many tensors a step makes."""
    if isinstance(step, Call):
        return step.outputs
    return len(step.inputs) if isinstance(step, Grad) else int(isinstance(step, Leaf))


def in_single_precision(program: Program) -> Program:
    """The program with float32 for float64."""
    return [replace(s, array=s.array.astype(np.float32)) if isinstance(s, Leaf) else s for s in program]


# --- an engine's run --------------------------------------------------------------------------------------------------


class Run:
    """What an engine makes of a program: ``seen``, what each step gave, until one was refused.

    Beside the tensors it keeps what is known of each, whatever the engine, by their numbers.
    """

    def __init__(self, engine: Engine, program: Program = ()):
        self.engine = engine
        self.tensors: list[Any] = []
        self.seen: Seen = []
        self.taken = 0
        self.refusal: Exception | None = None
        self.leaves: list[int] = []
        self.ancestors: list[set[int]] = []  # of each tensor: those that its record leads to, itself among them
        self.memory: list[int] = []  # of each tensor: the first that has the same memory
        self.views: set[int] = set()  # made, in the graph, as views of tensors that require grad
        self.rewritten: set[int] = set()  # whose memory was written, in the graph, by way of another tensor since
        self.let_go: set[int] = set()  # whose records a sweep may have let go
        self.written: set[int] = set()  # memory that was written
        self.uses: dict[int, set[int]] = {}  # of each memory: what has a value in it in its record, before a write
        self.overwritten: set[int] = set()  # whose records have a value that was written since
        self.of_gradients: set[int] = set()  # gradients, and what was computed from them
        for step in program:
            if not self.take(step):
                break

    def take(self, step: Step) -> bool:
        """Run one more step; False where it is refused."""
        try:
            with np.errstate(all="ignore"):
                _TAKE[type(step)](self, step)
        except Exception as refusal:  # whether, where and how an engine refuses is what is compared
            self.refusal = refusal
            return False
        self.taken += 1
        return True

    def array(self, i: int) -> np.ndarray:
        """The value of a tensor now."""
        return self.engine.array(self.tensors[i])

    def requires_grad(self, i: int) -> bool:
        return bool(self.tensors[i].requires_grad)

    def state(self) -> Iterator[tuple[str, np.ndarray]]:
        """The values of all tensors now, writes by way of others included."""
        return ((f"t{i} at the end", self.array(i).copy()) for i in range(len(self.tensors)))

    def flags(self) -> Iterator[tuple[str, np.ndarray]]:
        """Whether tensors require grad.

        Not gradients: one that is constant may have a record that leads to zeros. Nor what a recorded write to a view
        or a base has reached: its record is not rewritten here.
        """
        for i in range(len(self.tensors)):
            if i not in self.of_gradients and i not in self.rewritten:
                yield f"t{i}.requires_grad", np.array(self.requires_grad(i))

    def gradients(self) -> Iterator[tuple[str, np.ndarray]]:
        """The leaves' gradients now; zeros for None."""
        for i in self.leaves:
            found = self.tensors[i].grad
            yield f"t{i}.grad", np.zeros_like(self.array(i)) if found is None else self.engine.array(found).copy()

    def _enter(self, tensor: Any, ancestors: set[int]) -> int:
        number = len(self.tensors)
        self.tensors.append(tensor)
        self.ancestors.append(ancestors | {number})
        self.memory.append(number)
        self.seen.append((f"t{number}", self.array(number).copy()))
        return number

    def _before(self, numbers: Sequence[int]) -> set[int]:
        return set().union(*(self.ancestors[i] for i in numbers))

    def _leaf(self, step: Leaf) -> None:
        make = self.engine.leaf if step.requires_grad else self.engine.constant
        number = self._enter(make(step.array.copy()), set())
        if step.requires_grad:
            self.leaves.append(number)

    def _apply(self, step: Call | Write) -> list[Any]:
        with nullcontext() if step.recorded else self.engine.no_grad():
            return engines.apply(self.engine, step.spec, [self.tensors[i] for i in step.inputs], step.params)

    def _call(self, step: Call) -> None:
        for tensor in self._apply(step):
            recorded = tensor.requires_grad
            number = self._enter(tensor, self._before(step.inputs) if recorded else set())
            if self.of_gradients.intersection(step.inputs):
                self.of_gradients.add(number)
            for i in step.inputs:
                if _may_share_memory(self.array(number), self.array(i)):
                    self.memory[number] = self.memory[i]
                    if recorded:
                        self.views.add(number)
            self._note_use(number, (*step.inputs, number))

    def _note_use(self, made: int, values: Sequence[int]) -> None:
        for i in values:
            self.uses.setdefault(self.memory[i], set()).add(made)

    def _write(self, step: Write) -> None:
        self._apply(step)
        target = step.inputs[0]
        self.written.add(self.memory[target])
        self.overwritten |= self.uses.pop(self.memory[target], set())
        self._note_use(target, step.inputs)
        if self.of_gradients.intersection(step.inputs):
            self.of_gradients.add(target)
        if step.recorded and self.requires_grad(target):
            before = self._before(step.inputs)
            for i, memory in enumerate(self.memory):
                if memory == self.memory[target]:
                    self.ancestors[i] |= before
                    if i != target:
                        self.rewritten.add(i)
        self.seen.append((f"t{target} after {step.spec.name}", self.array(target).copy()))

    def _asked(self, i: int) -> bool:
        """Whether a sweep is asked about a tensor: not where it is a gradient that is constant here, as it was made."""
        return self.requires_grad(i) or i not in self.of_gradients or i in self.rewritten

    def _roots(self, step: Sweep) -> tuple[list[Any], list[Any]]:
        """The outputs and cotangents of a sweep."""
        pairs = [
            (self.tensors[y], self.tensors[w])
            for y, w in zip(step.outputs, step.cotangents, strict=True)
            if self._asked(y)
        ]
        return [y for y, _ in pairs], [w for _, w in pairs]

    def _grad(self, step: Grad) -> None:
        outputs, cotangents = self._roots(step)
        wanted = [i for i in step.inputs if self._asked(i)]
        options = {"retain_graph": step.retain_graph, "create_graph": step.create_graph}
        found: list[Any] = [None] * len(wanted)
        if outputs and wanted:
            found = self.engine.grad(outputs, [self.tensors[i] for i in wanted], cotangents, **options)
        self._swept(step)
        before: set[int] = set()
        if step.create_graph:  # the gradients of one sweep have records in common
            number = len(self.tensors)
            before = self._before((*step.outputs, *step.cotangents)) | {number + k for k in range(len(step.inputs))}
        gradients = iter(found)
        for i in step.inputs:
            gradient = next(gradients) if i in wanted else None
            if gradient is None:
                gradient = self.engine.constant(np.zeros_like(self.array(i)))
            self.of_gradients.add(self._enter(gradient, before))

    def _backward(self, step: Backward) -> None:
        outputs, cotangents = self._roots(step)
        if outputs:
            self.engine.backward(outputs, cotangents, step.retain_graph)
        self._swept(step)
        self.seen += self.gradients()

    def _swept(self, step: Sweep) -> None:
        if not step.retain_graph:
            self.let_go |= {i for i in self._before(step.outputs) if not self.tensors[i].is_leaf}


_TAKE: dict[type, Any] = {
    Leaf: Run._leaf, Call: Run._call, Write: Run._write, Grad: Run._grad, Backward: Run._backward
}  # fmt: skip


def _may_share_memory(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether a write to one may be one to the other; of an empty array it cannot be told."""
    return bool(np.may_share_memory(a, b)) or not (a.size and b.size)


# --- how near two engines must come -----------------------------------------------------------------------------------

ROOM = 2.0**10  # what one run happens to lose to rounding, another may lose so many times


def allowed(double: Run, single: Run) -> float:
    """What two right runs of a program in double precision may differ by.

    In single precision every rounding is 2^29 times as large, so what that run is off by, at the least a rounding of
    the largest number in it, is 2^29 times what is lost in double precision, amplified on its way as it is there.
    """
    largest = off = 0.0
    for (_, exact), (_, rough) in zip(double.seen, single.seen, strict=True):
        if exact.dtype.kind == "f":
            finite = np.isfinite(exact) & np.isfinite(rough)
            largest = float(np.max(np.abs(exact), where=finite, initial=largest))
            off = float(np.max(np.abs(exact - rough), where=finite, initial=off))
    return ROOM * 2.0**-29 * max(off, 2.0**-24 * largest)
