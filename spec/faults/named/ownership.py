"""OWN: arrays that two hold and one writes to. At the end pairs: two choices that are wrong together."""

from __future__ import annotations

import importlib
from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad.autograd import Node
from smolgrad.primitives import elementwise, indexing

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("OWN")

SHARED = "gradients_share_no_memory_and_nothing_is_written"


def _by_reference(right: Any, so_far: Any, node: Node, g: Any) -> None:
    """Add into the first contribution, whosever it is."""
    first, g = so_far.get(node), seams.dense(node, g)
    if isinstance(first, np.ndarray) and first.flags.writeable:
        np.add(first, g, out=first)
    elif first is not None:
        so_far[node] = first + g
    else:
        so_far[node] = g


@fault(3, "regressions/test_ownership::test_a_first_contribution_held_by_reference_is_not_added_into", "M073")
def added_into_what_is_borrowed() -> Planted:
    """The first contribution is kept by reference, and the second added into it."""
    return seams.adding(_by_reference)


@fault(3, f"{SHARED}[clone]", "M074")
def a_borrowed_gradient_is_given_away() -> Planted:
    """A leaf's gradient is whatever array came along: the caller's own, where the leaf is the root."""
    return seams.giving_away(lambda node, value: value)


@fault(3, "regressions/test_ownership::test_a_tensor_copies_the_array_it_is_made_of", "M075")
def a_tensor_shares_the_callers_array() -> Planted:
    """``Tensor(array)`` does not copy: a step of the optimizer changes the data set."""
    module = importlib.import_module("smolgrad.tensor")  # the name smolgrad.tensor is a function
    right = module.array_of
    return patch.object(
        module, "array_of", lambda data, dtype=None: data if isinstance(data, np.ndarray) else right(data, dtype)
    )


@fault(4, f"{SHARED}[relu]", "M126")
def relu_writes_its_cotangent() -> Planted:
    """The cotangent is masked in place: wrong only where a sibling reads the same array later."""

    def rule(g: Any, y: Any, x: Any) -> Any:
        if isinstance(g, np.ndarray) and g.flags.writeable:
            g[y <= 0] = 0
            return g
        return elementwise.where(y <= 0, 0, g)

    return seams.rules("relu", rule)


@fault(4, "layout_of_inputs_and_cotangents_does_not_matter[reshape]", "M128")
def reshaped_in_memory_order() -> Planted:
    """The rule reads columns first where its cotangent lies so."""

    def rule(g: Any, _y: Any, _x: Any, *, shape: Any) -> Any:
        return g.reshape(_x.shape, order="A") if isinstance(g, np.ndarray) else g.reshape(_x.shape)

    return seams.rules("reshape", rule)


@fault(3, f"{SHARED}[reshape]")
def a_view_is_taken_for_fresh() -> Planted:
    """What a rule returns is taken for its own, views of its cotangent too."""
    return seams.all_owned()


@fault(3, "arguments_changed_after_the_call_do_not_reach_backward[getitem]")
def an_index_kept_by_reference() -> Planted:
    """The caller's index array is remembered, not a copy."""
    return patch.object(indexing, "_part", lambda op, part: part)


@fault(4, "regressions/test_ownership::test_an_array_beside_a_tensor_may_be_changed_before_the_sweep")
def an_array_beside_a_tensor_kept_by_reference() -> Planted:
    """x * array remembers the caller's array: filling it again changes the gradient."""

    def keep(node: Any, inputs: tuple[Any, ...]) -> None:
        for recorded, given in zip(node._inputs, inputs, strict=True):
            if isinstance(given, np.ndarray):
                recorded._data = given

    return seams.recording(keep)


@fault(4, f"{SHARED}[exp]")
def exp_writes_its_output() -> Planted:
    """The output, which the rule needs just once, is multiplied in place: whoever kept it has another number."""

    def rule(g: Any, y: Any, _x: Any) -> Any:
        if isinstance(g, np.ndarray) and isinstance(y, np.ndarray) and y.flags.writeable:
            y *= g
            return y
        return g * y

    return seams.rules("exp", rule)


