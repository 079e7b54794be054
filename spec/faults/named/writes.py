"""VIW: views, and writing in place."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from smolgrad import Tensor, versions
from smolgrad.autograd import value_of
from smolgrad.primitives import indexing

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("VIW")

WRITTEN = "a_write_between_forward_and_backward_is_refused_or_does_not_matter"
FILE = "regressions/test_in_place"


@fault(3, f"{FILE}::test_every_slot_of_an_earlier_op_keeps_the_old_tensor", "M106")
def only_the_first_slot_keeps_the_old_value() -> Planted:
    """A tensor that was written is taken as it was in the first slot that holds it."""

    def inputs(node: Any, before: tuple[Any, ...], after: tuple[Any, ...]) -> Any:
        moved = [i for i, (x, y) in enumerate(zip(before, after, strict=True)) if x is not y]
        if moved:
            node._inputs = tuple(after[i] if i == moved[0] else x for i, x in enumerate(before))
        return node._inputs if moved else after

    return seams.inputs_as_they_were(inputs)


@fault(2, f"{WRITTEN}[mul]")
def writes_go_unnoticed() -> Planted:
    """No record asks whether what it reads was written."""
    return seams.unnoticed(lambda x: True)


@fault(3, f"{WRITTEN}[exp]")
def the_output_is_not_watched() -> Planted:
    """A rule that reads its output, and does not say so."""
    return patch.object(seams.primitive("exp"), "reads", ((1,),))


@fault(3, f"{WRITTEN}[mul]")
def the_second_input_is_not_watched() -> Planted:
    """mul's rule for its first input reads the second, and does not say so."""
    return patch.object(seams.primitive("mul"), "reads", ((), (1,)))


@fault(4, f"{WRITTEN}[log]")
def a_view_has_a_version_of_its_own() -> Planted:
    """A write through a view is no write to what it views."""
    return patch.object(versions, "owner", lambda array: array)


@fault(3, f"{FILE}::test_a_write_is_recorded")
def a_former_value_is_not_copied() -> Planted:
    """What a tensor was before a write shares its memory, and has the new value."""
    right = Tensor._write

    def write(self: Any, *args: Any) -> Any:
        right(self, *args)
        if self._former is not None:
            self._former._data[...] = self._data
        return self

    return patch.object(Tensor, "_write", write)


@fault(2, f"{FILE}::test_a_write_that_cannot_be_is_refused_and_nothing_has_changed")
def a_leaf_may_be_written() -> Planted:
    """In-place ops on a leaf that requires grad go through."""
    return patch.object(Tensor, "_refuse_write", lambda self, op: None)


@fault(4, f"{FILE}::test_a_write_is_recorded")
def an_assignment_is_not_recorded() -> Planted:
    """x[i] = v changes the value and not the graph."""

    def setitem(self: Any, index: Any, value: Any) -> None:
        parts, value, _ = indexing.place("setitem", self, index, value)
        self._data[parts] = value_of(value)
        versions.stamp(self._data)

    return patch.object(Tensor, "__setitem__", setitem)


@fault(4, f"{WRITTEN}[sigmoid]")
def only_large_arrays_are_watched() -> Planted:
    """A value of one element never counts as written."""
    return seams.unnoticed(lambda x: x.size == 1)


@fault(2, f"{FILE}::test_an_augmented_assignment_writes_in_place")
def a_power_assigned_is_a_new_tensor() -> Planted:
    """``y **= 2`` leaves the memory of ``y``, and all that share it, as they were."""
    return patch.object(Tensor, "__ipow__", lambda self, exponent: self**exponent)
