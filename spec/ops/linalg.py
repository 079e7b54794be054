"""Entries of the matrix products."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ..entry import Call, ErrorInput, OpSpec
from ..generate import shapes


@st.composite
def products(draw: Any) -> Call:
    """Vectors, matrices and batches that broadcast, square often, inner size 0 too."""
    n, k, m = (draw(shapes.side(0, 3)) for _ in range(3))
    if draw(st.booleans()):
        k = m = n
    left, right = draw(shapes.broadcastable(2, max_dims=2, max_side=2))
    form = draw(st.integers(0, 3))
    a = (k,) if form == 1 else (*left, n, k) if form != 3 else (n, k)
    b = (k,) if form == 2 else (*right, k, m)
    if form == 1 and draw(st.booleans()):
        b = (k,)
    return Call((a, b))


SPECS = [
    OpSpec(
        "matmul",
        products(),
        affine=True,
        errors=(
            ErrorInput(((2, 3), (2, 3)), {}, RuntimeError, r"shapes \(2, 3\) and \(2, 3\) do not fit"),
            ErrorInput(((3,), (2,)), {}, RuntimeError, r"do not fit"),
            ErrorInput(((), (2,)), {}, RuntimeError, r"at least one dimension"),
            ErrorInput(((2, 2, 3), (3, 3, 2)), {}, RuntimeError, r"do not broadcast"),
        ),
    ),
]
