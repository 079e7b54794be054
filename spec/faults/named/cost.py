"""PRF: right results that cost too much, and what was taken out for speed and is needed."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad import nn, optim
from smolgrad.autograd import Node

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("PRF")

MEMORY = "trajectories/test_optimizers::test_a_step_makes_nothing_of_a_parameters_size"


@fault(4, "gradients_share_no_memory_and_nothing_is_written[add]", "M152")
def a_defensive_copy_taken_out() -> Planted:
    """Gradients are copied only where a view gives itself away by its base: an operand's own cotangent does not."""

    def give(node: Any, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value.clone()
        return value.copy() if value.base is not None else value

    return seams.giving_away(give)


@fault(2, "regressions/test_traversal::test_a_sweep_costs_in_proportion_to_its_graph")
def a_table_of_zeros_for_each_pick() -> Planted:
    """The gradient of one row of a table is as large as the table."""
    # Copied thrice, so that the cost shows on a busy machine too: untouched zeros are next to free.
    return seams.changed(
        "getitem", 0, lambda gradient, g, y, x, **static: np.array(np.array(np.array(seams.dense(x, gradient))))
    )


@fault(3, "regressions/test_traversal::test_a_chain_of_100000_ops_is_built_swept_twice_and_dropped")
def nodes_looked_up_in_a_list() -> Planted:
    """Whether a node was seen is asked of a list: quadratic in the length of the graph."""

    def order(right: Any, roots: Any, targets: Any) -> Any:
        seen: list[Node] = []
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if not any(node is other for other in seen):
                seen.append(node)
                waiting += seams.inputs(node)
        return right(roots, targets)

    return seams.ordering(order)


@fault(3, MEMORY)
def a_step_through_temporaries() -> Planted:
    """Each step makes arrays of the parameter's size."""
    right = optim.SGD._update

    def update(self: Any, p: np.ndarray, grad: np.ndarray, state: Any, group: Any) -> None:
        right(self, p, grad * 1.0, state, group)

    return patch.object(optim.SGD, "_update", update)


@fault(4, "trajectories/test_optimizers::test_state_is_made_once_and_then_written")
def state_is_made_anew_at_each_step() -> Planted:
    """The moments are right, and other arrays after each step."""
    right = optim.AdamW._update

    def update(self: Any, p: np.ndarray, grad: np.ndarray, state: Any, group: Any) -> None:
        right(self, p, grad, state, group)
        state.update({name: x.copy() for name, x in state.items() if isinstance(x, np.ndarray)})

    return patch.object(optim.AdamW, "_update", update)


@fault(3, "regressions/test_modules::test_shared_modules_cost_no_more_than_their_number")
def shared_modules_walked_each_time() -> Planted:
    """Thirty modules that hold the next one twice have 2³⁰ ways through them."""
    right = nn.module._walk
    return patch.object(
        nn.module, "_walk", lambda holder, path, seen, remove_duplicate: right(holder, path, seen, False)
    )
