"""The plots of the experiments, as PNG files that can be read without the text beside them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from . import missing

try:
    import matplotlib

    matplotlib.use("Agg")  # a file, never a window
    import matplotlib.pyplot as plt
except ImportError as error:
    sys.exit(missing(error))

OURS, THEIRS, BETWEEN = "tab:blue", "tab:orange", "tab:red"
# On a log axis a difference of exactly 0 has no place: it is drawn at a tenth of the float64 resolution of 1.
NONE = 2e-17


def training(run: Any, measure: str, unit: str, lines: dict[str, float] | None = None) -> None:
    """The loss of each step, of both twins where there are two; what was measured; how far their weights are apart.

    ``lines`` are levels to compare the measure with, by name.
    """
    steps = column(run.rows, "step")
    twin = "weight difference" in run.rows[0]
    figure, axes = plt.subplots(3 if twin else 2, 1, figsize=(9, 10 if twin else 7), layout="constrained", sharex=True)
    if twin:
        axes[0].plot(steps, column(run.rows, "PyTorch loss"), color=THEIRS, linewidth=4, alpha=0.6, label="PyTorch")
    axes[0].plot(steps, column(run.rows, "smolgrad loss"), color=OURS, linewidth=1, label="smolgrad")
    axes[0].set(ylabel="loss of the batch", title=title(run))
    judged = column(run.evaluations, "step")
    if twin:
        theirs = column(run.evaluations, f"PyTorch {measure}")
        axes[1].plot(judged, theirs, "o-", color=THEIRS, linewidth=4, alpha=0.6, label="PyTorch")
    ours = column(run.evaluations, f"smolgrad {measure}")
    axes[1].plot(judged, ours, "o-", color=OURS, linewidth=1, markersize=4, label="smolgrad")
    axes[1].annotate(f"{ours[-1]:.4g}", (judged[-1], ours[-1]), xytext=(-4, 8), textcoords="offset points", ha="right")
    axes[1].margins(y=0.15)  # room for the last value
    for (name, level), style in zip((lines or {}).items(), ("-", "--", ":"), strict=False):
        axes[1].axhline(level, color="gray", linestyle=style, label=f"{name} frequencies: {level:.3f}")
    axes[1].set(ylabel=f"{measure},\n{unit}")
    if twin:
        difference(axes[2], steps, column(run.rows, "weight difference"), BETWEEN, "smolgrad and PyTorch")
    axes[-1].set(xlabel="training step")
    finish(figure, axes, run.file(".png"))


def column(rows: list[dict[str, float]], name: str) -> np.ndarray:
    return np.array([row.get(name, np.nan) for row in rows])


def title(run: Any) -> str:
    options = run.options
    return f"experiments.{run.name}: {options.dtype}, seed {options.seed}, BLAS threads {options.threads}"


def difference(axes: Any, steps: np.ndarray, values: np.ndarray, color: str, label: str) -> None:
    """How far two trainings are apart, on a log axis."""
    axes.plot(steps, np.maximum(values, NONE), color=color, linewidth=1, label=label)
    axes.set(yscale="log", ylabel="largest difference\nof two weights")
    low, high = axes.dataLim.intervaly
    axes.set_ylim(10 ** (np.floor(np.log10(low)) - 0.2), 10 ** (np.ceil(np.log10(high)) + 0.2))  # whole decades


def drift(pairs: dict[Any, Any], forced: dict[Any, Any], path: Path, heading: str) -> None:
    """How far the twins of each optimizer are apart at every step, with the first unit that disagreed marked."""
    optimizers = list(dict.fromkeys(name for name, _ in pairs))
    figure, axes = plt.subplots(1, len(optimizers), figsize=(13, 5.5), layout="constrained", sharey=True)
    for ax, optimizer in zip(axes, optimizers, strict=True):
        for (name, dtype), run in pairs.items():
            if name == optimizer:
                color = OURS if dtype == "float64" else BETWEEN
                difference(ax, column(run.rows, "step"), column(run.rows, "weight difference"), color, dtype)
        for (name, dtype), run in forced.items():
            if name == optimizer:
                label = f"{dtype}, the twin's ReLUs forced to the sides of ours"
                difference(ax, column(run.rows, "step"), column(run.rows, "weight difference"), THEIRS, label)
                first = next(row["step"] for row in run.rows if row["units that disagree"])
                label = f"first unit on different sides of zero: step {first}"
                ax.axvline(first, color="gray", linestyle=":", label=label)
        ax.set(title=optimizer, xlabel="training step", ylim=(1e-17, 1e6))  # room for the legend
    figure.suptitle(heading)
    finish(figure, axes, path)


def attention(maps: list[np.ndarray], characters: list[str], path: Path) -> None:
    """A row of heads for each block: who looks (down) at whom (across)."""
    shown = {"\n": "⏎", " ": "␣"}
    names = [shown.get(character, character) for character in characters]
    size = (3.6 * len(maps[0]), 3.7 * len(maps))
    figure, axes = plt.subplots(len(maps), len(maps[0]), figsize=size, layout="constrained", squeeze=False)
    for block, row in enumerate(axes):
        for head, ax in enumerate(row):
            image = ax.imshow(maps[block][head], cmap="magma_r", vmin=0, vmax=1)
            ax.set_title(f"block {block + 1}, head {head + 1}", fontsize=10)
            ax.set_xticks(range(len(names)), names, fontsize=7)
            ax.set_yticks(range(len(names)), names, fontsize=7)
            ax.tick_params(length=0)
    figure.supylabel("the character that looks")
    figure.supxlabel("the character that is looked at")
    figure.suptitle("attention on held-out text: the weight that a character gives to each one before it")
    figure.colorbar(image, ax=axes, shrink=0.5, label="weight")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def confusion(true: np.ndarray, found: np.ndarray, path: Path, heading: str) -> None:
    """How often each class was taken for each: the diagonal is right."""
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (true, found), 1)
    figure, axes = plt.subplots(figsize=(7, 6.4), layout="constrained")
    wrong = np.where(np.eye(10, dtype=bool), 0, counts)
    image = axes.imshow(wrong, cmap="Reds")
    for i in range(10):
        for j in range(10):
            dark = wrong[i, j] > wrong.max() / 2
            axes.text(
                j,
                i,
                counts[i, j],
                ha="center",
                va="center",
                color="white" if dark else "black",
                weight="bold" if i == j else "normal",
                alpha=1 if counts[i, j] else 0.3,
            )
    axes.set(xlabel="digit found", ylabel="digit shown", title=heading, xticks=range(10), yticks=range(10))
    figure.colorbar(image, ax=axes, shrink=0.8, label="mistakes")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def finish(figure: Any, axes: Any, path: Path) -> None:
    """Grids, legends, and the file."""
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)
