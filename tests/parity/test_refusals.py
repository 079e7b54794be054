"""What an op refuses, PyTorch refuses too, with the same type of exception."""

from __future__ import annotations

import numpy as np
import pytest

from spec import engines
from spec.engines.pytorch import PyTorch
from spec.entry import ErrorInput, OpSpec
from spec.ops import SPECS

TORCH = PyTorch()

CASES = [
    pytest.param(spec, wrong, id=f"{spec.name}-{i}")
    for spec in SPECS
    for i, wrong in enumerate(spec.errors)
    if wrong.error is not NotImplementedError  # an option of PyTorch's that is not offered is no error there
]


@pytest.mark.parametrize(("spec", "wrong"), CASES)
def test_exception_types_are_pytorchs(spec: OpSpec, wrong: ErrorInput) -> None:
    tensors = [TORCH.constant(np.ones(shape, wrong.dtype)) for shape in wrong.shapes]
    with pytest.raises(Exception) as refusal:  # noqa: PT011  the type is what is compared
        engines.apply(TORCH, spec, tensors, wrong.params)
    assert refusal.type is (wrong.theirs or wrong.error), refusal.value


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        pytest.param(spec, wrong, id=f"{spec.name}-{i}")
        for spec in SPECS
        for i, wrong in enumerate(spec.errors)
        if wrong.error is NotImplementedError
    ],
)
def test_options_not_offered_are_pytorchs(spec: OpSpec, wrong: ErrorInput) -> None:
    tensors = [TORCH.constant(np.ones(shape, wrong.dtype)) for shape in wrong.shapes]
    engines.apply(TORCH, spec, tensors, wrong.params)
