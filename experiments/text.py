"""Tiny Shakespeare as the text experiments use it: the split, windows of it, and writing more of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .data import shakespeare

QUICK = 3.3  # nats a character that even a reduced run must reach; that of single characters' frequencies is 3.35


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


def write(
    logits: Callable[[np.ndarray], np.ndarray],
    alphabet: str,
    begin: np.ndarray,
    seed: int,
    length: int = 400,
    temperature: float = 0.8,
) -> str:
    """``length`` characters after ``begin``, each drawn from softmax(logits/temperature) given all before it."""
    rng, codes = np.random.default_rng(seed), list(begin)
    for _ in range(length):
        scaled = logits(np.array(codes)).astype("float64") / temperature
        odds = np.exp(scaled - scaled.max())
        codes.append(rng.choice(len(alphabet), p=odds / odds.sum()))
    return "".join(alphabet[code] for code in codes)
