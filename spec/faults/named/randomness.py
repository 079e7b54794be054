"""DAT: randomness. Loaders and vocabularies, the rest of this kind, do not stand yet."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

import smolgrad
from smolgrad import nn

from ..seams import Planted
from . import faults_of

fault = faults_of("DAT")

SEED = "regressions/test_tensor::test_drawn_tensors_follow_the_seed"


@fault(1, SEED)
def a_seed_that_nobody_heeds() -> Planted:
    """``manual_seed`` seeds a generator that nothing is drawn from."""
    return patch.object(smolgrad, "manual_seed", np.random.default_rng)


@fault(2, SEED)
def every_draw_is_the_first() -> Planted:
    """Each draw begins anew from the seed: two layers of one shape start equal."""
    right, seed = smolgrad.rand, smolgrad.manual_seed

    def rand(*size: Any, **options: Any) -> Any:
        seed(7)
        return right(*size, **options)

    return patch.object(smolgrad, "rand", rand)


@fault(3, "regressions/test_modules::test_initial_values_follow_pytorchs_distributions")
def weights_are_drawn_from_half_of_the_range() -> Planted:
    """Uniform in [0, bound) for (-bound, bound)."""
    right = nn.layers._uniform

    def uniform(*args: Any) -> Any:
        p = right(*args)
        np.abs(p.data, out=p.data)
        return p

    return patch.object(nn.layers, "_uniform", uniform)


@fault(4, "regressions/test_modules::test_initial_values_come_from_the_seed")
def layers_of_one_shape_start_equal() -> Planted:
    """Initial weights are a function of the shape: symmetric layers learn the same."""

    def uniform(shape: Any, bound: float, dtype: Any) -> Any:
        drawn = np.random.default_rng(0).uniform(-bound, bound, shape)
        return nn.Parameter(drawn.astype(dtype or "float32"))

    return patch.object(nn.layers, "_uniform", uniform)
