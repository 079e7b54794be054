"""A perceptron on MNIST: ``python -m experiments.mnist``.

784-512-256-10 with ReLU, 535,818 parameters, AdamW. Alone it keeps 5,000 training images aside, whose accuracy chooses
the epoch, and reads the test set once, with the weights of that epoch. With ``--torch-twin`` it trains on all 60,000
beside a PyTorch twin, and compares the two on the test set at every epoch.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from . import plots, run
from .data import mnist
from .run import Library, Run, Task

BATCH, EPOCHS, VALIDATION = 128, 10, 5000
SETTINGS: dict[str, Any] = {"lr": 1e-3, "weight_decay": 0.01}
SAME = 1e-13  # between the twins' weights in float64
ACCURACY, QUICK_ACCURACY = 0.976, 0.8  # after all EPOCHS, and after one of a tenth of the images


def perceptron(library: Library, dtype: str) -> Any:
    """Pixels (N, 784) give logits (N, 10). In either library."""
    nn, kind = library.nn, getattr(library.root, dtype)
    return nn.Sequential(
        nn.Linear(784, 512, dtype=kind),
        nn.ReLU(),
        nn.Linear(512, 256, dtype=kind),
        nn.ReLU(),
        nn.Linear(256, 10, dtype=kind),
    )


def main(arguments: list[str] | None = None) -> int:
    """Train, compare or test, draw: 0 where the bounds are met, 1 otherwise."""
    parser = run.parser("experiments.mnist", __doc__)
    run.add_twin(parser)
    parser.add_argument(
        "--epochs", type=run.positive, default=EPOCHS, help="how often all images are seen (10; 1 with --quick)"
    )
    options = parser.parse_args(arguments)
    learned, test = mnist(options.dtype)
    if options.quick:
        options.epochs = min(options.epochs, 1)
        learned, test = [(images[:6000], classes[:6000]) for images, classes in (learned, test)]
    kept = len(learned[0]) * VALIDATION // 60_000
    # The set that is looked at while training: the twins compare on the test set, a choice needs one of its own.
    watched, measure = test, "test accuracy"
    if not options.torch_twin:
        watched, measure = tuple(array[-kept:] for array in learned), "validation accuracy"
        learned = tuple(array[:-kept] for array in learned)

    task = Task(
        model=lambda library: perceptron(library, options.dtype),
        optimizer=lambda library, parameters: library.root.optim.AdamW(parameters, **SETTINGS),
        batch=lambda step: run.batch(learned, BATCH, options.seed, step),
        rate=lambda _: SETTINGS["lr"],
        evaluate=lambda side: {measure: side.accuracy(*watched)},
        steps=options.epochs * run.batches(learned, BATCH),
        every=run.batches(learned, BATCH),
        best="" if options.torch_twin else measure,
    )
    training = Run("mnist", options)
    sides = training.train(task)

    if options.torch_twin:
        if options.dtype == "float64":
            training.check_twins(at_most=SAME)
            both = [e for e in training.evaluations if "PyTorch test accuracy" in e]
            apart = [abs(e["smolgrad test accuracy"] - e["PyTorch test accuracy"]) for e in both]
            training.check(
                "largest difference of accuracy to PyTorch, of all epochs", max(apart, default=math.nan), at_most=0
            )
    else:
        sides[0].restore_weights(training.chosen)
        training.results[f"{measure} of the chosen epoch"] = training.best
    training.results["test accuracy"] = found = sides[0].accuracy(*test)
    if options.epochs >= EPOCHS or options.quick:
        training.check("test accuracy", found, at_least=QUICK_ACCURACY if options.quick else ACCURACY)
    plots.training(training, measure, "fraction")
    heading = f"MNIST, {len(test[0]):,} test images, {found:.2%} right"
    plots.confusion(test[1], sides[0].classes(test[0]), training.file("-confusion.png"), heading)
    return training.finish()


if __name__ == "__main__":
    sys.exit(run.command(main))
