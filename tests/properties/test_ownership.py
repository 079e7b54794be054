"""Nobody's array is written to or handed to somebody else."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from spec import engines
from spec.case import BITS, Case
from spec.generate import values
from spec.harness import DIFFERENTIABLE, Properties

ownership = Properties()


def _shared(named: list[tuple[str, np.ndarray]], others: list[tuple[str, np.ndarray]]) -> str:
    """The names of the first two arrays that share memory, one of them in ``named``."""
    for (a, x), (b, y) in [*itertools.combinations(named, 2), *itertools.product(named, others)]:
        if np.shares_memory(x, y):
            return f"{a} and {b} share memory"
    return ""


@ownership.of(DIFFERENTIABLE)
def gradients_share_no_memory_and_nothing_is_written(case: Case, data: st.DataObject) -> None:
    engine, leaves, seeds = case.engine, case.leaves(), case.seeds()
    outputs = case.applied(leaves)
    others = [(f"{kind} {i}", engine.array(t)) for kind, ts in
              (("input", leaves), ("output", outputs), ("cotangent", seeds)) for i, t in enumerate(ts)]  # fmt: skip
    before = [array.copy() for _, array in others]
    total = engines.Backward(engine, outputs, seeds)
    for times in (1, 2):
        total.sweep(retain_graph=True)
        gradients = [(f"gradient {i}", engine.array(x.grad)) for i, x in enumerate(leaves) if x.grad is not None]
        shared = _shared(gradients, others)
        case.require(not shared, f"after sweep {times}", shared)
        for (name, array), was in zip(others, before, strict=True):  # each time: a second write may undo the first
            case.compare(f"{name} after sweep {times}", array, was, BITS)


@ownership.of(DIFFERENTIABLE)
def arguments_changed_after_the_call_do_not_reach_backward(case: Case, data: st.DataObject) -> None:
    spoiled, leaves = case.using(params=_copied(case.params)), case.leaves()
    outputs = spoiled.applied(leaves)
    _spoil(spoiled.params)
    case.compare_gradients(case.swept(outputs, leaves, case.seeds()), case.gradients(), BITS)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _spoil(value: Any) -> None:
    """Change every array in ``value``."""
    if isinstance(value, np.ndarray):
        value[...] = ~value if value.dtype == bool else 0
    elif isinstance(value, (tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            _spoil(item)


OPENLY = {
    "in place": lambda engine, x: x.mul_(3),
    "in place under no_grad": lambda engine, x: _silently(engine, x, lambda t: t.mul_(3)),
    "by assignment": lambda engine, x: x.__setitem__(..., 9.0),
}
BY_ANOTHER = {
    "through a view": lambda engine, x: _silently(engine, x, lambda t: t[...].sub_(5)),
    "through detach()": lambda engine, x: x.detach().add_(7),
}


def _silently(engine: Any, x: Any, write: Any) -> None:
    with engine.no_grad():
        write(x)


@ownership.of(DIFFERENTIABLE)
def a_write_between_forward_and_backward_is_refused_or_does_not_matter(case: Case, data: st.DataObject) -> None:
    for ways in (OPENLY, BY_ANOTHER):
        leaves = case.leaves()
        inputs = [x * 1.0 for x in leaves]
        outputs = case.applied(inputs)
        weighted = [y * 1.0 for y in outputs]  # what is swept; the write does not reach it
        written = data.draw(st.sampled_from([*inputs, *outputs]), label="written")
        way = data.draw(st.sampled_from(sorted(ways)), label="way")
        try:
            ways[way](case.engine, written)
            gradients = case.swept(weighted, leaves, case.seeds())
        except RuntimeError as refusal:
            said = str(refusal)
            case.require("in place" in said or "inplace" in said, "a refusal that says why", said)
            continue
        case.compare_gradients(gradients, case.gradients(), BITS)


@ownership.of(DIFFERENTIABLE)
def a_failed_sweep_changes_no_gradient(case: Case, data: st.DataObject) -> None:
    engine, leaves = case.engine, case.leaves()
    blocked = [x * 1.0 for x in leaves]
    outputs = case.applied([x * x for x in blocked])
    first = [data.draw(values.cotangents(a.shape), label="gradient so far") for a in case.arrays]
    for x, g in zip(leaves, first, strict=True):
        x.grad = engine.constant(g.copy())
    for x in blocked:
        x.detach().add_(1)  # the multiplication above read it
    sweep = engines.Backward(engine, outputs, case.seeds())
    refused = False
    try:
        sweep.sweep()
    except RuntimeError:
        refused = True
    case.require(refused or not sweep.roots, "a sweep over a value that was written", "was not refused")
    if sweep.roots:
        for x, g in zip(leaves, first, strict=True):
            case.compare("a gradient that was there before", engine.array(x.grad), g, BITS)


test_ownership = ownership.test()
