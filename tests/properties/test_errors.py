"""What an op cannot do it says, by name, and leaves everything as it was."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from spec import engines
from spec.entry import ErrorInput, OpSpec
from spec.ops import SPECS

CASES = [pytest.param(spec, wrong, id=f"{spec.name}-{i}") for spec in SPECS for i, wrong in enumerate(spec.errors)]


@pytest.mark.parametrize(("spec", "wrong"), CASES)
def test_wrong_calls_are_refused(engine: Any, spec: OpSpec, wrong: ErrorInput) -> None:
    tensors = [engine.leaf(np.ones(shape, wrong.dtype)) for shape in wrong.shapes]
    with pytest.raises(wrong.error) as refusal:
        engines.apply(engine, spec, tensors, wrong.params)
    message = str(refusal.value)
    assert re.search(wrong.match, message), message
    for tensor in tensors:
        assert (engine.array(tensor) == 1).all()
        assert tensor.is_leaf
        assert tensor.grad is None


def test_every_entry_has_wrong_calls() -> None:
    nothing_to_get_wrong = ["Tensor.T"]
    assert [spec.name for spec in SPECS if not spec.errors] == nothing_to_get_wrong
