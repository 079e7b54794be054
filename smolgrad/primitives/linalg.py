"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd import Primitive, broadcast_shape
from .elementwise import mul, where
from .indexing import _pick
from .operands import axis, factor, one_dtype, refuse_bool, tensor
from .reduction import sum
from .shape import clone, mT, permute, reshape, squeeze, unsqueeze

__all__ = ["addmm", "bmm", "dot", "einsum", "kron", "matmul", "mm", "mv", "outer", "tensordot"]

_matmul: Primitive = Primitive(
    "matmul",
    np.matmul,
    lambda g, _y, _a, b: _matmul(g, mT(b)),
    lambda g, _y, a, _b: _matmul(mT(a), g),
    broadcasts=True,
)


def matmul(input: Any, other: Any) -> Any:
    """The matrix product over the last two axes, batches broadcast; a vector counts as a row first, a column second.

    RuntimeError for 0-d inputs, inner sizes that differ, batches that do not broadcast, and unequal dtypes.
    """
    a, b = (tensor("matmul", x) for x in (input, other))
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"matmul(): both inputs need at least one dimension, got shapes {a.shape} and {b.shape}")
    one_dtype("matmul", a, b)
    refuse_bool("matmul", a, error=NotImplementedError)
    row, column = a.ndim == 1, b.ndim == 1
    if a.shape[-1] != b.shape[0 if column else -2]:
        raise RuntimeError(
            f"matmul(): shapes {a.shape} and {b.shape} do not fit: the last size of the first and the "
            f"{'only' if column else 'last but one'} size of the second must be equal"
        )
    broadcast_shape("matmul", a.shape[:-2], b.shape[:-2])
    y = _matmul(unsqueeze(a, 0) if row else a, unsqueeze(b, 1) if column else b)
    if column:
        y = squeeze(y, -1)
    if row:
        y = squeeze(y, -1 if column else -2)
    return clone(y) if row or column else y  # no view of a tensor that nobody sees: it may be written in place


# --- of fixed rank ----------------------------------------------------------------------------------------------------


def _of_rank(op: str, a: Any, b: Any, *ranks: int) -> Any:
    """The matrix product, of two tensors with as many dimensions as ``ranks`` say and one dtype."""
    xs = [tensor(op, x) for x in (a, b)]
    shapes = " and ".join(str(x.shape) for x in xs)
    if tuple(x.ndim for x in xs) != ranks:
        raise RuntimeError(f"{op}(): needs {ranks[0]} and {ranks[1]} dimensions, got shapes {shapes}")
    inner = xs[1].shape[-2:][0]
    if xs[0].shape[-1] != inner or (ranks == (3, 3) and xs[0].shape[0] != xs[1].shape[0]):
        raise RuntimeError(f"{op}(): shapes {shapes} do not fit")
    one_dtype(op, *xs)
    return matmul(*xs)


def mm(input: Any, mat2: Any) -> Any:
    """The product of two matrices, (n, k) and (k, m). RuntimeError for other shapes and unequal dtypes."""
    return _of_rank("mm", input, mat2, 2, 2)


def bmm(input: Any, mat2: Any) -> Any:
    """The products of two batches of matrices, (b, n, k) and (b, k, m). RuntimeError as ``mm``."""
    return _of_rank("bmm", input, mat2, 3, 3)


def mv(input: Any, vec: Any) -> Any:
    """The product of a matrix (n, k) and a vector (k,). RuntimeError as ``mm``."""
    return _of_rank("mv", input, vec, 2, 1)


def dot(input: Any, tensor: Any) -> Any:
    """The sum of the products of two vectors' elements. RuntimeError as ``mm``."""
    return _of_rank("dot", input, tensor, 1, 1)


