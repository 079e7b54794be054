"""Activations and losses as modules: functions that have nothing to learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .. import functional
from ..primitives.operands import refuse
from .module import Module, asked


class _Activation(Module):
    """A function of each element as a module: a subclass names the function, and the options that are not offered."""

    function: ClassVar[Callable[[Any], Any]]
    not_offered: ClassVar[str] = ""

    def __init__(self, **options: Any):
        refuse(type(self).__name__, asked(options), self.not_offered)

    def forward(self, input: Any) -> Any:
        return type(self).function(input)


class ReLU(_Activation):
    """The larger of each element and 0."""

    function, not_offered = functional.relu, "inplace"


class Tanh(_Activation):
    """The hyperbolic tangent of each element."""

    function = functional.tanh


class Sigmoid(_Activation):
    """1 / (1 + exp(-x)) of each element."""

    function = functional.sigmoid


class SiLU(_Activation):
    """x · sigmoid(x) of each element."""

    function, not_offered = functional.silu, "inplace"


class GELU(Module):
    """``functional.gelu`` of each element."""

    def __init__(self, approximate: str = "none"):
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return functional.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _AlongAnAxis(Module):
    """A function along ``dim``, which must be given."""

    function: ClassVar[Callable[[Any, int], Any]]

    def __init__(self, dim: int):
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return type(self).function(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongAnAxis):
    """``functional.softmax`` along ``dim``."""

    function = functional.softmax


class LogSoftmax(_AlongAnAxis):
    """``functional.log_softmax`` along ``dim``."""

    function = functional.log_softmax


class _Loss(Module):
    """A function of input and target, with the options of the function that a subclass names."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, **options: Any):
        self.options = options

    def forward(self, input: Any, target: Any) -> Any:
        return type(self).function(input, target, **self.options)


class CrossEntropyLoss(_Loss):
    """``functional.cross_entropy``, with its options."""

    function = functional.cross_entropy


class MSELoss(_Loss):
    """``functional.mse_loss``, with its options."""

    function = functional.mse_loss


class L1Loss(_Loss):
    """``functional.l1_loss``, with its options."""

    function = functional.l1_loss
