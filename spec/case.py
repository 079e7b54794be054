"""A case: one call of one op with its numbers, what an engine makes of it, and how it is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

from smolgrad.gradcheck import is_narrow

from . import engines
from .engines import Engine
from .entry import Call, OpSpec
from .generate import values
from .oracles import finite_differences
from .report import conditions, failure, ledger

Votes = Mapping[str, Callable[[], Any]]
DrawInputs = Callable[[values.Draw, OpSpec, Call], list[np.ndarray]]

__tracebackhide__ = True  # a failure is told by its program; pytest leaves the comparing out of what it prints

# What two right computations of one float64 number may differ by, relative to the largest number of its array.
ROUNDING = 1e-12
BITS: Any = object()  # instead of a tolerance: every bit must be the same, the sign of a zero and that of a NaN too


@dataclass(frozen=True)
class Case:
    """A call of ``spec`` on ``arrays``, and a cotangent for each floating output."""

    engine: Engine
    spec: OpSpec
    params: dict[str, Any]
    arrays: tuple[np.ndarray, ...]
    cotangents: tuple[np.ndarray, ...] = ()

    def using(self, **changes: Any) -> Case:
        """This case with some of its parts replaced."""
        return replace(self, **changes)

    def copied(self) -> Case:
        """This case with arrays of its own."""
        return self.using(
            arrays=tuple(a.copy() for a in self.arrays), cotangents=tuple(w.copy() for w in self.cotangents)
        )

    @cached_property
    def conditions(self) -> frozenset[str]:
        """The rare conditions that this case meets."""
        return conditions.met(self)

    @cached_property
    def numbers(self) -> list[list[Any]]:
        """The numbers of each input."""
        return [a.ravel().tolist() for a in self.arrays]

    # --- its tensors --------------------------------------------------------------------------------------------------

    def leaves(self) -> list[Any]:
        """A leaf for each input."""
        return [self.engine.leaf(a) for a in self.arrays]

    def seeds(self) -> list[Any]:
        """The cotangents as tensors."""
        return [self.engine.constant(w) for w in self.cotangents]

    def applied(self, inputs: Sequence[Any]) -> list[Any]:
        """The floating outputs of the call on the tensors ``inputs``."""
        return engines.floating(self.engine, engines.apply(self.engine, self.spec, inputs, self.params))

    def swept(self, outputs: Sequence[Any], inputs: Sequence[Any], seeds: Sequence[Any]) -> list[np.ndarray]:
        """The gradient of each of ``inputs``, for ``outputs`` weighted by ``seeds``."""
        gradients = engines.gradients_of(self.engine, outputs, inputs, seeds)
        return [self.engine.array(g) for g in gradients]

    # --- its numbers --------------------------------------------------------------------------------------------------

    def outputs(self) -> list[np.ndarray]:
        """The outputs' values."""
        return engines.forward(self.engine, self.spec, self.arrays, self.params)

    def floating_outputs(self, arrays: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """The values of the floating outputs, at ``arrays`` where given."""
        outputs = engines.forward(self.engine, self.spec, self.arrays if arrays is None else arrays, self.params)
        return [y for y in outputs if y.dtype.kind == "f"]

    def results(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The outputs' values and each input's gradient, for the case's cotangents, from one call."""
        engine = self.engine
        with np.errstate(all="ignore"):
            leaves = self.leaves()
            outputs = engines.apply(engine, self.spec, leaves, self.params)
            gradients = self.swept(engines.floating(engine, outputs), leaves, self.seeds())
        return [engine.array(y) for y in outputs], gradients

    def gradients(self) -> list[np.ndarray]:
        """Each input's gradient, for the case's cotangents."""
        return self.results()[1]

    def second_gradients(self, directions: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The gradients of the gradients weighted by ``directions``: for each input, then for each cotangent."""
        engine = self.engine
        with np.errstate(all="ignore"):
            leaves, seeds = self.leaves(), [engine.leaf(w) for w in self.cotangents]
            first = engines.gradients_of(engine, self.applied(leaves), leaves, seeds, create_graph=True)
            return self.swept(first, [*leaves, *seeds], [engine.constant(v) for v in directions])

    def slopes(self) -> list[finite_differences.Slope]:
        """The gradients by finite differences."""
        return finite_differences.slopes(self.floating_outputs, self.arrays, self.cotangents, self.spec.affine)

    def second_slopes(self, directions: Sequence[np.ndarray]) -> list[finite_differences.Slope]:
        """The second gradients by finite differences of the gradients, every element of inputs and cotangents."""
        count = len(self.arrays)

        def gradients(moved: Sequence[np.ndarray]) -> list[np.ndarray]:
            return self.using(arrays=tuple(moved[:count]), cotangents=tuple(moved[count:])).gradients()

        return finite_differences.slopes(gradients, [*self.arrays, *self.cotangents], directions, self.spec.affine)

    def named(self, i: int) -> str:
        """The name of the ``i``-th of inputs and, after them, cotangents."""
        return f"input {i}" if i < len(self.arrays) else f"cotangent {i - len(self.arrays)}"

    # --- comparing ----------------------------------------------------------------------------------------------------

    def compare(
        self, what: str, got: np.ndarray, want: np.ndarray, allowed: Any = None, votes: Votes | None = None
    ) -> None:
        """Fail, with a program that reproduces it, where ``got`` is not ``want``.

        Shapes and dtypes first, then where there is NaN or an infinity, then the numbers: to within ``allowed``, by
        default ``ROUNDING`` of the largest, or all ``BITS``, as integers and bools are always. ``votes`` say what other
        oracles hold, and are asked only then.
        """
        got, want = np.asarray(got), np.asarray(want)
        if got.shape != want.shape or got.dtype != want.dtype:
            failure.fail(
                self, what, f"shape {got.shape} and dtype {got.dtype}, want {want.shape} and {want.dtype}", votes=votes
            )
        floating = want.dtype.kind == "f"
        finite = np.isfinite(want) if floating else np.ones(want.shape, bool)
        to_the_bit = allowed is BITS or not floating
        if to_the_bit:
            allowed = 0.0
        elif allowed is None:
            allowed = ROUNDING * (1 + np.max(np.abs(want), where=finite, initial=0))
        with np.errstate(all="ignore"):
            error = np.abs(got - want) if floating else (got != want) * 1.0
            if to_the_bit:
                right = _bits(got) == _bits(want)
            else:
                right = np.where(finite, error <= allowed, (got == want) | (np.isnan(got) & np.isnan(want)))
        ratios = _ratio(error, allowed)[finite]
        judged = finite & np.isfinite(allowed)
        ledger.count(self.spec.name, int(np.count_nonzero(want[judged])), ratios, self.conditions)
        if not right.all():
            failure.fail(self, what, "", got, want, np.argwhere(~np.atleast_1d(right))[0], votes)

    def is_exact(self, results: Iterable[np.ndarray]) -> bool:
        """Whether ``results`` had to be rounded nowhere: then no order of adding up can change a bit of them.

        What is constant is chosen, not computed. An affine op adds up products of its inputs and its coefficients;
        inputs and cotangents have few digits, and a coefficient that has many leaves them in its gradient.
        """
        few_digits = all(bool(np.all(finite_differences.dyadic(x))) for x in results)
        return self.spec.constant or (self.spec.affine and few_digits)

    def require(self, holds: bool, what: str, detail: str = "") -> None:
        """Fail, with a program that reproduces it, unless ``holds``."""
        ledger.count(self.spec.name, 1, conditions=self.conditions)
        if not holds:
            failure.fail(self, what, detail)

    def require_narrow(self, slope: finite_differences.Slope) -> None:
        """Fail where finite differences are too uncertain to judge by: the entry's domain is wrong."""
        wide = ~is_narrow(slope.value, slope.bar)
        if wide.any():
            at = tuple(np.argwhere(np.atleast_1d(wide))[0])[: slope.bar.ndim]
            found = f"bar {slope.bar[at]:.1e} around {slope.value[at]:.6g} at {list(map(int, at))}"
            failure.fail(self, "finite differences", f"{found}: the entry's domain is wrong")

    def compare_gradients(self, got: Sequence[np.ndarray], want: Sequence[np.ndarray], allowed: Any = None) -> None:
        """``compare`` for each input's gradient."""
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            self.compare(f"the gradient of input {i}", g, w, allowed)


def _bits(x: np.ndarray) -> np.ndarray:
    """The memory of each element of ``x``, as an integer."""
    return x.view(f"u{x.itemsize}")


def _ratio(error: Any, allowed: Any) -> np.ndarray:
    """``error`` as a fraction of ``allowed``; 0 where it is 0 itself."""
    return np.divide(error, allowed, out=np.zeros(np.shape(error)), where=np.asarray(error != 0))


def draw_case(data: st.DataObject, engine: Engine, spec: OpSpec, draw_inputs: DrawInputs = values.inputs) -> Case:
    """A case of ``spec`` in its domain; or elsewhere, where ``draw_inputs(draw, spec, call)`` says so."""
    call: Call = data.draw(spec.calls, label="call")
    arrays = draw_inputs(data.draw, spec, call)
    case = Case(engine, spec, call.params, tuple(arrays))
    weights = tuple(data.draw(values.cotangents(y.shape), label="cotangent") for y in case.floating_outputs())
    return case.using(cotangents=weights)
