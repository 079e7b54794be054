"""Handwritten digits, learned beside a PyTorch twin: ``python -m experiments.digits``.

A perceptron learns the 1797 digits of 8 by 8 pixels that come with scikit-learn, in float64, with AdamW. Its twin in
PyTorch starts from the same weights and is given the same batches. What is shown in the end is that the model has
learned (accuracy on a held-out fifth) and that it is PyTorch's (the largest difference between two weights); the exit
code is 1 where either fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import smolgrad
from smolgrad import functional, nn, optim

try:
    import matplotlib
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from sklearn.datasets import load_digits
except ImportError as error:
    sys.exit(f'experiments.digits needs {error.name}, which is not installed: pip install -e ".[test,experiments]"')

matplotlib.use("Agg")  # a file, never a window
import matplotlib.pyplot as plt

BATCH = 64
# An eps well above rounding noise: where a gradient is zero but for noise, Adam would divide the noise by itself, and
# two correct engines would part.
SETTINGS: dict[str, Any] = {"lr": 1e-2, "weight_decay": 1e-2, "eps": 1e-3}
ACCURACY, DIFFERENCE = 0.97, 1e-12  # what is asked for

Arrays = tuple[np.ndarray, np.ndarray]


def digits() -> tuple[Arrays, Arrays]:
    """Pixels (N, 64) in [0, 1] and classes (N,): four fifths to learn from, and every fifth digit held out."""
    images, classes = load_digits(return_X_y=True)
    images, classes = images / 16, classes.astype("int64")
    held_out = np.arange(len(images)) % 5 == 0
    return (images[~held_out], classes[~held_out]), (images[held_out], classes[held_out])


def perceptron(nn: Any, dtype: Any) -> Any:
    """The model, in smolgrad's ``nn`` or in PyTorch's."""
    return nn.Sequential(
        nn.Linear(64, 128, dtype=dtype),
        nn.ReLU(),
        nn.Linear(128, 10, dtype=dtype),
    )


def batches(data: Arrays, epochs: int, rng: np.random.Generator) -> Iterator[Arrays]:
    """All of ``data`` in every epoch, in an order of its own."""
    images, classes = data
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            picked = order[start : start + BATCH]
            yield images[picked], classes[picked]


def train_step(model: Any, optimizer: Any, cross_entropy: Any, images: Any, classes: Any) -> float:
    """One step, in either library, and the loss before it."""
    loss = cross_entropy(model(images), classes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.item())


def largest_difference(model: Any, twin: Any) -> float:
    pairs = zip(model.parameters(), twin.parameters(), strict=True)
    return max(float(np.abs(p.data - q.detach().numpy()).max()) for p, q in pairs)


def accuracy(model: Any, data: Arrays) -> float:
    """The fraction of ``data`` that gets its own class."""
    images, classes = data
    with smolgrad.no_grad():
        found = model(smolgrad.tensor(images)).argmax(dim=1).numpy()
    return float((found == classes).mean())


def plot(losses: list[float], theirs: list[float], differences: list[float], title: str, path: Path) -> None:
    """Both losses above, the largest weight difference below, over the steps."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 7), sharex=True, layout="constrained")
    steps = np.arange(1, len(losses) + 1)
    top.plot(steps, theirs, color="tab:orange", linewidth=4, alpha=0.6, label="PyTorch")
    top.plot(steps, losses, color="tab:blue", linewidth=1, label="smolgrad (the two lie on each other)")
    top.set(ylabel="cross-entropy of the batch", yscale="log", title=title)
    top.legend()
    # On a log axis a difference of exactly 0 has no place: it is shown at the float64 resolution of 1, 2.2e-16.
    bottom.plot(steps, np.maximum(differences, np.finfo(float).eps), color="tab:red", linewidth=1)
    bottom.axhline(DIFFERENCE, color="black", linestyle="--", linewidth=1, label=f"allowed: {DIFFERENCE:g}")
    bottom.set(xlabel="training step", ylabel="largest difference\nof two weights", yscale="log", ylim=(1e-16, 1e-11))
    bottom.legend(loc="upper right")
    for axes in (top, bottom):
        axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Train both, show and draw how they fared: 0 where they agree and have learned, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m experiments.digits", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--epochs", type=int, default=20, help="how often all digits are seen (20)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches (0)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "digits.png", help="the plot")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    console = Console()

    torch.set_num_threads(1)
    rng = smolgrad.manual_seed(options.seed)
    learned, held_out = digits()
    model, twin = perceptron(nn, "float64"), perceptron(torch.nn, torch.float64)
    twin.load_state_dict({name: torch.from_numpy(x.numpy()) for name, x in model.state_dict().items()})
    ours = optim.AdamW(model.parameters(), **SETTINGS)
    other = torch.optim.AdamW(twin.parameters(), **SETTINGS, foreach=False)

    losses: list[float] = []
    theirs: list[float] = []
    differences: list[float] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training both", total=options.epochs * -(-len(learned[0]) // BATCH))
        for batch in batches(learned, options.epochs, rng):
            losses.append(train_step(model, ours, functional.cross_entropy, *map(smolgrad.tensor, batch)))
            theirs.append(train_step(twin, other, torch.nn.functional.cross_entropy, *map(torch.tensor, batch)))
            differences.append(largest_difference(model, twin))
            state = f"loss {losses[-1]:.4f}, weights within {max(differences):.1e}"
            progress.update(task, advance=1, description=state)

    found, difference = accuracy(model, held_out), max(differences)
    verdicts = [
        (f"accuracy on {len(held_out[0])} held-out digits: {found:.2%} (at least {ACCURACY:.0%})", found >= ACCURACY),
        (f"largest weight difference to PyTorch: {difference:.2e} (at most {DIFFERENCE:g})", difference <= DIFFERENCE),
    ]
    for text, good in verdicts:
        console.print(f"{'[green]ok  ' if good else '[red]FAIL'}[/] {text}", highlight=False)
    title = f"AdamW on handwritten digits, float64, seed {options.seed}: {found:.1%} accuracy on the held-out fifth"
    plot(losses, theirs, differences, title, options.out)
    console.print(f"plot: {options.out}", highlight=False)
    return 0 if all(good for _, good in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
