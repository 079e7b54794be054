"""ERR: wrong calls that go through."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad import Tensor, autograd, functional
from smolgrad.autograd import value_of, wrap
from smolgrad.primitives import operands, reduction

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("ERR")

FILE = "regressions/test_refusals"
BY_NAME = f"{FILE}::test_a_wrong_call_is_refused_by_name_and_changes_nothing"
_AND_SO_ON = "is_refused_by_name_and_none_is_what_it_is_without"


def _listed(given: Any, count: int) -> list[Any]:
    found = [None] * count if given is None else given
    return list(found) if isinstance(found, (list, tuple)) else [found]


@fault(1, BY_NAME, "M017")
def any_output_may_be_swept_from() -> Planted:
    """An output of several elements gets a gradient of ones that nobody gave."""

    def seeds(right: Any, outputs: Any, given: Any, create_graph: bool) -> Any:
        grads = _listed(given, len(outputs))
        ones = [wrap(np.ones_like(y.data)) if g is None else g for y, g in zip(outputs, grads, strict=True)]
        return right(outputs, ones, create_graph)

    return seams.seeding(seeds)


@fault(2, BY_NAME, "M064")
def a_gradient_is_broadcast_to_its_output() -> Planted:
    """An upstream gradient of (1,) is taken for an output of (2,)."""

    def seeds(right: Any, outputs: Any, given: Any, create_graph: bool) -> Any:
        grads = _listed(given, len(outputs))
        return right(outputs, [_fitted(y, g) for y, g in zip(outputs, grads, strict=False)], create_graph)

    return seams.seeding(seeds)


def _fitted(output: Any, given: Any) -> Any:
    if given is None or value_of(given).shape == output.shape:
        return given
    return wrap(np.broadcast_to(value_of(given), output.shape).astype(output.dtype))


@fault(2, BY_NAME, "M065")
def integers_may_require_grad() -> Planted:
    """``requires_grad`` of an integer tensor is accepted, and never gives a gradient."""

    def accept(self: Any, requires_grad: bool = True) -> Any:
        self._requires_grad = requires_grad
        return self

    return patch.object(Tensor, "requires_grad_", accept)


@fault(3, BY_NAME, "M117")
def an_index_from_the_end_is_a_class() -> Planted:
    """Class -1 is the last."""
    return patch.object(functional, "in_range", lambda *_: None)


@fault(2, f"{FILE}::test_an_option_of_pytorchs_that_is_not_offered_{_AND_SO_ON}")
def an_option_that_is_not_offered_is_ignored() -> Planted:
    """``out=`` of a sum is accepted and has no effect."""
    return patch.object(operands, "refuse", lambda *_: None)


@fault(3, BY_NAME)
def an_axis_may_be_named_twice() -> Planted:
    """dim=(0, -2) reduces axis 0 once, and says nothing."""
    right = reduction.axes

    def axes(op: str, dim: Any, ndim: int) -> Any:
        if isinstance(dim, (tuple, list)) and ndim:
            dim = tuple(dict.fromkeys(reduction.axis(op, d, ndim) for d in dim))
        return right(op, dim, ndim)

    return patch.object(reduction, "axes", axes)


@fault(3, f"{FILE}::test_unused_inputs_are_none_where_that_is_allowed")
def an_unused_input_has_a_gradient_of_zeros() -> Planted:
    """``grad`` gives zeros for what the outputs do not depend on, asked or not."""

    def sweep(right: Any, roots: Any, seeds: Any, targets: Any, keep: bool, create: bool) -> Any:
        found = right(roots, seeds, targets, keep, create)
        if targets is not None:
            for x in targets - found.keys():
                found[x] = seams.like(x if create else x.data, np.zeros_like(x.data))
        return found

    return seams.sweeping(sweep)


@fault(3, BY_NAME)
def item_gives_the_first_of_many() -> Planted:
    """``item()`` of several elements is the first."""
    return patch.object(Tensor, "item", lambda self: self.data.reshape(-1)[0].item())


@fault(4, "regressions/test_promotion::test_a_rule_that_gives_another_dtype_is_refused_by_name")
def a_gradient_that_does_not_fit_is_cast() -> Planted:
    """A rule that gives another dtype is cast in silence, and the mistake in it never found."""
    right = autograd._fitted

    def fitted(gradient: Any, x: Any, *others: Any) -> Any:
        if isinstance(gradient, np.ndarray) and gradient.dtype != x.dtype:
            gradient = gradient.astype(x.dtype)
        return right(gradient, x, *others)

    return patch.object(autograd, "_fitted", fitted)
