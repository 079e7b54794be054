"""Tiny Shakespeare as the text experiments use it: the split, windows of it, what is asked of a model, its writing."""

from __future__ import annotations

import numpy as np

from .data import shakespeare
from .run import Run, Side

MEASURE, UNIT = "held-out loss", "nats a character"
QUICK = 3.4  # what even a reduced run must reach: the frequencies of single characters cost 3.35
SAME = 1e-12  # between the twins' weights in float64
TEMPERATURE = 0.8


def split() -> tuple[str, np.ndarray, np.ndarray]:
    """The alphabet, the first nine tenths of the text to learn from, and the last tenth, held out."""
    alphabet, codes = shakespeare()
    cut = len(codes) * 9 // 10
    return alphabet, codes[:cut], codes[cut:]


def windows(codes: np.ndarray, starts: np.ndarray, length: int) -> np.ndarray:
    """The ``length`` characters from each of ``starts`` on: (len(starts), length)."""
    return codes[starts[:, None] + np.arange(length)]


def drawn(codes: np.ndarray, length: int, batch: int, seed: int, step: int) -> np.ndarray:
    """The ``batch`` random windows of a step: they depend on seed and step alone."""
    starts = np.random.default_rng([seed, step]).integers(0, len(codes) - length + 1, batch)
    return windows(codes, starts, length)


def judge(run: Run, sides: list[Side], at_most: float, steps: int) -> None:
    """Hold the loss after all ``steps`` and, beside a twin in float64, the weights against their bounds."""
    loss = run.evaluations[-1][f"smolgrad {MEASURE}"]
    if run.options.quick or run.step == steps:
        run.check(f"{MEASURE}, {UNIT}", loss, at_most=QUICK if run.options.quick else at_most)
    if len(sides) > 1 and run.options.dtype == "float64":
        run.check_twins(at_most=SAME)


def sample(run: Run, side: Side, alphabet: str, begin: np.ndarray) -> None:
    """What the model writes after ``begin``, each character drawn at TEMPERATURE, given the last len(begin)."""
    rng, codes = np.random.default_rng(run.options.seed), list(begin)
    for _ in range(60 if run.options.quick else 600):
        logits = side.logits(np.array(codes[-len(begin) :])[None])[-1].astype("float64")
        odds = np.exp((logits - logits.max()) / TEMPERATURE)
        codes.append(rng.choice(len(alphabet), p=odds / odds.sum()))
    run.sample("".join(alphabet[code] for code in codes))
