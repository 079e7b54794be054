"""Activations as modules: functions of each element, which have nothing to learn."""

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
