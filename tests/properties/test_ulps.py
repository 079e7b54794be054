"""On the whole range of floating numbers, tails and both ends included, an op is right to a few ulps."""

from __future__ import annotations

from typing import Any

import pytest

from spec.oracles import exact


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", exact.EXACT)
def test_an_op_is_right_to_a_few_ulps(engine: Any, name: str, dtype: str) -> None:
    worst = exact.worst(engine, name, dtype)
    assert worst.ulps <= exact.FEW, worst
