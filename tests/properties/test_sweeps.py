"""How gradients add up: over uses of a tensor, over slots, over sweeps."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from spec import engines
from spec.case import BITS, Case
from spec.generate import values
from spec.harness import DIFFERENTIABLE, Properties

sums = Properties()


@sums.of(DIFFERENTIABLE)
def a_subset_of_inputs_gets_the_same_gradients(case: Case, data: st.DataObject) -> None:
    engine = case.engine
    chosen = data.draw(st.sets(st.sampled_from(range(len(case.arrays))), min_size=1), label="require grad")
    inputs = [engine.leaf(a) if i in chosen else engine.constant(a) for i, a in enumerate(case.arrays)]
    outputs = case.applied(inputs)
    for y in outputs:
        case.compare("whether an output requires grad", np.array(bool(y.requires_grad)), np.array(True))
    got = case.swept(outputs, [inputs[i] for i in sorted(chosen)], case.seeds())
    whole = case.gradients()
    case.compare_gradients(got, [whole[i] for i in sorted(chosen)], BITS)


@sums.of(DIFFERENTIABLE)
def an_input_used_again_adds_its_other_use(case: Case, data: st.DataObject) -> None:
    drawn = [data.draw(values.cotangents(a.shape), label="weight of the other use") for a in case.arrays]
    leaves, weights = case.leaves(), [case.engine.constant(w) for w in drawn]
    before = [x * w for x, w in zip(leaves, weights, strict=True)]
    outputs = case.applied(leaves)
    after = [x * w for x, w in zip(leaves, weights, strict=True)]
    ones = [case.engine.constant(np.ones(a.shape)) for a in case.arrays]
    order = [(outputs, case.seeds()), (before, ones), (after, ones)]
    if data.draw(st.booleans(), label="backwards"):
        order.reverse()
    got = case.swept([y for ys, _ in order for y in ys], leaves, [w for _, ws in order for w in ws])
    case.compare_gradients(got, [g + 2 * w for g, w in zip(case.gradients(), drawn, strict=True)])


@sums.of(DIFFERENTIABLE)
def an_output_used_again_adds_its_other_use(case: Case, data: st.DataObject) -> None:
    leaves = case.leaves()
    outputs = case.applied(leaves)
    uses = [[y * 2.0 for y in outputs], list(outputs), [y + y for y in outputs]]
    uses = [y for ys in data.draw(st.permutations(uses), label="order of the roots") for y in ys]
    case.compare_gradients(case.swept(uses, leaves, case.seeds() * 3), [5 * g for g in case.gradients()])


@sums.of(DIFFERENTIABLE)
def one_tensor_in_several_slots_gets_the_sum(case: Case, data: st.DataObject) -> None:
    # Slots of one shape hold the very same tensor, others a piece of it.
    largest = max(case.arrays, key=np.size)
    flat = largest.reshape(-1)
    case = case.using(arrays=tuple(flat[: a.size].reshape(a.shape) for a in case.arrays))
    leaf = case.engine.leaf(largest)
    slots = [leaf if a.shape == largest.shape else leaf.reshape(-1)[: a.size].reshape(a.shape) for a in case.arrays]
    (got,) = case.swept(case.applied(slots), [leaf], case.seeds())
    want = np.zeros(largest.size)
    for g in case.gradients():
        want[: g.size] += g.reshape(-1)
    case.compare("the gradient of a tensor in every slot", got, want.reshape(largest.shape))


@sums.of(DIFFERENTIABLE)
def sweeps_add_up(case: Case, data: st.DataObject) -> None:
    engine, leaves = case.engine, case.leaves()
    sweep = engines.Backward(engine, case.applied(leaves), case.seeds())
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


@sums.of(DIFFERENTIABLE)
def the_same_call_gives_the_same_bits(case: Case, data: st.DataObject) -> None:
    for again, first in zip(case.floating_outputs(), case.floating_outputs(), strict=True):
        case.compare("an output, again", again, first, BITS)
    case.compare_gradients(case.gradients(), case.gradients(), BITS)


test_sums = sums.test()
