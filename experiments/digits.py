"""Handwritten digits, learned beside a PyTorch twin: ``python -m experiments.digits``.

A perceptron learns the 1797 digits of 8 by 8 pixels that come with scikit-learn, so nothing is downloaded. Its twin in
PyTorch starts from the same weights and is given the same batches. What is shown in the end is that the model has
learned (accuracy on a held-out fifth) and that it is PyTorch's (the largest difference between two weights).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import plots, run
from .run import Data, Library, Run, Side, Task

BATCH, RATE = 64, 1e-2
# An eps well above rounding noise: where a gradient is zero but for noise, Adam would divide the noise by itself, and
# two correct engines would part.
SETTINGS: dict[str, Any] = {"weight_decay": 1e-2, "eps": 1e-3}
ACCURACY = 0.97
SAME = {"float64": 1e-12, "float32": 1e-2}  # between the twins' weights
MEASURE = "held-out accuracy"


def digits(dtype: str) -> tuple[Data, Data]:
    """Pixels (N, 64) in [0, 1] and classes (N,): four fifths to learn from, and every fifth digit held out."""
    from sklearn.datasets import load_digits  # where it is missing, plots has said so

    images, classes = load_digits(return_X_y=True)
    images, classes = (images / 16).astype(dtype), classes.astype("int64")
    held_out = np.arange(len(images)) % 5 == 0
    return (images[~held_out], classes[~held_out]), (images[held_out], classes[held_out])


def perceptron(library: Library, dtype: str) -> Any:
    """Pixels (N, 64) give logits (N, 10). In either library."""
    nn, kind = library.nn, getattr(library.root, dtype)
    return nn.Sequential(nn.Linear(64, 128, dtype=kind), nn.ReLU(), nn.Linear(128, 10, dtype=kind))


def main(arguments: list[str] | None = None) -> int:
    """Train both, show and draw how they fared: 0 where they agree and have learned, 1 otherwise."""
    parser = run.parser("experiments.digits", __doc__, dtype="float64")
    parser.add_argument("--epochs", type=run.positive, default=20, help="how often all digits are seen (20)")
    options = parser.parse_args(arguments)
    options.torch_twin = sys.maxsize
    learned, held_out = digits(options.dtype)

    def evaluate(side: Side) -> dict[str, float]:
        return {MEASURE: side.accuracy(*held_out)}

    task = Task(
        model=lambda library: perceptron(library, options.dtype),
        optimizer=lambda library, parameters: library.root.optim.AdamW(parameters, **SETTINGS),
        batch=lambda step: run.batch(learned, BATCH, options.seed, step),
        rate=lambda _: RATE,
        evaluate=evaluate,
        steps=options.epochs * run.batches(learned, BATCH),
        every=run.batches(learned, BATCH) * max(1, options.epochs // 5),
    )
    training = Run("digits", options)
    sides = training.train(task)
    training.check(MEASURE, sides[0].accuracy(*held_out), at_least=ACCURACY)
    training.check_twins(at_most=SAME[options.dtype])
    plots.training(training, MEASURE, "fraction")
    return training.finish()


if __name__ == "__main__":
    sys.exit(run.command(main))
