"""One training step of a perceptron with AdamW: smolgrad, NumPy by hand, PyTorch; and what it takes of memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.progress import track

import smolgrad

from .environment import peer
from .libraries import must_agree
from .memory import fresh, resident_growth
from .report import Result, console
from .timing import FULL, QUICK, interleaved, ratio

SIZES, BATCH = (784, 512, 256, 10), 128
SMALL = (16, 8, 8, 10)
# An eps well above rounding noise: where a gradient is zero but for noise, Adam would divide the noise by itself.
LR, BETA1, BETA2, EPS, DECAY = 1e-3, 0.9, 0.999, 1e-3, 1e-2
STEPS = 3  # taken before results are compared, and while memory is measured

TITLE = f"a training step of an MLP {'-'.join(map(str, SIZES))}, batch {BATCH}, float32, AdamW"

Arrays = list[np.ndarray]
Contender = tuple[Callable[[], Any], Callable[[], Sequence[Any]]]  # a step, which gives the loss, and the parameters


def run(quick: bool) -> Result:
    """A row a contender: its time, smolgrad's beside it, and the peak of memory in a process of its own."""
    found = {name: make(SIZES) for name, make in CONTENDERS.items() if name != "PyTorch" or peer("torch")}
    steps = {name: step for name, (step, _) in found.items()}
    losses = {name: [step() for _ in range(STEPS)] for name, step in steps.items()}
    results = {name: [*losses[name], *parameters()] for name, (_, parameters) in found.items()}
    must_agree("a training step", results, "NumPy")
    rows = []
    times = interleaved(steps, QUICK if quick else FULL)
    for name in track(found, "step", console=console, transient=True):
        resident = fresh(peak, name)
        row = {"contender": name, "ms": min(times[name]) * 1e3, "smolgrad ÷ it": ratio(times, "smolgrad", name)}
        rows.append(row | {"resident MB": resident and resident / 1e6})
    return Result(TITLE, rows, [])


def peak(name: str) -> int | None:
    """The bytes by which the process grew at its peak: weights, gradients, AdamW's state, and a few steps."""

    def steps(sizes: tuple[int, ...]) -> None:
        step, _ = CONTENDERS[name](sizes)
        for _ in range(STEPS):
            step()

    steps(SMALL)  # code that is loaded at its first use is none of the model's memory
    return resident_growth(lambda: steps(SIZES))


def start(sizes: tuple[int, ...]) -> tuple[Arrays, np.ndarray, np.ndarray]:
    """Weights and biases in turn, inputs and classes: the same for every contender."""
    rng = np.random.default_rng(0)
    parameters = []
    for width, out in itertools.pairwise(sizes):
        bound = width**-0.5
        parameters += [rng.uniform(-bound, bound, shape).astype(np.float32) for shape in ((out, width), (out,))]
    return parameters, rng.random((BATCH, sizes[0]), dtype=np.float32), rng.integers(sizes[-1], size=BATCH)


def in_library(sizes: tuple[int, ...], module: Any, nn: Any, functional: Any, optim: Any) -> Contender:
    """The step in smolgrad or PyTorch."""
    arrays, *batch = start(sizes)
    images, classes = map(module.from_numpy, batch)
    layers = [nn.Linear(width, out) for width, out in itertools.pairwise(sizes)]
    model = nn.Sequential(layers[0], *(part for layer in layers[1:] for part in (nn.ReLU(), layer)))
    with module.no_grad():
        for p, array in zip(model.parameters(), arrays, strict=True):
            p.copy_(module.from_numpy(array))
    optimizer = optim.AdamW(model.parameters(), lr=LR, betas=(BETA1, BETA2), eps=EPS, weight_decay=DECAY)

    def step() -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), classes)
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda: list(model.parameters())


def ours(sizes: tuple[int, ...]) -> Contender:
    """The step in smolgrad."""
    return in_library(sizes, smolgrad, smolgrad.nn, smolgrad.functional, smolgrad.optim)


def pytorchs(sizes: tuple[int, ...]) -> Contender:
    """The step in PyTorch, eager."""
    torch = peer("torch")
    return in_library(sizes, torch, torch.nn, torch.nn.functional, torch.optim)


def by_hand(sizes: tuple[int, ...]) -> Contender:
    """The step in NumPy: forward, the chain rule, and AdamW in place with two arrays of scratch a parameter."""
    parameters, images, classes = start(sizes)
    weights, biases = parameters[::2], parameters[1::2]
    rows, count = np.arange(BATCH), 0
    means, squares, scratch, other = ([np.zeros_like(p) for p in parameters] for _ in range(4))

    def gradients() -> tuple[Any, Arrays]:
        inputs = [images]
        for w, b in zip(weights, biases, strict=True):
            z = inputs[-1] @ w.T
            z += b
            inputs.append(np.maximum(z, 0, out=z) if w is not weights[-1] else z)
        p = inputs.pop()
        p -= p.max(axis=1, keepdims=True)
        picked = p[rows, classes]
        np.exp(p, out=p)
        total = p.sum(axis=1, keepdims=True)
        loss = np.mean(np.log(total[:, 0]) - picked)
        g = p / total
        g[rows, classes] -= 1
        g /= BATCH
        found: Arrays = []
        for w, x in zip(reversed(weights), reversed(inputs), strict=True):
            found += [g.sum(axis=0), g.T @ x]
            if x is not images:
                g = g @ w
                g *= x > 0
        return loss, found[::-1]

    def step() -> Any:
        nonlocal count
        count += 1
        loss, found = gradients()
        size, root = LR / (1 - BETA1**count), (1 - BETA2**count) ** 0.5
        for p, g, m, v, s, t in zip(parameters, found, means, squares, scratch, other, strict=True):
            p *= 1 - LR * DECAY
            m *= BETA1
            m += np.multiply(g, 1 - BETA1, out=s)
            v *= BETA2
            v += np.multiply(np.multiply(g, g, out=s), 1 - BETA2, out=s)
            np.divide(np.sqrt(v, out=s), root, out=s)
            s += EPS
            p -= np.multiply(np.divide(m, s, out=t), size, out=t)
        return loss

    return step, lambda: parameters


CONTENDERS: dict[str, Callable[[tuple[int, ...]], Contender]] = {
    "smolgrad": ours,
    "NumPy": by_hand,
    "PyTorch": pytorchs,
}
