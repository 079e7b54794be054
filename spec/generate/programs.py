"""Programs: ops of the entries on tensors of one another, writes in place, sweeps.

A program is drawn while the oracle runs it, so that it is known at each step what tensors there are, what their values
are, and which may be written to: every op gets inputs in its domain, and what is refused is refused on purpose.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..engines import Engine
from ..entry import Call as Asked
from ..entry import Domain, OpSpec, Shape
from ..ops import BY_NAME, SPECS
from ..program import Backward, Call, Grad, Leaf, Program, Run, Step, Write
from . import indices, shapes, values
from .values import STEP, Draw

MOST = 12  # steps that are drawn, beside those that they need to be prepared
LIMIT = 4.0  # of the inputs of an op, as of those that the properties draw: what lies further out is scaled down
_LATEST = 6  # of which a sweep begins at some
MARGIN = STEP / 2  # from kinks, bounds and ties, unless exactly there


@cache
@st.composite
def plain_indices(draw: Any, shape: Shape) -> Any:
    """An index that means the same to NumPy and PyTorch, and names no place twice: basic, or one array or mask."""
    kind = draw(st.sampled_from(["basic", "basic", "array", "mask"])) if shape and 0 not in shape else "basic"
    if kind == "mask":
        return draw(indices.masks(shape[: draw(st.integers(1, len(shape)))]))
    if kind == "array":
        return np.array(draw(st.permutations(range(shape[0])))[: draw(st.integers(1, shape[0]))], np.int64)
    parts: list[Any] = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        if n and draw(st.booleans()):
            parts.append(draw(indices.positions(n)))
        else:
            part = draw(indices.slices(n))
            parts.append(slice(part.start, part.stop, abs(part.step) if part.step else None))
    return tuple(parts)


@st.composite
def _picks(draw: Any) -> Asked:
    shape = draw(shapes.shapes(min_side=0))
    return Asked((shape,), {"index": draw(plain_indices(shape))})


@cache
@st.composite
def _beside(draw: Any, shape: Shape) -> Asked:
    return Asked((shape, draw(shapes.stretched(shape))))


@cache
@st.composite
def _into(draw: Any, shape: Shape) -> Asked:
    index = draw(plain_indices(shape))
    return Asked((shape, draw(shapes.stretched(np.broadcast_to(0.0, shape)[index].shape))), {"index": index})


def _method(name: str) -> Callable[..., Any]:
    return lambda _op, xs, _params: getattr(xs[0], name)(*xs[1:])


def _put(_op: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    xs[0][params["index"]] = xs[1]
    return xs[0]


def _in_place(name: str, like: str) -> OpSpec:
    return replace(BY_NAME[like], name=f"Tensor.{name}", written=_method(name))


PICK = replace(BY_NAME["getitem"], calls=_picks())
DETACH = OpSpec("Tensor.detach", st.nothing(), affine=True, written=_method("detach"))
OPS = [PICK if spec is BY_NAME["getitem"] else spec for spec in SPECS if not spec.constant]

# What writes in place, and the calls of it for a target's shape.
WRITES: list[tuple[OpSpec, Callable[[Shape], st.SearchStrategy[Asked]]]] = [
    *((_in_place(f"{like}_", like), _beside) for like in ("mul", "add", "sub", "div")),
    (OpSpec("Tensor.__setitem__", st.nothing(), affine=True, written=_put), _into),
    (OpSpec("Tensor.copy_", st.nothing(), affine=True, written=_method("copy_")), _beside),
    (OpSpec("Tensor.zero_", st.nothing(), affine=True, written=_method("zero_")), lambda s: st.just(Asked((s,)))),
]


@cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class _Refused(Exception):
    """The program is at its end."""


class _Builder:
    """A program that grows step by step, as the oracle runs it."""

    def __init__(self, draw: Draw, oracle: Engine, dtypes: Sequence[str]):
        self.draw, self.dtypes = draw, dtypes
        self.run = Run(oracle)
        self.steps: list[Step] = []
        # Tensors whose values every right engine has to the bit: of dyadic numbers, moved, added and multiplied.
        self.exact: set[int] = set()

    # --- what there is ------------------------------------------------------------------------------------------------

    def floating(self) -> list[int]:
        """All tensors that an op may take, the newest first."""
        count = len(self.run.tensors)
        return [i for i in reversed(range(count)) if self.run.array(i).dtype.kind == "f"]

    def differentiable(self) -> list[int]:
        """Those that require grad."""
        return [i for i in self.floating() if self.run.requires_grad(i)]

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.draw(_below(len(choices)))] if len(choices) > 1 else choices[0]

    def some_of(self, choices: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.one_of(choices) for _ in range(1 + self.draw(_below(3))))

    def chance(self, one_in: int) -> bool:
        """Whether to do what is done less often, and left out when the program shrinks."""
        return bool(self.draw(_below(one_in)) == one_in - 1)

    # --- steps --------------------------------------------------------------------------------------------------------

    def take(self, step: Step) -> int:
        """Add a step, and return the number of the first tensor that it makes."""
        first = len(self.run.tensors)
        accepted = self.run.take(step)
        if isinstance(step, Call) and accepted:
            step = replace(step, outputs=len(self.run.tensors) - first)
        self.steps.append(step)
        if not accepted:
            if type(self.run.refusal) is not RuntimeError:
                raise AssertionError(f"a drawn step is wrong: {step}") from self.run.refusal
            raise _Refused
        return first

    def leaf(self, array: np.ndarray, requires_grad: bool) -> int:
        number = self.take(Leaf(np.array(array, self.one_of(self.dtypes)), requires_grad))
        self.exact.add(number)
        return number

    def call(self, spec: OpSpec, inputs: Sequence[int], params: dict[str, Any], recorded: bool = True) -> int:
        first = self.take(Call(spec, tuple(inputs), params, recorded))
        for i in range(first, len(self.run.tensors)):
            if spec.affine and self.exact.issuperset(inputs) and _dyadic(self.run.array(i)):
                self.exact.add(i)
        return first

    # --- inputs -------------------------------------------------------------------------------------------------------

    def new_leaf(self) -> int:
        """A leaf or a constant, sometimes with the values of another one."""
        alike = [i for i in self.floating() if i in self.exact]
        if alike and self.chance(4):
            array = self.run.array(self.one_of(alike)).copy()
        else:
            with shapes.among(self.shapes()):
                array = self.draw(values.integer_array(self.draw(shapes.shapes(min_side=0)))) * STEP
        return self.leaf(np.asarray(array), not self.chance(4))

    def shapes(self) -> list[Shape]:
        return [self.run.array(i).shape for i in self.floating()]

    def of_shape(self, shape: Shape) -> int:
        """A tensor of ``shape``: one that there is, a view or a pick of one, or a new one."""
        there = self.floating()
        same = [i for i in there if self.run.array(i).shape == shape]
        if same and not self.chance(8):
            return self.one_of(same)
        size = math.prod(shape)
        others = [i for i in there if self.run.array(i).size]
        if others and size and not self.chance(4):
            other = self.one_of(others)
            if self.run.array(other).size == size:
                return self.call(BY_NAME["reshape"], [other], {"shape": shape})
            flat = self.call(BY_NAME["reshape"], [other], {"shape": (-1,)})
            index = self.draw(indices.index_arrays(self.run.array(other).size, shape)).astype(np.int64)
            return self.call(PICK, [flat], {"index": index if shape else int(index)})
        return self.leaf(self.draw(values.integer_array(shape)) * STEP, not self.chance(4))

    def in_domain(self, spec: OpSpec, call: Asked, inputs: list[int]) -> list[int]:
        """``inputs``, with those that do not lie in the domain of ``spec`` scaled and shifted into it."""
        domains = spec.domains(call)
        found = [self.scaled(i) for i in inputs]
        outside = [not self.fits(i, domain, spec) for i, domain in zip(found, domains, strict=True)]
        if spec.apart and any(self.touch(pair) for pair in itertools.combinations(found, 2)):
            outside = [True] * len(found)
        if not any(outside):
            return found
        targets = values.inputs(self.draw, spec, call)
        for slot, target in enumerate(targets):
            if outside[slot]:
                shift = self.leaf(target - self.run.array(found[slot]), False)
                found[slot] = self.call(BY_NAME["add"], [found[slot], shift], {})
        return found

    def scaled(self, i: int) -> int:
        largest = float(np.max(np.abs(self.run.array(i)), initial=0))
        if largest <= LIMIT:
            return i
        scale = self.leaf(np.array(2.0 ** -math.ceil(math.log2(largest / LIMIT))), False)
        return self.call(BY_NAME["mul"], [i, scale], {})

    def fits(self, i: int, domain: Domain, spec: OpSpec) -> bool:
        """Whether a tensor lies in ``domain``, by a margin that no rounding crosses, or exactly on a kink."""
        x, exact = self.run.array(i).reshape(-1), i in self.exact
        inside = (x > domain.low + MARGIN) & (x < domain.high - MARGIN)
        for pole in domain.poles:
            inside &= abs(x - pole) > values.FROM_POLE * STEP / 2
        for kink in domain.kinks:
            inside &= (abs(x - kink) > MARGIN) | (exact & (x == kink))
        gaps = np.diff(np.sort(x))
        if domain.spread:
            inside[1:] &= gaps > domain.spread / 2
        elif spec.unique:
            inside[1:] &= (gaps > MARGIN) | (exact & (gaps == 0))
        return bool(inside.all())

    def touch(self, inputs: Sequence[int]) -> bool:
        """Whether elements of two tensors are so near that rounding decides between them."""
        a, b = inputs
        gaps = abs(self.run.array(a) - self.run.array(b))
        return a != b and not bool(((gaps > MARGIN) | (self.exact.issuperset(inputs) & (gaps == 0))).all())

    # --- what a program consists of -----------------------------------------------------------------------------------

    def op(self) -> None:
        """An op, recorded or not."""
        spec = self.one_of(OPS)
        with shapes.among(self.shapes()):
            call = self.draw(spec.calls)
        inputs = self.in_domain(spec, call, [self.of_shape(shape) for shape in call.shapes])
        self.call(spec, inputs, call.params, not self.chance(8))

    def detach(self) -> None:
        """A tensor's memory, as a constant."""
        i = self.one_of(self.floating())
        if i in self.exact:
            self.exact.add(len(self.run.tensors))
        self.take(Call(DETACH, (i,)))

    def write(self) -> None:
        """A write in place, in the graph or not, seldom to what may not be written."""
        recorded = not self.chance(4)
        anything = self.floating()
        may = [i for i in anything if self.may_be_written(i, recorded)]
        target = self.one_of(anything) if self.chance(16) else self.one_of(may) if may else self.copy()
        spec, calls = self.one_of(WRITES)
        call = self.draw(calls(self.run.array(target).shape))
        others = [self.of_shape(shape) for shape in call.shapes[1:]]
        others = self.in_domain(spec, call, [target, *others])[1:]
        self.take(Write(spec, (target, *others), call.params, recorded))
        kept = self.exact.issuperset((target, *others)) and spec.affine and _dyadic(self.run.array(target))
        if not kept:
            memory = self.run.memory
            self.exact -= {i for i in self.exact if memory[i] == memory[target]}

    def copy(self) -> int:
        return self.call(BY_NAME["clone"], [self.one_of(self.floating())], {})

    def may_be_written(self, i: int, recorded: bool) -> bool:
        run = self.run
        array = run.array(i)
        if any(n > 1 and s == 0 for n, s in zip(array.shape, array.strides, strict=True)):
            return False
        leaf = run.requires_grad(i) and run.tensors[i].is_leaf
        return not (recorded and (leaf or i in run.views or i in run.rewritten))

    def sweep(self) -> None:
        """Gradients of some outputs with drawn cotangents, as new tensors or added to the leaves'."""
        there, run = self.differentiable(), self.run
        may = [i for i in there if not run.ancestors[i] & run.let_go]
        ends = may if may and not self.chance(8) else there
        if not ends:
            return
        made = [i for i in ends if not run.tensors[i].is_leaf][:_LATEST]
        outputs = self.some_of(made if made and not self.chance(8) else ends)
        cotangents = tuple(self.cotangent(run.tensors[i]) for i in outputs)
        retain = not self.chance(4)
        # A view's record is in PyTorch made anew, from its base, once that is written: it skips the views in between.
        wanted = [i for i in reversed(there) if i not in run.views or run.memory[i] not in run.written]
        if any(run.ancestors[i] & run.of_gradients for i in outputs):
            # How a gradient depends on an op's output is a matter of the formula: exp' is e^x, or the output.
            wanted = [i for i in wanted if run.tensors[i].is_leaf]
        if wanted and self.chance(2):
            reached = [i for i in wanted if any(i in run.ancestors[y] for y in outputs)]
            inputs = self.some_of(reached if reached and not self.chance(8) else wanted)
            again = retain and self.chance(2)
            self.take(Grad(outputs, cotangents, inputs, retain, again))
            if again:
                self.sweep()
        else:
            self.take(Backward(outputs, cotangents, retain))
        if not retain and self.chance(4):
            self.take(Backward(outputs, cotangents, retain))  # which is refused, but where nothing was let go

    def cotangent(self, output: Any) -> int:
        array = self.run.engine.array(output)
        weights = np.array(self.draw(values.cotangents(array.shape)), array.dtype)
        number = self.take(Leaf(weights, self.chance(8)))
        self.exact.add(number)
        return number


def _dyadic(x: np.ndarray) -> bool:
    """Whether single precision has room for each number of ``x``, and to spare."""
    return bool((x == np.rint(x * 2**10) / 2**10).all() and (abs(x) < 2**10).all())


_PARTS = [_Builder.op] * 8 + [_Builder.write] * 3 + [_Builder.sweep] * 2 + [_Builder.new_leaf] * 2 + [_Builder.detach]


@st.composite
def programs(draw: Any, oracle: Engine, dtypes: Sequence[str] = ("float64",)) -> Program:
    """A program whose every step but the last the oracle takes; that may be one that it refuses."""
    builder = _Builder(draw, oracle, dtypes)
    try:
        builder.new_leaf()
        for _ in range(MOST):
            if not draw(_below(16)):
                break
            builder.one_of(_PARTS)(builder)
        builder.sweep()
        while builder.chance(2):
            builder.sweep()
    except _Refused:
        pass
    return builder.steps
