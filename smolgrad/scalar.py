"""A scalar reverse-mode engine on one page: numbers that remember how they were made, and small networks of them.

Nothing here knows of arrays or of the rest of smolgrad. An op computes its result, remembers its parents, and keeps its
pullback: the function that turns d loss / d result into d loss / d parent, one number a parent. ``backward`` walks from
the loss to the leaves and adds these up. Source: the chain rule; the form is that of Andrej Karpathy's micrograd.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any


def topological(roots: Sequence[Any], parents: Callable[[Any], Sequence[Any]]) -> list[Any]:
    """``roots`` and all that they were made from, each once and after its parents; without recursion, however deep."""
    order: list[Any] = []
    seen: set[Any] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, parents_are_done = stack.pop()
        if parents_are_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in reversed(parents(node)))
    return order


class Value:
    """A number with a gradient: ``Value(data)`` is a leaf, and what is computed from it has parents.

    ``data`` is a float, ``grad`` d root / d data, summed over the roots that ``backward`` was called on. ``op`` labels
    what made it, ``parents`` are its operands in order, one that was used twice twice. ``pullback`` gives, for the
    gradient of the value, that of each parent; it has read the operands when the op was computed, so that changing
    their ``data`` later changes nothing. Numbers may stand on either side of an operator; TypeError for other things,
    OverflowError where a power or an exponential is too large for a float.
    """

    __slots__ = ("data", "grad", "parents", "pullback", "op", "__weakref__")
    data: float
    grad: float
    parents: tuple[Value, ...]
    pullback: Callable[[float], tuple[float, ...]] | None
    op: str

    def __init__(
        self,
        data: float,
        parents: tuple[Value, ...] = (),
        pullback: Callable[[float], tuple[float, ...]] | None = None,
        op: str = "",
    ):
        if not isinstance(data, Real):
            raise TypeError(f"Value(): needs a number, got {type(data).__name__}")
        self.data, self.grad = float(data), 0.0
        self.parents, self.pullback, self.op = parents, pullback, op

    def __repr__(self) -> str:
        return f"Value({self.data}, grad={self.grad})"

    # --- ops ----------------------------------------------------------------------------------------------------------

    def __add__(self, other: Value | float) -> Value:
        other = _value(other)
        return Value(self.data + other.data, (self, other), lambda g: (g, g), "+")

    def __sub__(self, other: Value | float) -> Value:
        other = _value(other)
        return Value(self.data - other.data, (self, other), lambda g: (g, -g), "-")

    def __mul__(self, other: Value | float) -> Value:
        other = _value(other)
        a, b = self.data, other.data
        return Value(a * b, (self, other), lambda g: (g * b, g * a), "*")

    def __truediv__(self, other: Value | float) -> Value:
        other = _value(other)
        y, b = self.data / other.data, other.data
        return Value(y, (self, other), lambda g: (g / b, -g * (y / b)), "/")

    def __pow__(self, exponent: float) -> Value:
        """A power with a constant exponent; that of exponent 0 is flat, at 0 too.

        TypeError for an exponent that is no number. ValueError where the power has no real slope: a negative base with
        an exponent that is no integer, and 0 with one below 1 other than 0.
        """
        if not isinstance(exponent, Real):
            raise TypeError(f"**: the exponent must be a number, got {type(exponent).__name__}")
        x, n = self.data, float(exponent)
        if (x < 0 and not n.is_integer()) or (x == 0 and n < 1 and n != 0):
            raise ValueError(f"**: {x} to the power {n} has no real derivative")
        slope = n * x ** (n - 1) if n else 0.0
        return Value(x**n, (self,), lambda g: (g * slope,), f"**{exponent}")

    def __neg__(self) -> Value:
        return Value(-self.data, (self,), lambda g: (-g,), "neg")

    def tanh(self) -> Value:
        """The hyperbolic tangent; its slope is 1 - tanh²."""
        y = math.tanh(self.data)
        return Value(y, (self,), lambda g: (g * (1 - y * y),), "tanh")

    def exp(self) -> Value:
        """e to the power of the value, which is its own slope."""
        y = math.exp(self.data)
        return Value(y, (self,), lambda g: (g * y,), "exp")

    def log(self) -> Value:
        """The natural logarithm. ValueError for what is not positive."""
        x = self.data
        if not x > 0:
            raise ValueError(f"log(): needs a positive number, got {x}")
        return Value(math.log(x), (self,), lambda g: (g / x,), "log")

    def relu(self) -> Value:
        """The larger of the value and 0; its slope at 0 is 0."""
        x = self.data
        return Value(0.0 if x <= 0 else x, (self,), lambda g: (0.0 if x <= 0 else g,), "relu")

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: float) -> Value:
        return _value(other) - self

    def __rtruediv__(self, other: float) -> Value:
        return _value(other) / self

    # --- the sweep ----------------------------------------------------------------------------------------------------

    def backward(self) -> None:
        """Add d self / d value to the ``grad`` of every value that this one was made from.

        A value hands its gradient on when all its consumers have added to it. RuntimeError, before any ``grad`` has
        changed, where a part of the graph was swept before.
        """
        order = topological([self], lambda value: value.parents)
        for value in order:
            if value.parents and value.pullback is None:
                raise RuntimeError(f"backward(): the graph was already swept through {value.op!r}; compute it anew")
        self.grad += 1.0
        for value in reversed(order):
            if value.pullback is not None:
                for parent, gradient in zip(value.parents, value.pullback(value.grad), strict=True):
                    parent.grad += gradient
                value.pullback = None


def _value(x: Value | float) -> Value:
    return x if isinstance(x, Value) else Value(x)


def softmax_cross_entropy(logits: Sequence[Value | float], target: int) -> Value:
    """-log of the share of ``logits[target]`` in the sum of their exponentials: log Σ exp(z - m) - (z[target] - m).

    ``m`` is the largest logit, so that nothing overflows. TypeError for a target that is no integer, IndexError for one
    that is not in range(len(logits)).
    """
    if not isinstance(target, int) or isinstance(target, bool):
        raise TypeError(f"softmax_cross_entropy(): target must be an integer, got {target!r}")
    if not 0 <= target < len(logits):
        raise IndexError(f"softmax_cross_entropy(): there is no target {target} among {len(logits)} logits")
    values = [_value(z) for z in logits]
    most = max(z.data for z in values)
    total = sum(((z - most).exp() for z in values), Value(0.0))
    return total.log() - (values[target] - most)


# --- networks ---------------------------------------------------------------------------------------------------------


class Module:
    """What has parameters."""

    def parameters(self) -> list[Value]:
        """The values to be trained, in a fixed order."""
        raise NotImplementedError(f"{type(self).__name__} defines no parameters()")

    def zero_grad(self) -> None:
        """Set the gradient of each parameter to 0."""
        for p in self.parameters():
            p.grad = 0.0


class Neuron(Module):
    """tanh(w · x + b) of ``width`` inputs: weights drawn from ``rng``, evenly between -1 and 1, and a bias of 0."""

    def __init__(self, width: int, rng: random.Random | None = None):
        rng = rng or random.Random(0)
        self.w = [Value(rng.uniform(-1, 1)) for _ in range(width)]
        self.b = Value(0.0)

    def __call__(self, x: Sequence[Value | float]) -> Value:
        if len(x) != len(self.w):
            raise ValueError(f"Neuron: needs {len(self.w)} inputs, got {len(x)}")
        return sum((w * xi for w, xi in zip(self.w, x, strict=True)), self.b).tanh()

    def parameters(self) -> list[Value]:
        """The weights, and after them the bias."""
        return [*self.w, self.b]


class Layer(Module):
    """``size`` neurons over the same ``width`` inputs."""

    def __init__(self, width: int, size: int, rng: random.Random | None = None):
        rng = rng or random.Random(0)
        self.neurons = [Neuron(width, rng) for _ in range(size)]

    def __call__(self, x: Sequence[Value | float]) -> list[Value]:
        return [neuron(x) for neuron in self.neurons]

    def parameters(self) -> list[Value]:
        """Those of each neuron in turn."""
        return [p for neuron in self.neurons for p in neuron.parameters()]


class MLP(Module):
    """Layers one after the other: ``MLP(3, [4, 4, 1])`` takes 3 inputs and gives one Value, or a list of several.

    ``seed`` fixes the weights. ValueError, on calling it, for any other number of inputs.
    """

    def __init__(self, width: int, sizes: Sequence[int], seed: int = 0):
        rng = random.Random(seed)
        self.layers = [Layer(*pair, rng) for pair in zip([width, *sizes], sizes, strict=False)]

    def __call__(self, x: Sequence[Value | float]) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x[0] if len(x) == 1 else x

    def parameters(self) -> list[Value]:
        """Those of each layer in turn."""
        return [p for layer in self.layers for p in layer.parameters()]
