"""Who owns a gradient's memory: no gradient shares it with another, with a value, or with what the caller gave."""

import itertools

import numpy as np
import pytest

import smolgrad
from smolgrad import functional as F
from smolgrad.autograd import Primitive
from tests.regressions.tensors import leaf, tensor

A, B = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[2.0, 0.5], [1.0, 4.0]])
W = np.array([[3.0, -5.0], [7.0, 2.0]])


def assert_apart(*arrays):
    for (i, x), (j, y) in itertools.combinations(enumerate(arrays), 2):
        assert not np.shares_memory(x, y), f"array {i} shares memory with array {j}"


def test_an_array_that_a_rule_made_becomes_the_leafs_gradient_without_a_copy():
    made = []

    def pullback(g, _y, _x):
        made.append(g * 2.0)
        return made[-1]

    x = leaf(A)
    Primitive("double", lambda x: x * 2.0, pullback)(x).backward(tensor(W))
    assert x.grad.data is made[0]


def test_a_first_contribution_held_by_reference_is_not_added_into():
    # HIPS/autograd 042810b: the cotangent of e, c, d and b is one array, and d adds into it on its way to a.
    a = leaf(A)
    b = a + 1
    c = b + 1.5
    d = a + b
    e = d + c
    e.backward(tensor(W))
    np.testing.assert_array_equal(a.grad.data, 3 * W)


def test_no_intermediate_adds_into_what_its_sibling_still_reads():
    # The same, with the second reader swept after the write whichever way the graph is ordered.
    for swap in (False, True):
        a, b = leaf(A), leaf(B)
        p, q = a + 1, b + 1
        left, right = p + q, q + p
        total = (right + left) if swap else (left + right)
        (total + p).backward(tensor(W))
        np.testing.assert_array_equal(a.grad.data, 3 * W)
        np.testing.assert_array_equal(b.grad.data, 2 * W)


SHARING = [
    pytest.param(lambda a, b: a + b, id="add, MyGrad c1fd17c8"),
    pytest.param(lambda a, b: b.T + a.T, id="transposed views"),
    pytest.param(lambda a, b: (a + b) + (a + b), id="sum of sums"),
    pytest.param(lambda a, b: a.reshape(4) + b.flatten(), id="reshaped"),
    pytest.param(lambda a, b: smolgrad.cat([a, b]), id="cat"),
    pytest.param(lambda a, b: smolgrad.cat([a[:1], b[1:]]), id="cat of slices"),
    pytest.param(lambda a, b: smolgrad.stack([a, b, a]), id="stack"),
    pytest.param(lambda a, b: a.unsqueeze(0) + b.squeeze(), id="squeezed"),
    pytest.param(lambda a, b: a.permute(1, 0) + b.transpose(0, 1), id="permuted"),
    pytest.param(lambda a, b: (a.clone() + b).relu(), id="relu"),
    pytest.param(lambda a, b: F.linear(a, b), id="linear"),
    pytest.param(lambda a, b: a @ b, id="matmul"),
    pytest.param(lambda a, b: a * 1 + b[:], id="product with one"),
    pytest.param(lambda a, b: smolgrad.maximum(a, b), id="maximum"),
    pytest.param(lambda a, b: a.sum() + b.sum(), id="sums"),
    pytest.param(lambda a, b: a.sum(0) + b.sum(1), id="sums over axes"),
    pytest.param(lambda a, b: a.mean() + b, id="mean"),
    pytest.param(lambda a, b: a.double() + b.expand(3, 2, 2), id="expanded"),
    pytest.param(lambda a, b: a - b, id="sub"),
    pytest.param(lambda a, b: F.layer_norm(a, (2, 2), b, b), id="layer_norm"),
]


