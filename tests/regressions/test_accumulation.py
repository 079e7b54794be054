"""Gradients that meet: every use of a tensor adds its share, once, in whatever order the uses come."""

import itertools

import numpy as np
import pytest

import smolgrad
from smolgrad import functional as F
from tests.regressions.tensors import leaf, tensor


def diamond(x):
    y = x * 3
    return y * 2 + y * 5


def skip(x):
    # Paths of one and of four ops to the same tensor: an order by distance alone hands y on before all of it is there.
    y = x * 2
    return ((y * 3 + 1) * 5 - 1) + y


def braid(x):
    a = x * 2
    b = a + x
    c = a * b
    return c + b * a + a


def fan(n):
    def f(x):
        y = x * 2
        total = y * 1
        for k in range(2, n + 1):
            total = total + y * k
        return total

    return f


REUSE = [
    pytest.param(lambda x: (x + x) + (x + x), 4, id="sum of itself twice, micrograd 9fd9cc0"),
    pytest.param(lambda x: (lambda b: b + b)(x + x), 4, id="doubled twice, micrograd 9fd9cc0"),
    pytest.param(diamond, 21, id="diamond over a non-leaf, TrenTorch 182"),
    pytest.param(skip, 32, id="paths of unequal lengths"),
    pytest.param(lambda x: skip(diamond(x)), 32 * 21, id="one after the other"),
    pytest.param(braid, 2 * (2 * 6 * 2) + 2, id="braid at 2"),
    pytest.param(fan(3), 12, id="three uses"),
    pytest.param(fan(7), 56, id="seven uses"),
]


@pytest.mark.parametrize(("f", "slope"), REUSE)
def test_a_tensor_used_again_collects_every_use(f, slope):
    x, w = leaf([2.0]), tensor([1.5])
    f(x).backward(w)
    assert x.grad.data.tolist() == [1.5 * slope]


def test_a_retained_graph_swept_again_starts_from_nothing():
    # micrograd issue 53, PR 102: the gradients of a + b survived the first sweep, and a and b came out as 3.
    a, b, d = leaf(3.0), leaf(2.0), leaf(1.0)
    e = (a + b) * d
    e.backward(retain_graph=True)
    e.backward()
    assert (a.grad.item(), b.grad.item(), d.grad.item()) == (2.0, 2.0, 10.0)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_k_sweeps_give_k_times_the_gradient(k):
    x, w = leaf([1.0, 2.0]), tensor([3.0, -5.0])
    y = diamond(x) * x
    for _ in range(k):
        y.backward(w, retain_graph=True)
    np.testing.assert_array_equal(x.grad.data, k * 2 * 21 * x.data * w.data)


def test_a_gradient_grows_over_the_sweeps_of_different_graphs():
    x = leaf([1.0, 2.0])
    (x * 3).backward(tensor([1.0, 10.0]))
    (x * x).backward(tensor([5.0, 7.0]))
    assert x.grad.data.tolist() == [3.0 + 10.0, 30.0 + 28.0]


def test_an_intermediate_tensor_keeps_no_gradient():
    x = leaf([1.0, 2.0])
    y = x * 3
    (y * y).backward(tensor([2.0, 5.0]))
    assert y.grad is None
    assert x.grad.data.tolist() == [36.0, 180.0]


