"""Activations and losses as modules: functions that have nothing to learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .. import functional
from ..primitives.operands import refuse
from .module import Buffer, Module


class _Activation(Module):
    """A function of each element as a module: a subclass names the function."""

    function: ClassVar[Callable[[Any], Any]]

    def forward(self, input: Any) -> Any:
        return type(self).function(input)


class _NotInPlace(_Activation):
    """One that PyTorch can do in place, which is refused by name."""

    def __init__(self, inplace: bool = False):
        refuse(type(self).__name__, {"inplace": inplace}, "inplace")


class ReLU(_NotInPlace):
    """The larger of each element and 0."""

    function = functional.relu


class Tanh(_Activation):
    """The hyperbolic tangent of each element."""

    function = functional.tanh


class Sigmoid(_Activation):
    """1 / (1 + exp(-x)) of each element."""

    function = functional.sigmoid


class SiLU(_NotInPlace):
    """x · sigmoid(x) of each element."""

    function = functional.silu


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
    """A function of input and target, reduced as ``reduction`` says; a subclass names the function."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, *, reduction: str = "mean", **options: Any):
        refuse(type(self).__name__, options, "size_average reduce")
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Any:
        return type(self).function(input, target, reduction=self.reduction)


class CrossEntropyLoss(_Loss):
    """``functional.cross_entropy``, with its options; ``weight`` is a buffer."""

    function = functional.cross_entropy

    def __init__(
        self,
        weight: Any = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        **options: Any,
    ):
        super().__init__(reduction=reduction, **options)
        self.weight = None if weight is None else Buffer(weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        return functional.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class MSELoss(_Loss):
    """``functional.mse_loss``, with its options."""

    function = functional.mse_loss


class L1Loss(_Loss):
    """``functional.l1_loss``, with its options."""

    function = functional.l1_loss
