"""A call that is valid here means the same in PyTorch: the same places of arguments, and the same defaults."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import smolgrad

# Where public names stand here, and where in PyTorch.
HOMES = [
    (smolgrad, torch),
    (smolgrad.Tensor, torch.Tensor),
    (smolgrad.autograd, torch.autograd),
    (smolgrad.func, torch.func),
    (smolgrad.functional, torch.nn.functional),
    (smolgrad.nn, torch.nn),
    (smolgrad.nn.Module, torch.nn.Module),
    (smolgrad.nn.utils, torch.nn.utils),
    (smolgrad.optim, torch.optim),
    (smolgrad.optim.Optimizer, torch.optim.Optimizer),
    (smolgrad.optim.lr_scheduler, torch.optim.lr_scheduler),
]

# Parameters that differ on purpose, and why.
DIFFERENT = {
    **dict.fromkeys(
        ("functional.softmax.dim", "functional.log_softmax.dim", "nn.Softmax.dim", "nn.LogSoftmax.dim"),
        "without it PyTorch guesses a lane, and warns",
    ),
    **dict.fromkeys(("nn.Parameter.data", "nn.Buffer.data"), "of nothing PyTorch makes one without elements"),
    "split.input": "tensor, by which no other op of PyTorch's calls its first",
    "Tensor.split.split_size_or_sections": "split_size in PyTorch's method, not in its function",
    "nn.ModuleList.modules": "no modules, whose default is None there",
    "autograd.grad.allow_unused": "False, which PyTorch means by None unless gradients are materialized",
    "optim.Optimizer.options": "what a subclass took and does not know; PyTorch's has no such parameter",
    **dict.fromkeys(("save.path", "save.state", "load.path"), "files of its own, written as NumPy's: the path first"),
    **dict.fromkeys(
        (f"{home}{mode}.function" for home in ("", "autograd.") for mode in ("no_grad", "enable_grad")),
        "what is decorated, which is given by position",
    ),
}

Parameters = dict[str, inspect.Parameter]


def _public() -> Iterator[tuple[str, Parameters, Parameters]]:
    """What both have under one name, and its parameters here and there. PyTorch's built-in functions tell none."""
    for ours, theirs in HOMES:
        home = ours.__name__.removeprefix("smolgrad").removeprefix(".")
        for name in getattr(ours, "__all__", vars(ours)):
            pair = getattr(ours, name), getattr(theirs, name, None)
            if name.startswith("_") or not all(map(callable, pair)):
                continue
            try:
                here, there = (list(inspect.signature(x).parameters.items()) for x in pair)
            except ValueError:
                continue
            if isinstance(ours, type):  # a method's first is the tensor or module itself
                here, there = here[1:], there[1:]
            yield f"{home}.{name}".lstrip("."), dict(here), dict(there)


PUBLIC = list(_public())


def _by_position(parameters: Parameters) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, parameter in parameters.items() if parameter.kind in kinds]


def _differing(name: str, here: Parameters, there: Parameters) -> Iterator[str]:
    """The parameters that stand at another place than PyTorch's, or have another default."""
    any_number = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in there.values())
    if not any_number:
        theirs = _by_position(there)
        for place, parameter in enumerate(_by_position(here)):
            if parameter not in theirs[place : place + 1]:
                yield f"{name}.{parameter}"
    for parameter in here.keys() & there.keys():
        if here[parameter].default != there[parameter].default:
            yield f"{name}.{parameter}"


@pytest.mark.parametrize(("name", "here", "there"), PUBLIC, ids=[name for name, *_ in PUBLIC])
def test_arguments_have_pytorchs_places_and_defaults(name: str, here: Parameters, there: Parameters) -> None:
    assert set(_differing(name, here, there)) <= set(DIFFERENT)


# Parameters that PyTorch takes by keyword alone, of functions that tell nothing of themselves too.
BY_KEYWORD = {"dtype", "requires_grad", "correction", "ignore_index"}
BY_POSITION_TOO = {"Tensor", "as_tensor", "result_type"}


@pytest.mark.parametrize("name", sorted(set(smolgrad.__all__) - BY_POSITION_TOO))
def test_options_are_given_by_keyword(name: str) -> None:
    if inspect.isfunction(getattr(smolgrad, name)):
        parameters = dict(inspect.signature(getattr(smolgrad, name)).parameters)
        assert not BY_KEYWORD & set(_by_position(parameters))


def test_what_differs_on_purpose_still_does() -> None:
    assert {found for row in PUBLIC for found in _differing(*row)} == set(DIFFERENT)


def test_another_place_and_another_default_are_seen() -> None:
    def here(a: Any, c: Any, b: int = 1) -> None: ...
    def there(a: Any, b: int = 2, c: Any = None) -> None: ...

    ours, theirs = (dict(inspect.signature(f).parameters) for f in (here, there))
    assert sorted(_differing("f", ours, theirs)) == ["f.b", "f.b", "f.c", "f.c"]