A = np.array([[0.5, 2.0], [1.5, 0.25]])
OPS = {
    "add": lambda x: x + tensor([[1.0, 2.0], [3.0, 4.0]]),
    "sub": lambda x: 1 - x,
    "mul": lambda x: x * tensor([[1.0, 2.0], [3.0, 4.0]]),
    "div": lambda x: 2 / x,
    "pow": lambda x: x**3,
    "base": lambda x: 2**x,
    "neg": lambda x: -x,
    "abs": abs,
    "exp": smolgrad.exp,
    "log": smolgrad.log,
    "sqrt": smolgrad.sqrt,
    "tanh": smolgrad.tanh,
    "sigmoid": smolgrad.sigmoid,
    "relu": smolgrad.relu,
    "maximum": lambda x: smolgrad.maximum(x, smolgrad.ones(2, 2)),
    "minimum": lambda x: smolgrad.minimum(smolgrad.ones(2, 2), x),
    "clamp": lambda x: x.clamp(0.3, 1.7),
    "where": lambda x: smolgrad.where(x > 1, x, 7.0),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(1, keepdim=True),
    "amax": lambda x: x.amax(0),
    "amin": lambda x: x.amin(),
    "max over dim": lambda x: x.max(1).values,
    "var": lambda x: x.var(1, keepdim=True),
    "logsumexp": lambda x: x.logsumexp(0),
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(1),
    "reshape": lambda x: x.reshape(4).reshape(2, 2),
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(1, 0),
    "T": lambda x: x.T,
    "expand": lambda x: x.expand(3, 2, 2)[2],
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0),
    "flatten": lambda x: x.flatten()[[3, 3]],
    "cat": lambda x: smolgrad.cat([x, x])[1:3],
    "stack": lambda x: smolgrad.stack([x, x], 1)[:, 1],
    "clone": lambda x: x.clone(),
    "getitem": lambda x: x[1],
    "getitem by array": lambda x: x[[1, 1]],
    "getitem by mask": lambda x: x[x > 1].sum(),
    "matmul": lambda x: x @ tensor([[1.0, 2.0], [3.0, 4.0]]),
    "to": lambda x: x.float().double(),
    "linear": lambda x: F.linear(tensor([[1.0, 2.0], [3.0, 4.0]]), x),
    "layer_norm": lambda x: F.layer_norm(x, (2,)),
    "mse_loss": lambda x: F.mse_loss(x, tensor([[1.0, 2.0], [3.0, 4.0]]), reduction="none"),
    "cross_entropy": lambda x: F.cross_entropy(x, smolgrad.tensor([1, 0]), reduction="none"),
    "embedding": lambda x: F.embedding(smolgrad.tensor([1, 1]), x),
}


@pytest.mark.parametrize("first", ["op", "product"])
@pytest.mark.parametrize("op", OPS)
def test_an_op_adds_to_what_its_input_has_from_elsewhere(op, first):
    # candle PR 3507: one op's arm assigned its gradient instead of adding it.
    x, w = leaf(A), tensor([[3.0, -5.0], [7.0, 2.0]])
    (OPS[op](x) * w).sum().backward()
    alone = x.grad.data.copy()
    assert np.isfinite(alone).all()
    assert alone.any()
    for sum_of_both in (lambda p, q: p + q, lambda p, q: q + p):
        x.grad = None
        parts = [(OPS[op](x) * w).sum(), (x * w * 3).sum()]
        sum_of_both(*(parts if first == "op" else parts[::-1])).backward()
        np.testing.assert_allclose(x.grad.data, alone + 3 * w.data, rtol=1e-14)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("depth", [0, 2])
def test_a_pick_adds_to_a_gradient_of_any_memory_layout(order, depth):
    # The first gradient comes in Fortran order and is adopted: flat places in a C-ordered copy of it would be lost.
    x = leaf(np.arange(6.0).reshape(3, 2))
    w = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    dense = (x * smolgrad.from_numpy(np.asfortranarray(w))).sum()
    picked = (x[[0, 2, 0]] * tensor([[10.0], [20.0], [40.0]])).sum()
    turned = (x.T * tensor(w.T.copy())).sum()
    parts = [dense, picked, turned]
    for _ in range(depth):
        parts[1] = parts[1] * 1
    total = parts[order[0]] + parts[order[1]] + parts[order[2]]
    total.backward()
    assert x.grad.data.tolist() == [[52.0, 54.0], [6.0, 8.0], [30.0, 32.0]]


def test_leaves_of_equal_value_stay_apart():
    # tinygrad issue 9597: a cache by value made one of the two, and each got the gradient of both.
    a, b = leaf([3.0, 3.0]), leaf([3.0, 3.0])
    (a * 2 + b * 5).backward(tensor([1.0, 10.0]))
    assert a.grad.data.tolist() == [2.0, 20.0]
    assert b.grad.data.tolist() == [5.0, 50.0]


