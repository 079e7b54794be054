"""Ops that move elements: what is a view, what is a copy, and what the entries do not draw."""

from __future__ import annotations

import numpy as np
import pytest

import smolgrad

from .tensors import leaf, tensor

F = smolgrad.functional


def test_a_view_is_never_a_copy():
    x = tensor(np.arange(6.0).reshape(2, 3))
    assert np.shares_memory(x.view(3, -1).data, x.data)
    for other in (x.T, x[:, ::2], x.expand(2, 2, 3)):
        with pytest.raises(RuntimeError, match=r"view\(\): .* cannot be read in shape .* reshape\(\) makes one"):
            other.view(-1)
    assert x.T.view(3, 2, 1).shape == (3, 2, 1)
    assert tensor(np.zeros((0, 3))).view(3, 0).shape == (3, 0)


def test_parts_are_views_and_diagonals_are_written_through():
    x = tensor(np.zeros((2, 3)))
    parts = [*x.split(2, 1), *x.chunk(2), *x.unbind(1), x.diagonal(), x.diagonal(1), x.swapaxes(0, 1), x.movedim(0, 1)]
    assert all(np.shares_memory(part.data, x.data) for part in parts)
    x.diagonal(1).add_(tensor([5.0, 7.0]))
    assert x.data.tolist() == [[0, 5, 0], [0, 0, 7]]


def test_what_is_no_view_shares_no_memory():
    x = tensor(np.ones((1, 3)))
    for y in (x.repeat(1, 1), x.tile(()), x.flip(()), x.roll(0), F.pad(x, ()), F.pad(x, (0, 0)), x.diag(), x.tril()):
        assert not np.shares_memory(y.data, x.data)
        y.add_(1)
    assert (x.data == 1).all()


def test_an_axis_of_nothing_unbinds_to_nothing_and_splits_to_one_part():
    assert smolgrad.unbind(tensor(np.zeros((0, 2)))) == ()
    assert smolgrad.split(tensor(np.zeros((0, 2))), ()) == ()
    assert [y.shape for y in smolgrad.split(tensor(np.zeros((0, 2))), 0)] == [(0, 2)]
    assert [y.shape for y in smolgrad.chunk(tensor(np.zeros((0, 2))), 3)] == [(0, 2)] * 3


@pytest.mark.parametrize("widths", [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (-1, 2, 0, -1)])
def test_each_width_of_a_pad_is_its_own(widths):
    # HIPS autograd 7b61be3: the adjoint sliced [lo:-hi], which is empty for hi = 0.
    x = leaf(np.arange(6.0).reshape(2, 3))
    y = F.pad(x, widths, value=9.0)
    w = np.arange(1.0, 1 + y.size).reshape(y.shape)
    y.backward(tensor(w))
    left, right, top, bottom = widths
    padded = np.pad(w, ((max(-top, 0), max(-bottom, 0)), (max(-left, 0), max(-right, 0))))
    inner = padded[max(top, 0) : padded.shape[0] - max(bottom, 0), max(left, 0) : padded.shape[1] - max(right, 0)]
    np.testing.assert_array_equal(x.grad.data, inner)


def test_a_repeat_sums_over_its_copies_alone():
    # HIPS autograd 72a6ccc: the adjoint summed the whole axis, right only for one of length 1.
    x = leaf([[1.0, 2.0]])
    x.repeat(1, 2).backward(tensor([[1.0, 10.0, 100.0, 1000.0]]))
    assert x.grad.data.tolist() == [[101, 1010]]
    none = leaf([1.0, 2.0])
    none.repeat(0, 1).backward(tensor(np.zeros((0, 2))))
    assert none.grad.data.tolist() == [0, 0]


def test_a_circular_pad_does_not_bring_back_what_it_cut_off():
    x = tensor([[1.0, 2.0, 3.0]])
    assert F.pad(x, (-1, 2), "circular").data.tolist() == [[2, 3, 2, 3]]
    with pytest.raises(RuntimeError, match="cannot widen 2 elements by 0 before and 3 after"):
        F.pad(x, (-1, 3), "circular")  # PyTorch reads memory that nobody has set
