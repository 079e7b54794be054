"""Dtypes of results are PyTorch's, for every pair of dtypes, tensors of no dimensions and numbers among them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import smolgrad
from smolgrad.dtypes import SUPPORTED, result_type
from spec import engines
from spec.case import Case
from spec.engines.pytorch import PyTorch
from spec.entry import OpSpec
from spec.harness import Properties
from spec.ops import SPECS
from spec.oracles.differences import STRICTER

TORCH = PyTorch()
OPERANDS = [
    *(np.zeros(shape, dtype) for dtype in SUPPORTED for shape in ((2,), ())),
    *(True, 2, 2.5),
]


def _as_torch(x: Any) -> Any:
    return torch.tensor(x) if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize(
    "other", OPERANDS, ids=lambda x: f"{x.dtype}{x.shape}" if isinstance(x, np.ndarray) else repr(x)
)
def test_result_type_is_pytorchs(other: Any) -> None:
    for one in OPERANDS:
        if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
            want = str(torch.result_type(_as_torch(one), _as_torch(other))).removeprefix("torch.")
            assert result_type(one, other).name == want, (one, other)


def _outcome(engine: Any, spec: OpSpec, arrays: list[np.ndarray], params: dict[str, Any]) -> Any:
    """The dtypes of a call's outputs, or how it is refused."""
    try:
        outputs = engines.forward(engine, spec, arrays, params)
    except engines.REFUSALS as refusal:
        return refusal
    return [str(y.dtype) for y in outputs]


promotion = Properties()


@promotion.of(SPECS)
def dtypes_of_results_are_pytorchs(case: Case, data: st.DataObject) -> None:
    dtypes = [data.draw(st.sampled_from(SUPPORTED), label="dtype") for _ in case.arrays]
    arrays = [np.asarray(np.abs(np.rint(a)) if dtype.kind != "f" else a).astype(dtype)
              for a, dtype in zip(case.arrays, dtypes, strict=True)]  # fmt: skip
    got, want = (_outcome(engine, case.spec, arrays, case.params) for engine in (case.engine, TORCH))
    case = case.using(arrays=tuple(arrays))
    if case.spec.name in STRICTER and isinstance(got, Exception) and not isinstance(want, Exception):
        return
    if isinstance(want, Exception) or isinstance(got, Exception):
        both = isinstance(want, Exception) and isinstance(got, Exception)
        case.require(both, "a refusal of dtypes", f"{dtypes}: got {got!r}, PyTorch {want!r}")
        # A NotImplementedError is a RuntimeError; PyTorch raises either, by the kernel that the shapes lead to.
        same = issubclass(type(got), type(want)) or issubclass(type(want), type(got))
        case.require(same, "the type of a refusal", f"{dtypes}: got {got!r}, PyTorch {want!r}")
    else:
        case.require(got == want, "dtypes of the outputs", f"got {got}, PyTorch {want}")


test_dtypes_of_results = promotion.test()


WITH_DTYPE = ["sum", "nansum", "mean", "prod", "cumsum", "cumprod", "softmax", "log_softmax"]


def _with_dtype(module: Any, op: str, x: Any, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """What ``op`` makes of ``x`` along the first axis, and the gradient of that, in NumPy; or how it is refused."""
    asked = getattr(torch, dtype.name) if module is torch else dtype
    try:
        y = getattr(module, op)(x, 0, dtype=asked)
    except (RuntimeError, TypeError) as refusal:
        return type(refusal), None
    if not y.requires_grad:
        return np.asarray(y.detach().data), None
    y.backward(module.tensor(np.arange(1.0, 1 + y.detach().numpy().size).reshape(tuple(y.shape)).astype(dtype)))
    return np.asarray(y.detach().data), np.asarray(x.grad.data)


@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
@pytest.mark.parametrize("op", WITH_DTYPE)
def test_the_option_dtype_is_pytorchs(op: str, dtype: np.dtype[Any]) -> None:
    for given in SUPPORTED:
        array = np.array([[100, -3, 0], [100, 1, 2], [100, 2, 0]][: 1 if op.startswith("cum") else 3]).astype(given)
        ours, theirs = smolgrad.tensor(array), torch.tensor(array)
        for x in (ours, theirs):
            x.requires_grad_(given.kind == dtype.kind == "f")  # PyTorch refuses the rest, which is constant here
        got, want = _with_dtype(smolgrad, op, ours, dtype), _with_dtype(torch, op, theirs, dtype)
        for g, w in zip(got, want, strict=True):
            if isinstance(w, np.ndarray):
                assert g.dtype == w.dtype
                np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-6, err_msg=f"{op} of {given} in {dtype}")
            else:
                assert g is w, (op, given, dtype, got, want)


