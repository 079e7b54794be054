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


V, M = smolgrad.tensor([1.0, 2.0]), smolgrad.ones(2, 3)
NARROW = np.array([0, 1], "int32")
BOOLS = smolgrad.tensor([True, False])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: functional.one_hot(NARROW), RuntimeError, "must be int64, got int32"),
        (
            lambda: functional.avg_pool2d(M, 2),
            RuntimeError,
            r"needs \(N, C, H, W\) or \(C, H, W\), only N may be 0, got shape \(2, 3\)",
        ),
        (lambda: functional.binary_cross_entropy(V, V), RuntimeError, r"all elements of input must be in \[0, 1\]"),
        (
            lambda: functional.binary_cross_entropy_with_logits(V, V, weight=smolgrad.ones(2, requires_grad=True)),
            RuntimeError,
            "has no gradient for weight",
        ),
        (lambda: functional.nll_loss(smolgrad.tensor(1.0), smolgrad.tensor(0)), ValueError, "needs a class axis"),
        (lambda: smolgrad.fmod(BOOLS, BOOLS), NotImplementedError, "not defined for bools"),
        (lambda: smolgrad.clamp(BOOLS, BOOLS, BOOLS), NotImplementedError, "not defined for bools"),
        (lambda: smolgrad.take_along_dim(V, NARROW), RuntimeError, "must be int64, got int32"),
        (lambda: smolgrad.einsum([0], V), NotImplementedError, "give an equation"),
        (lambda: smolgrad.einsum("i"), ValueError, "needs at least one operand"),
    ],
)
def test_it_is_refused(call, error, match) -> None:
    with pytest.raises(error, match=match):
        call()


def test_whole_quotients_of_integers_are_towards_0() -> None:
    for a, b, want in (([-7, 7], [2, -2], [-3, -3]), (np.array([7, 1], "uint8"), np.array([2, 3], "uint8"), [3, 0])):
        found = smolgrad.div(smolgrad.tensor(a), smolgrad.tensor(b), rounding_mode="trunc")
        assert found.data.tolist() == want


def test_a_number_is_scattered() -> None:
    found = smolgrad.scatter(smolgrad.zeros(3), 0, np.array([2, 0]), 5.0)
    assert found.data.tolist() == [5, 0, 5]


def test_losses_at_the_ends_of_their_options() -> None:
    assert functional.smooth_l1_loss(V, 3 * V, beta=0.0).item() == functional.l1_loss(V, 3 * V).item() == 3
    p = smolgrad.tensor([[0.25, 0.75], [0.5, 0.5]])
    each = functional.kl_div(smolgrad.log(p), p * 1, reduction="batchmean")
    assert each.item() == 0
    assert functional.kl_div(M, M, reduction="batchmean").item() == pytest.approx(-3)
    logits = smolgrad.log(smolgrad.tensor([[1.0, 3.0], [1.0, 1.0]], dtype="float64"))  # of 1/4 and 3/4
    smoothed = functional.cross_entropy(logits, smolgrad.tensor([0, 1]), ignore_index=1, label_smoothing=0.5)
    assert smoothed.item() == pytest.approx(0.75 * np.log(4) + 0.25 * np.log(4 / 3))


def test_einsum_of_many_products_goes_by_a_cheap_path() -> None:
    a, b, c = (smolgrad.randn(40, 40, dtype="float64") for _ in range(3))
    for equation, want in (
        ("ij,jk,kl->il", a.data @ b.data @ c.data),
        ("ij,kj,kl->li", (a.data @ b.data.T @ c.data).T),
    ):
        np.testing.assert_allclose(smolgrad.einsum(equation, a, b, c).data, want, atol=1e-12)
    assert smolgrad.einsum("ij,jk->ik", [a, b]).shape == (40, 40)
