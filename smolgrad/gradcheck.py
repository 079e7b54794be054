"""Check gradients against finite differences that know how far they may be trusted.

Central differences at three halving steps, two levels of Richardson extrapolation: the error of the last level is
estimated by what it changed. Source: Ridders, "Accurate computation of F'(x) and F'(x) F''(x)" (1982).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from .autograd import _sequence
from .creation import from_numpy
from .func import pull_back
from .primitives.operands import refuse
from .tensor import Tensor

STEP = 2.0**-8  # the specification's widest: an eighth of what its values keep from every kink
STEPS = (4 * STEP, STEP / 4, STEP / 64)  # what is tried in turn, where nobody promises how far a kink is
EPS = float(np.finfo(float).eps)
SHOWN = 10  # wrong elements in a report

Move = Callable[[float], tuple[float, float]]  # a step gives a number, and the sum of the magnitudes that went into it


# --- the error bar ----------------------------------------------------------------------------------------------------


def weighted(
    function: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]], weights: Sequence[np.ndarray]
) -> Callable[[Sequence[np.ndarray]], tuple[float, float]]:
    """The sum of ``function``'s outputs, times weights, and of the magnitudes that went into it."""

    def value(arrays: Sequence[np.ndarray]) -> tuple[float, float]:
        terms = [y * w for y, w in zip(function(arrays), weights, strict=True)]
        return sum(float(t.sum()) for t in terms), sum(float(np.abs(t).sum()) for t in terms)

    return value


def moves(
    value: Callable[[Sequence[np.ndarray]], tuple[float, float]], arrays: Sequence[np.ndarray]
) -> Iterator[tuple[int, int, Move]]:
    """Each element of ``arrays`` (which of them, and its flat place), and ``value`` as a function of a step of it."""
    work = [np.array(a, dtype=np.float64, order="C") for a in arrays]

    def moved(flat: np.ndarray, place: int, step: float) -> tuple[float, float]:
        center = flat[place]
        flat[place] = center + step
        found = value(work)
        flat[place] = center
        return found

    for number, array in enumerate(work):
        for place in range(array.size):
            yield number, place, partial(moved, array.reshape(-1), place)


def estimate(move: Move, here: float, step: float = STEP) -> tuple[float, float]:
    """The slope of ``move`` at 0, where it is ``here``, and its error bar.

    At a kink the bar is infinite: central differences agree there on the mean of two slopes, which is none.
    """
    centrals, jumps = [], []
    for h in (step, step / 2, step / 4):
        (above, size_above), (below, size_below) = move(h), move(-h)
        centrals.append((above - below) / (2 * h))
        jumps.append((above - 2 * here + below) / h)
        size = (size_above + size_below) / (2 * h)
    (d1, d2, d3), (j1, j2, j3) = centrals, jumps
    r1, r2 = (4 * d2 - d1) / 3, (4 * d3 - d2) / 3
    slope = (16 * r2 - r1) / 15
    # What the slope to the right has more than the one to the left: c₁h + c₃h³ + … for a smooth function.
    jump = (8 * (2 * j3 - j2) - (2 * j2 - j1)) / 7
    return slope, np.inf if abs(jump) > 1e-3 * (1 + abs(slope)) else abs(slope - r2) + EPS * size


def is_narrow(slope: Any, bar: Any) -> Any:
    """Whether finite differences are sharp enough to judge by."""
    return bar <= 1e-6 * (1 + np.abs(slope))


def allowed(slope: Any, bar: Any) -> Any:
    """How far from ``slope`` a right gradient may lie."""
    return 4 * bar + 1e-10 * (1 + np.abs(slope))


# --- gradcheck --------------------------------------------------------------------------------------------------------


class GradcheckError(RuntimeError):
    """Gradients that are wrong: by a number, or by memory that is not theirs."""


_NOT_OFFERED = (
    "eps atol rtol nondet_tol check_sparse_nnz check_undefined_grad check_grad_dtypes check_batched_grad "
    "check_batched_forward_grad check_forward_ad check_backward_ad check_fwd_over_rev check_rev_over_rev "
    "gen_non_contig_grad_outputs fast_mode masked"
)


@np.errstate(all="ignore")  # a step may leave the domain; that numbers are not finite is told
def gradcheck(
    fn: Callable[..., Any], inputs: Any, *, raise_exception: bool = True, seed: int = 0, **options: Any
) -> bool:
    """Whether the gradients of ``fn(*inputs)``, for a random cotangent and its negative, are finite differences'.

    ``inputs`` is a tensor or a sequence; those that require grad, all in float64, are checked element by element, and
    ``fn`` gives a tensor or a sequence of tensors. Gradients may share no memory, and the sweep may write to nothing
    that it was given. GradcheckError tells what is wrong, or False is returned where not ``raise_exception``.

    ValueError where nothing can be judged: no input requires grad, an input or output in float32, values that change
    from call to call, an element at a kink. PyTorch's tolerances are refused: what is allowed follows from the error
    bar of each element.
    """
    refuse("gradcheck", options, _NOT_OFFERED)
    faults = _faults(fn, _sequence(inputs), np.random.default_rng(seed))
    if faults and raise_exception:
        more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        raise GradcheckError("\n  ".join(["gradcheck(): the gradients are wrong", *faults[:SHOWN], *more]))
    return not faults