def outer(input: Any, vec2: Any) -> Any:
    """The product of each element of a vector (n,) with each of another (m,): (n, m). RuntimeError for other shapes."""
    xs = [tensor("outer", x) for x in (input, vec2)]
    if any(x.ndim != 1 for x in xs):
        raise RuntimeError(f"outer(): needs two vectors, got shapes {xs[0].shape} and {xs[1].shape}")
    return mul(unsqueeze(xs[0], 1), xs[1])


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """``beta`` · ``input`` + ``alpha`` · (``mat1`` @ ``mat2``), where ``input`` broadcasts to the product.

    What is multiplied by 0 does not count, NaN or not. RuntimeError as ``mm``.
    """
    x, product = tensor("addmm", input), _of_rank("addmm", mat1, mat2, 2, 2)
    one_dtype("addmm", x, product)
    if broadcast_shape("addmm", x.shape, product.shape) != product.shape:
        raise RuntimeError(f"addmm(): input of shape {x.shape} does not broadcast to {product.shape}")
    terms = (("beta", beta, x), ("alpha", alpha, product))
    zero = x.dtype.type(-0.0 if alpha or beta else 0)  # -0.0 added to -0.0 leaves it as it is
    a, b = (y if k == 1 else y * factor("addmm", n, k, x.dtype) if k else where(False, y, zero) for n, k, y in terms)
    return a + b


def kron(input: Any, other: Any) -> Any:
    """The Kronecker product: each element of ``input`` times all of ``other``, block by block, over all axes."""
    a, b = (tensor("kron", x) for x in (input, other))
    ndim = max(a.ndim, b.ndim)
    m, n = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    a = reshape(a, tuple(k for size in m for k in (size, 1)))
    b = reshape(b, tuple(k for size in n for k in (1, size)))
    y = mul(a, b)
    return clone(reshape(y, tuple(i * j for i, j in zip(m, n, strict=True)))) if ndim else y


# --- contractions -----------------------------------------------------------------------------------------------------

Labels = list[Any]  # of a tensor's axes: letters, and numbers for those that an ellipsis stands for
_SMALL = 2**16  # up to so many products, the best order costs more to find than it saves


def _without(x: Any, labels: Labels, kept: set[Any]) -> tuple[Any, Labels]:
    """``x`` summed over the axes whose labels are not ``kept``."""
    gone = tuple(i for i, label in enumerate(labels) if label not in kept)
    return (sum(x, gone), [label for label in labels if label in kept]) if gone else (x, labels)


def _arranged(x: Any, labels: Labels, *groups: Labels) -> Any:
    """``x`` with its axes in the order of ``groups``, each as one axis but for the first, whose axes stay."""
    x = permute(x, [labels.index(label) for group in groups for label in group])
    sizes, at = list(x.shape[: len(groups[0])]), len(groups[0])
    for group in groups[1:]:
        sizes.append(int(np.prod(x.shape[at : at + len(group)])))
        at += len(group)
    return reshape(x, sizes)


