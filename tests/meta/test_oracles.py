"""The oracles of our own are held to others: an oracle that is wrong would fail a right engine, or pass a wrong one.

They are PyTorch's rows of differences, the scalar engine, and mpmath's functions.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spec.engines.smolgrad import Smolgrad
from spec.faults import killing
from spec.ops import BY_NAME
from spec.oracles import differences, exact, scalar

ENGINE = Smolgrad()
LAWS = (
    "values_match_pytorch",
    "gradients_match_pytorch",
    "second_derivatives_at_kinks_are_pytorchs",
    "special_values_are_pytorchs",
)


def _agree(law: str, op: str, examples: int) -> None:
    found = killing.run(law, *killing.found(f"{law}[{op}]", ENGINE), max_examples=examples)
    assert found is None, found


@pytest.mark.parametrize("op", sorted({op for row in differences.DIFFERENCES for op in row.ops} & BY_NAME.keys()))
def test_where_pytorch_differs_its_stand_in_agrees_with_us(op: str) -> None:
    for law in killing.concerned(BY_NAME[op]):
        if law in LAWS:
            _agree(law, op, 15)


@pytest.mark.parametrize("op", sorted(scalar.EXPRESSIONS))
def test_the_scalar_engine_agrees_with_ours(op: str) -> None:
    _agree("values_and_gradients_match_the_scalar_engine", op, 10)


POINTS = [-2.5, -1.0, -0.75, 0.25, 0.5, 1.25, 3.0]


@pytest.mark.parametrize("name", exact.EXACT)
def test_mpmath_is_asked_for_the_same_function(name: str) -> None:
    home = torch.nn.functional if name.startswith("functional.") else torch
    function, count = getattr(home, name.rpartition(".")[2]), exact.EXACT[name].__code__.co_argcount
    compared = 0
    for x in POINTS:
        at = (x, 1.5)[:count]
        want = float(function(*(torch.tensor(v, dtype=torch.float64) for v in at)))
        if np.isfinite(want):
            np.testing.assert_allclose(float(exact.EXACT[name](*at)), want, rtol=1e-12)
            compared += 1
    assert compared > 1


def test_an_error_in_ulps_is_measured_at_both_ends_of_the_range() -> None:
    found = exact._numbers("float32", 400)
    sizes = np.log2(np.abs(found[np.isfinite(found) & (found != 0)].astype(float)))
    assert np.isfinite(found).all()
    assert sizes.min() < -140
    assert sizes.max() > 120
    largest = np.array([np.finfo("float32").max], "float32")
    for got, ulps in ((np.inf, 0.0), (-np.inf, np.inf), (largest[0], np.inf)):
        (beyond,) = exact._off("square", [largest], np.array([got], "float32"))
        assert beyond.ulps == ulps
    (itself,) = exact._off("functional.elu", [largest], largest)
    assert itself.ulps == 0
    near = np.sqrt(largest) * np.float32(0.999)  # within the range, and so not to be infinite
    (found_near,) = exact._off("square", [near], near * near)
    assert found_near.ulps < 1
