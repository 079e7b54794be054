"""OPT: steps that are not those of the formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad import nn, optim, versions

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("OPT")

FILE = "regressions/test_optimizers"
AS_PYTORCH = "trajectories/test_optimizers::test_given_gradients_move_parameters_and_state_as_in_pytorch"


def _update(optimizer: Any, change: Callable[..., Any]) -> Planted:
    """``change(right, p, grad, state, group)`` for the right update of a parameter."""
    right = optimizer._update
    return patch.object(
        optimizer,
        "_update",
        lambda self, p, g, state, group: change(lambda *args: right(self, *args), p, g, state, group),
    )


@fault(1, f"{FILE}::test_sgd_goes_down", "M013")
def uphill() -> Planted:
    """The step is added."""
    return _update(optim.SGD, lambda right, p, g, state, group: right(p, -g, state, group))


@fault(1, f"{FILE}::test_adamw_corrects_the_bias_of_its_moments", "M014")
def no_bias_correction() -> Planted:
    """The moments of the first steps are too small."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        if not state:
            state.update(step=10**6, exp_avg=np.zeros_like(p), exp_avg_sq=np.zeros_like(p))
        right(p, g, state, group)

    return _update(optim.AdamW, change)


@fault(2, f"{FILE}::test_adamw_decay_does_not_pass_through_the_moments", "M051")
def decay_through_the_moments() -> Planted:
    """Adam's L2 penalty for AdamW's decay."""
    return _update(
        optim.AdamW,
        lambda right, p, g, state, group: right(
            p, g + group["weight_decay"] * p, state, {**group, "weight_decay": 0.0}
        ),
    )


@fault(2, f"{FILE}::test_adamw_counts_steps_once_a_step", "M052")
def a_step_counted_for_each_parameter() -> Planted:
    """One count for all parameters, which goes up with each of them."""
    counts: dict[int, int] = {}

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        key = id(group["params"])
        if state:
            state["step"] = counts[key]
        else:
            state.update(step=counts.get(key, 0), exp_avg=np.zeros_like(p), exp_avg_sq=np.zeros_like(p))
        right(p, g, state, group)
        counts[key] = state["step"]

    return _update(optim.AdamW, change)


@fault(2, AS_PYTORCH, "M053")
def a_buffer_made_anew_at_each_step() -> Planted:
    """Momentum that remembers nothing."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        state.clear()
        right(p, g, state, group)

    return _update(optim.SGD, change)


@fault(2, f"{FILE}::test_weight_decay_stays_out_of_the_gradient", "M055")
def decay_added_to_the_gradient_itself() -> Planted:
    """``p.grad`` is another one after the step."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        g += group["weight_decay"] * p
        right(p, g, state, {**group, "weight_decay": 0.0})

    return _update(optim.SGD, change)


@fault(3, f"{FILE}::test_adamw_decays_the_weight_before_the_adaptive_step", "M108")
def decay_after_the_step() -> Planted:
    """2e-9 at the usual options."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        right(p, g, state, {**group, "weight_decay": 0.0})
        p *= 1 - group["lr"] * group["weight_decay"]

    return _update(optim.AdamW, change)


@fault(3, f"{FILE}::test_adamw_adds_eps_after_the_bias_correction", "M109")
def eps_is_corrected_for_bias_too() -> Planted:
    """(√v + eps)/√(1 - β₂ᵗ): it shows where gradients are as small as eps."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        root = (1 - group["betas"][1] ** (state.get("step", 0) + 1)) ** 0.5
        right(p, g, state, {**group, "eps": group["eps"] / root})

    return _update(optim.AdamW, change)


@fault(4, f"{FILE}::test_sgd_keeps_the_learning_rate_out_of_its_buffer", "M140")
def the_learning_rate_in_the_buffer() -> Planted:
    """The same while it is constant."""
    return _update(optim.SGD, lambda right, p, g, state, group: right(p, g * group["lr"], state, {**group, "lr": 1.0}))


class _ByAddress(dict[Any, Any]):
    def setdefault(self, key: Any, default: Any = None) -> Any:
        return super().setdefault(id(key), default)


