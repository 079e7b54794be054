"""FRM: local rules that are wrong."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad import functional
from smolgrad.autograd import Primitive, value_of
from smolgrad.primitives import fused, linalg, reduction
from smolgrad.primitives.elementwise import abs, exp, log, where

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("FRM")

VJP = "vjp_matches_finite_differences"


@fault(1, f"{VJP}[tanh]", "M008")
def a_rule_that_forgets_its_return() -> Planted:
    """``def rule(g, y, x): g * (1 - y * y)``."""
    return seams.changed("tanh", 0, lambda *_: None)


@fault(1, f"{VJP}[div]", "M009")
def the_denominators_sign() -> Planted:
    """d(a/b)/db without its minus."""
    return seams.rules("div", None, lambda g, y, _a, b: g * (y / b))


@fault(1, f"{VJP}[sub]", "M009")
def the_sign_of_what_is_subtracted() -> Planted:
    """d(a - b)/db = 1."""
    return seams.rules("sub", None, lambda g, _y, _a, _b: g)


@fault(1, f"{VJP}[sigmoid]", "M010")
def the_sigmoid_for_its_slope() -> Planted:
    """s for s(1 - s)."""
    return seams.rules("sigmoid", lambda g, y, _x: g * y)


@fault(2, f"{VJP}[functional.cross_entropy]", "M048")
def one_cotangent_for_all_samples() -> Planted:
    """Each sample's loss gets the mean of the cotangents: right for the reductions 'mean' and 'sum'."""
    right = fused.cross_entropy.pullbacks[0]

    def rule(g: Any, y: Any, x: Any, **static: Any) -> Any:
        return right(g * 0.0 + reduction.mean(g), y, x, **static) if g.size else right(g, y, x, **static)

    return seams.rules("cross_entropy", rule)


@fault(3, f"{VJP}[functional.layer_norm]", "M103")
def weight_and_bias_exchanged() -> Planted:
    """layer_norm's gradients of weight and bias, which have one shape."""
    affine = Primitive(
        "affine",
        lambda y, w, b: y * w + b,
        lambda g, _z, _y, w, _b: g * w,
        lambda g, _z, _y, _w, _b: g,
        lambda g, _z, y, _w, _b: g * y,
        broadcasts=True,
    )
    right = functional.layer_norm

    def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
        if bias is None:
            return right(input, normalized_shape, weight, bias, eps)
        return affine(right(input, normalized_shape, None, None, eps), weight, bias)

    return patch.object(functional, "layer_norm", layer_norm)


@fault(4, f"{VJP}[log]")
def a_fudge_in_the_denominator() -> Planted:
    """g / (x + 1e-8), against division by zero."""
    return seams.rules("log", lambda g, _y, x: g / (x + 1e-8))


@fault(4, "special_values_are_pytorchs[pow]")
def the_logarithm_of_the_magnitude() -> Planted:
    """d(a^b)/db with log|a|: finite where a is negative and the slope is none."""

    def rule(g: Any, y: Any, a: Any, b: Any) -> Any:
        flat = (a == 0) & (b >= 0)
        return where(flat, 0, g * (y * log(abs(where(flat, 1, a)))))

    return seams.rules("pow", None, rule)


@fault(2, f"{VJP}[functional.softmax]")
def softmax_one_by_one() -> Planted:
    """y(1 - y)g: the diagonal of the Jacobian for the whole of it."""
    return seams.rules("softmax", lambda g, y, _x, *, lane: g * y * (1 - y))


@fault(4, f"{VJP}[functional.softmax]")
def softmax_right_for_one_hot_cotangents() -> Planted:
    """The lane's sum of y·g is taken as its largest in magnitude: right where one alone is not 0."""

    def rule(g: Any, y: Any, _x: Any, *, lane: int) -> Any:
        product = g * y
        return product - y * (reduction.amax(product, lane, True) + reduction.amin(product, lane, True))

    return seams.rules("softmax", rule)


@fault(1, f"{VJP}[tanh]")
def a_square_left_out() -> Planted:
    """1 - y for 1 - y²."""
    return seams.rules("tanh", lambda g, y, _x: g * (1 - y))


@fault(3, f"{VJP}[matmul]")
def square_matrices_are_not_transposed() -> Planted:
    """g @ b for g @ b.T, where the shape does not tell."""

    def rule(g: Any, _y: Any, _a: Any, b: Any) -> Any:
        return linalg._matmul(g, b if b.shape[-1] == b.shape[-2] else linalg.mT(b))

    return seams.rules("matmul", rule, None)


@fault(3, f"{VJP}[functional.linear]")
def a_bias_gets_the_mean_over_the_rows() -> Planted:
    """As a batch mean would ask for."""
    return seams.changed("linear", 2, lambda gradient, g, *_, **__: gradient * (gradient.size / max(1, g.size)))


@fault(3, f"{VJP}[functional.layer_norm]")
def the_spread_is_a_constant() -> Planted:
    """layer_norm's rule without the term of the variance: right where y·g has no mean."""

    def rule(g: Any, y: Any, x: Any, *, dims: Any, eps: float) -> Any:
        s = (reduction.var(x, dims, correction=0, keepdim=True) + eps) ** 0.5
        return (g - reduction.mean(g, dims, True)) / s

    return seams.rules("standardize", rule)


@fault(2, f"{VJP}[Tensor.__pow__]")
def every_power_is_a_square() -> Planted:
    """2x whatever the exponent."""

    def rule(g: Any, _y: Any, a: Any, b: Any) -> Any:
        return g * (a * 2.0)

    return seams.rules("pow", rule, None)


@fault(4, f"{VJP}[functional.cross_entropy]")
def an_ignored_sample_still_has_a_softmax() -> Planted:
    """The loss of an ignored sample is 0, and its slope that of the softmax alone."""

    def rule(g: Any, _y: Any, x: Any, *, lane: int, index: Any, kept: Any) -> Any:
        picked = fused._put(where(kept, g, 0), index=index, shape=x.shape)
        return fused.softmax(x, lane=lane) * reduction._spread(g, x, (lane,)) - picked

    return seams.rules("cross_entropy", rule)


@fault(2, f"{VJP}[logsumexp]")
def logsumexp_not_normalised() -> Planted:
    """exp(x) for the softmax: right where the sum is 1."""

    def rule(g: Any, y: Any, x: Any, *, dims: Any, keepdim: bool) -> Any:
        return reduction._spread(g, x, dims) * exp(x - reduction._spread(y, x, dims) * 0.0)

    return seams.rules("logsumexp", rule)


@fault(4, f"{VJP}[exp]")
def right_for_cotangents_that_are_not_negative() -> Planted:
    """|g| for g, in one rule of many."""
    return seams.changed("exp", 0, lambda gradient, g, *_: gradient * seams.like(g, np.sign(value_of(g))))