def _contracted(a: Any, of_a: Labels, b: Any, of_b: Labels, kept: set[Any]) -> tuple[Any, Labels]:
    """The sums of products of two tensors over the labels that are not ``kept``, by one matrix product."""
    stretched = {label for label in of_a if label in of_b and a.shape[of_a.index(label)] != b.shape[of_b.index(label)]}
    pair = []
    for x, labels, others in ((a, of_a, of_b), (b, of_b, of_a)):
        # An axis of 1 beside a longer one is none; and what only one of the two has is summed before, in int64 where it
        # is of integers, as in PyTorch: not where it is of 1.
        wanted = kept | (set(others) - stretched)
        lone = [i for i, label in enumerate(labels) if x.shape[i] == 1 and (label in stretched or label not in wanted)]
        x = reshape(x, [n for i, n in enumerate(x.shape) if i not in lone]) if lone else x
        labels = [label for i, label in enumerate(labels) if i not in lone]
        pair.append(_without(x, labels, wanted))
    (a, of_a), (b, of_b) = pair
    batch = [label for label in of_a if label in of_b and label in kept]
    inner = [label for label in of_a if label in of_b and label not in kept]
    left, right = ([x for x in labels if x not in batch + inner] for labels in (of_a, of_b))
    free = [a.shape[of_a.index(x)] for x in batch + left], [b.shape[of_b.index(x)] for x in right]
    if inner:
        y = matmul(_arranged(a, of_a, batch, left, inner), _arranged(b, of_b, batch, inner, right))
    else:
        y = mul(_arranged(a, of_a, batch, left, []), _arranged(b, of_b, batch, [], right))
    return reshape(y, free[0] + free[1]), batch + left + right


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """The sums of products over ``dims``: the last of ``a`` and the first of ``b``, or a list of axes for each.

    The result has the other axes of ``a``, then those of ``b``. RuntimeError for sizes that differ, unless one is 1.
    """
    a, b = tensor("tensordot", a), tensor("tensordot", b)
    one_dtype("tensordot", a, b)
    refuse_bool("tensordot", a, error=NotImplementedError)
    if isinstance(dims, (tuple, list)):
        first, second = ([axis("tensordot", d, x.ndim) for d in given] for x, given in zip((a, b), dims, strict=True))
    elif 0 <= dims <= min(a.ndim, b.ndim):
        first, second = [*range(a.ndim - dims, a.ndim)], [*range(dims)]
    else:
        raise RuntimeError(f"tensordot(): dims {dims} must be from 0 to the dimensions of both, {a.ndim} and {b.ndim}")
    if len(first) != len(second) or len({*first}) < len(first) or len({*second}) < len(second):
        raise RuntimeError(f"tensordot(): the lists of dims must be of one length and name none twice, got {dims}")
    for i, j in zip(first, second, strict=True):
        if a.shape[i] != b.shape[j]:
            if 1 not in (a.shape[i], b.shape[j]):
                raise RuntimeError(f"tensordot(): sizes of dim {i} of {a.shape} and dim {j} of {b.shape} differ")
            a, b = (sum(a, i, True), b) if b.shape[j] == 1 else (a, sum(b, j, True))
    one_dtype("tensordot", a, b)
    of_a: Labels = [*range(a.ndim)]
    of_b = [first[second.index(j)] if j in second else a.ndim + j for j in range(b.ndim)]
    kept = {label for label in of_a + of_b if label not in first}
    return clone(_contracted(a, of_a, b, of_b, kept)[0])


def _diagonal(x: Any, labels: Labels) -> tuple[Any, Labels]:
    """``x`` where the axes of one label have one index."""
    twice = [label for label in dict.fromkeys(labels) if labels.count(label) > 1]
    if not twice:
        return x, labels
    order = [i for label in twice for i, other in enumerate(labels) if other == label]
    rest = [i for i, label in enumerate(labels) if label not in twice]
    for label in twice:
        sizes = {n for n, other in zip(x.shape, labels, strict=True) if other == label}
        if len(sizes) > 1:
            raise RuntimeError(f"einsum(): subscript {label} is repeated, but for sizes that differ: {sorted(sizes)}")
    grid = np.ogrid[tuple(slice(x.shape[labels.index(label)]) for label in twice)]
    index = tuple(places for label, places in zip(twice, grid, strict=True) for _ in range(labels.count(label)))
    return _pick(permute(x, order + rest), index=index), twice + [labels[i] for i in rest]


def _labels(term: str, ndim: int | None, wide: int) -> Labels:
    """The labels of ``term``: of an input of ``ndim`` dimensions, or of the result, whose ellipsis has ``wide``."""
    before, dots, after = term.partition("...")
    for letter in before + after:
        if not (letter.isascii() and letter.isalpha()):
            raise RuntimeError(f"einsum(): a subscript must be in [a-zA-Z] or part of one ellipsis, got {letter!r}")
    if ndim is not None:
        wide = ndim - len(before + after)
        if wide < 0 or (wide and not dots):
            raise RuntimeError(f"einsum(): {term!r} does not fit an input of {ndim} dimensions")
    return [*before, *(range(-wide, 0) if dots else ()), *after]


