"""DTY: numbers in the wrong precision, and scalars that are no arrays."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad import creation, optim
from smolgrad.autograd import value_of
from smolgrad.primitives import operands

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("DTY")

DTYPE = "results_and_gradients_have_their_inputs_dtype"


@fault(2, f"{DTYPE}[sqrt]", "M047")
def a_constant_of_float64() -> Planted:
    """NumPy's scalars are not weak."""
    return seams.rules("sqrt", lambda g, y, _x: g / (y * np.asarray([2.0]).sum()))


@fault(3, "trajectories/test_optimizers::test_float32_stays_float32_to_the_last_bit", "M099")
def a_parameter_is_float64_after_a_step() -> Planted:
    """A learning rate of NumPy's promotes what it multiplies."""
    step = optim.Optimizer.step

    def promoting(self: Any, closure: Any = None) -> Any:
        loss = step(self, closure)
        for group in self.param_groups:
            for p in group["params"]:
                p._data = p._data.astype("float64")
        return loss

    return patch.object(optim.Optimizer, "step", promoting)


@fault(3, "regressions/test_promotion::test_0d_gradients_are_arrays_that_accumulate", "M100")
def a_0d_gradient_is_added_to_a_copy() -> Planted:
    """``g += more`` of a NumPy scalar binds a name: the second sweep of a 0-d leaf is lost."""

    def deposit(right: Any, leaf: Any, g: Any) -> None:
        if leaf.ndim or leaf.grad is None:
            right(leaf, g)

    return seams.depositing(deposit)


@fault(4, "values_match_pytorch[exp]")
def computed_in_float32() -> Planted:
    """exp of float64 has float32's digits, in the dtype that was asked for."""
    return seams.forward("exp", lambda x: np.exp(x.astype("float32")).astype(x.dtype))


@fault(4, "vjp_matches_finite_differences[tanh]")
def a_gradient_through_float32() -> Planted:
    """tanh's gradient takes its way through float32: dtype and first seven digits are right."""

    def rounded(gradient: Any, *_: Any) -> Any:
        return seams.like(gradient, value_of(gradient).astype("float32").astype(gradient.dtype))

    return seams.changed("tanh", 0, rounded)


@fault(3, "regressions/test_promotion::test_a_wide_0d_tensor_leaves_a_narrow_tensor_narrow")
def a_0d_tensor_counts_like_any_other() -> Planted:
    """A float64 tensor of no dimensions promotes a float32 one."""
    right = operands.result_type
    return patch.object(
        operands, "result_type", lambda *xs: right(*(np.empty(1, x.dtype) if hasattr(x, "dtype") else x for x in xs))
    )


@fault(3, "regressions/test_promotion::test_a_gradient_has_the_dtype_of_its_own_tensor_where_two_meet")
def a_casts_gradient_is_not_cast_back() -> Planted:
    """The gradient of a float32 operand that was promoted stays float64."""
    return seams.rules("to", lambda g, _y, _x, *, dtype: g)


@fault(4, "float32_follows_float64[functional.softmax]")
def float32_summed_in_half_precision() -> Planted:
    """In float32 softmax's gradient has float16's digits; in float64, where all else is compared, it is right."""

    def rough(gradient: Any, *_: Any, **__: Any) -> Any:
        if gradient.dtype != np.float32:
            return gradient
        return seams.like(gradient, value_of(gradient).astype("float16").astype("float32"))

    return seams.changed("softmax", 0, rough)


@fault(2, "regressions/test_beside_pytorch::test_the_answer_is_pytorchs")
def no_dtype_is_numpys() -> Planted:
    """``zeros(2, dtype=None)`` is what NumPy means by None: float64."""
    return patch.object(creation, "as_dtype", lambda dtype, default=None: np.dtype(dtype))
