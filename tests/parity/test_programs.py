"""Whole programs: values, gradients and refusals, against PyTorch's in float64."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from hypothesis import HealthCheck, given, settings, target

from spec.engines import Engine
from spec.engines.pytorch import Copying, Oracle
from spec.generate.programs import programs
from spec.oracles.differences import refused_by_one
from spec.program import Program, Run, Seen, Write, allowed, in_single_precision
from spec.report import failure, ledger
from spec.report.script import script

TORCH, COPYING = Oracle(), Copying()


def fail(engine: Engine, program: Program, *lines: str, shown: str = "") -> NoReturn:
    """Raise Counterexample of ``lines`` and ``program``, for both engines; it prints what is ``shown``."""
    failure.tell(["a program: " + lines[0], *lines[1:]], [script(program, e, shown) for e in (engine, TORCH)])


def compare(engine: Engine, program: Program, tolerance: float, got: Seen, want: Seen) -> float:
    """Fail at the first array that is not what it should be; the worst error, as a fraction of what is allowed."""
    worst = 0.0
    for (what, x), (_, y) in zip(got, want, strict=True):
        name = what.partition(" ")[0]
        if x.shape != y.shape or x.dtype != y.dtype:
            told = f"{what}: shape {x.shape} and dtype {x.dtype}, want {y.shape} and {y.dtype}"
            fail(engine, program, told, shown=name)
        if y.dtype.kind == "f":
            error = np.abs(x - y)
            right = (error <= tolerance) | (np.isnan(x) & np.isnan(y))
            worst = max(worst, float(np.max(error, initial=0.0)) / tolerance if tolerance else 0.0)
            if np.isfinite(tolerance):
                ledger.count("programs", int(np.count_nonzero(y)), worst)
        else:
            right = x == y
        if not right.all():
            at = tuple(np.argwhere(~np.atleast_1d(right))[0])[: x.ndim]
            told = (f"  at {list(map(int, at))}", f"    got: {x[at]}", f"    want: {y[at]}")
            fail(engine, program, what, *told, shown=name)
    return worst


def check(engine: Engine, program: Program, tolerance: float | None = None) -> float:
    """Fail unless ``engine`` makes of ``program`` what PyTorch does; the worst error, as a fraction of what is allowed.

    What is refused must be refused by both, or by one as the table of differences has it. Values are compared with
    those of PyTorch with copies, which has them where it alone would refuse a sweep.
    """
    ours, theirs, values = Run(engine), Run(TORCH), Run(COPYING)
    before: Seen = []
    for step in program:
        before = list(ours.gradients())
        alone = {here: refused_by_one(theirs, step, here) for here in (True, False)}
        taken, want = ours.take(step), theirs.take(step)
        if taken != want and not alone[want]:
            told = (f"  got: {ours.refusal!r}", f"  want: {theirs.refusal!r}")
            fail(engine, program, f"a {type(step).__name__} that one engine refuses", *told)
        if not taken:
            break
        if not values.take(step):
            if want or isinstance(step, Write):
                fail(engine, program, f"a {type(step).__name__} that must be refused", f"  want: {values.refusal!r}")
            ours = Run(engine, program[: values.taken])  # a row lets it be swept here: nothing to compare it with
            break
        if not want:
            break
    if ours.refusal is not None and type(ours.refusal) is not RuntimeError:
        fail(engine, program, f"refused by {ours.refusal!r}, where PyTorch raises RuntimeError")
    if tolerance is None:
        tolerance = allowed(values, Run(COPYING, in_single_precision(program[: values.taken])))
    got, want = ([*run.seen, *run.state(), *run.flags()] for run in (ours, values))
    worst = compare(engine, program, tolerance, got, want)
    if ours.refusal is None and values.refusal is None:
        return max(worst, compare(engine, program, tolerance, list(ours.gradients()), list(values.gradients())))
    if ours.refusal is None:
        return worst
    return max(worst, compare(engine, program, 0.0, list(ours.gradients()), before))


# A program is smaller than what else an example is spent on; nightly's thousand examples make a hundred thousand.
PROGRAMS = settings.default.max_examples * {"nightly": 100}.get(settings.get_current_profile_name(), 2)


# A program is a hundred draws and runs as it is drawn: of a busy machine, ten of them may take more than a second.
MAY_BE_SLOW = (HealthCheck.too_slow,)


@settings(max_examples=PROGRAMS, suppress_health_check=MAY_BE_SLOW)
@given(program=programs(TORCH))
def test_programs_match_pytorch(engine: Any, program: Program) -> None:
    target(check(engine, program), label="the worst error, as a fraction of what is allowed")


@settings(suppress_health_check=MAY_BE_SLOW)
@given(program=programs(TORCH, ("float32", "float64")))
def test_dtypes_in_programs_are_pytorchs(engine: Any, program: Program) -> None:
    check(engine, program, tolerance=np.inf)
