"""Lines of the engine that neither an entry nor a known fault leads to."""

from __future__ import annotations

import numpy as np
import pytest

import smolgrad
from smolgrad import autograd, functional


def test_a_primitive_names_itself() -> None:
    x = smolgrad.ones(2, requires_grad=True)
    assert repr((x * x)._primitive) == "<primitive mul>"


def test_a_value_written_in_place_and_swept_is_gone_for_its_earlier_uses() -> None:
    x = smolgrad.ones(2, requires_grad=True)
    y = x * 2
    earlier = y + 1
    y.mul_(3)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="written in place, and its graph was swept and let go"):
        autograd.backward([earlier], [smolgrad.ones(2)])


def test_logits_need_a_class_axis() -> None:
    with pytest.raises(RuntimeError, match="needs a class axis, got a 0-d tensor"):
        functional.cross_entropy(smolgrad.tensor(1.0), smolgrad.tensor(0))


def test_bools_have_no_powers() -> None:
    with pytest.raises(NotImplementedError, match=r"pow\(\): is not defined for bools"):
        smolgrad.pow(smolgrad.tensor([True]), smolgrad.tensor([False]))


def test_where_is_a_method_of_what_is_taken() -> None:
    x = smolgrad.tensor([1.0, 2.0], requires_grad=True)
    y = x.where(smolgrad.tensor([True, False]), 5.0)
    y.backward(smolgrad.tensor([3.0, 4.0]))
    assert (y.data == np.array([1, 5])).all()
    assert x.grad is not None
    assert (x.grad.data == np.array([3, 0])).all()
