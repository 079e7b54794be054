"""Every public name of the engine says what it is: modules, functions, classes, methods and properties."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import pytest

import smolgrad

MODULES = sorted({"smolgrad", *(m.name for m in pkgutil.walk_packages(smolgrad.__path__, "smolgrad."))})

# Methods that their base's docstring speaks for: what a layer computes is said by the layer's own.
SAID_BY_THE_CLASS = {"forward", "extra_repr"}


def public(owner: Any, name: str) -> Iterator[tuple[str, Any]]:
    """What is defined in ``owner`` and is public, and what its classes define, by full name."""
    for key, value in vars(owner).items():
        told = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if key.startswith("_") or not (inspect.isfunction(told) or inspect.isclass(told)):
            continue
        if told.__module__ != getattr(owner, "__module__", owner.__name__):
            continue  # it is from elsewhere, and looked at there
        yield f"{name}.{key}", told
        if inspect.isclass(told):
            yield from public(told, f"{name}.{key}")


def undocumented(module: Any) -> list[str]:
    """The public names of ``module`` that have no docstring."""
    named = [(module.__name__, module), *public(module, module.__name__)]
    return [name for name, value in named if name.rpartition(".")[2] not in SAID_BY_THE_CLASS and not _is_told(value)]


def _is_told(value: Any) -> bool:
    doc = value.__doc__ or ""
    return doc.strip() != "" and not doc.startswith(f"{value.__name__}(")  # which a tuple or a dataclass writes itself


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert undocumented(importlib.import_module(name)) == []


def test_a_missing_docstring_is_found() -> None:
    source = """
    import os, typing
    from os import path
    def told(): "Told."
    def silent(): pass
    def _private(): pass
    class Told:
        "Told."
        def silent(self): pass
        @property
        def fact(self): pass
        @classmethod
        def made(cls): pass
        def forward(self): pass
    class Silent(typing.NamedTuple):
        x: int
    """
    module = types.ModuleType("found")
    exec(textwrap.dedent(source), vars(module))
    names = ("silent", "Told.silent", "Told.fact", "Told.made", "Silent")
    assert undocumented(module) == ["found", *(f"found.{name}" for name in names)]
