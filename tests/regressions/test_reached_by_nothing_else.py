"""Lines of the engine that neither an entry nor a known fault leads to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import smolgrad
from smolgrad import autograd, functional, nn, optim


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


def test_an_error_of_a_forward_that_broadcasts_nothing_is_its_own() -> None:
    def refuses(_x: np.ndarray) -> np.ndarray:
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        autograd.Primitive("refuses", refuses, lambda g, _y, _x: g)(smolgrad.ones(2))


def test_padding_is_nothing_special_to_an_embedding_of_arrays() -> None:
    table, rows = np.arange(4.0).reshape(2, 2), np.array([1, 0])
    np.testing.assert_array_equal(functional.embedding(rows, table, padding_idx=0), table[rows])


def test_attention_takes_one_mask_and_two_dimensions() -> None:
    x = smolgrad.ones(2, 2)
    with pytest.raises(RuntimeError, match="is_causal is a mask itself"):
        functional.scaled_dot_product_attention(x, x, x, attn_mask=np.ones((2, 2), bool), is_causal=True)
    with pytest.raises(RuntimeError, match="at least two dimensions"):
        functional.scaled_dot_product_attention(x, x, smolgrad.ones(2))


def test_a_loss_is_a_module() -> None:
    x, y = smolgrad.tensor([1.0, 2.0]), smolgrad.tensor([0.0, 0.0])
    assert nn.MSELoss(reduction="sum")(x, y).item() == 5


def test_attention_without_biases_has_none() -> None:
    names = [name for name, _ in nn.MultiheadAttention(2, 1, bias=False).named_parameters()]
    assert names == ["in_proj_weight", "out_proj.weight"]


def test_a_buffer_that_was_not_there_yet_is_not_restored() -> None:
    # PyTorch's SGD has None for it.
    p = smolgrad.ones(1, requires_grad=True)
    sgd = optim.SGD([p], lr=0.5, momentum=0.5)
    state = sgd.state_dict()
    state["state"] = {0: {"momentum_buffer": None}}
    sgd.load_state_dict(state)
    p.grad = smolgrad.ones(1)
    sgd.step()
    assert p.item() == 0.5


def test_masked_fill_takes_one_value() -> None:
    with pytest.raises(RuntimeError, match=r"must be a number or 0-d, got shape \(2,\)"):
        smolgrad.ones(2).masked_fill(np.array([True, False]), smolgrad.ones(2))


def test_many_rows_among_slices_are_added_up() -> None:
    x = smolgrad.ones(2, 3, 1000, requires_grad=True)
    x[:, np.array([0, 0])].sum().backward()
    np.testing.assert_array_equal(x.grad.data.sum(axis=(0, 2)), [4000, 0, 0])


def test_what_is_too_deep_is_not_saved(tmp_path: Path) -> None:
    deep: list[object] = []
    deep.append(deep)
    with pytest.raises(ValueError, match="does it hold itself"):
        smolgrad.save(tmp_path / "deep.npz", deep)
    smolgrad.save(tmp_path / "number.npz", {"x": np.float64(2.5)})
    assert smolgrad.load(tmp_path / "number.npz") == {"x": 2.5}