@fault(4, f"{SHARED}[abs]")
def abs_writes_its_input() -> Planted:
    """The input becomes its sign in place, and is multiplied by the cotangent."""

    def rule(g: Any, _y: Any, x: Any) -> Any:
        if isinstance(g, np.ndarray) and x.flags.writeable:
            return np.multiply(np.sign(x, out=x), g)
        return g * elementwise.sign(x)

    return seams.rules("abs", rule)


@fault(2, "regressions/test_tensor::test_a_clone_is_recorded_and_has_memory_of_its_own")
def a_clone_is_the_same_memory() -> Planted:
    """``clone`` gives its input's array."""
    return seams.forward("clone", lambda x: x)


@fault(3, f"{SHARED}[mul]")
def leaves_of_one_shape_share_a_buffer() -> Planted:
    """A gradient is copied into a buffer that the next one of its shape is copied into, too."""
    pool: dict[Any, np.ndarray] = {}

    def give(node: Any, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value.clone()
        buffer = pool.setdefault((value.shape, value.dtype), np.empty(value.shape, value.dtype))
        buffer[...] = value
        return buffer

    return seams.giving_away(give)


# --- pairs ------------------------------------------------------------------------------------------------------------


def _negates_in_place(g: Any) -> Any:
    if isinstance(g, np.ndarray) and g.flags.writeable:
        return np.negative(g, out=g)
    return -g


@fault(4, f"{SHARED}[sub]")
def two_writes_that_cancel() -> Planted:
    """sub negates its cotangent in place for b, and back again for a: a - b is right, b alone spoils its sibling."""

    def of_a(g: Any, _y: Any, _a: Any, _b: Any) -> Any:
        return g

    def of_b(g: Any, _y: Any, _a: Any, _b: Any) -> Any:
        return _negates_in_place(g)

    def neg(g: Any, _y: Any, _x: Any) -> Any:
        return _negates_in_place(g)

    return seams.together(seams.rules("sub", of_a, of_b), seams.rules("neg", neg))


@fault(4, f"{SHARED}[clone]")
def by_reference_and_written_by_a_rule() -> Planted:
    """Contributions are held by reference, and clone's rule hands out its cotangent; each alone is harmless."""
    return seams.together(seams.adding(_by_reference), seams.all_owned())


@fault(4, "an_output_used_again_adds_its_other_use[add]")
def handed_on_twice_and_added_into() -> Planted:
    """add hands one array to both operands, and the sum so far is added into: right while nobody shares both."""
    return seams.together(
        seams.rules("add", lambda g, _y, _a, _b: g, lambda g, _y, _a, _b: g), seams.adding(_by_reference)
    )


@fault(4, "sweeps_add_up[mul]")
def a_pool_and_leaves_that_keep_its_buffers() -> Planted:
    """Rules compute into a buffer kept for the next call, and what they return is taken for their own."""
    pool: dict[Any, np.ndarray] = {}

    def pooled(gradient: Any, *_: Any, **__: Any) -> Any:
        if not isinstance(gradient, np.ndarray):
            return gradient
        buffer = pool.setdefault((gradient.shape, gradient.dtype), np.empty(gradient.shape, gradient.dtype))
        buffer[...] = gradient
        return buffer

    return seams.together(seams.changed("mul", 0, pooled), seams.all_owned())


@fault(4, f"{SHARED}[permute]")
def a_view_and_a_deposit_that_adopts() -> Planted:
    """permute returns a view, as it may, and a leaf takes for its gradient whatever array it is given."""

    def give(node: Any, value: Any) -> Any:
        return value if isinstance(value, np.ndarray) and value.flags.writeable else _copied(value)

    return seams.together(seams.giving_away(give), seams.all_owned())


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value.clone()