@pytest.mark.parametrize("create_graph", [False, True], ids=["plain", "create_graph"])
@pytest.mark.parametrize("f", SHARING)
def test_no_gradient_shares_memory_with_anything(f, create_graph):
    a, b = leaf(A), leaf(B)
    y = f(a, b)
    seed = tensor(1 + np.arange(y.size).reshape(y.shape))
    y.backward(seed, create_graph=create_graph)
    assert_apart(a.grad.data, b.grad.data, seed.data, a.data, b.data, y.data)
    assert a.grad.data.flags.writeable
    assert b.grad.data.flags.writeable
    a.grad = None  # the gradient that holds the graph would be a cycle


@pytest.mark.parametrize("f", SHARING)
def test_the_results_of_grad_share_no_memory_with_anything(f):
    a, b = leaf(A), leaf(B)
    h = a * 1
    y = f(h, b)
    seed = tensor(1 + np.arange(y.size).reshape(y.shape))
    results = smolgrad.grad(y, [a, b, h, y, a], seed)
    assert_apart(*(r.data for r in results), seed.data, a.data, b.data, h.data, y.data)
    kept = [r.data.copy() for r in results]
    results[0].data[...] = np.nan
    for r, before in list(zip(results, kept, strict=True))[1:]:
        np.testing.assert_array_equal(r.data, before)
    np.testing.assert_array_equal(kept[0], kept[2])
    np.testing.assert_array_equal(kept[0], kept[4])


def test_the_callers_seed_is_neither_kept_nor_written():
    seed = tensor(W)
    a = leaf(A)
    a.backward(seed)
    a.backward(seed)
    y = a + 1
    (y + y).backward(seed)
    np.testing.assert_array_equal(a.grad.data, 4 * W)
    np.testing.assert_array_equal(seed.data, W)
    assert not np.shares_memory(a.grad.data, seed.data)


def test_one_seed_may_serve_two_roots():
    seed, a, b = tensor(W), leaf(A), leaf(B)
    smolgrad.autograd.backward([a + b, a, b], [seed, seed, seed])
    np.testing.assert_array_equal(a.grad.data, 2 * W)
    np.testing.assert_array_equal(seed.data, W)
    assert_apart(a.grad.data, b.grad.data, seed.data)


def test_a_gradient_is_changed_by_no_other_leafs_next_sweep():
    # Oneflow PR 9497: adding in place is wrong as soon as the first contribution is shared.
    x, y = leaf(A), leaf(B)
    (x + y).sum().backward()
    before = y.grad.data.copy()
    (x * tensor(W)).sum().backward()
    np.testing.assert_array_equal(y.grad.data, before)
    np.testing.assert_array_equal(x.grad.data, 1 + W)


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda x: x.sum(), id="sum"),
        pytest.param(lambda x: x.sum(0), id="sum over an axis"),
        pytest.param(lambda x: x.mean(), id="mean"),
        pytest.param(lambda x: x.unsqueeze(0).expand(3, 2, 2).sum(0)[0], id="expand"),
    ],
)
def test_a_gradient_that_came_from_a_sum_can_be_written(f):
    # The gradient of a sum is one number seen from everywhere; added into, it would grow in all places at once.
    x = leaf(A)
    (f(x) * 2).sum().backward()
    assert x.grad.data.flags.writeable
    assert x.grad.data.strides == A.strides
    before = x.grad.data.copy()
    (x[0, 0] * 5).backward()
    np.testing.assert_array_equal(x.grad.data - before, [[5.0, 0.0], [0.0, 0.0]])


def test_a_gradient_assigned_read_only_is_replaced_not_written():
    x, y = leaf(A), leaf(B)
    given = np.broadcast_to(np.array([1.0, 10.0]), (2, 2))
    y.grad = smolgrad.from_numpy(given)
    (x + y).backward(tensor(W))
    np.testing.assert_array_equal(x.grad.data, W)
    np.testing.assert_array_equal(y.grad.data, given + W)
    assert not np.shares_memory(y.grad.data, given)


