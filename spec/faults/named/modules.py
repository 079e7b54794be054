"""MOD: modules, and their state."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

import smolgrad
from smolgrad import functional, nn, optim

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("MOD")

FILE = "regressions/test_modules"


@fault(1, f"{FILE}::test_every_parameter_is_found_once_wherever_it_is_held", "M015")
def parameters_in_lists_are_not_found() -> Planted:
    """Only attributes that are modules themselves are walked."""
    return patch.object(nn.module, "_HOLDERS", (nn.Module,))


@fault(2, f"{FILE}::test_a_tied_parameter_is_one_parameter_with_two_names", "M057")
def a_tied_parameter_twice() -> Planted:
    """Parameters are counted by name."""
    right = nn.Module._named
    return patch.object(
        nn.Module,
        "_named",
        lambda self, kinds, prefix="", recurse=True, remove_duplicate=True: right(self, kinds, prefix, recurse, False),
    )


@fault(2, f"{FILE}::test_a_state_dict_is_a_snapshot", "M058")
def a_state_dict_of_live_arrays() -> Planted:
    """What was saved moves with the next step."""
    return patch.object(nn.Module, "state_dict", lambda self: {name: p.detach() for name, p in self.named_parameters()})


@fault(3, f"{FILE}::test_loading_checks_everything_before_it_changes_anything", "M112")
def loading_broadcasts() -> Planted:
    """``p[...] = value`` takes whatever fits somehow."""
    return patch.object(nn.module, "_misfit", lambda name, x, value: "")


@fault(3, f"{FILE}::test_every_parameter_is_found_once_wherever_it_is_held")
def a_dict_within_a_list_is_not_walked() -> Planted:
    """Containers are opened one level deep."""
    right = nn.module._items
    return patch.object(
        nn.module, "_items", lambda holder: [(k, x) for k, x in right(holder)
                                      if isinstance(holder, nn.Module) or not isinstance(x, (list, tuple, dict))]
    )  # fmt: skip


@fault(3, f"{FILE}::test_loading_copies")
def loading_shares() -> Planted:
    """A loaded parameter is the array that was given: two models trained from one state train each other."""
    right = nn.Module.load_state_dict

    def load(self: Any, state_dict: Any, strict: bool = True, **options: Any) -> Any:
        keys = right(self, state_dict, strict, **options)
        for name, p in self.named_parameters(remove_duplicate=False):
            if name in state_dict and hasattr(state_dict[name], "data"):
                p._data = state_dict[name]._data
        return keys

    return patch.object(nn.Module, "load_state_dict", load)


@fault(2, f"{FILE}::test_modes_reach_every_module")
def a_mode_stays_on_top() -> Planted:
    """``eval()`` sets the module itself alone."""

    def train(self: Any, mode: bool = True) -> Any:
        self.training = mode
        return self

    return patch.object(nn.Module, "train", train)


@fault(4, f"{FILE}::test_loading_two_parameters_into_each_other")
def loading_one_after_the_other() -> Planted:
    """A state dict of live tensors changes while it is loaded: a swap gives one value twice."""

    def load(self: Any, state_dict: Any, strict: bool = True) -> Any:
        for name, p in self.named_parameters(remove_duplicate=False):
            p.data = state_dict[name]
        return nn.module.IncompatibleKeys([], [])

    return patch.object(nn.Module, "load_state_dict", load)


@fault(3, f"{FILE}::test_zero_grad")
def zero_grad_fills_but_does_not_drop() -> Planted:
    """Gradients become zeros where they should be None: decay goes on for what rests."""
    right = nn.module.clear_grads
    return patch.object(nn.module, "clear_grads", lambda parameters, set_to_none: right(parameters, False))


# --- what a checkpoint must hold --------------------------------------------------------------------------------------


@fault(3, "regressions/test_optimizers::test_resumed_is_uninterrupted_to_the_bit", "M114")
def loading_drops_the_count_of_steps() -> Planted:
    """A resumed Adam corrects its moments' bias as if it had just begun."""
    right = optim.optimizer._restored

    def restored(p: Any, state: Any) -> dict[str, Any]:
        found = right(p, state)
        return found | {"step": 0} if "step" in found else found

    return patch.object(optim.optimizer, "_restored", restored)