@fault(4, f"{FILE}::test_state_belongs_to_a_tensor_not_to_its_address", "M142")
def state_belongs_to_an_address() -> Planted:
    """State by ``id``: a parameter in the place of a freed one takes over its moments."""
    start = optim.Optimizer.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        self.state = _ByAddress()

    return patch.object(optim.Optimizer, "__init__", init)


@fault(3, f"{FILE}::test_sgd_does_not_dampen_the_first_buffer")
def the_first_buffer_is_dampened() -> Planted:
    """The buffer starts at (1 - dampening)·g."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        if group["momentum"] and not state:
            state["momentum_buffer"] = np.zeros_like(p)
        right(p, g, state, group)

    return _update(optim.SGD, change)


@fault(2, AS_PYTORCH)
def nesterov_without_its_look_ahead() -> Planted:
    """The option is accepted, and plain momentum done."""
    return _update(optim.SGD, lambda right, p, g, state, group: right(p, g, state, {**group, "nesterov": False}))


@fault(3, AS_PYTORCH)
def decay_maximised_too() -> Planted:
    """With ``maximize`` the sign of the decay is turned, as that of the gradient."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        sign = -1 if group["maximize"] else 1
        right(p, g, state, {**group, "weight_decay": sign * group["weight_decay"]})

    return _update(optim.SGD, change)


@fault(3, AS_PYTORCH)
def the_two_betas_exchanged() -> Planted:
    """β₁ for β₂ and the other way round."""
    return _update(
        optim.AdamW,
        lambda right, p, g, state, group: right(p, g, state, {**group, "betas": tuple(reversed(group["betas"]))}),
    )


@fault(3, AS_PYTORCH)
def options_of_the_first_group_for_all() -> Planted:
    """A group's own learning rate is not heard."""
    step = optim.Optimizer.step

    def first(self: Any, closure: Any = None) -> Any:
        own = [group["lr"] for group in self.param_groups]
        for group in self.param_groups:
            group["lr"] = own[0]
        try:
            return step(self, closure)
        finally:
            for group, lr in zip(self.param_groups, own, strict=True):
                group["lr"] = lr

    return patch.object(optim.Optimizer, "step", first)


@fault(3, f"{FILE}::test_a_parameter_without_a_gradient_rests")
def a_parameter_without_a_gradient_decays() -> Planted:
    """None is taken for zeros: momentum and decay move what has no gradient."""
    step = optim.Optimizer.step

    def all_of_them(self: Any, closure: Any = None) -> Any:
        resting = [p for group in self.param_groups for p in group["params"] if p.grad is None]
        for p in resting:
            p.grad = p.detach() * 0.0
        try:
            return step(self, closure)
        finally:
            for p in resting:
                p.grad = None

    return patch.object(optim.Optimizer, "step", all_of_them)


@fault(4, "trajectories/test_optimizers::test_a_perceptron_trains_as_in_pytorch")
def the_second_moment_starts_at_the_first_square() -> Planted:
    """v begins at g², with its bias still divided out: only the first steps are wrong."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        if not state:
            state.update(step=0, exp_avg=np.zeros_like(p), exp_avg_sq=g * g)
        right(p, g, state, group)

    return _update(optim.AdamW, change)


@fault(4, f"{FILE}::test_a_parameter_of_several_chunks_is_moved_to_its_end")
def the_tail_of_a_large_parameter_rests() -> Planted:
    """What is left over after the last whole chunk is not moved."""
    chunks = optim.Optimizer._chunks

    def whole(self: Any, grad: Any, *written: Any) -> Any:
        for i, chunk in enumerate(chunks(self, grad, *written)):
            if i == 0 or len(chunk[0]) == optim.optimizer.CHUNK:
                yield chunk

    return patch.object(optim.Optimizer, "_chunks", whole)


@fault(4, "trajectories/test_optimizers::test_a_step_between_forward_and_backward_is_noticed")
def a_step_is_no_write() -> Planted:
    """A step moves parameters without a new version: a backward pass afterwards mixes old and new."""
    return patch.object(optim.optimizer, "versions", type("Versions", (), {**vars(versions), "stamp": lambda *_: None}))


@fault(2, "trajectories/test_optimizers::test_zero_grad_drops_gradients_or_fills_them_with_zeros")
def zero_grad_forgets_all_but_the_first() -> Planted:
    """The gradients of the first parameter alone are dropped."""
    right = optim.optimizer.clear_grads
    return patch.object(
        optim.optimizer, "clear_grads", lambda parameters, to_none: right(list(parameters)[:1], to_none)
    )


# --- clipping ---------------------------------------------------------------------------------------------------------

CLIP = "trajectories/test_schedules"


def _clipping(change: Callable[..., Any]) -> Planted:
    """``change(right, parameters, max_norm, ...)`` for the right clipping."""
    right = nn.utils.clip_grad_norm_
    return patch.object(nn.utils, "clip_grad_norm_", lambda *args, **options: change(right, *args, **options))


@fault(3, f"{CLIP}::test_the_norm_is_that_of_all_gradients_together", "M111")
def each_gradient_clipped_by_itself() -> Planted:
    """The norm is each parameter's own, not that of all together."""

    def change(right: Any, parameters: Any, *args: Any, **options: Any) -> Any:
        return max(right(p, *args, **options) for p in parameters)

    return _clipping(change)


