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


# --- every argument ---------------------------------------------------------------------------------------------------

# What tells nothing of its arguments in PyTorch, or is no op.
UNTOLD = {"as_tensor", "einsum", "from_numpy", "tensor"}
# Where PyTorch tells of those of others.
TOLD_AS = {"functional.max_pool2d": "_max_pool2d", "functional.logsigmoid": "log_sigmoid"}
# Arguments that have another name here, and are given by position.
BY_POSITION = {"split.tensor", "Tensor.split.split_size"}


def _arguments(name: str, home: Any) -> set[str]:
    """The names of all arguments that PyTorch's function takes, in all its forms."""
    told = TOLD_AS.get(name, name.rpartition(".")[2])
    try:
        parameters = inspect.signature(getattr(home, told, None)).parameters.values()
        return {p.name for p in parameters if p.kind is not p.VAR_KEYWORD} - {"self"}
    except (TypeError, ValueError):  # a built-in one, for which there is a list of forms
        found = set()
    for form in torch._C._jit_get_schemas_for_operator(f"aten::{told}"):
        first, names = form.arguments[0], {argument.name for argument in form.arguments}
        # Left out are those of Python's numbers and lists.
        if not names & {"a", "l"} and (first.name != "self" or str(first.type) == "Tensor"):
            for argument in form.arguments:
                found.add("out" if argument.is_out else "input" if argument.name == "self" else argument.name)
    return found


def _ops() -> Iterator[tuple[str, Any, set[str]]]:
    for ours, theirs in (*HOMES[:2], (smolgrad.functional, torch.nn.functional)):
        home = "" if ours is smolgrad else f"{ours.__name__.rpartition('.')[2]}."
        for name in getattr(ours, "__all__", vars(ours)):
            op = getattr(ours, name)
            if hasattr(op, "__wrapped__") and hasattr(theirs, name) and not name.startswith("_") and name not in UNTOLD:
                yield f"{home}{name}", op, _arguments(f"{home}{name}", theirs)


OPS = list(_ops())


@pytest.mark.parametrize(("name", "op", "theirs"), OPS, ids=[name for name, *_ in OPS])
def test_each_argument_of_pytorchs_is_taken_or_refused_by_name(name: str, op: Any, theirs: set[str]) -> None:
    for argument in theirs - set(inspect.signature(op).parameters):
        if f"{name}.{argument}" not in BY_POSITION:
            with pytest.raises(NotImplementedError, match=rf"{op.__name__}\(\): the option {argument} .*not offered"):
                op(**{argument: 7})


def test_pytorch_tells_of_the_arguments_of_every_op() -> None:
    assert len(OPS) > 300
    assert [name for name, _, theirs in OPS if not theirs] == []
    assert {"dim", "keepdim", "dtype", "out"} <= {name: theirs for name, _, theirs in OPS}["sum"]
