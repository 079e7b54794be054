"""How gradients add up: over uses of a tensor, over slots, over sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from spec import engines
from spec.case import BITS, draw_case
from spec.entry import OpSpec
from spec.generate import values
from spec.harness import DIFFERENTIABLE, for_each


def _tensors(engine: Any, arrays: Any) -> list[Any]:
    return [engine.constant(a) for a in arrays]


@for_each(DIFFERENTIABLE)
def test_a_subset_of_inputs_gets_the_same_gradients(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    chosen = data.draw(st.sets(st.sampled_from(range(len(case.arrays))), min_size=1), label="require grad")
    inputs = [engine.leaf(a) if i in chosen else engine.constant(a) for i, a in enumerate(case.arrays)]
    outputs = engines.floating(engine, engines.apply(engine, spec, inputs, case.params))
    wanted = [inputs[i] for i in sorted(chosen)]
    got = engines.gradients_of(engine, outputs, wanted, _tensors(engine, case.cotangents))
    whole = case.gradients()
    case.compare_gradients([engine.array(g) for g in got], [whole[i] for i in sorted(chosen)], BITS)


@for_each(DIFFERENTIABLE)
def test_an_input_used_again_adds_its_other_use(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    weights = [data.draw(values.cotangents(a.shape), label="weight of the other use") for a in case.arrays]
    leaves = [engine.leaf(a) for a in case.arrays]
    before = [x * w for x, w in zip(leaves, _tensors(engine, weights), strict=True)]
    outputs = engines.floating(engine, engines.apply(engine, spec, leaves, case.params))
    after = [x * w for x, w in zip(leaves, _tensors(engine, weights), strict=True)]
    ones = [np.ones(a.shape) for a in case.arrays]
    order = [(outputs, case.cotangents), (before, ones), (after, ones)]
    if data.draw(st.booleans(), label="backwards"):
        order.reverse()
    roots = [y for ys, _ in order for y in ys]
    seeds = _tensors(engine, [w for _, ws in order for w in ws])
    got = engines.gradients_of(engine, roots, leaves, seeds)
    want = [g + 2 * w for g, w in zip(case.gradients(), weights, strict=True)]
    case.compare_gradients([engine.array(g) for g in got], want)


@for_each(DIFFERENTIABLE)
def test_an_output_used_again_adds_its_other_use(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    leaves = [engine.leaf(a) for a in case.arrays]
    outputs = engines.floating(engine, engines.apply(engine, spec, leaves, case.params))
    uses = [[y * 2.0 for y in outputs], list(outputs), [y + y for y in outputs]]
    uses = [y for ys in data.draw(st.permutations(uses), label="order of the roots") for y in ys]
    got = engines.gradients_of(engine, uses, leaves, _tensors(engine, case.cotangents) * 3)
    case.compare_gradients([engine.array(g) for g in got], [5 * g for g in case.gradients()])


@for_each(DIFFERENTIABLE)
def test_one_tensor_in_several_slots_gets_the_sum(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    # Slots of one shape hold the very same tensor, others a piece of it.
    case = draw_case(data, engine, spec)
    largest = max(case.arrays, key=np.size)
    flat = largest.reshape(-1)
    case = case.using(arrays=tuple(flat[: a.size].reshape(a.shape) for a in case.arrays))
    leaf = engine.leaf(largest)
    slots = [leaf if a.shape == largest.shape else leaf.reshape(-1)[: a.size].reshape(a.shape) for a in case.arrays]
    outputs = engines.floating(engine, engines.apply(engine, spec, slots, case.params))
    (got,) = engines.gradients_of(engine, outputs, [leaf], _tensors(engine, case.cotangents))
    want = np.zeros(largest.size)
    for g in case.gradients():
        want[: g.size] += g.reshape(-1)
    case.compare("the gradient of a tensor in every slot", engine.array(got), want.reshape(largest.shape))


@for_each(DIFFERENTIABLE)
def test_sweeps_add_up(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    leaves = [engine.leaf(a) for a in case.arrays]
    outputs = engines.floating(engine, engines.apply(engine, spec, leaves, case.params))
    sweep = engines.Backward(engine, outputs, _tensors(engine, case.cotangents))
    for times in (1, 2, 3, 4):
        sweep.sweep(retain_graph=times < 4)
        if times != 3:
            got = [engine.array(x.grad) if x.grad is not None else np.zeros(a.shape)
                   for x, a in zip(leaves, case.arrays, strict=True)]  # fmt: skip
            case.compare_gradients(got, [times * g for g in case.gradients()])
    refused = not sweep.roots
    try:
        sweep.sweep()
    except RuntimeError:
        refused = True
    case.require(refused, "a sweep over a graph that was let go", "was not refused")


@for_each(DIFFERENTIABLE)
def test_the_same_call_gives_the_same_bits(engine: Any, spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, engine, spec)
    for again, first in zip(case.floating_outputs(), case.floating_outputs(), strict=True):
        case.compare("an output, again", again, first, BITS)
    case.compare_gradients(case.gradients(), case.gradients(), BITS)