@fault(3, f"{CLIP}::test_the_norm_is_that_of_all_gradients_together", "M111")
def short_gradients_made_longer() -> Planted:
    """Gradients are brought to max_norm, from either side."""

    def change(right: Any, parameters: Any, max_norm: float, *args: Any, **options: Any) -> Any:
        parameters = list(parameters)
        norm = right(parameters, max_norm, *args, **options)
        for p in parameters:
            if p.grad is not None and 0 < float(norm.data) < max_norm:
                p.grad.data *= max_norm / float(norm.data)
        return norm

    return _clipping(change)


@fault(4, f"{CLIP}::test_norms_are_clipped_as_in_pytorch")
def the_clipped_norm_is_returned() -> Planted:
    """What comes back is the norm after clipping: a log of it never shows an explosion."""

    def change(right: Any, parameters: Any, max_norm: float, *args: Any, **options: Any) -> Any:
        norm = right(parameters, max_norm, *args, **options)
        norm.data = np.minimum(norm.data, max_norm)
        return norm

    return _clipping(change)


# --- pairs ------------------------------------------------------------------------------------------------------------


@fault(4, "trajectories/test_optimizers::test_gradients_are_bit_identical_after_a_step")
def a_gradient_adopted_and_decayed_in_place() -> Planted:
    """The first momentum buffer is the gradient itself, and is written in place at the next step: with either alone, a
    buffer that is replaced or a gradient that is copied, nothing is lost."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        first = "momentum_buffer" not in state
        right(p, g, state, group)
        if first and "momentum_buffer" in state:
            state["momentum_buffer"] = g

    return _update(optim.SGD, change)


@fault(4, f"{FILE}::test_an_optimizers_state_dict_is_a_snapshot_and_loading_copies")
def a_live_state_dict_and_a_load_that_adopts() -> Planted:
    """state_dict gives its own arrays and load_state_dict keeps what it is given: a saved state moves on with the
    training. A load that copies, or a snapshot, would each make good for the other after loading."""

    def live(self: Any) -> dict[str, Any]:
        number = {p: i for i, p in enumerate(self._parameters())}
        groups = [group | {"params": [number[p] for p in group["params"]]} for group in self.param_groups]
        return {"state": {number[p]: state for p, state in self.state.items()}, "param_groups": groups}

    return seams.together(
        patch.object(optim.Optimizer, "state_dict", live),
        patch.object(optim.optimizer, "_restored", lambda p, state: dict(state)),
    )


@fault(4, AS_PYTORCH)
def a_decay_that_is_undone_but_for_maximize() -> Planted:
    """The gradient is negated after the decay was added, and the step is added: right without ``maximize``, and with it
    where nothing decays."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        if group["maximize"]:
            right(p, -(g + group["weight_decay"] * p), state, {**group, "maximize": False, "weight_decay": 0.0})
        else:
            right(p, g, state, group)

    return _update(optim.Adam, change)