@np.errstate(all="ignore")
def gradgradcheck(
    fn: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    raise_exception: bool = True,
    seed: int = 0,
    **options: Any,
) -> bool:
    """``gradcheck`` of the gradients of ``fn``, as functions of its inputs and of ``grad_outputs``, its cotangents.

    These are random unless they are given, as tensors of the outputs' shapes that require grad, and count as further
    inputs in what is told. Errors as there.
    """
    refuse("gradgradcheck", options, _NOT_OFFERED)
    given = _sequence(inputs)
    if grad_outputs is None:
        rng = np.random.default_rng(seed + 1)
        grad_outputs = [from_numpy(rng.normal(size=y.shape)).requires_grad_() for y in _outputs(fn(*given))]
    seeds = _sequence(grad_outputs)

    def gradients(*args: Any) -> list[Tensor]:
        xs, ws = args[: len(given)], args[len(given) :]
        return pull_back(_outputs(fn(*xs)), [x for x in xs if _is_checked(x)], ws, create_graph=True)

    return gradcheck(gradients, [*given, *seeds], raise_exception=raise_exception, seed=seed)


def _is_checked(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _outputs(result: Any) -> list[Tensor]:
    """The floating ones among the outputs. ValueError for float32."""
    found = [y for y in _sequence(result) if y.dtype.kind == "f"]
    for i, y in enumerate(found):
        if y.dtype != np.float64:
            raise ValueError(f"gradcheck(): output {i} has dtype {y.dtype}; finite differences need float64")
    return found


def _faults(fn: Callable[..., Any], inputs: list[Any], rng: np.random.Generator) -> list[str]:
    """A line for each thing that is wrong."""
    places = [i for i, x in enumerate(inputs) if _is_checked(x)]
    if not places:
        raise ValueError("gradcheck(): no input requires grad, so there is nothing to check")
    for i in places:
        if inputs[i].dtype != np.float64:
            raise ValueError(f"gradcheck(): input {i} has dtype {inputs[i].dtype}; finite differences need float64")
    arrays = [inputs[i].data for i in places]

    def run(arrays: Sequence[np.ndarray]) -> tuple[list[Tensor], list[Tensor]]:
        args, leaves = list(inputs), [from_numpy(a.copy()).requires_grad_() for a in arrays]
        for i, leaf in zip(places, leaves, strict=True):
            args[i] = leaf
        return leaves, _outputs(fn(*args))

    leaves, outputs = run(arrays)
    cotangents = [from_numpy(rng.normal(size=y.shape)) for y in outputs]
    given = [*leaves, *outputs, *cotangents]
    names = [
        *(f"input {i}" for i in places),
        *(f"{kind} {i}" for kind in ("output", "cotangent") for i in range(len(outputs))),
    ]
    before = [x.data.copy() for x in given]
    gradients = pull_back(outputs, leaves, cotangents, retain_graph=True)
    negated = pull_back(outputs, leaves, [-w for w in cotangents])
    faults = [
        f"{name} was written to by the sweep"
        for name, x, old in zip(names, given, before, strict=True)
        if not np.array_equal(x.data, old, equal_nan=True)
    ]
    mine = [(f"the gradient of input {i}", g) for i, g in zip(places, gradients, strict=True)]
    pairs = [*combinations(mine, 2), *((pair, other) for pair in mine for other in zip(names, given, strict=True))]
    faults += [f"{a} and {b} share memory" for (a, x), (b, y) in pairs if np.shares_memory(x.data, y.data)]

    value = weighted(lambda arrays: [y.data for y in run(arrays)[1]], [w.data for w in cotangents])
    here, _ = value(arrays)
    if not np.array_equal(here, value(arrays)[0], equal_nan=True):
        raise ValueError("gradcheck(): the function gives another value each time it is called")
    for number, place, move in moves(value, arrays):
        index = [int(i) for i in np.unravel_index(place, arrays[number].shape)]
        where = f"input {places[number]} at {index}"
        slope, bar = _sharpest(move, here, where)
        for which, want, found in (("", slope, gradients), (", the cotangent negated", -slope, negated)):
            got = float(found[number].data[tuple(index)])
            if not abs(got - want) <= allowed(want, bar):
                faults.append(f"{where}{which}: got {got:.12g}, want {want:.12g}, with an error bar of {bar:.1g}")
                break
    return faults


def _sharpest(move: Move, here: float, where: str) -> tuple[float, float]:
    """The estimate with the widest step that is sharp enough. ValueError where none is."""
    for step in STEPS:
        slope, bar = estimate(move, here, step)
        if is_narrow(slope, bar):
            return slope, bar
    if bar == np.inf:
        raise ValueError(f"gradcheck(): {where} is at a kink, where there is no derivative to compare with; move it")
    raise ValueError(
        f"gradcheck(): {where} cannot be judged: finite differences give {slope:.6g}, with a bar of {bar:.1g}"
    )