X = np.array([[1.0, 2.0], [3.0, 4.0]])
SLOTS = [
    pytest.param(lambda x: x + x, [[6.0, 10.0], [14.0, 22.0]], id="add"),
    pytest.param(lambda x: x - x, [[0.0, 0.0], [0.0, 0.0]], id="sub"),
    pytest.param(lambda x: x * x, [[6.0, 20.0], [42.0, 88.0]], id="mul"),
    pytest.param(lambda x: x / x, [[0.0, 0.0], [0.0, 0.0]], id="div"),
    pytest.param(
        lambda x: x**x,
        [[3.0, 20 * (1 + np.log(2))], [7 * 27 * (1 + np.log(3)), 11 * 256 * (1 + np.log(4))]],
        id="pow",
    ),
    pytest.param(lambda x: smolgrad.maximum(x, x), [[3.0, 5.0], [7.0, 11.0]], id="maximum"),
    pytest.param(lambda x: smolgrad.where(x > 2, x, x), [[3.0, 5.0], [7.0, 11.0]], id="where"),
    pytest.param(lambda x: x @ x, [[37.0, 67.0], [63.0, 119.0]], id="matmul"),
    pytest.param(lambda x: smolgrad.cat([x, x, x]).reshape(3, 2, 2).sum(0), [[9.0, 15.0], [21.0, 33.0]], id="cat"),
    pytest.param(lambda x: smolgrad.stack([x, x]).sum(0), [[6.0, 10.0], [14.0, 22.0]], id="stack"),
    pytest.param(lambda x: F.linear(x, x), [[42.0, 60.0], [78.0, 112.0]], id="linear"),
]


@pytest.mark.parametrize(("f", "gradient"), SLOTS)
def test_the_same_tensor_in_several_slots_gets_the_gradient_of_each(f, gradient):
    # MyGrad 231f00b4 counted repeated operands by identity, before in-place writes changed it.
    x = leaf(X)
    f(x).backward(tensor([[3.0, 5.0], [7.0, 11.0]]))
    np.testing.assert_allclose(x.grad.data, gradient, rtol=1e-14, atol=1e-15)


def test_a_dot_product_with_itself_has_twice_the_slope():
    x = leaf([1.0, 2.0, 5.0])
    (x @ x * 3).backward()
    assert x.grad.data.tolist() == [6.0, 12.0, 30.0]


def test_a_sweep_reaches_its_own_leaves_only():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x * y).backward(tensor([5.0, 7.0]))
    before = y.grad.data.copy()
    (2 * x).backward(tensor([1.0, 10.0]))
    assert y.grad.data.tolist() == before.tolist() == [5.0, 14.0]
    assert x.grad.data.tolist() == [15.0 + 2.0, 28.0 + 20.0]


def test_several_roots_are_swept_together_and_one_root_given_twice_counts_twice():
    x = leaf([1.0, 2.0])
    y = x * 3
    z = y * y
    smolgrad.autograd.backward([z, y, y], [tensor([1.0, 2.0]), tensor([10.0, 20.0]), tensor([100.0, 200.0])])
    assert x.grad.data.tolist() == [18.0 + 30.0 + 300.0, 72.0 + 60.0 + 600.0]


def test_a_root_inside_the_graph_of_another_gets_its_own_seed_and_what_flows_to_it():
    x = leaf([1.0, 2.0])
    y = x * 3
    gradients = smolgrad.grad([y * 5, y], [x, y], [tensor([1.0, 10.0]), tensor([2.0, 20.0])])
    assert gradients[0].data.tolist() == [21.0, 210.0]
    assert gradients[1].data.tolist() == [7.0, 70.0]


def test_the_gradient_of_a_sum_is_the_sum_of_the_gradients_over_a_shared_subgraph():
    w = tensor([[3.0, -5.0], [7.0, 2.0]])
    shared = lambda x: (x * x).log() * x  # noqa: E731
    f, g = (lambda h: (h.exp() * w).sum()), (lambda h: (h.T @ h * w).sum())

    def slope(loss):
        x = leaf(A)
        loss(shared(x)).backward()
        return x.grad.data

    np.testing.assert_allclose(slope(lambda h: f(h) + g(h)), slope(f) + slope(g), rtol=1e-13)
