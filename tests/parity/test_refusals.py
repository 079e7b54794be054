"""What an op refuses, PyTorch refuses too, with the same type of exception."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spec import engines
from spec.engines.pytorch import PyTorch
from spec.entry import ErrorInput, OpSpec
from spec.ops import SPECS

TORCH = PyTorch()


def _calls(refused: bool) -> list[Any]:
    """The wrong calls of all entries that PyTorch refuses too; or those with an option of it that is not offered."""
    return [
        pytest.param(spec, wrong, id=f"{spec.name}-{i}")
        for spec in SPECS
        for i, wrong in enumerate(spec.errors)
        if refused == (wrong.error is not NotImplementedError or wrong.theirs is not None)
    ]


@pytest.mark.parametrize(("spec", "wrong"), _calls(refused=True))
def test_exception_types_are_pytorchs(spec: OpSpec, wrong: ErrorInput) -> None:
    tensors = [TORCH.constant(np.ones(shape, wrong.dtype)) for shape in wrong.shapes]
    with pytest.raises(Exception) as refusal:  # noqa: PT011  the type is what is compared
        engines.apply(TORCH, spec, tensors, wrong.params)
    assert refusal.type is (wrong.theirs or wrong.error), refusal.value


@pytest.mark.parametrize(("spec", "wrong"), _calls(refused=False))
def test_options_not_offered_are_pytorchs(spec: OpSpec, wrong: ErrorInput) -> None:
    tensors = [TORCH.constant(np.ones(shape, wrong.dtype)) for shape in wrong.shapes]
    engines.apply(TORCH, spec, tensors, wrong.params)
