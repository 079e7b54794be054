"""Modules that hold other modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from .module import Module, children


class Sequential(Module):
    """Modules one after the other: ``Sequential(a, b)(x)`` is ``b(a(x))``. An OrderedDict gives them names."""

    def __init__(self, *modules: Any):
        named = len(modules) == 1 and isinstance(modules[0], OrderedDict)
        for name, module in modules[0].items() if named else enumerate(modules):
            if not isinstance(module, Module):
                raise TypeError(f"Sequential(): needs modules, got {type(module).__name__}")
            setattr(self, str(name), module)

    def __len__(self) -> int:
        return len(list(children(self)))

    def __iter__(self) -> Iterator[Module]:
        return (module for _, module in children(self))

    def __getitem__(self, index: int | slice) -> Any:
        """One module, or a Sequential of the same modules under the same names. IndexError where there is none."""
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(children(self))[index]))
        return list(self)[index]

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input
