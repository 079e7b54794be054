"""An entry's facts are true of its op, and one that states them falsely is caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import smolgrad
from spec.case import Case, draw_case
from spec.engines.smolgrad import Smolgrad
from spec.entry import Call, Domain, OpSpec
from spec.faults.killing import LIGHT, fails
from spec.generate import values
from spec.harness import DIFFERENTIABLE
from spec.ops import BY_NAME, SPECS
from spec.oracles import exact, finite_differences
from spec.report.catalogue import drawn
from tests.properties.test_kinks import gradient_at_a_tie_is_right_along_it as tie
from tests.properties.test_vjp import values_and_gradients_are_finite_in_the_domain as finite
from tests.properties.test_vjp import vjp_matches_finite_differences as vjp

ENGINE = Smolgrad()
H = values.STEP / 2  # half of what values keep from a kink: no farther, or the next one would be met


class Lie(AssertionError):
    """A fact that is not true."""


def _draws(check: Callable[[st.DataObject], None], examples: int = 25) -> None:
    @seed(0)  # facts do not depend on a run's seed
    @settings(**{**LIGHT, "max_examples": examples})
    @given(data=st.data())
    def look(data: st.DataObject) -> None:
        check(data)

    look()


def _moved(arrays: Sequence[np.ndarray], i: int, by: Any) -> list[np.ndarray]:
    return [a + by if j == i else a for j, a in enumerate(arrays)]


# --- affine -----------------------------------------------------------------------------------------------------------


def check_affine(spec: OpSpec) -> None:
    """f(x + v) - 2f(x) + f(x - v) is 0 in each input: exactly, but where a coefficient such as 1/3 was rounded."""

    def check(data: st.DataObject) -> None:
        case = draw_case(data, ENGINE, spec)
        for i, array in enumerate(case.arrays):
            v = data.draw(values.integer_array(array.shape))
            above, at, below = (case.floating_outputs(_moved(case.arrays, i, v * k)) for k in (1, 0, -1))
            for y, z, x in zip(above, at, below, strict=True):
                exact = all(finite_differences.dyadic(value).all() for value in (x, y, z))
                rounded = 0.0 if exact else 1e-12 * (1 + np.abs([x, y, z]).max())
                if np.abs(y - 2 * z + x).max(initial=0) > rounded:
                    raise Lie(f"{spec.name} is not affine in input {i}")

    _draws(check)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.affine], ids=repr)
def test_what_is_called_affine_is(spec: OpSpec) -> None:
    check_affine(spec)


@pytest.mark.parametrize("name", ["exp", "abs", "div", "functional.softmax"])
def test_what_is_falsely_called_affine_is_caught(name: str) -> None:
    lie = replace(BY_NAME[name], affine=True)
    with pytest.raises(Lie, match="not affine"):
        check_affine(lie)
    assert fails(vjp, ENGINE, lie)


# --- kinks, ties and domains ------------------------------------------------------------------------------------------


def _slopes_differ(case: Case, i: int, place: Any) -> bool:
    """Whether the slopes of some output, to the right and to the left in one element, are not the same."""
    step = np.zeros(case.arrays[i].shape)
    step[place] = H
    above, at, below = (case.outputs_at(_moved(case.arrays, i, step * k)) for k in (1, 0, -1))
    return any(np.abs((y - z) - (z - x)).max(initial=0) > 1e-3 * H for y, z, x in zip(above, at, below, strict=True))


class _Values(Case):
    """A case whose outputs, of whatever dtype, are numbers."""

    def outputs_at(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [y.astype(float) for y in self.using(arrays=tuple(arrays)).outputs()]


def _at(spec: OpSpec, call: Call, arrays: Sequence[np.ndarray]) -> _Values:
    return _Values(ENGINE, spec, call.params, tuple(arrays))


def _some_call(spec: OpSpec, fits: Callable[[Call], bool]) -> Call:
    """A call of ``spec`` that ``fits``."""
    found: list[Call] = []

    def check(data: st.DataObject) -> None:
        call = data.draw(spec.calls)
        if fits(call) and not found:
            found.append(call)

    _draws(check, 200)
    return found[0]


def check_kinks(spec: OpSpec) -> None:
    """At each kink the slope jumps."""

    def check(data: st.DataObject) -> None:
        call = data.draw(spec.calls)
        for i, (shape, domain) in enumerate(zip(call.shapes, spec.domains(call), strict=True)):
            for kink in domain.kinks if np.prod(shape) else ():
                arrays = [np.full(s, kink + 1.0 * (j != i)) for j, s in enumerate(call.shapes)]
                if not _slopes_differ(_at(spec, call, arrays), i, (0,) * len(shape)):
                    raise Lie(f"{spec.name} has no kink at {kink}")

    _draws(check)


@pytest.mark.parametrize("spec", [s for s in DIFFERENTIABLE if s.kinked and not s.unique and not s.apart], ids=repr)
def test_each_kink_is_one(spec: OpSpec) -> None:
    check_kinks(spec)


def test_a_kink_that_is_none_is_caught() -> None:
    for domain in (Domain(kinks=(0.0, 1.0)), Domain(kinks=(-1.0,))):
        with pytest.raises(Lie, match="no kink"):
            check_kinks(replace(BY_NAME["relu"], domain=domain))


def _dropped(domain: Domain, fact: str) -> Domain:
    """``domain`` without a fact. Of a bound, both sides of it: far from 0 few values would be drawn by chance."""
    bound = getattr(domain, fact)
    if fact in ("low", "high"):
        return replace(domain, low=bound - 1, high=bound + 1)
    return replace(domain, **{fact: getattr(Domain, fact)})


def _without(spec: OpSpec, i: int, fact: str) -> OpSpec:
    """``spec`` without one of the facts of its ``i``-th input's domain."""

    def domain(params: dict[str, Any]) -> tuple[Domain, ...]:
        found = spec.domains(Call(((),) * 3, params))
        return tuple(_dropped(d, fact) if j == i else d for j, d in enumerate(found))

    return replace(spec, domain=domain)