def _parsed(equation: str, xs: list[Any]) -> tuple[list[Labels], Labels]:
    """The labels of each input, and of the result."""
    left, arrow, right = "".join(equation.split()).partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise RuntimeError(f"einsum(): {equation!r} has {len(terms)} terms, for {len(xs)} operands")
    found = [_labels(term, x.ndim, 0) for term, x in zip(terms, xs, strict=True)]
    every = [label for labels in found for label in labels]
    wide = -min((label for label in every if isinstance(label, int)), default=0)
    once = sorted(label for label in every if isinstance(label, str) and every.count(label) == 1)
    result = _labels(right, None, wide) if arrow else [*range(-wide, 0), *once]
    for label in result:
        if result.count(label) > 1 or label not in every:
            raise RuntimeError(f"einsum(): subscript {label} of the result must be one of the operands', and come once")
    return found, result


def _order(xs: list[Any], labels: list[Labels], result: Labels, sizes: dict[Any, int]) -> list[tuple[int, ...]]:
    """Which two to contract next, to go to the end of the rest: in turn, or where that may cost much, greedily."""
    in_turn: list[tuple[int, ...]] = [(0, count - 1 if count < len(xs) else 1) for count in range(len(xs), 1, -1)]
    if len(xs) < 3 or np.prod([float(n) for n in sizes.values()]) <= _SMALL:
        return in_turn
    number = {label: i for i, label in enumerate(sizes)}
    given: list[Any] = []
    for x, of_x in zip(xs, labels, strict=True):
        given += [np.broadcast_to(0.0, x.shape), [number[label] for label in of_x]]
    path: list[tuple[int, ...]] = np.einsum_path(*given, [number[label] for label in result], optimize="greedy")[0][1:]
    return path if all(len(step) == 2 for step in path) else in_turn


def einsum(equation: str, *operands: Any) -> Any:
    """Sums of products by labels of axes: ``"ij,jk->ik"``, with repeated labels, ``...``, and without ``->``.

    A label that is not in the result is summed over; sizes of 1 broadcast. The operands have one dtype. RuntimeError
    for an equation that does not fit them. Source: NumPy's ``einsum``, for whose axes PyTorch has the same rules.
    """
    if not isinstance(equation, str):
        raise NotImplementedError("einsum(): lists of numbers for labels are not offered here; give an equation")
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    if not operands:
        raise ValueError("einsum(): needs at least one operand")
    xs = [tensor("einsum", x) for x in operands]
    one_dtype("einsum", *xs)
    labels, result = _parsed(equation, xs)
    if len(xs) > 1:
        refuse_bool("einsum", *xs, error=NotImplementedError)
    sizes: dict[Any, int] = {}
    for i, x in enumerate(xs):
        xs[i], labels[i] = _diagonal(x, labels[i])
        for label, n in zip(labels[i], xs[i].shape, strict=True):
            if n != 1 and sizes.setdefault(label, n) not in (n, 1):
                raise RuntimeError(f"einsum(): subscript {label} has size {n} and, in another operand, {sizes[label]}")
            sizes[label] = n if n != 1 else sizes.get(label, 1)
    for i, j in _order(xs, labels, result, sizes):
        (a, of_a), (b, of_b) = ((xs[k], labels[k]) for k in (i, j))
        xs, labels = ([y for k, y in enumerate(ys) if k not in (i, j)] for ys in (xs, labels))
        later = zip(xs, labels, strict=True)  # where an axis of 1 is none
        kept = {*result, *(label for x, of_x in later for label, n in zip(of_x, x.shape, strict=True) if n != 1)}
        y, of_y = _contracted(a, of_a, b, of_b, kept)
        xs, labels = [*xs, y], [*labels, of_y]
    y, of_y = _without(xs[0], labels[0], set(result))
    return clone(permute(y, [of_y.index(label) for label in result]))
