"""Many faults, planted one by one: each in a process forked for it, which has imported everything already."""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from typing import Any

from .. import harness
from ..engines.smolgrad import Smolgrad
from ..ops import BY_NAME
from . import equivalents, generic, killing
from .killing import LIGHT, PROFILE, BrokenFaultError, Death
from .named import NAMED
from .seams import Planted

ENGINE = Smolgrad()
GENERIC = "generic"  # the kind of the wrong rules that are tried on every op


@dataclass(frozen=True, eq=False)
class Trial:
    """A fault in its place, and the tests that could notice it there."""

    fault: str
    kind: str
    place: str  # the op; of a fault that shows in no single op, nothing
    plant: Callable[[], Planted] = field(repr=False)
    meant: tuple[str, ...]  # tests that are run until one fails
    row: tuple[str, ...] = ()  # properties that are all run, to see which notice it
    shrink: bool = True
    tier: int = 0
    origin: str = ""
    equivalent: str | None = None  # why it is no fault, if it is none


@dataclass(frozen=True)
class Outcome:
    """What became of one trial."""

    death: Death | None
    noticed: dict[str, bool] = field(default_factory=dict)  # by property: those that were run
    trouble: str = ""  # what is wrong with the fault itself


# --- what to plant ----------------------------------------------------------------------------------------------------


def named() -> list[Trial]:
    """The named faults. Where one must show in an op, all that the suite checks of that op may notice it."""
    trials = []
    for fault in NAMED:
        row = tuple(killing.concerned(BY_NAME[fault.op])) if fault.op else ()
        trials.append(
            Trial(
                fault.name,
                fault.kind,
                fault.op,
                fault.plant,
                tuple(dict.fromkeys((*fault.dies_in, *(f"{name}[{fault.op}]" for name in row)))),
                row,
                tier=fault.tier,
                origin=fault.origin,
                equivalent=equivalents.NAMED.get(fault.name),
            )
        )
    return trials


def wrong_rules(seed: str) -> list[Trial]:
    """Each generic fault in every op; in one of them, which ``seed`` chooses, all properties are run."""
    trials: list[Trial] = []
    for spec in harness.DIFFERENTIABLE:
        tests = killing.concerned(spec)
        for fault, primitive in generic.applicable(spec, killing.primitives(ENGINE, spec)):
            trials.append(
                Trial(
                    fault.name,
                    GENERIC,
                    spec.name,
                    lambda fault=fault, primitive=primitive: generic.planted(fault, primitive),
                    tuple(f"{name}[{spec.name}]" for name in tests),
                    shrink=False,
                    equivalent=equivalents.reason(fault.name, spec.name, primitive.name),
                )
            )
    chosen = _one_of_each(trials, seed)
    return [_looked_at_closely(trial) if trial in chosen else trial for trial in trials]


def _one_of_each(trials: list[Trial], seed: str) -> list[Trial]:
    by_fault: dict[str, list[Trial]] = {}
    for trial in trials:
        if not trial.equivalent:
            by_fault.setdefault(trial.fault, []).append(trial)
    return [random.Random(f"{seed} {name}").choice(found) for name, found in by_fault.items()]


def _looked_at_closely(trial: Trial) -> Trial:
    return replace(trial, row=tuple(killing.concerned(BY_NAME[trial.place])), shrink=True)


# --- planting ---------------------------------------------------------------------------------------------------------


def outcome(trial: Trial) -> Outcome:
    """Plant the fault here and now, and see what notices it."""
    names = {*trial.meant, *(f"{name}[{trial.place}]" for name in trial.row)}
    tests = {name: killing.found(name, ENGINE) for name in names}

    def notice(name: str, **changes: Any) -> Death | None:
        return killing.run(name, *tests[name], **changes)

    before, death = 0, None
    try:
        with trial.plant():
            for name in trial.meant:
                death = notice(name, **(PROFILE if trial.shrink else {**PROFILE, "phases": LIGHT["phases"]}))
                if death:
                    break
                before += PROFILE["max_examples"]
            noticed = {name: notice(f"{name}[{trial.place}]", **LIGHT) is not None for name in trial.row}
    except BrokenFaultError as error:
        return Outcome(None, trouble=str(error))
    if death and death.examples is not None:
        death = replace(death, examples=before + death.examples)
    return Outcome(death, noticed)


def outcomes(trials: list[Trial], workers: int) -> Iterator[tuple[Trial, Outcome]]:
    """Each trial with its outcome, as they are done. A process that ends before it tells has noticed, too."""
    for trial in trials:
        for test in trial.meant:
            killing.found(test, ENGINE)
    importlib.import_module("torch.fx.experimental.symbolic_shapes")  # what its first gradient takes seconds to import
    gc.freeze()  # a child's collector need not walk, and so copy, what it has from its parent
    forked = multiprocessing.get_context("fork")
    waiting, running = list(reversed(trials)), {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                trial = waiting.pop()
                ours, theirs = forked.Pipe(duplex=False)
                process = forked.Process(target=_tell, args=(theirs, trial), daemon=True)
                process.start()
                theirs.close()
                running[ours] = process, trial
            for told in wait(list(running)):
                assert isinstance(told, Connection)
                process, trial = running.pop(told)
                try:
                    found = told.recv()
                except EOFError:
                    process.join()
                    found = _crash(process.exitcode)
                process.join()
                yield trial, found
    finally:
        for process, _ in running.values():
            process.terminate()


def _crash(exitcode: int | None) -> Outcome:
    """Of a process that told nothing. Python ends with 1 after an exception, which is a mistake of ours."""
    if exitcode == 1:
        return Outcome(None, trouble="the process that planted it failed: see above")
    return Outcome(Death("the process itself", None, 0.0, None, f"exit code {exitcode}"))


def _tell(pipe: Connection, trial: Trial) -> None:
    warnings.simplefilter("ignore")  # a wrong engine warns of much
    pipe.send(outcome(trial))
    pipe.close()
