"""Programs are what they promise to be, shrink to a few lines that run as printed, and notice a wrong engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, given, seed, settings

from smolgrad import Tensor, autograd, versions
from smolgrad.primitives import elementwise
from spec.engines.smolgrad import Smolgrad
from spec.entry import Call as Asked
from spec.faults.killing import LIGHT, randomness
from spec.faults.named import NAMED
from spec.faults.seams import Planted
from spec.generate.programs import DETACH, OPS, WRITES, programs
from spec.ops import BY_NAME
from spec.oracles.differences import DIFFERENCES
from spec.program import (
    Backward,
    Call,
    Grad,
    Leaf,
    Program,
    Run,
    Write,
    _may_share_memory,
    allowed,
    in_single_precision,
)
from spec.report import ledger
from spec.report.failure import Counterexample
from spec.report.script import script
from tests.meta.test_failure import array_of, run
from tests.meta.test_reach import look, missing
from tests.parity.test_programs import COPYING, MAY_BE_SLOW, TORCH, check

SMOLGRAD = Smolgrad()
PROGRAMS = programs(TORCH)

# --- reach ------------------------------------------------------------------------------------------------------------


Traits = dict[str, Any]  # by name; those that hold are true


class _Followed(Run):
    """A run that remembers what was swept."""

    def __init__(self) -> None:
        super().__init__(TORCH)
        self.swept: set[int] = set()


def _of_leaf(before: Run, step: Leaf) -> Traits:
    same = (before.array(i) for i in before.leaves)
    return {
        "leaves of equal value": step.requires_grad
        and any(np.array_equal(step.array, other) for other in same if other.size)
    }


def _of_call(before: Run, step: Call) -> Traits:
    inputs, arrays = step.inputs, [before.array(i) for i in step.inputs]
    varies = [before.requires_grad(i) for i in inputs]
    shapes = tuple(x.shape for x in arrays)
    kinks = [domain.kinks for domain in step.spec.domains(Asked(shapes, step.params))]
    pairs = [(i, j) for i in inputs for j in inputs if i != j]
    above = [before.ancestors[i] - {i} for i in set(inputs)]
    return {
        "an op under no_grad": not step.recorded and any(varies),
        "a constant beside a variable": any(varies) and not all(varies),
        "a tensor in several slots": len(set(inputs)) < len(inputs),
        "a detached part": step.spec is DETACH and any(varies),
        "inputs of several shapes": len(set(shapes)) > 1,
        "0-d": () in shapes,
        "size 0": any(0 in shape for shape in shapes),
        "paths of unequal length": any(i in before.ancestors[j] for i, j in pairs),
        "a diamond": len(above) > 1 and set.intersection(*above),
        "a value on a kink": any(np.isin(x, points).any() for x, points in zip(arrays, kinks, strict=True)),
        step.spec.name: True,
    }


def _of_write(before: Run, step: Write) -> Traits:
    target = step.inputs[0]
    memory = before.memory[target]
    shared = before.memory.count(memory) > 1
    used = before.uses.get(memory, set()) - {target}
    return {
        "a write in the graph": step.recorded and any(map(before.requires_grad, step.inputs)),
        "a write under no_grad": not step.recorded and before.requires_grad(target),
        "a write to a leaf under no_grad": not step.recorded and target in before.leaves,
        "a write through a view": shared and memory != target,
        "a write to what has views": shared and memory == target,
        "a write after a use": used,
        step.spec.name: True,
    }


def _of_sweep(before: _Followed, step: Grad | Backward) -> Traits:
    reached = set().union(*(before.ancestors[i] for i in step.outputs))
    gradients = [i for i in step.outputs if i in before.of_gradients and before.requires_grad(i)]
    return {
        "several outputs": len(set(step.outputs)) > 1,
        "an output twice": len(set(step.outputs)) < len(step.outputs),
        "an output that is a leaf": set(step.outputs) & set(before.leaves),
        "a second sweep": len(before.swept & reached) > 1,
        "a graph that is kept": step.retain_graph,
        "a graph that is let go": not step.retain_graph,
        "a gradient that can be differentiated": isinstance(step, Grad) and step.create_graph,
        "a gradient of an inner tensor": isinstance(step, Grad) and set(step.inputs) - set(before.leaves),
        "a cotangent that requires grad": any(map(before.requires_grad, step.cotangents)),
        "second order": gradients,
        "values of its records were written": reached & before.overwritten,
    }


_OF = {Leaf: _of_leaf, Call: _of_call, Write: _of_write, Grad: _of_sweep, Backward: _of_sweep}


def traits(program: Program) -> set[str]:
    """What is remarkable about a program, and how it ends."""
    found: set[str] = set()
    taken = _Followed()
    for step in program:
        new = {trait for trait, holds in _OF[type(step)](taken, step).items() if holds}
        if not taken.take(step):
            return found | {f"refused: {type(step).__name__}"} | {f"refused: {trait}" for trait in new}
        found |= new
        if isinstance(step, (Grad, Backward)):
            taken.swept = taken.swept.union(*(taken.ancestors[i] for i in step.outputs)) - set(taken.leaves)
    uses = [i for step in program if isinstance(step, Call) for i in set(step.inputs)]
    return found | {"fan-out"} if len(set(uses)) < len(uses) else found


PROMISED = [
    *("fan-out", "a diamond", "paths of unequal length", "a tensor in several slots", "leaves of equal value"),
    *("a constant beside a variable", "a detached part", "an op under no_grad", "inputs of several shapes"),
    *("0-d", "size 0", "a value on a kink"),
    *("a write in the graph", "a write under no_grad", "a write to a leaf under no_grad", "a write through a view"),
    *("a write to what has views", "a write after a use", "values of its records were written"),
    *("several outputs", "an output twice", "an output that is a leaf", "a second sweep", "a graph that is kept"),
    *("a graph that is let go", "a gradient that can be differentiated", "a gradient of an inner tensor"),
    *("a cotangent that requires grad", "second order"),
    *("refused: Write", "refused: Backward", "refused: values of its records were written"),
]
CALLED = [spec.name for spec in (*OPS, *(spec for spec, _ in WRITES))]


@pytest.mark.everything
def test_programs_reach_what_they_promise(everything: bool) -> None:
    ops = CALLED if everything else randomness("ops in programs").sample(CALLED, 5)
    features = {name: lambda found, name=name: name in found for name in (*PROMISED, *ops)}
    assert missing(PROGRAMS.map(traits), features) == []


def test_what_engines_may_differ_by_is_small_beside_what_they_compute() -> None:
    sharp = []

    def see(program: Program) -> None:
        double = Run(COPYING, program)
        tolerance = allowed(double, Run(COPYING, in_single_precision(program)))
        sharp.extend(bool(tolerance < 1e-6 * abs(x).max()) for _, x in double.seen if x.dtype.kind == "f" and x.any())

    look(PROGRAMS, see, 50)
    assert np.mean(sharp) > 0.99


# --- wrong engines ----------------------------------------------------------------------------------------------------


@dataclass
class Death:
    """How a fault dies: after how many programs, and of what."""

    examples: int = 0
    program: Program = ()
    told: str = ""


def death(plant: Callable[[], Planted], most: int, *phases: Phase, search: int = 0) -> Death:
    """Plant a fault and draw programs, at most so many, until one shows it; where ``phases`` say so, shrink it."""
    found = Death()

    @seed(randomness(f"{plant.__name__} {search}").random())
    @settings(**{**LIGHT, "max_examples": most, "phases": (Phase.generate, *phases)})
    @given(PROGRAMS)
    def look_for_it(program: Program) -> None:
        if not found.told:
            found.examples += 1
        with plant(), patch.object(ledger, "lines", {}):
            try:
                check(SMOLGRAD, program)
            except Counterexample as told:
                found.program, found.told = program, str(told)
                raise

    try:
        look_for_it()
    except Counterexample:
        return found
    raise AssertionError(f"{plant.__name__} lives through {found.examples} programs: {plant.__doc__}")


def a_wrong_slope() -> Planted:
    """The derivative of the sigmoid, without the factor of its complement."""
    sigmoid = elementwise.sigmoid(Tensor(0.0, requires_grad=True))._primitive
    return patch.object(sigmoid, "pullbacks", (lambda g, y, _x: g * y,))


def versions_of_views_are_their_own() -> Planted:
    """A write to a view does not count as one to its base."""
    return patch.object(versions, "owner", lambda array: array)


def consumers_follow_a_tensor_through_writes() -> Planted:
    """What used a tensor before it was written takes the record that it has since."""
    return patch.object(autograd, "_as_it_was", lambda x, consumer: x)


def a_detached_tensor_is_a_copy() -> Planted:
    """A write to one no longer shows in the other."""
    return patch.object(Tensor, "detach", lambda self: Tensor(self.data))


def a_detached_tensor_requires_grad() -> Planted:
    """As a leaf."""
    detach = Tensor.detach
    return patch.object(Tensor, "detach", lambda self: detach(self).requires_grad_(self.requires_grad))


def ops_under_no_grad_are_recorded() -> Planted:
    """The mode is set, and nobody asks for it."""
    return patch.object(autograd.no_grad, "enabled", True)


# What a wrong engine gets wrong in a program, beside named faults that were meant for other checks.
MEANT_FOR_OTHERS = {
    *("the_last_use_wins", "third_use_dropped", "each_sweep_replaces_the_gradient", "stale_cotangents"),
    *("equal_leaves_merged", "depth_first_without_waiting", "breadth_first", "added_into_what_is_borrowed"),
    *("a_borrowed_gradient_is_given_away", "a_view_is_taken_for_fresh", "create_graph_of_arrays"),
    *("writes_go_unnoticed", "the_output_is_not_watched"),
    "only_the_first_slot_keeps_the_old_value",
}
FAULTS = [
    *(fault.plant for fault in NAMED if fault.name in MEANT_FOR_OTHERS),
    *(a_wrong_slope, versions_of_views_are_their_own, consumers_follow_a_tensor_through_writes),
    *(a_detached_tensor_is_a_copy, a_detached_tensor_requires_grad, ops_under_no_grad_are_recorded),
]


@pytest.mark.everything
def test_wrong_engines_die(everything: bool, record_property: Any) -> None:
    chosen = FAULTS if everything else randomness("wrong engines").sample(FAULTS, 1)
    for plant in chosen:
        record_property(plant.__name__, death(plant, 3000).examples)
    record_property("planted faults", [len(chosen), len(chosen), 0])


# To how many steps one of three searches shrinks a fault. Hypothesis gives up where 200 changes in a row did not help,
# which leaves steps that nobody needs: of eight searches for each the medians were 4, 6, 8 and 9, the longest 7, 7, 30
# and 17. The last two take half a minute each.
SHRUNK = {"breadth_first": 7, "third_use_dropped": 7, "a_wrong_slope": 12, "writes_go_unnoticed": 14}


@pytest.mark.everything
def test_programs_shrink_to_a_few_lines(everything: bool) -> None:
    plants = {plant.__name__: plant for plant in FAULTS}
    for name, most in list(SHRUNK.items())[: None if everything else 2]:
        for search in range(3):
            found = death(plants[name], 1000, Phase.shrink, search=search)
            if _is_short(found.program, most):
                break
        else:
            pytest.fail(f"three searches, and the last shrank to more than {most}: {found.told}")


def _is_short(program: Program, most: int) -> bool:
    return max(len(program), sum(step.array.size for step in program if isinstance(step, Leaf))) <= most


MUL_ = next(spec for spec, _ in WRITES if spec.name == "Tensor.mul_")


def test_what_has_no_elements_is_copied_too() -> None:
    # All such tensors have one address, 0, and were taken for views of one another.
    nothing = np.zeros(0)
    relu, scale = BY_NAME["functional.leaky_relu"], Leaf(np.array(0.0), requires_grad=True)
    program = [Leaf(nothing), scale, Write(MUL_, (0, 1)), Call(relu, (0,)), Write(MUL_, (0, 2)), Leaf(nothing)]
    program.append(Grad((2,), (3,), (1,)))
    assert isinstance(Run(TORCH, program).refusal, RuntimeError)
    assert Run(COPYING, program).refusal is None
    check(SMOLGRAD, program)


def test_a_gradient_that_is_constant_here_may_be_swept_twice() -> None:
    one = Leaf(np.ones(1))
    slope = [Leaf(np.ones(1), True), Call(BY_NAME["functional.relu"], (0,)), one, Grad((1,), (2,), (0,), True, True)]
    program: Program = [*slope, *[Backward((3,), (2,), retain_graph=False)] * 2]
    assert Run(SMOLGRAD, program).refusal is None
    assert isinstance(Run(TORCH, program).refusal, RuntimeError)
    check(SMOLGRAD, program)


def test_a_view_of_a_gradient_is_swept_no_more_once_the_gradient_was_written() -> None:
    one, view = Leaf(np.ones(1)), Call(BY_NAME["reshape"], (2,), {"shape": (1, 1)})
    gradient = [Leaf(np.ones(1), True), one, Grad((0,), (1,), (0,)), view]
    program: Program = [*gradient, Write(MUL_, (2, 0)), Leaf(np.ones((1, 1))), Backward((3,), (4,))]
    assert "shares its memory with one that was written" in str(Run(SMOLGRAD, program).refusal)
    assert Run(TORCH, program).refusal is None
    check(SMOLGRAD, program)


def test_what_may_be_off_by_anything_is_no_comparison() -> None:
    for tolerance, counted in ((1.0, 1), (np.inf, 0)):
        with patch.object(ledger, "lines", {}), ledger.during("programs", "a property"):
            check(SMOLGRAD, [Leaf(np.ones(1))], tolerance)
            assert sum(line.comparisons > 0 for line in ledger.lines.values()) == counted


# --- scripts ----------------------------------------------------------------------------------------------------------


@settings(max_examples=10, suppress_health_check=MAY_BE_SLOW)
@given(program=PROGRAMS)
def test_a_script_runs_as_it_is_printed(program: Program) -> None:
    # In a program rows of the table answer for some of PyTorch's ops, and no gradient is a cotangent to which a second
    # sweep adds; a script has PyTorch as it is.
    rows = {op for row in DIFFERENCES for op in row.ops}
    sweeps = [step for step in program if isinstance(step, (Backward, Grad))]
    plain = len(sweeps) < 2 and all(step.spec.name not in rows for step in program if isinstance(step, Call))
    for engine in (SMOLGRAD, TORCH) if plain else (SMOLGRAD,):
        taken = Run(engine, program)
        source = script(program, engine)
        if taken.refusal is None:
            names = run(source)
            for name, want in taken.state():
                np.testing.assert_array_equal(array_of(names[name.split()[0]]), want)
        else:
            with pytest.raises(RuntimeError):
                run(source)


def test_memory_of_nothing_may_be_anybodys() -> None:
    some, nothing = np.ones(2), np.ones(0)
    assert _may_share_memory(some, some[1:])
    assert not _may_share_memory(some, np.ones(2))
    assert _may_share_memory(some, nothing)
    assert _may_share_memory(nothing, some)
