"""Modules that hold other modules."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .module import Module, children


class _Members(Module):
    """A module that holds others by name, in order."""

    def __len__(self) -> int:
        return len(list(children(self)))

    def __iter__(self) -> Iterator[Module]:
        return (module for _, module in children(self))


class Sequential(_Members):
    """Modules one after the other: ``Sequential(a, b)(x)`` is ``b(a(x))``. An OrderedDict gives them names."""

    def __init__(self, *modules: Any):
        named = len(modules) == 1 and isinstance(modules[0], OrderedDict)
        for name, module in modules[0].items() if named else enumerate(modules):
            setattr(self, str(name), _module("Sequential", module))

    def __getitem__(self, index: int | slice) -> Any:
        """One module, or a Sequential of the same modules under the same names. IndexError where there is none."""
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(children(self))[index]))
        return list(self)[index]

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input


class ModuleList(_Members):
    """A list of modules, named by their places. A plain list is found as well; this one has PyTorch's names for it."""

    def __init__(self, modules: Iterable[Module] = ()):
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Add one; the list itself. TypeError for what is no module."""
        return self.extend([module])

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add several; the list itself."""
        for i, module in enumerate(modules, start=len(self)):
            setattr(self, str(i), _module("ModuleList", module))
        return self

    def _lines(self) -> list[str]:
        lines = []
        for text, alike in itertools.groupby(children(self), key=lambda member: repr(member[1])):
            names = [name for name, _ in alike]
            several = f"({names[0]}-{names[-1]}): {len(names)} x {text}"
            lines.append(several if len(names) > 1 else f"({names[0]}): {text}")
        return lines

    def __getitem__(self, index: int | slice) -> Any:
        """One module, or a ModuleList of some, numbered anew. IndexError where there is none."""
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return list(self)[index]


class ModuleDict(Module):
    """Modules by name. A plain dict is found as well; this one has PyTorch's names for it."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add some, or replace those of their names. TypeError for what is no module."""
        for name, module in dict(modules).items():
            self[name] = module

    def __setitem__(self, name: str, module: Module) -> None:
        if not name or "." in name:
            raise KeyError(f"ModuleDict(): a name must not be empty or have a dot in it, got {name!r}")
        if hasattr(type(self), name):
            raise KeyError(f"ModuleDict(): {name!r} is the name of one of its methods")
        setattr(self, name, _module("ModuleDict", module))

    def __getitem__(self, name: str) -> Module:
        return dict(children(self))[name]

    def __contains__(self, name: object) -> bool:
        return name in dict(children(self))

    def __len__(self) -> int:
        return len(list(children(self)))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in children(self))

    def keys(self) -> Iterator[str]:
        """The names."""
        return iter(self)

    def values(self) -> Iterator[Module]:
        """The modules."""
        return (module for _, module in children(self))

    def items(self) -> Iterator[tuple[str, Module]]:
        """Names and modules."""
        return children(self)


def _module(op: str, x: Any) -> Module:
    if not isinstance(x, Module):
        raise TypeError(f"{op}(): needs modules, got {type(x).__name__}")
    return x
