"""Generic faults: ways in which the rule of any op may be wrong.

A fault is a function from one application of a rule to the wrong gradient that it gives, and ``planted`` puts it into
one primitive for a while. To add one, write the function under ``@fault``: every op is tried with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad.autograd import Node, Primitive, Scatter, like, value_of

from ..entry import OpSpec
from ..ops import SPECS
from . import seams


@dataclass(frozen=True)
class Application:
    """One application of a rule of ``primitive``: what the sweep hands to it, arrays or tensors."""

    primitive: Primitive
    position: int
    cotangent: Any
    output: Any
    inputs: tuple[Any, ...]
    static: dict[str, Any]

    @property
    def input(self) -> Any:
        """The input whose gradient is asked for."""
        return self.inputs[self.position]

    def gradient(self) -> Any:
        """What the right rule gives, an array of zeros and all where it would give a Scatter."""
        rules, static = self.primitive.pullbacks, self.static
        if self.primitive.variadic:
            rule, static = rules[0], {**static, "position": self.position}
        else:
            rule = rules[self.position]
        found = rule(self.cotangent, self.output, *self.inputs, **static)
        if isinstance(found, Scatter):
            buffer = np.zeros(self.input.shape, self.input.dtype)
            found.add_to(buffer)
            return buffer
        return np.asarray(found) if isinstance(found, np.generic) else found


Wrong = Callable[[Application], Any]


@dataclass(frozen=True)
class Fault:
    """A wrong rule, the primitives to which it applies, and what else must be wrong for it to be a fault."""

    wrong: Wrong
    applies: Callable[[Primitive], bool]
    broadcasts: bool | None = None  # what the primitive says of itself instead
    not_copied: bool = False  # the engine hands out what rules give as if they had made it
    numbers: bool = False  # it changes the numbers for every cotangent, and shows wherever the rule is used

    @property
    def name(self) -> str:
        return self.wrong.__name__


FAULTS: dict[str, Fault] = {}


def fault(applies: Callable[[Primitive], bool] = lambda primitive: True, **facts: Any) -> Callable[[Wrong], Wrong]:
    """Enter a function among the generic faults."""

    def enter(wrong: Wrong) -> Wrong:
        FAULTS[wrong.__name__] = Fault(wrong, applies, **facts)
        return wrong

    return enter


@contextmanager
def planted(fault: Fault, primitive: Primitive) -> Iterator[None]:
    """``primitive`` with ``fault`` in its rules; what they are said to read stays."""
    right = Primitive(primitive.name, primitive.forward, *primitive.pullbacks, variadic=primitive.variadic)

    def rule(position: int) -> Callable[..., Any]:
        def pullback(cotangent: Any, output: Any, *inputs: Any, **static: Any) -> Any:
            at = static.pop("position", position)
            return fault.wrong(Application(right, at, cotangent, output, inputs, static))

        return pullback

    with ExitStack() as stack:
        rules = tuple(rule(i) for i in range(len(primitive.pullbacks)))
        stack.enter_context(patch.object(primitive, "pullbacks", rules))
        if fault.broadcasts is not None:
            stack.enter_context(patch.object(primitive, "broadcasts", fault.broadcasts))
        if fault.not_copied:
            stack.enter_context(seams.all_owned())
        yield


def applicable(spec: OpSpec, primitives: Sequence[Primitive]) -> list[tuple[Fault, Primitive]]:
    """The faults to plant in each of the primitives that ``spec`` records.

    A primitive that is another op's own shows faults of place and memory there: inside this one it may see only
    scalars, say, or cotangents that nobody reads again. Faults in its numbers show here too.
    """
    others = {other.name.split(".")[-1] for other in SPECS} - {spec.name.split(".")[-1]}
    return [
        (fault, primitive)
        for primitive in primitives
        for fault in FAULTS.values()
        if fault.applies(primitive) and (fault.numbers or len(primitives) == 1 or primitive.name not in others)
    ]


def _broadcasts(primitive: Primitive) -> bool:
    return primitive.broadcasts


# --- wrong numbers ----------------------------------------------------------------------------------------------------


@fault(numbers=True)
def zero(at: Application) -> Any:
    """No gradient at all."""
    return at.gradient() * 0.0


@fault(numbers=True)
def negated(at: Application) -> Any:
    """The wrong sign."""
    return -at.gradient()


@fault(numbers=True)
def doubled(at: Application) -> Any:
    """Counted twice."""
    return at.gradient() * 2.0


@fault(numbers=True)
def slightly_off(at: Application) -> Any:
    """A millionth too large: what a loose tolerance lets through."""
    return at.gradient() * (1 + 2.0**-20)


@fault(numbers=True)
def one_nan(at: Application) -> Any:
    """NaN in the first place."""
    gradient = at.gradient()
    spoiled = np.ones(gradient.shape, gradient.dtype)
    spoiled.reshape(-1)[:1] = np.nan
    return gradient * like(gradient, spoiled)


@fault()
def last_element_lost(at: Application) -> Any:
    """0 in the last place: an end that is off by one."""
    gradient = at.gradient()
    kept = np.ones(gradient.shape, gradient.dtype)
    kept.reshape(-1)[-1:] = 0
    return gradient * like(gradient, kept)


# --- the wrong cotangent ----------------------------------------------------------------------------------------------


@fault()
def ones_for_the_cotangent(at: Application) -> Any:
    """The gradient of the sum, whatever is asked for."""
    ones = np.ones(at.cotangent.shape, at.cotangent.dtype)
    return replace(at, cotangent=like(at.cotangent, ones)).gradient()


@fault(numbers=True)
def magnitude_of_the_cotangent(at: Application) -> Any:
    """Right for cotangents that are not negative: a rule that is not linear."""
    g = at.cotangent
    signs = like(g, np.where(value_of(g) < 0, -1, 1).astype(g.dtype))
    magnitude = g * signs
    return replace(at, cotangent=np.asarray(magnitude) if isinstance(g, np.ndarray) else magnitude).gradient()


# --- the wrong place --------------------------------------------------------------------------------------------------


@fault()
def reversed_(at: Application) -> Any:
    """Every axis backwards."""
    gradient = at.gradient()
    return gradient[(slice(None, None, -1),) * gradient.ndim] if gradient.ndim else gradient


@fault()
def transposed(at: Application) -> Any:
    """The axes in reverse order, where the shape does not give that away."""
    gradient = at.gradient()
    return gradient.T if gradient.shape == gradient.shape[::-1] else gradient


@fault(lambda primitive: primitive.variadic or len(primitive.pullbacks) > 1)
def swapped(at: Application) -> Any:
    """The gradient of the input beside it."""
    count = len(at.inputs)
    other = replace(at, position=(at.position + 1) % count) if count > 1 else at
    return other.gradient() if _is_differentiable(other.input) else at.gradient()


def _is_differentiable(x: Any) -> bool:
    return isinstance(x, (np.ndarray, Node))


@fault(lambda primitive: primitive.name == "getitem")
def last_write_wins(at: Application) -> Any:
    """A scatter that assigns: of repeated places the last one counts."""
    if isinstance(at.cotangent, Node):
        return at.gradient()
    buffer = np.zeros(at.input.shape, at.input.dtype)
    buffer[at.static["index"]] = at.cotangent
    return buffer


# --- un-broadcasting --------------------------------------------------------------------------------------------------


@fault(_broadcasts, broadcasts=False)
def not_unbroadcast(at: Application) -> Any:
    """A gradient in the shape of the output, for an input that was stretched to it."""
    return at.gradient()


@fault(_broadcasts)
def mean_for_sum(at: Application) -> Any:
    """The mean over what an input was stretched to."""
    gradient, size = at.gradient(), at.input.size
    return gradient * (size / gradient.size) if gradient.size and gradient.size != size else gradient


@fault(_broadcasts)
def first_for_sum(at: Application) -> Any:
    """The first of what an input was stretched to."""
    gradient, shape = at.gradient(), at.input.shape
    if gradient.shape == shape or not gradient.size:
        return gradient
    gradient = gradient[(0,) * (gradient.ndim - len(shape))]
    return gradient[tuple(slice(n) for n in shape)] if shape else gradient


# --- memory -----------------------------------------------------------------------------------------------------------


@fault(not_copied=True)
def alias_of_the_cotangent(at: Application) -> Any:
    """The cotangent itself where it fits, and handed out without a copy."""
    g = at.cotangent
    return g if g.shape == at.input.shape or at.primitive.broadcasts else at.gradient()


@fault(not_copied=True)
def view_of_an_input(at: Application) -> Any:
    """The input itself, handed out without a copy."""
    return at.input[...]


@fault()
def writes_to_its_cotangent(at: Application) -> Any:
    """A right gradient, and a cotangent that is another one afterwards."""
    return _written(at, at.cotangent)


@fault()
def writes_to_its_input(at: Application) -> Any:
    """A right gradient, and an input that is another one afterwards."""
    return _written(at, at.input)


@fault()
def writes_to_its_output(at: Application) -> Any:
    """A right gradient, and an output that is another one afterwards."""
    return _written(at, at.output)


def _written(at: Application, target: Any) -> Any:
    gradient = at.gradient()
    if isinstance(target, np.ndarray) and target.flags.writeable:
        gradient = gradient.copy()
        target += 1
    return gradient


# --- the wrong kind of thing ------------------------------------------------------------------------------------------


@fault(numbers=True)
def wrong_dtype(at: Application) -> Any:
    """A gradient in the other precision."""
    gradient = at.gradient()
    other = np.dtype("float32" if gradient.dtype == np.float64 else "float64")
    return gradient.to(other) if isinstance(gradient, Node) else gradient.astype(other)


@fault(numbers=True)
def none(_at: Application) -> Any:
    """Nothing."""
    return None


@fault(numbers=True)
def not_differentiable(at: Application) -> Any:
    """A constant where a graph is asked for: the second order is lost in silence."""
    gradient = at.gradient()
    return gradient.detach() if isinstance(gradient, Node) else gradient
