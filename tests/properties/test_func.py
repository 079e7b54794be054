"""The functional transforms of smolgrad, whatever engine is under test, on every op."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import smolgrad
from smolgrad import func
from spec import engines
from spec.case import Case
from spec.engines.smolgrad import Smolgrad
from spec.generate import values
from spec.harness import DIFFERENTIABLE, Properties

transforms = Properties()

SMOLGRAD = Smolgrad()


def _function(case: Case) -> Any:
    """The case's op: from its inputs to the list of its floating outputs."""
    return lambda *xs: engines.floating(SMOLGRAD, engines.apply(SMOLGRAD, case.spec, xs, case.params))


def _tensors(arrays: Any) -> tuple[Any, ...]:
    return tuple(map(smolgrad.from_numpy, arrays))


@transforms.of(DIFFERENTIABLE)
def jvp_and_vjp_are_adjoint(case: Case, data: st.DataObject) -> None:
    case = case.using(engine=SMOLGRAD)
    directions = [data.draw(values.cotangents(a.shape), label="direction") for a in case.arrays]
    inputs = _tensors(case.arrays)
    outputs, pushed = func.jvp(_function(case), inputs, _tensors(directions))
    again, vjp_fn = func.vjp(_function(case), *inputs)
    pulled = vjp_fn(list(_tensors(case.cotangents)))
    for y, other in zip(outputs, again, strict=True):
        case.compare("the output of jvp, against that of vjp", y.data, other.data, 0.0)
    forward = sum(float((w * jv.data).sum()) for w, jv in zip(case.cotangents, pushed, strict=True))
    backward = sum(float((v * g.data).sum()) for v, g in zip(directions, pulled, strict=True))
    case.compare("<v, J'w>, against <Jv, w>", np.float64(backward), np.float64(forward))


@transforms.of(DIFFERENTIABLE)
def reverse_and_forward_jacobians_agree(case: Case, data: st.DataObject) -> None:
    case = case.using(engine=SMOLGRAD)
    inputs, every = _tensors(case.arrays), tuple(range(len(case.arrays)))
    reverse = func.jacrev(_function(case), every)(*inputs)
    forward = func.jacfwd(_function(case), every)(*inputs)
    for i, (rows, columns) in enumerate(zip(reverse, forward, strict=True)):
        for j, (row, column) in enumerate(zip(rows, columns, strict=True)):
            case.compare(f"the Jacobian of output {i} in input {j}", row.data, column.data)
    for g, *blocks in zip(case.gradients(), *reverse, strict=True):
        axes = [w.ndim for w in case.cotangents]
        parts = [np.tensordot(w, b.data, n) for w, b, n in zip(case.cotangents, blocks, axes, strict=True)]
        case.compare("the gradient, from the Jacobian", np.asarray(sum(parts)), g)


test_transforms = transforms.test()
