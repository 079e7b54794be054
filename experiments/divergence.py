"""How far two right engines drift apart, and why: ``python -m experiments.divergence``.

The perceptron of experiments.mnist is trained for 300 steps beside its PyTorch twin, with SGD with momentum and with
AdamW, in float32 and in float64, and the largest difference of two weights is logged at every step. So are the units
whose pre-activations lie on different sides of zero in the two: ReLU hands on the gradient in the one and not in the
other. Where there are any, the run is replayed with the twin's units forced to the side of ours.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from . import plots, run
from .data import mnist
from .mnist import BATCH, perceptron
from .run import SMOLGRAD, Data, Library, Run, Task

RATES = {"SGD": 0.05, "AdamW": 1e-3}
SETTINGS: dict[str, dict[str, Any]] = {"SGD": {"momentum": 0.9}, "AdamW": {"weight_decay": 0.01}}
DTYPES = ("float32", "float64")
AT_MOST = 1e-13  # between two weights in float64, as asked of experiments.mnist
LEFT = 0.1  # of the float32 difference, if the units that disagree are its cause


def watched(library: Library, dtype: str, seen: dict[str, list[np.ndarray]], forced: bool) -> Any:
    """The perceptron, which keeps its pre-activations in ``seen``; forced, the twin's ReLUs take the side of ours."""
    root = library.root

    class Watched(library.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = perceptron(library, dtype)

        def forward(self, x: Any) -> Any:
            seen[library.name] = before = []
            for layer in self.layers:
                if isinstance(layer, library.nn.ReLU):
                    before.append(x.detach().numpy())
                    if forced and library is not SMOLGRAD and root.is_grad_enabled():  # not where it is evaluated
                        ours = root.tensor(seen[SMOLGRAD.name][len(before) - 1] > 0)
                        x = root.where(ours, x, 0.0)
                        continue
                x = layer(x)
            return x

    return Watched()


def disagreement(seen: dict[str, list[np.ndarray]]) -> dict[str, float]:
    """How many pre-activations of the two lie on different sides of zero, and how far from it at most."""
    pairs = list(zip(*seen.values(), strict=True))
    apart = [(a > 0) != (b > 0) for a, b in pairs]
    far = [np.abs(np.where(where, (a, b), 0)).max() for (a, b), where in zip(pairs, apart, strict=True)]
    count = sum(int(where.sum()) for where in apart)
    return {"units that disagree": count, "their largest pre-activation": float(max(far))}


def twins(options: argparse.Namespace, data: tuple[Data, Data], optimizer: str, dtype: str, forced: bool) -> Run:
    """One pair, trained."""
    (images, classes), (test_images, test_classes) = data
    learned, test = (images.astype(dtype), classes), (test_images.astype(dtype), test_classes)
    seen: dict[str, list[np.ndarray]] = {}

    task = Task(
        model=lambda library: watched(library, dtype, seen, forced),
        optimizer=lambda library, parameters: getattr(library.root.optim, optimizer)(parameters, **SETTINGS[optimizer]),
        batch=lambda step: run.batch(learned, BATCH, options.seed, step),
        rate=lambda _: RATES[optimizer],
        evaluate=lambda side: {"test accuracy": side.accuracy(*test)},
        observe=lambda: disagreement(seen),
        steps=options.steps,
        every=options.steps,
    )
    named = argparse.Namespace(**vars(options) | {"dtype": dtype, "torch_twin": options.steps})
    pair = Run(f"divergence-{optimizer}-{dtype}{'-forced' if forced else ''}", named)
    pair.train(task)
    return pair


def replayed(plain: Run, forced: Run) -> dict[str, float]:
    """The first step at which a unit disagreed, and the weight difference before and after it, free and forced.

    Up to that step the two runs are the same to the bit.
    """
    first = next(i for i, row in enumerate(plain.rows) if row["units that disagree"])
    name = "weight difference"
    return {
        "step": plain.rows[first]["step"],
        "units that disagree": plain.rows[first]["units that disagree"],
        "their largest pre-activation": plain.rows[first]["their largest pre-activation"],
        "weight difference before the step": plain.rows[first - 1][name] if first else 0.0,
        "weight difference after it": plain.rows[first][name],
        "weight difference after it, units forced to agree": forced.rows[first][name],
        "largest weight difference": max(plots.column(plain.rows, name)),
        "largest weight difference, units forced to agree": max(plots.column(forced.rows, name)),
    }


def main(arguments: list[str] | None = None) -> int:
    """Train all pairs, replay those with disagreeing units, draw: 0 where float64 is within its bound, 1 otherwise."""
    parser = run.parser("experiments.divergence", __doc__, dtype=None)
    parser.add_argument("--steps", type=run.positive, default=300, help="(300; at most 10 with --quick)")
    options = parser.parse_args(arguments)
    options.steps = min(options.steps, 10) if options.quick else options.steps
    data = mnist("float64")
    pairs = {(name, dtype): twins(options, data, name, dtype, False) for name in RATES for dtype in DTYPES}
    forced = {
        (name, dtype): twins(options, data, name, dtype, True)
        for (name, dtype), pair in pairs.items()
        if any(row["units that disagree"] for row in pair.rows)
    }
    whole = Run("divergence", options)
    for (name, dtype), pair in pairs.items():
        largest = max(plots.column(pair.rows, "weight difference"))
        found = (
            replayed(pair, forced[name, dtype]) if (name, dtype) in forced else {"largest weight difference": largest}
        )
        whole.results[f"{name}, {dtype}"] = found
        if dtype == "float64":
            whole.check(f"largest weight difference of {name} in float64", largest, at_most=AT_MOST)
        elif (name, dtype) in forced:
            rest = found["largest weight difference, units forced to agree"]
            text = f"of the difference of {name} in float32, the part that is left where units are forced to agree"
            whole.check(text, rest / largest, at_most=LEFT)
    heading = f"how far smolgrad and PyTorch drift apart on MNIST, seed {options.seed}, BLAS threads {options.threads}"
    plots.drift(pairs, forced, whole.file(".png"), heading)
    return max(pair.finish() for pair in (*pairs.values(), *forced.values(), whole))


if __name__ == "__main__":
    sys.exit(run.command(main))
