"""A program that a failure prints runs as it is printed, and shows what the failure is about."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spec.case import ROUNDING, Case, draw_case
from spec.engines.pytorch import PyTorch
from spec.engines.smolgrad import Smolgrad
from spec.entry import OpSpec
from spec.faults import seams
from spec.faults.generic import FAULTS, planted
from spec.faults.killing import primitives
from spec.generate.layouts import LAYOUTS
from spec.ops import BY_NAME, SPECS
from spec.oracles.differences import difference
from spec.report import failure, ledger
from tests.parity import test_numbers
from tests.properties import test_vjp

PLAIN = (np.array, *LAYOUTS)


def run(source: str) -> dict[str, Any]:
    """The names that a program leaves."""
    names: dict[str, Any] = {"__name__": "program"}
    exec(source, names)
    return names


def array_of(value: Any) -> np.ndarray:
    """A tensor's value, of either engine."""
    found: np.ndarray = value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)
    return found


def assert_shows(case: Case, module: str) -> None:
    """The program for ``module`` has the outputs and gradients of ``case``."""
    names = run(failure.program(case, module))
    y = names["y"]
    for got, want in zip(y if isinstance(y, tuple) else [y], case.outputs(), strict=True):
        np.testing.assert_allclose(array_of(got), want, rtol=ROUNDING, atol=ROUNDING, strict=True)
    if case.cotangents:
        for i, want in enumerate(case.gradients()):
            gradient = names[f"x{i}"].grad
            got = np.zeros_like(want) if gradient is None else array_of(gradient)
            np.testing.assert_allclose(got, want, rtol=ROUNDING, atol=ROUNDING, strict=True)


@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")  # PyTorch's advice against broadcasting
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@settings(max_examples=5)
@given(data=st.data())
def test_program_shows_the_case(spec: OpSpec, data: st.DataObject) -> None:
    case = draw_case(data, Smolgrad(), spec)
    relaid = [data.draw(st.sampled_from(PLAIN), label="layout")(x) for x in (*case.arrays, *case.cotangents)]
    case = case.using(arrays=tuple(relaid[: len(case.arrays)]), cotangents=tuple(relaid[len(case.arrays) :]))
    assert_shows(case, "smolgrad")
    plain = [tuple(map(np.array, xs)) for xs in (case.arrays, case.cotangents)]
    case = case.using(engine=PyTorch(), arrays=plain[0], cotangents=plain[1])
    if difference(spec.name, [torch.tensor(x) for x in case.arrays], case.params):
        assert failure.program(case, "torch").startswith("# PyTorch differs here (spec/oracles/differences.py): ")
    else:
        assert_shows(case, "torch")


@pytest.mark.parametrize("op", ["mul", "exp", "functional.softmax"])
@pytest.mark.parametrize(
    ("test", "fault", "voter"),
    [
        (test_numbers.gradients_match_pytorch, "doubled", "finite differences"),
        (
            test_numbers.second_derivatives_match_pytorch,
            "not_differentiable",
            "finite differences of the gradient",
        ),
    ],
    ids=["gradients", "second derivatives"],
)
def test_finite_differences_side_with_pytorch_against_a_wrong_rule(test: Any, fault: str, voter: str, op: str) -> None:
    spec = BY_NAME[op]
    (primitive,) = primitives(Smolgrad(), spec)
    # What is compared with a fault planted does not count in the run's ledger.
    with (
        patch.object(ledger, "lines", {}),
        planted(FAULTS[fault], primitive),
        pytest.raises(failure.Counterexample) as told,
    ):
        test(engine=Smolgrad(), spec=spec)
    names = ("got", "want", voter)
    got, want, vote = (float(re.findall(rf"^    {name}: (.*)$", str(told.value), re.MULTILINE)[0]) for name in names)
    assert vote == pytest.approx(want)
    assert got != pytest.approx(want)


def _off_in_float32(y: np.ndarray, _x: np.ndarray) -> np.ndarray:
    return y * np.float32(1.001) if y.dtype == np.float32 else y


def test_what_fails_in_float32_is_told_in_float32() -> None:
    with (
        patch.object(ledger, "lines", {}),
        seams.forward_changed("exp", _off_in_float32),
        pytest.raises(failure.Counterexample) as told,
    ):
        test_vjp.float32_follows_float64(engine=Smolgrad(), spec=BY_NAME["exp"])
    assert "dtype='float32'" in str(told.value)
    assert "dtype='float64'" not in str(told.value)


def test_the_program_of_an_entry_with_a_ref_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(BY_NAME["exp"], name="no_op_of_pytorchs", ref=lambda x: torch.exp(x))
    monkeypatch.setitem(BY_NAME, spec.name, spec)
    case = Case(PyTorch(), spec, {}, (np.array([1.0, 2.0]),), (np.array([0.0, 1.0]),))
    assert_shows(case, "torch")


PARAMS = {
    "slices and None": ((slice(None, None, -1), None, ..., 2), "(slice(None, None, -1), None, ..., 2)"),
    "one of a tuple": ((1,), "(1,)"),
    "a list": ([1, 2.5, True], "[1, 2.5, True]"),
    "infinity": (-np.inf, "float('-inf')"),
    "a dtype": (np.dtype("float32"), "np.dtype('float32')"),
}


@pytest.mark.parametrize(("value", "text"), PARAMS.values(), ids=PARAMS)
def test_literal_of_parameters(value: Any, text: str) -> None:
    assert failure.literal(value) == text
    assert eval(text, {"np": np}) == value


def test_literals_for_torch_are_torchs() -> None:
    assert failure.literal(np.dtype("float32"), "torch") == "torch.float32"
    assert failure.literal((np.array([True]),), "torch") == "(torch.tensor(np.array([True], dtype='bool')),)"


ARRAYS = {
    "0-d": np.array(1.5),
    "size 0": np.zeros((2, 0, 3)),
    "float32": np.array([0.1, -0.0], np.float32),
    "special": np.array([np.nan, np.inf, -np.inf]),
    "integers": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "bools": np.array([[True], [False]]),
    "cube": np.arange(24.0).reshape(2, 3, 4),
    "1-axes": np.arange(3.0).reshape(1, 3, 1),
}


@pytest.mark.parametrize("layout", PLAIN, ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_literal_keeps_what_numpy_can_tell(array: np.ndarray, layout: Any) -> None:
    want = layout(array)
    got = eval(failure.literal(want), {"np": np})
    np.testing.assert_array_equal(got, want, strict=True)
    assert (np.signbit(got) == np.signbit(want)).all() if want.dtype.kind == "f" else True
    assert got.flags.writeable == want.flags.writeable
    assert got.flags.c_contiguous == want.flags.c_contiguous
    assert got.flags.f_contiguous == want.flags.f_contiguous
    if want.size:
        sides = [axis for axis, n in enumerate(want.shape) if n > 1]
        assert [np.sign(got.strides[a]) for a in sides] == [np.sign(want.strides[a]) for a in sides]


@pytest.mark.parametrize("op", ["tanh", "where"])
def test_the_scalar_engine_votes_in_a_failure(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "lines", {})
    spec = BY_NAME[op]
    for test in (test_vjp.vjp_matches_finite_differences, test_numbers.gradients_match_pytorch):
        with planted(FAULTS["negated"], *primitives(Smolgrad(), spec)), pytest.raises(failure.Counterexample) as told:
            test(engine=Smolgrad(), spec=spec)
        said = dict(re.findall(r"^    ([a-z ]+): (\S+)$", str(told.value), re.MULTILINE))
        assert float(said["scalar engine"]) == pytest.approx(float(said["want"])) == pytest.approx(-float(said["got"]))