def _stated() -> Iterator[Any]:
    """Each fact of each input's domain."""
    for spec in DIFFERENTIABLE:
        found = {(i, fact.name) for call in drawn(spec.calls, 20) for i, domain in enumerate(spec.domains(call))
                 for fact in fields(Domain) if getattr(domain, fact.name) != fact.default}  # fmt: skip
        yield from (pytest.param(spec, i, fact, id=f"{spec.name}-{i}-{fact}") for i, fact in sorted(found))


STATED = list(_stated())


@pytest.mark.parametrize(("spec", "i", "fact"), STATED)
def test_no_fact_of_a_domain_can_be_left_out(spec: OpSpec, i: int, fact: str) -> None:
    # Neither a bound, nor a pole, kink or spread: without it, finite differences and the gradient part, or do at ties.
    without = _without(spec, i, fact)
    assert fails(vjp, ENGINE, without, max_examples=1000) or (
        spec.kinked and fails(tie, ENGINE, without, max_examples=1000)
    )


def test_a_fact_that_is_not_needed_is_noticed() -> None:
    for domain in (Domain(low=0.25), Domain(poles=(0.0,)), Domain(kinks=(0.0,)), Domain(spread=0.25)):
        lie = replace(BY_NAME["exp"], domain=domain)
        (fact,) = (fact.name for fact in fields(Domain) if getattr(domain, fact.name) != fact.default)
        assert not fails(vjp, ENGINE, _without(lie, 0, fact))


def check_poles(spec: OpSpec) -> None:
    """Near each pole, from either side, an output grows without bound."""
    call = _some_call(spec, lambda call: min(map(np.prod, call.shapes)) > 0)
    for i, domain in enumerate(spec.domains(call)):
        for pole in domain.poles:
            for side in (1, -1):
                arrays = [[np.full(s, pole + side * h if j == i else 1.0) for j, s in enumerate(call.shapes)]
                          for h in (2.0**-10, 2.0**-20, 2.0**-30)]  # fmt: skip
                far, near, nearest = (max(np.abs(y).max() for y in _at(spec, call, xs).outputs()) for xs in arrays)
                if not 2 * far < near < nearest / 2:
                    raise Lie(f"{spec.name} has no pole at {pole}")


@pytest.mark.parametrize("spec", [case.values[0] for case in STATED if case.values[2] == "poles"], ids=repr)
def test_each_pole_is_one(spec: OpSpec) -> None:
    check_poles(spec)


@pytest.mark.parametrize("name", ["exp", "abs", "log"])
def test_a_pole_that_is_none_is_caught(name: str) -> None:
    with pytest.raises(Lie, match="no pole"):
        check_poles(replace(BY_NAME[name], domain=Domain(poles=(1.0,))))


@pytest.mark.parametrize("name", ["log", "sqrt", "div"])
def test_what_is_infinite_in_its_domain_is_caught(name: str) -> None:
    assert fails(finite, ENGINE, replace(BY_NAME[name], domain=Domain()))


# --- ties -------------------------------------------------------------------------------------------------------------