@fault(4, "trajectories/test_schedules::test_a_schedule_goes_on_from_its_state_as_if_it_had_not_stopped", "M144")
def a_schedule_begins_again_when_it_is_loaded() -> Planted:
    """The rates are restored, and the number of the step that the next one follows from is not."""
    right = optim.lr_scheduler.LRScheduler._load

    def load(self: Any, state: Any) -> None:
        right(self, {name: value for name, value in state.items() if name != "last_epoch"})

    return patch.object(optim.lr_scheduler.LRScheduler, "_load", load)


@fault(4, "regressions/test_tensor::test_draws_go_on_from_a_state_that_was_taken", "M144")
def random_state_is_not_restored() -> Planted:
    """A resumed training draws other masks."""
    return patch.object(smolgrad, "set_rng_state", lambda state: None)


@fault(4, "trajectories/test_schedules::test_a_schedule_goes_on_from_its_state_as_if_it_had_not_stopped")
def a_row_of_schedules_forgets_its_parts() -> Planted:
    """SequentialLR restores whose turn it is, but not how far that one has come."""

    def load(self: Any, state: Any) -> None:
        optim.lr_scheduler.LRScheduler._load(self, state)

    return patch.object(optim.lr_scheduler.SequentialLR, "_load", load)


@fault(2, f"{FILE}::test_buffers_are_state_but_are_not_learned")
def buffers_are_no_state() -> Planted:
    """A state dict has parameters alone: running statistics begin anew after loading."""
    return patch.object(nn.module, "_STATE", (nn.Parameter,))


@fault(3, f"{FILE}::test_a_frozen_model_gets_no_gradients")
def freezing_reaches_only_ones_own_parameters() -> Planted:
    """``requires_grad_`` stops at the module itself."""

    def freeze(self: Any, requires_grad: bool = True) -> Any:
        for p in self.parameters(recurse=False):
            p.requires_grad_(requires_grad)
        return self

    return patch.object(nn.Module, "requires_grad_", freeze)


# --- pairs ------------------------------------------------------------------------------------------------------------


@fault(4, f"{FILE}::test_loading_is_by_name_whatever_the_order")
def names_in_order_and_loading_by_place() -> Planted:
    """State dicts are sorted by name, and loaded by place: right while either is done alone, or the names rise."""
    right, load = nn.Module.state_dict, nn.Module.load_state_dict

    def by_place(self: Any, state_dict: Any, strict: bool = True, **options: Any) -> Any:
        names = [name for name, _ in self._named(nn.module._STATE, remove_duplicate=False)]
        return load(self, dict(zip(names, state_dict.values(), strict=True)), strict, **options)

    return seams.together(
        patch.object(nn.Module, "state_dict", lambda self, **options: dict(sorted(right(self, **options).items()))),
        patch.object(nn.Module, "load_state_dict", by_place),
    )


@fault(3, "regressions/test_beside_pytorch::test_the_answer_is_pytorchs")
def a_tensor_takes_the_place_of_a_buffer() -> Planted:
    """``self.n = self.n + 1`` leaves the module without the buffer, and its state without the count."""
    return patch.object(nn.Module, "__setattr__", object.__setattr__)


@fault(3, "regressions/test_beside_pytorch::test_the_answer_is_pytorchs")
def an_empty_batch_has_a_mean() -> Planted:
    """Statistics of nothing are NaN, and stay so."""
    right = functional.batch_norm

    def batch_norm(input: Any, mean: Any, *args: Any, **options: Any) -> Any:
        if not input.size and mean is not None:
            mean.data[...] = np.nan
        return right(input, mean, *args, **options)

    return patch.object(functional, "batch_norm", batch_norm)
