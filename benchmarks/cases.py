"""Ops at sizes that models have: for smolgrad and PyTorch, by hand in NumPy, and for HIPS autograd.

By hand is what one writes who knows the derivative: forward once, what backward needs kept, arrays reused where that is
plain. Every gradient is an array of its own, as a leaf's is: never the cotangent or a view of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Gradients = tuple[np.ndarray, ...]
ByHand = Callable[..., tuple[np.ndarray, Gradients]]


@dataclass(frozen=True)
class Case:
    """An op at a size: in a library, in HIPS autograd, and by hand; each is given the leaves and then the constants."""

    op: str
    size: str
    shapes: tuple[Shape, ...]  # of the leaves
    call: Callable[..., Any]  # of the library, and them
    traced: Callable[..., Any]  # of autograd.numpy, and them
    by_hand: ByHand  # of the cotangent, and them
    constants: tuple[np.ndarray, ...] = ()

    def leaves(self) -> list[np.ndarray]:
        """Their values: normal, in float32."""
        rng = np.random.default_rng(0)
        return [rng.standard_normal(shape, dtype=np.float32) for shape in self.shapes]


# --- elementwise ------------------------------------------------------------------------------------------------------


def mul(g: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Gradients]:
    return a * b, (g * b, g * a)


def exp(g: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, Gradients]:
    y = np.exp(x)
    return y, (g * y,)


def tanh(g: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, Gradients]:
    y = np.tanh(x)
    slope = y * y
    np.subtract(1, slope, out=slope)
    slope *= g
    return y, (slope,)


def relu(g: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, Gradients]:
    y = np.maximum(x, 0)
    return y, (g * (y > 0),)


def add_bias(g: np.ndarray, x: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, Gradients]:
    return x + bias, (g.copy(), g.sum(axis=0))


# --- reductions -------------------------------------------------------------------------------------------------------


def sum_over(axis: int | None) -> ByHand:
    def by_hand(g: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, Gradients]:
        gradient = np.empty_like(x)
        gradient[...] = g if axis is None else np.expand_dims(g, axis)
        return np.asarray(x.sum(axis=axis)), (gradient,)

    return by_hand


def softmax(g: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, Gradients]:
    y = x - x.max(axis=1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=1, keepdims=True)
    gradient = g * y
    gradient -= y * gradient.sum(axis=1, keepdims=True)
    return y, (gradient,)


def layer_norm(g: np.ndarray, x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, Gradients]:
    z = x - x.mean(axis=1, keepdims=True)
    spread = np.sqrt((z * z).mean(axis=1, keepdims=True) + np.float32(1e-5))
    z /= spread
    y = z * weight
    y += bias
    by_lane = g * weight
    gradient = by_lane - by_lane.mean(axis=1, keepdims=True)
    by_lane *= z
    gradient -= z * by_lane.mean(axis=1, keepdims=True)
    gradient /= spread
    return y, (gradient, (g * z).sum(axis=0), g.sum(axis=0))


def layer_norm_traced(np: Any, x: Any, weight: Any, bias: Any) -> Any:
    z = x - np.mean(x, axis=1, keepdims=True)
    return z / np.sqrt(np.mean(z * z, axis=1, keepdims=True) + 1e-5) * weight + bias


def cross_entropy(g: np.ndarray, x: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, Gradients]:
    rows = np.arange(len(x))
    p = x - x.max(axis=1, keepdims=True)
    picked = p[rows, target]
    np.exp(p, out=p)
    total = p.sum(axis=1, keepdims=True)
    loss = np.mean(np.log(total[:, 0]) - picked)
    p /= total
    p[rows, target] -= 1
    p *= g / len(x)
    return np.asarray(loss), (p,)


def cross_entropy_traced(np: Any, x: Any, target: Any) -> Any:
    x = x - np.max(x, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(x), axis=1)) - x[np.arange(len(x)), target])


def softmax_traced(np: Any, x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


# --- products ---------------------------------------------------------------------------------------------------------


def matmul(g: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Gradients]:
    return a @ b, (g @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ g)


def linear(g: np.ndarray, x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, Gradients]:
    y = x @ weight.T
    y += bias
    return y, (g @ weight, g.T @ x, g.sum(axis=0))


# --- picking and joining ----------------------------------------------------------------------------------------------


def pick_rows(g: np.ndarray, x: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, Gradients]:
    gradient = np.zeros_like(x)
    np.add.at(gradient, rows, g)
    return x[rows], (gradient,)


def pick_once(g: np.ndarray, x: np.ndarray, *index: Any) -> tuple[np.ndarray, Gradients]:
    gradient = np.zeros_like(x)
    gradient[index] = g  # it names no place twice
    return x[index], (gradient,)


def slices(g: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, Gradients]:
    return pick_once(g, x, slice(1, -1), slice(None, None, 2))


def cat(g: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Gradients]:
    width = a.shape[1]
    return np.concatenate([a, b], axis=1), (g[:, :width].copy(), g[:, width:].copy())


# --- the table --------------------------------------------------------------------------------------------------------


def _whole(below: int, count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(below, size=count)


def cases() -> list[Case]:
    """All of them, in the order of the table."""
    big = ((512, 512),)
    return [
        Case("mul", "32x32", ((32, 32),) * 2, lambda _, a, b: a * b, lambda _, a, b: a * b, mul),
        Case("mul", "512x512", big * 2, lambda _, a, b: a * b, lambda _, a, b: a * b, mul),
        Case("exp", "512x512", big, lambda _, x: x.exp(), lambda np, x: np.exp(x), exp),
        Case("tanh", "512x512", big, lambda _, x: x.tanh(), lambda np, x: np.tanh(x), tanh),
        Case("relu", "512x512", big, lambda _, x: x.relu(), lambda np, x: np.maximum(x, 0.0), relu),
        Case("add", "512x512 + 512", (*big, (512,)), lambda _, x, b: x + b, lambda _, x, b: x + b, add_bias),
        Case("sum", "512x512", big, lambda _, x: x.sum(), lambda np, x: np.sum(x), sum_over(None)),
        Case("sum", "512x512, dim 0", big, lambda _, x: x.sum(0), lambda np, x: np.sum(x, axis=0), sum_over(0)),
        Case("sum", "512x512, dim 1", big, lambda _, x: x.sum(1), lambda np, x: np.sum(x, axis=1), sum_over(1)),
        Case("softmax", "128x1000", ((128, 1000),), lambda _, x: x.softmax(1), softmax_traced, softmax),
        Case(
            "layer_norm", "256x512", ((256, 512), (512,), (512,)),
            lambda lib, x, w, b: lib.functional.layer_norm(x, (512,), w, b), layer_norm_traced, layer_norm,
        ),
        Case(
            "cross_entropy", "128x10", ((128, 10),),
            lambda lib, x, t: lib.functional.cross_entropy(x, t), cross_entropy_traced, cross_entropy,
            (_whole(10, 128),),
        ),
        Case(
            "cross_entropy", "256x1000", ((256, 1000),),
            lambda lib, x, t: lib.functional.cross_entropy(x, t), cross_entropy_traced, cross_entropy,
            (_whole(1000, 256),),
        ),
        Case("matmul", "256x256", ((256, 256),) * 2, lambda _, a, b: a @ b, lambda np, a, b: np.matmul(a, b), matmul),
        Case(
            "matmul", "16 of 64x64", ((16, 64, 64),) * 2,
            lambda _, a, b: a @ b, lambda np, a, b: np.matmul(a, b), matmul,
        ),
        Case(
            "linear", "128x784 to 512", ((128, 784), (512, 784), (512,)),
            lambda lib, x, w, b: lib.functional.linear(x, w, b),
            lambda np, x, w, b: np.dot(x, w.T) + b, linear,
        ),
        Case(
            "embedding", "2048 of 1024x64", ((1024, 64),),
            lambda lib, w, i: lib.functional.embedding(i, w), lambda _, w, i: w[i], pick_rows, (_whole(1024, 2048),),
        ),
        Case("x[slices]", "512x512", big, lambda _, x: x[1:-1, ::2], lambda _, x: x[1:-1, ::2], slices),
        Case(
            "x[rows]", "256 of 512x512", big,
            lambda _, x, i: x[i], lambda _, x, i: x[i], pick_once, (np.random.default_rng(1).permutation(512)[:256],),
        ),
        Case(
            "x[mask]", "512x512", big,
            lambda _, x, m: x[m], lambda _, x, m: x[m], pick_once, (np.random.default_rng(1).random((512, 512)) < 0.5,),
        ),
        Case(
            "cat", "two of 512x256", ((512, 256),) * 2,
            lambda lib, a, b: lib.module.cat([a, b], 1), lambda np, a, b: np.concatenate([a, b], axis=1), cat,
        ),
    ]  # fmt: skip
