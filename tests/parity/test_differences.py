"""Each row of the table of differences: PyTorch still differs there, and ours is what the reason says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import smolgrad
from spec.engines.pytorch import PyTorch
from spec.faults.killing import fails
from spec.ops import BY_NAME
from spec.oracles.differences import DIFFERENCES, LACKING, REFUSALS, STRICTER, Refusal
from tests.properties import test_errors, test_ownership, test_sweeps


def test_dim_of_nothing_reduces_nothing() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert torch.sum(torch.tensor(x), dim=()).shape == ()
    assert (smolgrad.sum(smolgrad.tensor(x), dim=()).data == x).all()


def test_dim_none_is_every_axis_of_logsumexp() -> None:
    x = np.zeros((2, 2))
    with pytest.raises(TypeError):
        torch.logsumexp(torch.tensor(x), dim=None)
    assert smolgrad.logsumexp(smolgrad.tensor(x), dim=None).item() == pytest.approx(math.log(4))


def test_dim_none_is_every_axis_of_max() -> None:
    x = np.array([[1.0, 3.0], [2.0, 0.0]])
    with pytest.raises(TypeError):
        torch.max(torch.tensor(x), dim=None)
    assert smolgrad.max(smolgrad.tensor(x), dim=None).item() == torch.max(torch.tensor(x)).item() == 3


def _gradient(module: Any, op: Callable[[Any], Any], *numbers: float) -> list[float]:
    x = _leaf(module, *numbers)
    op(x).sum().backward()
    return [float(g) for g in x.grad]


def test_the_slopes_of_max_and_min_at_a_nan_are_those_of_amax_and_amin() -> None:
    for of_all, other in (("max", "amax"), ("min", "amin")):
        assert _gradient(torch, getattr(torch, of_all), math.nan) == [1]
        for module, op in ((torch, other), (smolgrad, other), (smolgrad, of_all)):
            assert math.isnan(_gradient(module, getattr(module, op), math.nan)[0])


def test_dim_none_is_every_axis_of_prod_median_and_min() -> None:
    x = np.array([[1.0, 3.0], [2.0, 4.0]])
    for op, value in (("prod", 24), ("median", 2), ("min", 1)):
        with pytest.raises(TypeError):
            getattr(torch, op)(torch.tensor(x), dim=None)
        assert getattr(smolgrad, op)(smolgrad.tensor(x), dim=None).item() == value
        assert getattr(smolgrad, op)(smolgrad.tensor(x), dim=None, keepdim=True).shape == (1, 1)


def test_the_slope_of_a_product_is_the_product_of_the_others() -> None:
    numbers = (2.0**-80, 2.0**-80, 4.0)
    assert _gradient(torch, torch.prod, *numbers) == [0, 0, 0]  # the product, which is 0 in float32, over the element
    assert _gradient(smolgrad, smolgrad.prod, *numbers) == [2.0**-78, 2.0**-78, 0]
    infinite = (math.inf, 2.0)
    assert math.isnan(_gradient(torch, torch.prod, *infinite)[0])
    assert _gradient(smolgrad, smolgrad.prod, *infinite) == [2, math.inf]


def test_the_slope_of_a_running_product_is_that_of_products() -> None:
    numbers = (math.inf, 2.0)
    assert math.isnan(_gradient(torch, lambda x: torch.cumprod(x, 0), *numbers)[0])
    assert _gradient(smolgrad, lambda x: smolgrad.cumprod(x, 0), *numbers) == [3, math.inf]


def test_integers_are_rounded_to_tens() -> None:
    with pytest.raises(NotImplementedError, match="round_cpu"):
        torch.round(torch.tensor([15, -26]), decimals=-1)
    assert smolgrad.round(smolgrad.tensor([15, -26]), decimals=-1).data.tolist() == [20, -30]


def test_of_tied_elements_the_first_is_named() -> None:
    x = smolgrad.tensor([2.0, 1.0, 2.0, 1.0, 1.0])
    assert smolgrad.sort(x, 0).indices.data.tolist() == [1, 3, 4, 0, 2]
    assert smolgrad.sort(x, 0, descending=True).indices.data.tolist() == [0, 2, 1, 3, 4]
    assert smolgrad.topk(x, 3).indices.data.tolist() == [0, 2, 1]
    assert smolgrad.topk(x, 4, largest=False, sorted=False).indices.data.tolist() == [1, 3, 4, 0]
    many = [2.0, 1.0] * 50
    ones = list(range(1, 100, 2))
    assert smolgrad.sort(smolgrad.tensor(many)).indices.data.tolist()[:50] == ones
    assert torch.sort(torch.tensor(many)).indices.tolist()[:50] != ones
    assert smolgrad.topk(smolgrad.tensor(many), 50, largest=False).indices.data.tolist() == ones
    assert torch.topk(torch.tensor(many), 50, largest=False).indices.tolist() != ones


def test_the_norm_of_one_number_has_the_slope_of_its_absolute_value() -> None:
    assert math.isnan(_gradient(torch, lambda x: torch.norm(x, 3), 2.0**-80)[0])
    for number, slope in ((2.0**-80, 1), (-math.inf, -1), (0.0, 0)):
        assert _gradient(smolgrad, lambda x: smolgrad.norm(x, 3), number) == [slope]


def test_the_slope_of_std_where_nothing_is_spread_is_a_constant_0() -> None:
    def second(module: Any, grad: Any) -> float:
        x, weight = _leaf(module, 3.0, 3.0), module.tensor(1.0, requires_grad=True)
        (slope,) = grad([module.std(x)], [x], [weight], create_graph=True)
        assert slope.detach().numpy().tolist() == [0, 0]
        return float(grad([slope.sum()], [weight])[0])

    assert math.isnan(second(torch, torch.autograd.grad))
    assert second(smolgrad, smolgrad.grad) == 0


def test_dim_none_is_every_axis_of_squeeze() -> None:
    x = np.zeros((1, 2, 1))
    with pytest.raises(TypeError):
        torch.squeeze(torch.tensor(x), None)
    assert smolgrad.squeeze(smolgrad.tensor(x), None).shape == (2,)


def test_a_piece_is_written_like_any_view() -> None:
    def written(module: Any, op: str) -> Any:
        x, factor = module.tensor([1.0, 2.0]), module.tensor(3.0, requires_grad=True)
        pieces = getattr(module, op)(x, *([] if op == "unbind" else [1]))
        pieces[0].mul_(factor)
        return x

    for op, first in (("split", 3), ("chunk", 3), ("unbind", 3)):
        with pytest.raises(RuntimeError, match="multiple views"):
            written(torch, op)
        assert float(written(smolgrad, op).data[0]) == first


def test_indices_are_numpys() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    with pytest.raises(ValueError, match="step must be greater than zero"):
        torch.tensor(x)[::-1]
    split = (0, slice(None), [0, 1])
    assert torch.tensor(x)[split].shape == (3, 2)
    assert smolgrad.tensor(x)[split].shape == x[split].shape == (2, 3)


def test_the_last_of_repeated_writes_takes_the_gradient() -> None:
    def gradient(module: Any) -> list[float]:
        x, value = module.zeros(3) * 1, module.tensor([1.0, 2.0], requires_grad=True)
        x[[1, 1]] = value
        x.sum().backward()
        return [float(g) for g in value.grad]

    assert gradient(torch) == [1, 1]
    assert gradient(smolgrad) == [0, 1]


@pytest.mark.parametrize("op", ["scatter", "index_put"])
def test_the_last_of_repeated_writes_takes_the_gradient_in_pytorchs_functions_too(op: str) -> None:
    def gradient(module: Any) -> tuple[list[float], list[float]]:
        places, value = module.tensor([1, 1]), module.tensor([1.0, 2.0], requires_grad=True)
        x = module.zeros(3)
        y = x.scatter(0, places, value) if op == "scatter" else x.index_put((places,), value)
        y.sum().backward()
        return [float(v) for v in y.detach()], [float(g) for g in value.grad]

    assert gradient(torch) == ([0, 2, 0], [1, 1])
    assert gradient(smolgrad) == ([0, 2, 0], [0, 1])


@pytest.mark.parametrize("op", ["scatter", "scatter_add"])
def test_a_source_that_is_larger_than_its_index_has_a_gradient(op: str) -> None:
    def gradient(module: Any) -> list[float]:
        source = module.tensor([1.0, 2.0, 3.0], requires_grad=True)
        getattr(module.zeros(2), op)(0, module.tensor([1, 0]), source).sum().backward()
        return [float(g) for g in source.grad]

    with pytest.raises(RuntimeError, match="invalid gradient at index 1"):
        gradient(torch)
    assert gradient(smolgrad) == [1, 1, 0]


def test_einsum_of_one_operand_is_a_new_tensor() -> None:
    def after_a_write(module: Any) -> float:
        x = module.zeros(2, 2)
        y = module.einsum("ii->i", x)
        x.add_(1)
        return float(y[0])

    assert after_a_write(torch) == 1
    assert after_a_write(smolgrad) == 0


def test_the_mixed_second_derivative_of_a_power_at_exponent_0() -> None:
    def mixed(module: Any, grad: Any) -> float:
        base, exponent = (module.tensor(v, requires_grad=True) for v in (4.0, 0.0))
        (slope,) = grad(base**exponent, [base], create_graph=True)
        (second,) = grad(slope, [exponent])
        return float(second)

    assert mixed(torch, torch.autograd.grad) == 0
    assert mixed(smolgrad, smolgrad.grad) == 0.25  # d/db (b a^(b-1)) at a = 4, b = 0


def test_huber_loss_of_two_dtypes_has_gradients() -> None:
    arrays = np.zeros(2, np.float32), np.ones(2)
    x, y = (torch.tensor(a, requires_grad=True) for a in arrays)
    loss = torch.nn.functional.huber_loss(x, y)
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        loss.backward()
    a, b = (smolgrad.tensor(a, requires_grad=True) for a in arrays)
    ours = smolgrad.functional.huber_loss(a, b)
    ours.backward()
    assert str(ours.dtype) == "float32" == str(loss.dtype).removeprefix("torch.")
    for leaf, dtype, slope in ((a, "float32", -0.5), (b, "float64", 0.5)):
        assert leaf.grad is not None
        assert leaf.grad.dtype == dtype
        assert leaf.grad.data.tolist() == [slope, slope]


def test_rms_norm_of_huge_numbers_has_its_slope() -> None:
    # x / |x| is flat; only eps, which is nothing beside x², keeps it from being exactly that.
    def slope(m: Any, function: Any) -> float:
        x = m.tensor([0.0, 2.0**500], dtype=m.float64, requires_grad=True)
        function.rms_norm(x, (2,), m.tensor([0.0, 2.0**500], dtype=m.float64))[1].backward()
        return float(x.grad[1])

    assert abs(slope(smolgrad, smolgrad.functional)) < 1e-12
    assert abs(slope(torch, torch.nn.functional)) > 1


def test_layer_norm_of_one_huge_number_is_0() -> None:
    x = np.array([1e300])
    assert torch.nn.functional.layer_norm(torch.tensor(x), (1,)).isnan().all()
    assert (smolgrad.functional.layer_norm(smolgrad.tensor(x), (1,)).data == 0).all()  # x - mean(x) is


def test_a_lane_of_one_number_gives_layer_norms_weight_no_gradient() -> None:
    def gradient(module: Any, functional: Any) -> float:
        weight = module.tensor([0.0], requires_grad=True)
        functional.layer_norm(module.tensor([1.40625]), (1,), weight).backward(module.ones(1))
        return float(weight.grad)

    assert abs(gradient(torch, torch.nn.functional)) > 60 * np.finfo("float32").eps
    assert gradient(smolgrad, smolgrad.functional) == 0  # x - mean(x) is


def test_group_norm_of_no_values_has_no_gradient_of_its_weight() -> None:
    def gradient(module: Any, functional: Any) -> float:
        weight = module.tensor([1.0], requires_grad=True)
        functional.group_norm(module.zeros(1, 1, 0), 1, weight).sum().backward()
        return float(weight.grad)

    assert math.isnan(gradient(torch, torch.nn.functional))
    assert gradient(smolgrad, smolgrad.functional) == 0  # a sum of nothing


def test_group_norm_subtracts_the_mean_before_it_squares() -> None:
    x = np.full((1, 1, 2), 1e300)
    assert torch.nn.functional.group_norm(torch.tensor(x), 1).isnan().all()
    assert (smolgrad.functional.group_norm(smolgrad.tensor(x), 1).data == 0).all()


def test_the_slope_of_cosine_similarity_below_eps() -> None:
    def slope(module: Any, functional: Any) -> float:
        x = module.tensor([6e-9, 0.0], dtype=module.float64, requires_grad=True)
        functional.cosine_similarity(x, module.tensor([1.0, 0.0], dtype=module.float64), 0).backward()
        return float(x.grad[0])

    assert slope(torch, torch.nn.functional) == pytest.approx(4e7)
    assert slope(smolgrad, smolgrad.functional) == pytest.approx(1e8)  # it is x[0] / eps there


def test_embedding_of_nothing_can_be_differentiated_twice() -> None:
    rows = np.zeros((0,), np.int64)

    def second(weight: Any, looked_up: Any, grad: Any) -> Any:
        (g,) = grad([looked_up], [weight], [looked_up * 1.0], create_graph=True)
        return grad([g.sum()], [weight], allow_unused=True)

    table = torch.ones(3, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot reshape"):
        second(table, torch.nn.functional.embedding(torch.tensor(rows), table), torch.autograd.grad)
    ours = smolgrad.ones(3, 2, requires_grad=True)
    (g,) = second(ours, smolgrad.functional.embedding(smolgrad.tensor(rows), ours), smolgrad.grad)
    assert g is None or (g.data == 0).all()


def test_the_second_derivative_of_binary_cross_entropy_has_nothing_added() -> None:
    def second(module: Any, functional: Any, grad: Any) -> float:
        x = module.tensor(0.25, dtype=module.float64, requires_grad=True)
        target = module.tensor(1.0, dtype=module.float64)
        (slope,) = grad(functional.binary_cross_entropy(x, target), [x], create_graph=True)
        return float(grad(slope, [x])[0])

    assert abs(second(torch, torch.nn.functional, torch.autograd.grad) - 16) > 1e-11
    assert abs(second(smolgrad, smolgrad.functional, smolgrad.grad) - 16) < 1e-14  # d²/dx² -log x = 1/x²


def test_the_slope_of_kl_div_at_a_negative_target_is_nan_whatever_the_cotangent() -> None:
    def slope(module: Any, functional: Any, cotangent: float) -> float:
        target = module.tensor([-1.0], requires_grad=True)
        losses = functional.kl_div(module.tensor([0.0]), target, reduction="none")
        losses.backward(module.tensor([cotangent]))
        return float(target.grad[0])

    assert math.isnan(slope(torch, torch.nn.functional, 1.0))
    assert slope(torch, torch.nn.functional, 0.0) == 0
    assert all(math.isnan(slope(smolgrad, smolgrad.functional, cotangent)) for cotangent in (1.0, 0.0))


@pytest.mark.parametrize("name", ["elu", "selu", "hardtanh", "hardswish"])
def test_the_slope_of_an_activation_at_nan_is_that_of_pytorchs_vectors(name: str) -> None:
    def slope(module: Any, functional: Any, count: int) -> float:
        x = module.tensor([math.nan] * count, requires_grad=True)
        getattr(functional, name)(x).sum().backward()
        return float(x.grad[0])

    alone, beside_others = (slope(torch, torch.nn.functional, count) for count in (1, 64))
    assert alone > 0.9
    ours = [slope(smolgrad, smolgrad.functional, count) for count in (1, 64)]
    np.testing.assert_equal(ours, [beside_others] * 2)  # NaN as x is, but of what is flat beyond its bounds 0
    assert beside_others != alone


def test_dropout_draws_numpys_numbers() -> None:
    kept = np.random.default_rng(5).random(64) >= 0.25
    smolgrad.manual_seed(5)
    torch.manual_seed(5)
    assert (smolgrad.functional.dropout(smolgrad.ones(64), 0.25).data == kept / np.float32(0.75)).all()
    assert (torch.nn.functional.dropout(torch.ones(64), 0.25).numpy() != kept / np.float32(0.75)).any()


def test_what_is_refused_here_alone() -> None:
    mixed = np.zeros((0, 2, 2), np.float32), np.zeros((0, 2, 2))
    for product in (smolgrad.matmul, smolgrad.bmm):
        assert getattr(torch, product.__name__)(*map(torch.tensor, mixed)).dtype == torch.float64
        with pytest.raises(RuntimeError, match="one dtype"):
            product(*map(smolgrad.tensor, mixed))
    assert torch.einsum("abc,abc->abc", *map(torch.tensor, mixed)).dtype == torch.float64
    with pytest.raises(RuntimeError, match="one dtype"):
        smolgrad.einsum("abc,abc->abc", *map(smolgrad.tensor, mixed))
    nobody = [np.zeros((0, 0), bool)] * 3
    for name, count in (("mm", 2), ("addmm", 3)):
        assert getattr(torch, name)(*map(torch.tensor, nobody[:count])).dtype == torch.bool
        with pytest.raises(NotImplementedError, match="not defined for bools"):
            getattr(smolgrad, name)(*map(smolgrad.tensor, nobody[:count]))
    bools = np.ones((2, 2), bool), np.ones((2, 2), bool), np.ones(2, bool)
    with pytest.raises(NotImplementedError, match="not defined for bools"):
        smolgrad.functional.linear(*map(smolgrad.tensor, bools))
    for softmax in (smolgrad.functional.softmax, smolgrad.functional.log_softmax):
        assert getattr(torch.nn.functional, softmax.__name__)(torch.zeros(0, dtype=torch.int8), 0).dtype == torch.int8
        with pytest.raises(NotImplementedError, match="needs a floating dtype"):
            softmax(smolgrad.zeros(0, dtype="int8"), 0)
    assert torch.nn.functional.dropout(torch.zeros(0, dtype=torch.int8)).shape == (0,)
    with pytest.raises(RuntimeError, match="needs a floating dtype"):
        smolgrad.functional.dropout(smolgrad.zeros(0, dtype="int8"))
    single, double = np.zeros(2, np.float32), np.zeros(())
    assert torch.lerp(*map(torch.tensor, (single, single, double))).dtype == torch.float32
    with pytest.raises(RuntimeError, match="one dtype"):
        smolgrad.lerp(*map(smolgrad.tensor, (single, single, double)))
    integers = np.ones((1, 2), "int8"), np.ones((1, 1, 2), "int8")
    assert torch.nn.functional.conv1d(*map(torch.tensor, integers)).dtype == torch.int8
    with pytest.raises(RuntimeError, match="needs a floating dtype"):
        smolgrad.functional.conv1d(*map(smolgrad.tensor, integers))
    assert torch.nn.functional.avg_pool2d(torch.ones((1, 2, 2), dtype=torch.int64), 2).dtype == torch.int64
    with pytest.raises(NotImplementedError, match="needs a floating dtype"):
        smolgrad.functional.avg_pool2d(smolgrad.ones((1, 2, 2), dtype="int64"), 2)
    nothing = np.zeros((2, 1, 0), "int8")
    assert torch.nn.functional.batch_norm(torch.tensor(nothing), None, None, training=True).dtype == torch.int8
    with pytest.raises(NotImplementedError, match="needs a floating dtype"):
        smolgrad.functional.batch_norm(smolgrad.tensor(nothing), None, None, training=True)
    attention = BY_NAME["functional.scaled_dot_product_attention"]
    one, real = np.ones((1, 1), "int8"), np.ones((1, 1), np.float32)
    assert attention.ref is not None
    assert attention.ref(*map(torch.tensor, (one, one, real))).dtype == torch.float32
    with pytest.raises(RuntimeError, match="needs a floating dtype"):
        smolgrad.functional.scaled_dot_product_attention(*map(smolgrad.tensor, (one, one, real)))
    nowhere = (np.zeros(0, bool),)
    of_two = np.zeros(0, np.float32), np.zeros(())
    assert torch.index_put(torch.tensor(of_two[0]), (torch.tensor(nowhere[0]),), torch.tensor(of_two[1])).shape == (0,)
    with pytest.raises(RuntimeError, match="one dtype"):
        smolgrad.index_put(smolgrad.tensor(of_two[0]), nowhere, smolgrad.tensor(of_two[1]))
    few = np.zeros((0, 0), "uint8"), 0, np.zeros(0, "int64"), np.zeros((0, 0), "uint8")
    as_torch = (torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in few)
    assert torch.index_add(*as_torch, alpha=-0.5).dtype == torch.uint8
    with pytest.raises(RuntimeError, match=r"alpha -0.5 is out of range for uint8"):
        smolgrad.index_add(smolgrad.tensor(few[0]), *few[1:], alpha=-0.5)
    byte = np.zeros(1, "uint8")
    assert torch.nn.functional.pad(torch.tensor(byte), (0, 0), value=-1.0).dtype == torch.uint8
    with pytest.raises(RuntimeError, match=r"value -1.0 is out of range for uint8"):
        smolgrad.functional.pad(smolgrad.tensor(byte), (0, 0), value=-1.0)
    functional = (
        "avg_pool2d batch_norm conv1d conv2d dropout linear log_softmax pad scaled_dot_product_attention softmax"
    )
    assert sorted(STRICTER) == [
        "addmm",
        "bmm",
        "einsum",
        *(f"functional.{name}" for name in functional.split()),
        "index_add",
        "index_put",
        "lerp",
        "matmul",
        "mm",
        "mv",
        "tensordot",
    ]


def test_floor_divide_is_flat() -> None:
    x = torch.tensor(7.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        torch.floor_divide(x, 2.0).backward()
    y = smolgrad.tensor(7.0, requires_grad=True)
    smolgrad.floor_divide(y, 2.0).backward()
    assert y.grad is not None
    assert y.grad.item() == 0


def test_what_is_left_of_a_huge_quotient_is_exact() -> None:
    a, b = np.full(8, -(2.0**500)), np.full(8, 2.0**-1000)
    for name in ("fmod", "remainder"):
        assert getattr(torch, name)(torch.tensor(a), torch.tensor(b)).isnan().any()
        assert getattr(torch, name)(torch.tensor(a[:1]), torch.tensor(b[:1])) == 0
        assert (getattr(smolgrad, name)(smolgrad.tensor(a), smolgrad.tensor(b)).data == 0).all()


def test_addmm_scales_the_product() -> None:
    x, a, b = np.zeros((1, 1)), np.array([[0.0, 5e-324]]), np.array([[0.0], [np.inf]])
    with np.errstate(all="ignore"):
        assert smolgrad.addmm(*map(smolgrad.tensor, (x, a, b)), alpha=0.5).item() == np.inf
    assert torch.addmm(*map(torch.tensor, (x, a, b)), alpha=0.5).isnan().all()


def test_clamp_broadcasts_three_tensors() -> None:
    shapes = [shape for shape in itertools.product([(), (1,), (2,)], repeat=3) if clamped(torch, shape) is None]
    assert shapes
    for shape in shapes:
        assert clamped(smolgrad, shape) == np.broadcast_shapes(*shape)


def clamped(m: Any, shapes: Any) -> tuple[int, ...] | None:
    """The shape of a clamp between tensors of ``shapes``, swept; None where it is refused."""
    try:
        y = m.clamp(*(m.ones(shape, requires_grad=True) for shape in shapes))
        y.sum().backward()
    except RuntimeError:
        return None
    return tuple(y.shape)


def test_equal_bounds_have_the_slope_of_one() -> None:
    def slopes(m: Any) -> list[float]:
        x, low, high = (m.tensor(v, requires_grad=True) for v in (0.0, 1.0, 1.0))
        m.clamp(x, low, high).backward()
        return [float(t.grad) for t in (x, low, high)]

    assert slopes(torch) == [0, 0, 0]  # though the value is that of both bounds
    assert slopes(smolgrad) == [0, 1, 0]


def test_what_is_written_is_cast() -> None:
    def written(m: Any, index: Any) -> list[float]:
        x = m.tensor([0.0, 0.0], dtype=m.float64)
        x[index] = m.tensor([1.0], dtype=m.float32)
        return x.numpy().tolist()

    assert written(smolgrad, slice(1)) == written(torch, slice(1)) == written(smolgrad, [0]) == [1, 0]
    with pytest.raises(RuntimeError, match="destination dtypes match"):
        written(torch, [0])


def test_a_gradient_is_never_the_callers_cotangent() -> None:
    def swept(module: Any, shared: Any) -> tuple[float, float, bool]:
        x, v = module.tensor(0.0, requires_grad=True), module.tensor(1.0)
        y = x.reshape(())
        for _ in range(4):
            y.backward(v, retain_graph=True)
        return float(x.grad), float(v), shared(x.grad, v)

    assert swept(torch, lambda a, b: a.data_ptr() == b.data_ptr()) == (8, 8, True)  # 4 sweeps by 1 are 4
    assert swept(smolgrad, lambda a, b: np.shares_memory(a.data, b.data)) == (4, 1, False)


def test_a_graph_that_was_swept_is_gone() -> None:
    def swept_twice(module: Any) -> None:
        y = -module.tensor(1.0, requires_grad=True)
        y.backward()
        y.backward()

    swept_twice(torch)
    with pytest.raises(RuntimeError, match="retain_graph"):
        swept_twice(smolgrad)


def test_pytorch_in_the_engines_place_fails_as_it_is_said_to() -> None:
    shared = test_ownership.gradients_share_no_memory_and_nothing_is_written
    assert fails(shared, PyTorch(), BY_NAME["reshape"])
    assert fails(test_sweeps.sweeps_add_up, PyTorch(), BY_NAME["neg"])
    spec = BY_NAME["neg"]
    with pytest.raises(AssertionError):
        test_errors.test_wrong_calls_are_refused(PyTorch(), spec, spec.errors[0])
    assert len(LACKING) == 3


def test_every_row_has_a_test_here() -> None:
    rows = {op for row in DIFFERENCES for op in row.ops}
    tested = {
        "sum",
        "logsumexp",
        "max",
        "min",
        "prod",
        "cumprod",
        "median",
        "round",
        "sort",
        "topk",
        "norm",
        "std",
        "squeeze",
        "split",
        "chunk",
        "unbind",
        "getitem",
        "addmm",
        "fmod",
        "remainder",
        "floor_divide",
        "Tensor.clamp",
        "setitem",
        "Tensor.__setitem__",
        "einsum",
        "scatter",
        "scatter_add",
        "index_put",
        "pow",
        "functional.dropout",
        "functional.layer_norm",
        "functional.rms_norm",
        "functional.group_norm",
        "functional.cosine_similarity",
        "functional.embedding",
        "functional.binary_cross_entropy",
        "functional.kl_div",
        "functional.huber_loss",
        "functional.elu",
        "functional.selu",
        "functional.hardtanh",
        "functional.hardswish",
    }
    same_row_as_sum = {"nansum", "mean", "amax", "amin", "var", "count_nonzero"}
    assert rows == tested | same_row_as_sum


# --- programs ---------------------------------------------------------------------------------------------------------

ENGINES = {"smolgrad": smolgrad, "torch": torch}


def refuses(program: Callable[[Any], object], module: Any) -> bool:
    """Whether ``program`` raises RuntimeError in an engine; another exception is an error."""
    try:
        program(module)
    except RuntimeError:
        return True
    return False


def _leaf(module: Any, *numbers: float) -> Any:
    return module.tensor(list(numbers), requires_grad=True)


def _a_view_is_written(m: Any) -> None:
    (_leaf(m, 1.0, 2.0) * 2)[0].mul_(3)


def _a_view_is_used_after_its_base_was_written(m: Any) -> None:
    base = _leaf(m, 1.0, 2.0) * 2
    view = base[0]
    base.mul_(3)
    view * 2


def _a_graph_whose_ops_save_nothing_is_swept_twice(m: Any) -> None:
    y = (_leaf(m, 1.0) + 1).sum()
    y.backward()
    y.backward()


def _a_slope_that_is_constant_is_swept_twice(m: Any) -> None:
    x = _leaf(m, 1.0)
    (slope,) = m.autograd.grad([m.nn.ReLU()(x).sum()], [x], create_graph=True)
    (slope * x).sum().backward()
    (slope * _leaf(m, 1.0)).sum().backward()


def _nothing_is_multiplied_in_two_dtypes(m: Any) -> None:
    m.matmul(m.zeros((0, 2, 2), dtype=m.float32), m.zeros((0, 2, 2), dtype=m.float64))


def _a_tensor_is_written_from_its_own_memory(m: Any) -> None:
    x = m.tensor([1.0, 2.0])
    x.add_(x[0])


def _the_output_of_a_division_is_written(m: Any) -> None:
    x = _leaf(m, 1.0)
    y = x / _leaf(m, 2.0)
    y.add_(1)
    y.sum().backward()


def _the_numerator_of_a_division_is_written(m: Any) -> None:
    x = _leaf(m, 1.0) * 2
    y = x / _leaf(m, 2.0)
    x.add_(1)
    y.sum().backward()


# One program a row of REFUSALS.
REFUSED = [
    _a_view_is_written,
    _a_view_is_used_after_its_base_was_written,
    _a_graph_whose_ops_save_nothing_is_swept_twice,
    _a_slope_that_is_constant_is_swept_twice,
    _nothing_is_multiplied_in_two_dtypes,
    _a_tensor_is_written_from_its_own_memory,
    _the_output_of_a_division_is_written,
    _the_numerator_of_a_division_is_written,
]


@pytest.mark.parametrize(
    ("row", "program"), list(zip(REFUSALS, REFUSED, strict=True)), ids=lambda x: getattr(x, "reason", "")
)
def test_a_row_of_refusals_is_refused_by_one_engine(row: Refusal, program: Callable[[Any], object]) -> None:
    assert refuses(program, smolgrad) is row.here
    assert refuses(program, torch) is not row.here


def test_a_view_taken_under_no_grad_is_a_constant() -> None:
    def taken(m: Any) -> bool:
        x = _leaf(m, 1.0, 2.0)
        with m.no_grad():
            return bool(x.reshape(2, 1).requires_grad)

    assert {name: taken(m) for name, m in ENGINES.items()} == {"smolgrad": False, "torch": True}


@pytest.mark.filterwarnings("ignore:var.*degrees of freedom")
def test_the_slope_of_a_variance_that_is_infinite_is_too() -> None:
    for m, finite in ((smolgrad, False), (torch, True)):
        x = _leaf(m, 1.0, 2.0)
        y = m.var(x, 0, correction=3)
        y.backward()
        assert math.isinf(y.item())
        assert all(math.isfinite(float(g)) for g in x.grad) is finite


def test_what_has_no_dimensions_to_fit_is_not_left_out_of_cat() -> None:
    assert torch.cat([torch.ones(1, 2), torch.ones(0)]).shape == (1, 2)
    with pytest.raises(RuntimeError, match="does not fit"):
        smolgrad.cat([smolgrad.ones(1, 2), smolgrad.ones(0)])


def test_a_number_that_does_not_fit_is_not_taken_modulo() -> None:
    byte = {name: m.tensor([1], dtype=m.uint8) for name, m in ENGINES.items()}
    with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
        byte["smolgrad"] + 300
    assert int(byte["torch"] + 300) == 301 - 256
    assert {name: bool(x > -1) for name, x in byte.items()} == {"smolgrad": True, "torch": False}


def test_a_gradient_is_nobody_elses() -> None:
    def shown(m: Any) -> float:
        x, weight = _leaf(m, 1.0), m.tensor([2.0])
        (gradient,) = m.autograd.grad([x], [x], [weight])
        gradient.zero_()
        return float(weight[0])

    assert {name: shown(m) for name, m in ENGINES.items()} == {"smolgrad": 2, "torch": 0}


def test_a_sweep_leaves_the_cotangent_of_the_last_one_alone() -> None:
    def shown(m: Any) -> float:
        x, weight = _leaf(m, 1.0), m.tensor([[2.0]])
        y = x.reshape(1, 1)
        m.autograd.backward([y], [weight], retain_graph=True)
        m.autograd.backward([y], [m.tensor([[3.0]])], retain_graph=True)
        return float(weight[0, 0])

    assert {name: shown(m) for name, m in ENGINES.items()} == {"smolgrad": 2, "torch": 5}


def test_a_leaf_whose_gradient_is_zero_takes_another_sweep() -> None:
    def twice(m: Any) -> None:
        x = _leaf(m, 1.0)
        (slope,) = m.autograd.grad([m.abs(x)], [x], [m.tensor([1.0])], create_graph=True)
        m.autograd.backward([slope], [m.tensor([1.0])], retain_graph=True)
        (x * 1).backward(m.tensor([1.0]))

    assert {name: refuses(twice, m) for name, m in ENGINES.items()} == {"smolgrad": False, "torch": True}


def test_a_view_keeps_its_record_where_its_base_is_written_under_no_grad() -> None:
    def gradient(m: Any) -> Any:
        x = _leaf(m, 1.0, 2.0)
        between = x.reshape(-1)
        view = between[0]
        with m.no_grad():
            x.mul_(2)
        return m.autograd.grad([view], [between], [m.tensor(1.0)], allow_unused=True)[0]

    assert gradient(smolgrad) is not None
    assert gradient(torch) is None


@pytest.mark.parametrize("op", ["flatten", "dropout"])
def test_an_op_with_nothing_to_do_makes_a_new_tensor(op: str) -> None:
    def same(m: Any) -> bool:
        x = m.tensor([1.0])
        y = (
            m.flatten(x)
            if op == "flatten"
            else (smolgrad.functional if m is smolgrad else torch.nn.functional).dropout(x, training=False)
        )
        return y is x or (op == "dropout" and y.add_(1).item() == x.item())

    assert {name: same(m) for name, m in ENGINES.items()} == {"smolgrad": False, "torch": True}
