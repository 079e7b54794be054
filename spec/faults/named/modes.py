"""NGR: no_grad, enable_grad and detach."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

from smolgrad import Tensor, autograd
from smolgrad.autograd import wrap

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("NGR")

FILE = "regressions/test_modes"


@fault(1, f"{FILE}::test_a_detached_tensor_is_a_constant_that_shares_its_memory", "M016")
def detached_and_still_requiring_grad() -> Planted:
    """``detach()`` keeps ``requires_grad``."""
    return patch.object(Tensor, "detach", lambda self: wrap(self.data).requires_grad_(self.requires_grad))


@fault(2, f"{FILE}::test_nested_modes_are_a_stack", "M060")
def leaving_a_mode_records_again() -> Planted:
    """``no_grad`` ends with recording on, wherever it stood."""

    def leave(self: Any, *_: object) -> None:
        seams.mode().before.pop()
        seams.mode().enabled = True

    return seams.modes(__exit__=leave)


@fault(3, f"{FILE}::test_one_instance_may_be_entered_while_it_is_entered", "M115")
def one_instance_remembers_one_mode() -> Planted:
    """A mode keeps what it found in itself: entered twice, it forgets the first."""

    def enter(self: Any) -> None:
        self.found = seams.mode().enabled
        seams.mode().enabled = self.enabled

    def leave(self: Any, *_: object) -> None:
        seams.mode().enabled = self.found

    return seams.modes(__enter__=enter, __exit__=leave)


@fault(4, f"{FILE}::test_a_generator_is_sent_to_thrown_into_and_closed_in_its_mode", "M146")
def a_generator_keeps_its_mode_between_steps() -> Planted:
    """A decorated generator is in its mode from the first step to the last."""

    def whole(mode: Any, generator: Any) -> Any:
        with mode:
            return (yield from generator)

    return seams.generators(whole)


@fault(3, f"{FILE}::test_a_mode_holds_in_its_own_thread_only")
def one_mode_for_all_threads() -> Planted:
    """A thread that leaves recording off leaves it off for everybody."""
    return seams.mode_of_all_threads()


@fault(3, f"{FILE}::test_an_exception_restores_the_mode")
def an_exception_leaves_the_mode_on() -> Planted:
    """What is left by an exception is not restored."""

    def leave(self: Any, kind: Any = None, *_: object) -> None:
        before = seams.mode().before.pop()
        if kind is None:
            seams.mode().enabled = before

    return seams.modes(__exit__=leave)


@fault(3, "regressions/test_double_backward::test_create_graph_records_inside_no_grad")
def create_graph_under_no_grad_records_nothing() -> Planted:
    """A sweep that was asked for a graph heeds the mode it is called in."""
    return patch.object(autograd, "enable_grad", lambda: nullcontext() if seams.mode().enabled else autograd.no_grad())


@fault(2, f"{FILE}::test_a_detached_tensor_is_a_constant_that_shares_its_memory")
def detached_and_copied() -> Planted:
    """``detach()`` has memory of its own: writes to it are lost."""
    return patch.object(Tensor, "detach", lambda self: wrap(self.data.copy()))


@fault(4, f"{FILE}::test_a_generator_gives_whoever_asks_their_own_mode_back")
def a_generator_restores_what_its_caller_had_at_first() -> Planted:
    """After each step the mode is that of the first step, whoever calls now."""

    def each(mode: Any, generator: Any) -> Any:
        outer, sent = seams.mode().enabled, None
        while True:
            seams.mode().enabled = mode.enabled
            try:
                item = generator.send(sent)
            except StopIteration as stop:
                return stop.value
            finally:
                seams.mode().enabled = outer
            sent = yield item

    return seams.generators(each)


# --- pairs ------------------------------------------------------------------------------------------------------------


@fault(4, f"{FILE}::test_nested_modes_are_a_stack")
def a_count_of_blocks_for_a_stack() -> Planted:
    """no_grad counts up and down, which nests, and enable_grad sets the count to 0, which is right inside of it: after
    the one within the other, recording is on in what is left of the outer block."""

    def enter(self: Any) -> None:
        mode = seams.mode()
        mode.before.append(None)
        mode.count = 0 if self.enabled else getattr(mode, "count", 0) + 1
        mode.enabled = mode.count == 0

    def leave(self: Any, *_: object) -> None:
        mode = seams.mode()
        mode.before.pop()
        mode.count = max(0, mode.count - (not self.enabled))
        mode.enabled = mode.count == 0

    return seams.modes(__enter__=enter, __exit__=leave)


@fault(4, f"{FILE}::test_a_detached_constant_is_a_tensor_of_its_own")
def a_constant_detached_is_itself() -> Planted:
    """``detach()`` gives a constant back as it is, and ``requires_grad_`` works in place, as it should: together they
    let the original require grad."""
    right = Tensor.detach
    return patch.object(Tensor, "detach", lambda self: right(self) if self.requires_grad else self)
