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


@st.composite
def of_rank(draw: Any, *terms: str) -> Call:
    """A shape for each of ``terms``, whose letters stand for sizes: often alike, and 0 too."""
    sizes = {letter: draw(shapes.side(0, 3)) for letter in sorted({*"".join(terms)})}
    if draw(st.booleans()):
        sizes = dict.fromkeys(sizes, draw(shapes.side(0, 2)))
    return Call(tuple(tuple(sizes[letter] for letter in term) for term in terms))


@st.composite
def sums(draw: Any) -> Call:
    """A product of matrices, and what it is added to, which broadcasts."""
    (n, k), (_, m) = draw(of_rank("nk", "km")).shapes
    added = draw(shapes.stretched((n, m)))
    params = {"beta": draw(st.sampled_from([1, 2, 0])), "alpha": draw(st.sampled_from([1, -0.5, 0]))}
    return Call((added, (n, k), (k, m)), params)


@st.composite
def blocks(draw: Any) -> Call:
    """Two tensors of any ranks."""
    return Call(tuple(draw(shapes.shapes(max_dims=2, max_side=2, min_side=0)) for _ in range(2)))


@st.composite
def contracted(draw: Any) -> Call:
    """Axes of each, in any order and from either end, of equal sizes or one of them 1; or how many."""
    sizes = [draw(shapes.side(0, 2)) for _ in range(draw(st.integers(0, 2)))]
    first, second = (list(draw(shapes.shapes(max_dims=1, max_side=2, min_side=0))) for _ in range(2))
    if draw(st.booleans()):
        return Call((tuple(first + sizes), tuple(sizes + second)), {"dims": len(sizes)})
    lists = []
    for own in (first, second):
        at = draw(st.permutations(range(len(own) + len(sizes))))[: len(sizes)]
        for i, n in sorted(zip(at, sizes, strict=True)):
            own.insert(i, n)
        if at and draw(st.integers(0, 3)) == 3:
            own[at[0]] = 1
        lists.append(tuple(i - len(own) if draw(st.booleans()) else i for i in at))
    return Call((tuple(first), tuple(second)), {"dims": tuple(lists)})


@st.composite
def equations(draw: Any) -> Call:
    """Terms of repeated, shared and lone labels, with and without an ellipsis and a result; or ellipses alone."""
    if draw(st.integers(0, 3)) == 3:
        return Call(draw(shapes.broadcastable(2)), {"equation": draw(st.sampled_from(["...,...", "...,...->..."]))})
    sizes = {letter: draw(shapes.side(0, 2)) for letter in "abC"}
    wide = draw(shapes.shapes(max_dims=2, max_side=2, min_side=0)) if draw(st.booleans()) else None
    terms, found = [], []
    for _ in range(draw(st.sampled_from([1, 2, 2, 2, 3]))):
        letters = draw(st.lists(st.sampled_from("abC"), max_size=3))
        one = draw(st.sampled_from([*letters, "", "", ""]))  # a label that is stretched, where it is not repeated
        shape = [1 if letter == one and letters.count(one) == 1 else sizes[letter] for letter in letters]
        if wide is not None and draw(st.integers(0, 3)):
            at = draw(st.integers(0, len(letters)))
            letters[at:at], shape[at:at] = ["..."], draw(shapes.stretched(wide))
        terms.append("".join(letters))
        found.append(tuple(shape))
    equation = ",".join(terms)
    if draw(st.booleans()):
        there = sorted({*equation} & {*"abC"}) + ["..."] * ("..." in equation)
        equation += "->" + "".join(draw(st.permutations(there))[: draw(st.integers(0, len(there)))])
    return Call(tuple(found), {"equation": equation})


def _unfit(*errors: tuple[tuple[tuple[int, ...], ...], str]) -> tuple[ErrorInput, ...]:
    return tuple(ErrorInput(found, {}, RuntimeError, match) for found, match in errors)