def _has_lanes(call: Call) -> bool:
    """Whether a lane that is reduced has two elements at least."""
    (shape,) = call.shapes
    dim = call.params.get("dim")
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    return bool(shape) and any(shape[d] > 1 for d in dims)


def check_unique(spec: OpSpec) -> None:
    """Where elements are equal, a slope jumps or the value does."""
    call = _some_call(spec, _has_lanes)
    case = _at(spec, call, [np.zeros(call.shapes[0])])
    if not any(_slopes_differ(case, 0, place) for place in np.ndindex(call.shapes[0])):
        raise Lie(f"{spec.name} is smooth where elements are equal")


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.unique], ids=repr)
def test_equal_elements_must_be_kept_out_where_an_entry_says_so(spec: OpSpec) -> None:
    check_unique(spec)


def check_apart(spec: OpSpec) -> None:
    """Where elements of two inputs are equal, a slope jumps."""
    call = _some_call(spec, lambda call: min(map(np.prod, call.shapes)) > 0)
    case = _at(spec, call, [np.ones(shape) for shape in call.shapes])
    if not _slopes_differ(case, 0, (0,) * len(call.shapes[0])):
        raise Lie(f"{spec.name} is smooth where its inputs are equal")


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.apart], ids=repr)
def test_equal_inputs_must_be_kept_out_where_an_entry_says_so(spec: OpSpec) -> None:
    check_apart(spec)


def test_ties_that_do_not_matter_are_caught() -> None:
    with pytest.raises(Lie, match="smooth where elements are equal"):
        check_unique(replace(BY_NAME["sum"], unique=True))
    with pytest.raises(Lie, match="smooth where its inputs are equal"):
        check_apart(replace(BY_NAME["mul"], apart=True))


@pytest.mark.parametrize("spec", [spec for spec in DIFFERENTIABLE if spec.unique or spec.apart], ids=repr)
def test_neither_unique_nor_apart_can_be_left_out(spec: OpSpec) -> None:
    assert fails(vjp, ENGINE, replace(spec, unique=False, apart=False), max_examples=200)


# --- integers and constants -------------------------------------------------------------------------------------------


def check_integer(spec: OpSpec) -> None:
    """Floats are refused."""
    call = _some_call(spec, lambda call: True)
    floats = _at(spec, call, [np.ones(2) for _ in call.shapes])
    try:
        floats.outputs()
    except NotImplementedError:
        return
    raise Lie(f"{spec.name} takes floats")


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.integer], ids=repr)
def test_what_is_said_to_refuse_floats_does(spec: OpSpec) -> None:
    check_integer(spec)


def test_what_is_falsely_said_to_refuse_floats_is_caught() -> None:
    with pytest.raises(Lie, match="takes floats"):
        check_integer(BY_NAME["eq"])


def check_constant(spec: OpSpec) -> None:
    """No floating output moves with an input."""

    def check(data: st.DataObject) -> None:
        case = draw_case(data, ENGINE, spec)
        for i, array in enumerate(case.arrays if case.cotangents else ()):
            v = H * (data.draw(values.integer_array(array.shape)) & 1)  # not all alike: of that softmax takes no notice
            above, below = (case.floating_outputs(_moved(case.arrays, i, v * k)) for k in (1, -1))
            if any((y != x).any() for y, x in zip(above, below, strict=True)):
                raise Lie(f"{spec.name} is not constant in input {i}")

    _draws(check)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.constant], ids=repr)
def test_what_is_called_constant_is(spec: OpSpec) -> None:
    check_constant(spec)


@pytest.mark.parametrize("spec", DIFFERENTIABLE, ids=repr)
def test_what_is_not_called_constant_is_not(spec: OpSpec) -> None:
    with pytest.raises(Lie, match="not constant"):
        check_constant(spec)


# --- ulps -------------------------------------------------------------------------------------------------------------

# Formulas that are right on paper and wrong in a tail.
NAIVE = {
    "expm1": lambda x: smolgrad.exp(x) - 1,
    "log1p": lambda x: smolgrad.log(1 + x),
    "sigmoid": lambda x: smolgrad.exp(x) / (1 + smolgrad.exp(x)),
    "tanh": lambda x: (smolgrad.exp(2 * x) - 1) / (smolgrad.exp(2 * x) + 1),
    "sinh": lambda x: (smolgrad.exp(x) - smolgrad.exp(-x)) / 2,
    "logaddexp": lambda a, b: smolgrad.log(smolgrad.exp(a) + smolgrad.exp(b)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAIVE)
def test_a_naive_formula_is_off_by_many_ulps(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smolgrad, name, NAIVE[name])
    assert exact.worst(ENGINE, name, dtype, 60).ulps > 1000 * exact.FEW
