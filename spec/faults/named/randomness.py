"""DAT: randomness, and how the experiments take their data: batches, micro-batches and alphabets."""

from __future__ import annotations

import importlib
from collections.abc import Callable
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


# --- the experiments' data --------------------------------------------------------------------------------------------

DATA = "regressions/test_experiments"


def _experiments(name: str) -> Any:
    """A module of the experiments, which nothing here needs unless it is made wrong."""
    return importlib.import_module(f"experiments.{name}")


def _batches(order: Callable[[int, int, int], np.ndarray]) -> Planted:
    """Batches in ``order(seed, epoch, count)``."""
    run = _experiments("run")

    def batch(data: Any, size: int, seed: int, step: int) -> Any:
        epoch, place = divmod(step, run.batches(data, size))
        picked = order(seed, epoch, len(data[0]))[place * size : (place + 1) * size]
        return data[0][picked], data[1][picked]

    return patch.object(run, "batch", batch)


@fault(2, f"{DATA}::test_each_epoch_shows_everything_once_in_an_order_of_its_own", "M066")
def one_order_for_all_epochs() -> Planted:
    """Every epoch is shuffled alike."""
    return _batches(lambda seed, epoch, count: np.random.default_rng(seed).permutation(count))


@fault(2, f"{DATA}::test_each_epoch_shows_everything_once_in_an_order_of_its_own")
def drawn_with_repeats() -> Planted:
    """An epoch shows some twice and some never."""
    return _batches(lambda seed, epoch, count: np.random.default_rng([seed, epoch]).integers(count, size=count))


@fault(4, f"{DATA}::test_each_epoch_shows_everything_once_in_an_order_of_its_own")
def the_next_seed_is_the_next_epoch() -> Planted:
    """Seed and epoch are added: runs of neighbouring seeds see the same orders, one epoch later."""
    return _batches(lambda seed, epoch, count: np.random.default_rng(seed + epoch).permutation(count))


@fault(3, f"{DATA}::test_a_mean_over_parts_is_that_of_all", "M123")
def parts_weigh_the_same() -> Planted:
    """The mean over a set is the mean of its parts' means: the last one, which is smaller, counts too much."""
    run = _experiments("run")

    def mean_loss(self: Any, inputs: Any, targets: Any, size: int) -> float:
        with self.library.root.no_grad():
            return float(np.mean([self.loss(*part).item() for part in run.chunks(size, inputs, targets)]))

    return patch.object(run.Side, "mean_loss", mean_loss)


@fault(4, f"{DATA}::test_an_alphabet_does_not_depend_on_the_process", "M151")
def an_alphabet_in_the_order_of_a_set() -> Planted:
    """Characters are numbered as a set gives them: another process, with other hashes, numbers them anew."""
    data = _experiments("data")

    def parse(contents: bytes, name: str) -> Any:
        text = contents.decode()
        alphabet = "".join(set(text))
        return alphabet, np.array([alphabet.index(character) for character in text])

    return patch.object(data, "parse_text", parse)


@fault(4, f"{DATA}::test_each_epoch_shows_everything_once_in_an_order_of_its_own")
def shuffled_in_place_and_picked_by_the_order() -> Planted:
    """A pair: inputs are shuffled where they lie, and targets are picked by an order. Either alone would do."""
    run = _experiments("run")

    def batch(data: Any, size: int, seed: int, step: int) -> Any:
        epoch, place = divmod(step, run.batches(data, size))
        order = np.random.default_rng([seed, epoch]).permutation(len(data[0]))
        if place == 0:
            data[0][...] = data[0][order]
        part = slice(place * size, (place + 1) * size)
        return data[0][part], data[1][order[part]]

    return patch.object(run, "batch", batch)
