"""A case: one call of one op with its numbers, what an engine makes of it, and how it is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from smolgrad.gradcheck import is_narrow

from . import engines
from .engines import Engine
from .entry import Call, OpSpec
from .generate import values
from .oracles import finite_differences
from .report import failure, ledger

Votes = Mapping[str, Callable[[], Any]]

__tracebackhide__ = True  # a failure is told by its program; pytest leaves the comparing out of what it prints

# What two right computations of one float64 number may differ by, relative to the largest number of its array.
ROUNDING = 1e-12


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

    def outputs(self) -> list[np.ndarray]:
        """The outputs' values."""
        return engines.forward(self.engine, self.spec, self.arrays, self.params)

    def floating_outputs(self, arrays: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """The values of the floating outputs, at ``arrays`` where given."""
        outputs = engines.forward(self.engine, self.spec, self.arrays if arrays is None else arrays, self.params)
        return [y for y in outputs if y.dtype.kind == "f"]

    def gradients(self) -> list[np.ndarray]:
        """Each input's gradient, for the case's cotangents."""
        return engines.pull_back(self.engine, self.spec, self.arrays, self.params, self.cotangents)[1]

    def second_gradients(self, directions: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The gradients of the gradients weighted by ``directions``: for each input, then for each cotangent."""
        return engines.second_pull_back(self.engine, self.spec, self.arrays, self.params, self.cotangents, directions)

    def slopes(self) -> list[finite_differences.Slope]:
        """The gradients by finite differences."""
        return finite_differences.slopes(self.floating_outputs, self.arrays, self.cotangents, self.spec.affine)

    def named(self, i: int) -> str:
        """The name of the ``i``-th of inputs and, after them, cotangents."""
        return f"input {i}" if i < len(self.arrays) else f"cotangent {i - len(self.arrays)}"

    # --- comparing ----------------------------------------------------------------------------------------------------

    def compare(
        self, what: str, got: np.ndarray, want: np.ndarray, allowed: Any = None, votes: Votes | None = None
    ) -> None:
        """Fail, with a program that reproduces it, where ``got`` is not ``want``.

        Shapes and dtypes first, then where there is NaN or an infinity, then the numbers: to within ``allowed``, by
        default ``ROUNDING`` of the largest. ``votes`` say what other oracles hold, and are asked only then.
        """
        got, want = np.asarray(got), np.asarray(want)
        if got.shape != want.shape or got.dtype != want.dtype:
            failure.fail(
                self, what, f"shape {got.shape} and dtype {got.dtype}, want {want.shape} and {want.dtype}", votes=votes
            )
        finite = np.isfinite(want) if want.dtype.kind == "f" else np.ones(want.shape, bool)
        if allowed is None:
            allowed = ROUNDING * (1 + np.max(np.abs(want), where=finite, initial=0)) if want.dtype.kind == "f" else 0
        with np.errstate(all="ignore"):
            if want.dtype.kind == "f":
                error = np.abs(got - want)
                right = np.where(finite, error <= allowed, (got == want) | (np.isnan(got) & np.isnan(want)))
            else:
                error, right = (got != want) * 1.0, got == want
        ledger.count(self.spec.name, int(np.count_nonzero(want[finite])), _ratio(error, allowed)[finite])
        if not right.all():
            failure.fail(self, what, "", got, want, np.argwhere(~np.atleast_1d(right))[0], votes)

    def require(self, holds: bool, what: str, detail: str = "") -> None:
        """Fail, with a program that reproduces it, unless ``holds``."""
        ledger.count(self.spec.name, 1)
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


def _ratio(error: Any, allowed: Any) -> np.ndarray:
    """``error`` as a fraction of ``allowed``; 0 where it is 0 itself."""
    return np.divide(error, allowed, out=np.zeros(np.shape(error)), where=np.asarray(error != 0))


def draw_case(data: st.DataObject, engine: Engine, spec: OpSpec, draw_inputs: Any = None) -> Case:
    """A case of ``spec`` in its domain; or elsewhere, where ``draw_inputs(draw, spec, call)`` says so."""
    call: Call = data.draw(spec.calls, label="call")
    arrays = (draw_inputs or values.inputs)(data.draw, spec, call)
    case = Case(engine, spec, call.params, tuple(arrays))
    weights = tuple(data.draw(values.cotangents(y.shape), label="cotangent") for y in case.floating_outputs())
    return case.using(cotangents=weights)
