"""The one generator behind everything that is drawn: values, initial weights, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

_generator = np.random.default_rng()


def generator() -> np.random.Generator:
    """The generator itself."""
    return _generator


def manual_seed(seed: int) -> np.random.Generator:
    """Start the generator behind ``rand``, ``randn``, ``randint``, initial weights and dropout anew, from ``seed``."""
    global _generator
    _generator = np.random.default_rng(seed)
    return _generator


def get_rng_state() -> dict[str, Any]:
    """The state of that generator, which ``set_rng_state`` goes on from: numbers and strings, which can be saved."""
    return dict(_generator.bit_generator.state)


def set_rng_state(new_state: dict[str, Any]) -> None:
    """Let that generator go on from a state of ``get_rng_state``'s. ValueError or TypeError for what is none."""
    _generator.bit_generator.state = new_state
