"""DBL: first order right, second wrong."""

from __future__ import annotations

from typing import Any

from smolgrad.autograd import value_of, wrap
from smolgrad.primitives import linalg, reduction
from smolgrad.primitives.elementwise import where

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("DBL")

SECOND = "second_order_matches_finite_differences_of_the_gradient"


@fault(2, f"{SECOND}[log]", "M069")
def create_graph_of_arrays() -> Planted:
    """``create_graph`` is accepted, and its gradients are constants: the second order is 0."""

    def raw(right: Any, roots: Any, seeds: Any, targets: Any, keep: bool, create_graph: bool) -> Any:
        found = right(roots, [value_of(s) for s in seeds], targets, keep, False)
        return {x: wrap(g) for x, g in found.items()} if create_graph else found

    return seams.sweeping(raw)


@fault(3, "regressions/test_double_backward::test_a_hessian_is_right_and_symmetric", "M124")
def a_guard_loses_the_mixed_derivative() -> Planted:
    """The slope in the base is 0 where the exponent is, and so is its derivative in the exponent."""
    return seams.changed("pow", 0, lambda gradient, g, y, a, b: where(b == 0, 0, gradient))


def _constant(x: Any) -> Any:
    return x.detach() if hasattr(x, "detach") else x


@fault(3, f"{SECOND}[tanh]")
def an_output_taken_as_a_constant() -> Planted:
    """tanh's rule reads its output's value, and not the graph behind it."""
    return seams.rules("tanh", lambda g, y, _x: g * (1 - _constant(y) * _constant(y)))


@fault(3, f"{SECOND}[matmul]")
def the_other_matrix_taken_as_a_constant() -> Planted:
    """d²(AB)/dA dB is lost."""
    return seams.rules("matmul", lambda g, _y, _a, b: linalg._matmul(g, _constant(linalg.mT(b))), None)


@fault(4, f"{SECOND}[var]")
def a_mean_taken_as_a_constant() -> Planted:
    """In var's rule the mean does not move with its elements: the second order misses 1/n."""

    def rule(g: Any, _y: Any, x: Any, *, dims: Any, keepdim: bool, correction: float) -> Any:
        scale = reduction.div(g * 2.0, max(0.0, reduction._count(x.shape, dims) - correction))
        return reduction._spread(scale, x, dims) * (x - _constant(reduction.mean(x, dims, True)))

    return seams.rules("var", rule)


@fault(4, f"{SECOND}[div]")
def the_cotangent_taken_as_a_constant() -> Planted:
    """A gradient's own derivative with respect to the seed is lost, in one input of one op."""
    return seams.rules("div", lambda g, _y, _a, b: _constant(g) / b, None)


@fault(3, "regressions/test_double_backward::test_a_recorded_gradient_accumulates_with_its_graph")
def grad_is_a_constant_after_create_graph() -> Planted:
    """``backward(create_graph=True)`` leaves a constant in ``.grad``."""

    def deposit(right: Any, leaf: Any, g: Any) -> None:
        right(leaf, g)
        leaf.grad = leaf.grad.detach()

    return seams.depositing(deposit)


@fault(4, f"{SECOND}[exp]")
def a_rule_that_is_right_on_arrays_alone() -> Planted:
    """Of tensors exp's rule makes g·y·y: the first-order path, which has rules of its own, does not show it."""
    return seams.changed("exp", 0, lambda gradient, g, y, x: gradient * y if hasattr(g, "detach") else gradient)