@pytest.mark.parametrize("p", [0, 1, 2, 3, math.inf])
def test_the_dtype_of_a_norm_is_pytorchs(p: float) -> None:
    x, want = smolgrad.tensor([3.0, 1.0], requires_grad=True), torch.tensor([3.0, 1.0], requires_grad=True)
    y, z = smolgrad.norm(x, p, dtype=smolgrad.float64), torch.norm(want, p, dtype=torch.float64)
    assert y.dtype == "float64"
    assert y.item() == pytest.approx(z.item(), rel=1e-15)
    y.backward()
    if p:  # of 0 PyTorch has none
        z.backward()
        np.testing.assert_allclose(x.grad.data, want.grad.numpy(), rtol=1e-6, strict=True)


@pytest.mark.parametrize("other", [False, 0, 0.5])
@pytest.mark.parametrize("number", [True, 1, 1.5])
def test_two_numbers_of_where_meet_as_pytorchs_do(number: float, other: float) -> None:
    chosen = [True, False]
    y, want = smolgrad.where(smolgrad.tensor(chosen), number, other), torch.where(torch.tensor(chosen), number, other)
    np.testing.assert_array_equal(y.data, want.numpy(), strict=True)


INTO = {  # where a number becomes an element
    "pad": lambda m, f, x, v: f.pad(x, (0, 1), value=v),
    "masked_fill": lambda m, f, x, v: m.masked_fill(x, m.tensor([True, False]), v),
    "scatter": lambda m, f, x, v: m.scatter(x, 0, m.tensor([0]), v),
    "index_add": lambda m, f, x, v: m.index_add(x, 0, m.tensor([0]), x[:1], alpha=v),
    "addmm": lambda m, f, x, v: m.addmm(x[:, None], x[:, None], x[:1, None], beta=v),
}


@pytest.mark.parametrize("dtype", [dtype for dtype in SUPPORTED if dtype.kind != "b"], ids=str)
@pytest.mark.parametrize("op", INTO)
def test_a_number_that_does_not_fit_is_refused(op: str, dtype: Any) -> None:
    for number in (-256, -255, -1, -1.0, -0.5, 2.5, 127.5, 300, 300.0, 1e19, 1e300, np.inf, np.nan, True):
        found = []
        for m, functional in ((smolgrad, smolgrad.functional), (torch, torch.nn.functional)):
            try:
                found.append(INTO[op](m, functional, m.tensor(np.ones(2, dtype)), number).numpy().tolist())
            except RuntimeError:
                found.append("refused")
        np.testing.assert_equal(*found, err_msg=f"{op} of {number!r}")


NUMBERS = [True, 2, 2.5, np.float64(2.5), np.float32(2.5), np.int32(2), np.int64(2), np.bool_(True)]
OPERATORS = ["__add__", "__sub__", "__mul__", "__truediv__", "__pow__", "__lt__", "__eq__", "__radd__", "__rtruediv__"]


@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_numbers_are_weak(dtype: Any, name: str) -> None:
    # A bool to a bool power is refused here; PyTorch refuses it of two tensors.
    for number in NUMBERS[1:-1] if name == "__pow__" and dtype.kind == "b" else NUMBERS:
        plain = number.item() if isinstance(number, np.generic) else number
        for shape in ((2,), ()):
            array = np.ones(shape, dtype)
            try:
                want = str(getattr(torch.tensor(array), name)(plain).dtype).removeprefix("torch.")
            except RuntimeError:
                with pytest.raises(RuntimeError):
                    getattr(smolgrad.tensor(array), name)(number)
                continue
            assert getattr(smolgrad.tensor(array), name)(number).dtype.name == want, (number, shape)