RULES = [
    pytest.param(lambda a, b: F.layer_norm(a, (2,), b[0], b[1]), id="layer_norm, MLX (jax-mps 168)"),
    pytest.param(lambda a, b: a.relu() + a - b, id="relu"),
    pytest.param(lambda a, b: a.clamp(2, 4) * b, id="clamp"),
    pytest.param(lambda a, b: a.softmax(1) + b.log_softmax(0), id="softmax"),
    pytest.param(lambda a, b: smolgrad.maximum(a, b) + smolgrad.minimum(a, b), id="maximum"),
    pytest.param(lambda a, b: smolgrad.where(a > b, a, b), id="where"),
    pytest.param(lambda a, b: a.exp() + b.tanh() + a.sigmoid() + b.sqrt() + a.log(), id="smooth functions"),
    pytest.param(lambda a, b: a**b / b, id="pow and div"),
    pytest.param(lambda a, b: a.amax(0) + b.amin(1), id="extremes"),
    pytest.param(lambda a, b: a.var(0) + b.logsumexp(1), id="var"),
    pytest.param(lambda a, b: F.linear(a, b, b[0]), id="linear"),
    pytest.param(lambda a, b: a[[0, 0]] + b[a > 2][:2], id="getitem"),
    pytest.param(lambda a, b: F.cross_entropy(a @ b, smolgrad.tensor([1, 0]), reduction="none"), id="cross_entropy"),
]


@pytest.mark.parametrize("f", RULES)
def test_no_rule_writes_to_its_cotangent_its_inputs_or_its_output(f):
    # A read-only array would refuse the write; what is compared after the sweep would show one that went round that.
    a, b = leaf(A), leaf(B)
    y = f(a, b)
    seed = 1.0 + np.arange(y.size).reshape(y.shape)
    gradients = []
    for writeable in (True, False):
        for array in (seed, a.data, b.data, y.data):
            array.flags.writeable = writeable
        kept = [array.copy() for array in (seed, a.data, b.data, y.data)]
        gradients.append(smolgrad.grad(y, [a, b], smolgrad.from_numpy(seed), retain_graph=True))
        for array, before in zip((seed, a.data, b.data, y.data), kept, strict=True):
            np.testing.assert_array_equal(array, before)
    for once, again in zip(*gradients, strict=True):
        np.testing.assert_array_equal(once.data, again.data)


def test_layer_norm_gives_each_parameter_the_same_gradient_alone_and_together():
    # jax-mps PR 168: the bias's sum read the cotangent after the input's gradient had been written over it.
    values = [A, np.array([1.0, 2.0]), np.array([0.5, -1.0])]

    def gradients(*needed):
        x, w, b = (smolgrad.tensor(v, requires_grad=i in needed) for i, v in enumerate(values))
        F.layer_norm(x, (2,), w, b).backward(tensor(W))
        return [t.grad.data for t in (x, w, b) if t.requires_grad]

    together = gradients(0, 1, 2)
    for i in range(3):
        np.testing.assert_array_equal(gradients(i)[0], together[i])
    np.testing.assert_array_equal(together[2], W.sum(0))


def test_a_tensor_copies_the_array_it_is_made_of():
    array = A.copy()
    x = smolgrad.Tensor(array, requires_grad=True)
    with smolgrad.no_grad():
        x.mul_(10)
    np.testing.assert_array_equal(array, A)
    array[...] = 0
    np.testing.assert_array_equal(x.data, 10 * A)


def test_an_array_beside_a_tensor_may_be_changed_before_the_sweep():
    x, array = leaf(A), B.copy()
    y = x * array + array / x + smolgrad.where(array > 1, x, array)
    array[...] = np.nan
    y.backward(tensor(W))
    np.testing.assert_allclose(x.grad.data, W * (B - B / A**2 + (B > 1)), rtol=1e-14)


def test_the_gradient_of_a_leaf_is_not_its_value_nor_a_view_of_another_ones():
    x = leaf(A)
    (x * x).backward(tensor(W))
    gradient = x.grad.data
    with smolgrad.no_grad():
        x.zero_()
    np.testing.assert_array_equal(gradient, 2 * A * W)
