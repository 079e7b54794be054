"""ACC: gradients that do not add up, over uses of a tensor, slots of an op, roots and sweeps."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad import Tensor, autograd
from smolgrad.autograd import Node, value_of, wrap

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("ACC")

EVERY_USE = "regressions/test_accumulation::test_a_tensor_used_again_collects_every_use"


@fault(1, "an_input_used_again_adds_its_other_use[log]", "M001")
def the_last_use_wins() -> Planted:
    """A second contribution replaces the first."""
    return seams.adding(lambda right, so_far, node, g: so_far.__setitem__(node, seams.dense(node, g)))


def _visited(roots: Any, take: int) -> list[Node]:
    """Each node when it is first met, instead of after all that use it."""
    waiting, found = list(roots), []
    while waiting:
        node = waiting.pop(take)
        if node not in found:
            found.append(node)
            waiting += seams.inputs(node)
    return found[::-1]


@fault(1, EVERY_USE, "M002")
def depth_first_without_waiting() -> Planted:
    """A record is pulled back before all its uses have been: in preorder."""
    return seams.ordering(lambda right, roots, targets: _visited(roots, -1))


@fault(1, "sweeps_add_up[log]", "M003")
def each_sweep_replaces_the_gradient() -> Planted:
    """A leaf's gradient is the last sweep's."""
    return seams.depositing(lambda right, leaf, g: setattr(leaf, "grad", g if isinstance(g, Node) else wrap(g)))


@fault(2, EVERY_USE, "M019")
def breadth_first() -> Planted:
    """Right only where all ways to a tensor are equally long."""
    return seams.ordering(lambda right, roots, targets: _visited(roots, 0))


@fault(2, "an_output_used_again_adds_its_other_use[exp]", "M021")
def an_inner_tensor_is_pulled_back_once() -> Planted:
    """What is no leaf keeps its first contribution alone."""

    def add(right: Any, so_far: Any, node: Node, g: Any) -> None:
        if node._primitive is None or node not in so_far:
            right(so_far, node, g)

    return seams.adding(add)


@fault(2, "sweeps_add_up[tanh]", "M022")
def stale_cotangents() -> Planted:
    """The cotangents of one sweep are still there in the next."""

    def kept(right: Any) -> Any:
        class Kept(right):
            def pop(self, node: Node, default: Any = None) -> Any:
                return self.get(node, default)

        return Kept

    return seams.cotangents(kept)


@fault(3, "an_input_used_again_adds_its_other_use[exp]", "M070")
def third_use_dropped() -> Planted:
    """The third and later contributions to one tensor are lost."""

    def add(right: Any, so_far: Any, node: Node, g: Any) -> None:
        count = so_far.__dict__.setdefault("count", {})
        count[node] = count.get(node, 1 if node in so_far else 0) + 1
        if count[node] <= 2:
            right(so_far, node, g)

    return seams.adding(add)


@fault(3, "regressions/test_accumulation::test_leaves_of_equal_value_stay_apart", "M071")
def equal_leaves_merged() -> Planted:
    """Tensors are told apart by value."""
    return patch.multiple(
        Tensor, __hash__=lambda self: hash(self.data.tobytes()), __eq__=lambda a, b: np.array_equal(a.data, b.data)
    )


@fault(4, "an_output_used_again_adds_its_other_use[mul]")
def an_equal_contribution_is_taken_for_the_same() -> Planted:
    """A contribution that equals what is there already is not added: y + y counts once."""

    def add(right: Any, so_far: Any, node: Node, g: Any) -> None:
        g = seams.dense(node, g)
        if node not in so_far or not np.array_equal(value_of(so_far[node]), value_of(g)):
            right(so_far, node, g)

    return seams.adding(_first_set(add))


def _first_set(add: Any) -> Any:
    """``add`` for second contributions; a first one, which comes here as a Scatter, is set."""

    def change(right: Any, so_far: Any, node: Node, g: Any) -> None:
        if node in so_far:
            add(right, so_far, node, g)
        else:
            right(so_far, node, g)

    return change


@fault(4, "an_input_used_again_adds_its_other_use[relu]")
def nothing_wipes_out_what_was_there() -> Planted:
    """A contribution of zeros alone replaces the sum so far: a dead branch kills the live ones."""

    def add(right: Any, so_far: Any, node: Node, g: Any) -> None:
        g = seams.dense(node, g)
        if value_of(g).any():
            right(so_far, node, g)
        else:
            so_far[node] = g

    return seams.adding(_first_set(add))


@fault(3, "an_input_used_again_adds_its_other_use[exp]")
def contributions_are_added_in_float32() -> Planted:
    """A sum of float64 gradients has seven digits: exact for all that float32 holds."""

    def add(right: Any, so_far: Any, node: Node, g: Any) -> None:
        g = seams.dense(node, g)
        right(so_far, node, g.astype("float32").astype(g.dtype) if isinstance(g, np.ndarray) else g)

    return seams.adding(add)


@fault(2, "an_input_used_again_adds_its_other_use[sigmoid]")
def the_larger_contribution_is_kept() -> Planted:
    """max for +: right where one of two uses has no gradient."""

    def add(right: Any, so_far: Any, node: Node, g: Any) -> None:
        first, second = so_far[node], seams.dense(node, g)
        so_far[node] = seams.like(first, np.maximum(value_of(first), value_of(second)))

    return seams.adding(_first_set(add))


@fault(3, "an_input_used_again_adds_its_other_use[getitem]")
def a_pick_starts_anew() -> Planted:
    """What is scattered goes into zeros, not into the gradient that is there."""

    def add(right: Any, so_far: Any, node: Node, g: Any) -> None:
        if isinstance(g, autograd.Scatter):
            so_far[node] = seams.dense(node, g)
        else:
            right(so_far, node, g)

    return seams.adding(add)


@fault(2, "one_tensor_in_several_slots_gets_the_sum[mul]")
def a_square_counts_one_slot() -> Planted:
    """x·x has the slope x."""
    return seams.changed("mul", 1, lambda gradient, g, y, a, b: gradient * 0.0 if a is b else gradient)


@fault(2, "an_output_used_again_adds_its_other_use[neg]")
def only_the_first_root_is_swept() -> Planted:
    """Of several outputs the first counts."""
    return seams.sweeping(lambda right, roots, seeds, *others: right(list(roots)[:1], list(seeds)[:1], *others))


@fault(3, "sweeps_add_up[log]")
def the_third_sweep_is_lost() -> Planted:
    """Two sweeps add up, as most tests would find; a third does not."""
    count: dict[Any, int] = {}

    def deposit(right: Any, leaf: Any, g: Any) -> None:
        count[leaf] = count.get(leaf, 0) + 1
        if count[leaf] != 3:
            right(leaf, g)

    return seams.depositing(deposit)


@fault(2, "sweeps_add_up[exp]")
def sweeps_are_averaged() -> Planted:
    """The mean of what was there and what comes."""

    def deposit(right: Any, leaf: Any, g: Any) -> None:
        before = leaf.grad is not None
        right(leaf, g)
        if before:
            leaf.grad.data[...] /= 2

    return seams.depositing(deposit)
