"""The functional transforms, to second order and nested in one another, against ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import smolgrad

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # in its jvp

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


# Functions of ``m``, either engine's module, and where they are taken.
FUNCTIONS: dict[str, tuple[Callable[[Any], Callable[..., Any]], tuple[Any, ...]]] = {
    "a number of a number": (lambda m: lambda x: x**3 * m.exp(-x), (numbers(),)),
    "a vector of a vector": (lambda m: lambda x: m.tanh(x * x)[:2] * x[2], (numbers(3),)),
    "a matrix of two": (lambda m: lambda a, b: m.sigmoid(a @ b), (numbers(2, 3), numbers(3, 2))),
    "affine": (lambda m: lambda x, y: 3 * x - y + 1, (numbers(2), numbers(2))),
    "one not used": (lambda m: lambda x, y: (x * x).sum(), (numbers(2), numbers(1, 2))),
    "itself": (lambda m: lambda x: x, (numbers(2),)),
    "containers": (
        lambda m: lambda p, x: {"y": m.tanh(p["w"] @ x[0]) + p["b"], "z": [x[1] * p["b"], (p["w"] * p["w"]).sum()]},
        ({"w": numbers(2, 3), "b": numbers(2)}, (numbers(3), numbers())),
    ),
}


def each(function: Callable[..., Any], tree: Any) -> Any:
    """``tree`` with ``function`` of each leaf."""
    if isinstance(tree, dict):
        return {key: each(function, x) for key, x in tree.items()}
    return type(tree)(each(function, x) for x in tree) if isinstance(tree, (tuple, list)) else function(tree)


def leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    each(found.append, tree)
    return found


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of all that ``f`` gives, squared."""
    return lambda *args: sum((y * y).sum() for y in leaves(f(*args)))


def along(tree: Any) -> Any:
    """A direction, built like ``tree``."""
    return each(lambda x: 0.25 * x.detach() - 1, tree)


def pulled(F: Any, f: Callable[..., Any], *args: Any) -> Any:
    y, vjp_fn = F.vjp(f, *args)
    return y, vjp_fn(along(y))


def pushed(F: Any, f: Callable[..., Any], *args: Any) -> Any:
    return F.jvp(f, args, along(args))


def every(args: Any) -> tuple[int, ...]:
    return tuple(range(len(args)))


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "vjp": pulled,
    "jvp": pushed,
    "grad": lambda F, f, *args: F.grad(total(f))(*args),
    "grad of the last": lambda F, f, *args: F.grad(total(f), argnums=-1)(*args),
    "jacrev": lambda F, f, *args: F.jacrev(f, argnums=every(args))(*args),
    "jacfwd": lambda F, f, *args: F.jacfwd(f, argnums=every(args))(*args),
    "jacrev of the first": lambda F, f, *args: F.jacrev(f)(*args),
    "jacfwd of the last": lambda F, f, *args: F.jacfwd(f, len(args) - 1)(*args),
    "hessian": lambda F, f, *args: F.hessian(f, argnums=every(args))(*args),
    "jacrev of jacfwd": lambda F, f, *args: F.jacrev(F.jacfwd(f))(*args),
    "grad of grad": lambda F, f, *args: F.grad(total(F.grad(total(f))))(*args),
    "jvp of grad": lambda F, f, *args: pushed(F, F.grad(total(f), every(args)), *args),
    "grad of jvp": lambda F, f, *args: F.grad(total(lambda *xs: pushed(F, f, *xs)[1]), every(args))(*args),
    "jacfwd of vjp": lambda F, f, *args: F.jacfwd(lambda *xs: pulled(F, f, *xs)[1], every(args))(*args),
    "jvp of jvp": lambda F, f, *args: pushed(F, lambda *xs: pushed(F, f, *xs)[1], *args),
}


def ours(tree: Any) -> Any:
    return each(lambda x: smolgrad.from_numpy(np.array(x)), tree)


def theirs(tree: Any) -> Any:
    return each(lambda x: torch.tensor(np.array(x)), tree)


def assert_same(got: Any, want: Any) -> None:
    assert each(lambda x: tuple(x.shape), got) == each(lambda x: tuple(x.shape), want)
    for a, b in zip(leaves(got), leaves(want), strict=True):
        assert not a.requires_grad
        dense = b.detach() + torch.zeros_like(b)  # its forward mode gives zeros without memory
        np.testing.assert_allclose(a.numpy(), dense.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize(("function", "args"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_transforms_are_torchs(transform: Any, function: Any, args: Any) -> None:
    got = transform(smolgrad.func, function(smolgrad), *ours(args))
    assert_same(got, transform(torch.func, function(torch), *theirs(args)))


@pytest.mark.parametrize(("function", "args"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_value_and_grad_is_torchs_the_other_way_round(function: Any, args: Any) -> None:
    got = smolgrad.func.value_and_grad(total(function(smolgrad)), every(args))(*ours(args))
    assert_same(got[::-1], torch.func.grad_and_value(total(function(torch)), every(args))(*theirs(args)))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "containers"])
def test_hvp_is_torchs(name: str) -> None:
    function, args = FUNCTIONS[name]
    xs, ts = ours(args), theirs(args)
    got = smolgrad.func.hvp(total(function(smolgrad)), xs, along(xs))
    want = torch.autograd.functional.hvp(total(function(torch)), ts, along(ts))
    assert_same(got, want)
    alone = smolgrad.func.hvp(lambda x: total(function(smolgrad))(x, *xs[1:]), xs[0], along(xs[0]))
    assert_same(alone, torch.autograd.functional.hvp(lambda t: total(function(torch))(t, *ts[1:]), ts[0], along(ts[0])))


AUX = {
    "vjp": lambda F, f, x: F.vjp(f, x, has_aux=True)[::2],
    "jvp": lambda F, f, x: F.jvp(f, (x,), (x,), has_aux=True),
    "grad": lambda F, f, x: F.grad(lambda x: (f(x)[0].sum(), f(x)[1]), has_aux=True)(x),
    "jacrev": lambda F, f, x: F.jacrev(f, has_aux=True)(x),
    "jacfwd": lambda F, f, x: F.jacfwd(f, has_aux=True)(x),
}


@pytest.mark.parametrize("transform", AUX.values(), ids=AUX)
def test_aux_is_handed_through(transform: Any) -> None:
    x = numbers(2)

    def f(x: Any) -> Any:
        return x * x, {"half": x / 2}

    assert_same(transform(smolgrad.func, f, ours(x)), transform(torch.func, f, theirs(x)))


REFUSED = {
    "grad of a vector": lambda F, x: F.grad(lambda x: x)(x),
    "an argument that is not there": lambda F, x: F.grad(lambda x: x.sum(), argnums=1)(x),
    "a cotangent of another shape": lambda F, x: F.vjp(lambda x: x, x)[1](x[0]),
    "a cotangent in a tuple": lambda F, x: F.vjp(lambda x: x, x)[1]((x,)),
    "a tangent too many": lambda F, x: F.jvp(lambda x: x, (x,), (x, x)),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_refusals_are_torchs(call: Any) -> None:
    x = numbers(2)
    with pytest.raises(RuntimeError):
        call(torch.func, theirs(x))
    with pytest.raises(RuntimeError):
        call(smolgrad.func, ours(x))
