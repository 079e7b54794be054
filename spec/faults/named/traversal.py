"""TRV: graphs that are walked too deep, too often or in part, and memory that does not come back."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from smolgrad import Tensor
from smolgrad.autograd import Node, wrap

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("TRV")

FILE = "regressions/test_traversal"


@fault(2, f"{FILE}::test_a_chain_of_100000_ops_is_built_swept_twice_and_dropped", "M062")
def recursive_order() -> Planted:
    """The order of a graph is found by recursion."""

    def order(right: Any, roots: Any, targets: Any) -> list[Node]:
        found: list[Node] = []
        seen = set()

        def visit(node: Node) -> None:
            if node not in seen:
                seen.add(node)
                for x in seams.inputs(node):
                    visit(x)
                found.append(node)

        for root in roots:
            visit(root)
        return found

    return seams.ordering(order)


@fault(2, f"{FILE}::test_forty_stacked_diamonds_are_swept_once_each", "M063")
def each_way_to_a_node_is_walked() -> Planted:
    """No node is marked as seen: forty diamonds have 2⁴⁰ ways through them."""

    def order(right: Any, roots: Any, targets: Any) -> list[Node]:
        waiting = list(roots)
        while waiting:
            waiting += seams.inputs(waiting.pop())
        return right(roots, targets)

    return seams.ordering(order)


@fault(3, f"{FILE}::test_memory_returns_without_the_collector", "M121")
def a_record_that_holds_its_output() -> Planted:
    """A cycle, which only the garbage collector frees."""
    return seams.recording(lambda node, inputs: setattr(node, "_former", node))


@fault(2, "sweeps_add_up[log]")
def records_are_never_let_go() -> Planted:
    """A swept graph stays, and can be swept again."""
    return seams.sweeping(lambda right, roots, seeds, targets, keep, create: right(roots, seeds, targets, True, create))


@fault(4, f"{FILE}::test_a_chain_of_100000_ops_is_built_swept_twice_and_dropped")
def a_walk_that_gives_up_far_down() -> Planted:
    """What lies more than a thousand ops below the root is not reached, and nobody is told."""
    return seams.ordering(lambda right, roots, targets: right(roots, targets)[-1000:])


@fault(3, f"{FILE}::test_only_what_lies_between_outputs_and_inputs_is_swept")
def what_nobody_asked_for_is_swept() -> Planted:
    """``grad`` pulls back to every leaf, whatever it was asked for."""

    def sweep(right: Any, roots: Any, seeds: Any, targets: Any, keep: bool, create: bool) -> Any:
        if targets is not None and all(x.is_leaf for x in targets):
            found = right(roots, seeds, None, keep, create)
            return {x: g for x, g in found.items() if x in targets}
        return right(roots, seeds, targets, keep, create)

    return seams.sweeping(sweep)


@fault(3, "a_failed_sweep_changes_no_gradient[exp]")
def a_failed_sweep_clears_the_gradients() -> Planted:
    """Leaves lose their gradients before the sweep that may fail: nothing is as it was."""

    def sweep(right: Any, roots: Any, seeds: Any, targets: Any, keep: bool, create: bool) -> Any:
        leaves = _leaves(roots)
        before = {x: x.grad for x in leaves}
        for x in leaves:
            x.grad = None
        found = right(roots, seeds, targets, keep, create)
        for x, g in before.items():
            x.grad = g
        return found

    return seams.sweeping(sweep)


def _leaves(roots: Any) -> list[Any]:
    """The leaves of a graph, but none of one that was let go."""
    return [x for x in _everything(roots) if x.is_leaf]


def _everything(roots: Any) -> set[Any]:
    waiting, seen = list(roots), set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [x for x in node._inputs or () if isinstance(x, Node) and x.requires_grad]
    return seen


@fault(2, f"{FILE}::test_what_several_roots_share_is_pulled_back_once")
def swept_once_for_each_root() -> Planted:
    """Several roots are swept one after the other, and what they share as often."""

    def sweep(right: Any, roots: Any, seeds: Any, targets: Any, keep: bool, create: bool) -> Any:
        total: dict[Any, Any] = {}
        pairs = list(zip(roots, seeds, strict=True))
        for i, (root, seed) in enumerate(pairs):
            for x, g in right([root], [seed], targets, keep or i < len(pairs) - 1, create).items():
                total[x] = total[x] + g if x in total else g
        return total

    return seams.sweeping(sweep)


@fault(3, f"{FILE}::test_intermediates_go_as_the_sweep_passes_them")
def all_that_was_swept_is_held_to_the_end() -> Planted:
    """The whole graph is alive until the last record is done."""

    def sweep(right: Any, roots: Any, seeds: Any, targets: Any, keep: bool, create: bool) -> Any:
        held = _everything(roots)
        found = right(roots, seeds, targets, keep, create)
        held.clear()
        return found

    return seams.sweeping(sweep)


@fault(3, f"{FILE}::test_a_leaf_that_is_no_part_of_a_graph_is_not_held_by_the_values_made_from_it_without_grad")
def a_constant_remembers_what_it_was_made_of() -> Planted:
    """``detach()`` keeps the graph that it leaves alive."""

    def detach(self: Any) -> Any:
        made = wrap(self.data)
        made._former = self
        return made

    return patch.object(Tensor, "detach", detach)