def _wrong_equation(equation: str, match: str, *found: tuple[int, ...]) -> ErrorInput:
    return ErrorInput(found, {"equation": equation}, RuntimeError, r"einsum\(\): .*" + match)


def _dims(dims: Any, error: type[Exception], match: str) -> ErrorInput:
    return ErrorInput(((2, 3), (3, 2)), {"dims": dims}, error, match)


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
    OpSpec(
        "mm",
        of_rank("nk", "km"),
        affine=True,
        errors=_unfit(
            (((2, 3), (2, 3)), r"mm\(\): shapes .* do not fit"), (((3,), (3, 2)), r"needs 2 and 2 dimensions")
        ),
    ),
    OpSpec(
        "bmm",
        of_rank("bnk", "bkm"),
        affine=True,
        errors=_unfit(
            (((2, 1, 3), (1, 3, 1)), r"bmm\(\): shapes .* do not fit"), (((2, 3), (3, 2)), r"needs 3 and 3 dimensions")
        ),
    ),
    OpSpec(
        "mv",
        of_rank("nk", "k"),
        affine=True,
        errors=_unfit(
            (((2, 3), (2,)), r"mv\(\): shapes .* do not fit"), (((2, 3), (3, 1)), r"needs 2 and 1 dimensions")
        ),
    ),
    OpSpec(
        "dot",
        of_rank("n", "n"),
        affine=True,
        errors=_unfit((((2,), (1,)), r"dot\(\): shapes .* do not fit"), (((2, 1), (1,)), r"needs 1 and 1 dimensions")),
    ),
    OpSpec("outer", of_rank("n", "m"), affine=True, errors=_unfit((((2, 1), (2,)), r"needs two vectors"))),
    OpSpec(
        "addmm",
        sums(),
        affine=True,
        errors=_unfit(
            (((3,), (2, 3), (3, 2)), r"do not broadcast"),
            (((1, 2, 2), (2, 3), (3, 2)), r"does not broadcast to \(2, 2\)"),
            (((2, 2), (2, 3), (2, 3)), r"do not fit"),
        ),
    ),
    OpSpec("kron", blocks(), affine=True, errors=(ErrorInput(((2,),), {"other": 2.0}, TypeError, r"needs a Tensor"),)),
    OpSpec(
        "tensordot",
        contracted(),
        affine=True,
        errors=(
            _dims(2, RuntimeError, r"sizes of dim 0 of \(2, 3\) and dim 0 of \(3, 2\) differ"),
            _dims(3, RuntimeError, r"dims 3 must be from 0 to the dimensions of both, 2 and 2"),
            _dims(-1, RuntimeError, r"dims -1 must be"),
            _dims(((0, 1), (0,)), RuntimeError, r"of one length"),
            _dims(((1, 1), (0, 0)), RuntimeError, r"name none twice"),
            _dims(((2,), (0,)), IndexError, r"dim 2 is out of range"),
        ),
    ),
    OpSpec(
        "einsum",
        equations(),
        affine=True,
        written=lambda op, xs, params: op(params["equation"], *xs),
        errors=(
            _wrong_equation("ij,jk->il", r"subscript l of the result must be", (2, 3), (3, 2)),
            _wrong_equation("ij,jk->ii", r"subscript i of the result must be .* once", (2, 3), (3, 2)),
            _wrong_equation("ij", r"does not fit an input of 1 dimensions", (2,)),
            _wrong_equation("ij,jk", r"has 2 terms, for 1 operands", (2, 3)),
            _wrong_equation("ij,jk", r"size 2 and, in another operand, 3", (2, 3), (2, 3)),
            _wrong_equation("ii", r"i is repeated, but for sizes that differ: \[2, 3\]", (2, 3)),
            _wrong_equation("i.j", r"must be in \[a-zA-Z\] or part of one ellipsis, got '.'", (2, 3)),
            _wrong_equation("1", r"got '1'", (2,)),
        ),
    ),
]
