"""Axes spelled in every way, kept or not, of length 0, 1 and more, in squares and cubes as well as unequal shapes."""

import itertools

import numpy as np
import pytest

import smolgrad
from smolgrad import functional as F
from tests.regressions.tensors import leaf, tensor, uneven


def pulled_back(f, values, weights=None):
    x = leaf(values)
    y = f(x)
    y.backward(tensor(uneven(y.shape) if weights is None else weights))
    return y.data, x.grad.data


# The op, its value by NumPy, and its gradient from x, the value y, the mean m and the cotangent g, all with their axes
# kept, and n, the number of elements that are reduced to one.
REDUCTIONS = {
    "sum": (smolgrad.sum, np.sum, lambda x, y, m, g, n: g + 0 * x),
    "mean": (smolgrad.mean, np.mean, lambda x, y, m, g, n: g / n + 0 * x),
    "amax": (smolgrad.amax, np.max, lambda x, y, m, g, n: g * (x == y)),
    "amin": (smolgrad.amin, np.min, lambda x, y, m, g, n: g * (x == y)),
    "var": (
        lambda x, *dim, **kw: smolgrad.var(x, *dim, correction=0, **kw),
        np.var,
        lambda x, y, m, g, n: g * 2 / n * (x - m),
    ),
    "logsumexp": (
        smolgrad.logsumexp,
        lambda x, **kw: np.log(np.sum(np.exp(x), **kw)),
        lambda x, y, m, g, n: g * np.exp(x - y),
    ),
}
SHAPES = [(2, 3, 4), (3, 3, 3), (2, 1, 3), (1, 1, 2)]
DIMS = [0, 1, 2, -1, -2, -3, (0, 1), (1, 0), (2, 0), (-1, 0), (0, -1, 1), (1,), [2, 1], ()]


@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_a_reduction_and_its_gradient_mean_the_same_axes(op, dim):
    f, reduce, rule = REDUCTIONS[op]
    axis = tuple(dim) if isinstance(dim, (tuple, list)) else dim
    for shape, keepdim in itertools.product(SHAPES, [False, True]):
        x = uneven(shape) / 4
        value, gradient = pulled_back(lambda t, keepdim=keepdim: f(t, dim, keepdim=keepdim), x)
        kept = reduce(x, axis=axis, keepdims=True)
        np.testing.assert_allclose(value, kept if keepdim else reduce(x, axis=axis), rtol=1e-13)
        g = uneven(value.shape).reshape(kept.shape)
        expected = rule(x, kept, x.mean(axis=axis, keepdims=True), g, x.size // kept.size)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_no_dim_and_none_mean_all_axes(op, keepdim):
    f = REDUCTIONS[op][0]
    spelled = [((0, 1, 2),), (None,), ((-1, -2, -3),) if op == "logsumexp" else ()]  # PyTorch's logsumexp wants a dim
    results = [pulled_back(lambda t, dim=dim: f(t, *dim, keepdim=keepdim), uneven((2, 3, 4)) / 4) for dim in spelled]
    for value, gradient in results:
        assert value.shape == ((1, 1, 1) if keepdim else ())
        np.testing.assert_array_equal(value, results[0][0])
        np.testing.assert_array_equal(gradient, results[0][1])


@pytest.mark.parametrize("dim", range(3))
@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 3, 3)], ids=str)
@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda x, d: x.softmax(d), id="softmax"),
        pytest.param(lambda x, d: x.log_softmax(d), id="log_softmax"),
        pytest.param(lambda x, d: x.max(d).values, id="max"),
        pytest.param(lambda x, d: x.max(d, keepdim=True)[0], id="max keepdim"),
        pytest.param(lambda x, d: x.amax(d), id="amax"),
        pytest.param(lambda x, d: x.var(d), id="var"),
        pytest.param(lambda x, d: x.sum(d), id="sum"),
        pytest.param(lambda x, d: x.transpose(d, 0), id="transpose"),
        pytest.param(lambda x, d: x.transpose(-2, d), id="transpose of both signs"),
        pytest.param(lambda x, d: smolgrad.cat([x, 2 * x], d), id="cat"),
        pytest.param(lambda x, d: x.sum(d, keepdim=True).squeeze(d), id="squeeze"),
        pytest.param(lambda x, d: x.flatten(d, -1), id="flatten"),
    ],
)
def test_a_negative_axis_is_the_same_axis_in_both_passes(f, shape, dim):
    # tensorflow issue 2641: an axis was taken from the end in the forward pass and refused in the backward pass.
    forward, backward = (
        pulled_back(lambda x: f(x, dim), uneven(shape) / 4),
        pulled_back(lambda x: f(x, dim - 3), uneven(shape) / 4),
    )
    np.testing.assert_array_equal(forward[0], backward[0])
    np.testing.assert_array_equal(forward[1], backward[1])
    assert forward[1].any()


@pytest.mark.parametrize("dim", range(-4, 4))
@pytest.mark.parametrize("op", ["unsqueeze", "stack"])
def test_a_new_axis_stands_where_it_is_wanted(op, dim):
    x = uneven((2, 3, 4))
    f = (lambda t: t.unsqueeze(dim)) if op == "unsqueeze" else (lambda t: smolgrad.stack([t, -t], dim))
    value, gradient = pulled_back(f, x)
    expected = np.expand_dims(x, dim) if op == "unsqueeze" else np.stack([x, -x], dim)
    np.testing.assert_array_equal(value, expected)
    w = uneven(value.shape)
    np.testing.assert_array_equal(
        gradient, w.reshape(x.shape) if op == "unsqueeze" else w.take(0, dim) - w.take(1, dim)
    )


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 3, 3)], ids=str)
def test_permuted_axes_go_back_where_they_came_from(shape, order):
    x = uneven(shape)
    for dims in (order, tuple(d - 3 for d in order)):
        value, gradient = pulled_back(lambda t, dims=dims: t.permute(dims), x)
        np.testing.assert_array_equal(value, x.transpose(order))
        np.testing.assert_array_equal(gradient, uneven(value.shape).transpose(np.argsort(order)))


@pytest.mark.parametrize(
    ("f", "axes"),
    [(lambda x: x.T, (2, 1, 0)), (lambda x: x.mT, (0, 2, 1)), (lambda x: x.transpose(0, -1), (2, 1, 0))],
    ids=["T", "mT", "transpose"],
)
def test_each_spelling_of_a_transpose_goes_back(f, axes):
    x = uneven((2, 3, 4))
    value, gradient = pulled_back(f, x)
    np.testing.assert_array_equal(value, x.transpose(axes))
    np.testing.assert_array_equal(gradient, uneven(value.shape).transpose(axes))


@pytest.mark.parametrize("layout", ["C", "F"])
def test_reshape_reads_in_c_order_whatever_the_layout_of_the_value_and_of_the_cotangent(layout):
    x = uneven((2, 3))
    value, gradient = pulled_back(lambda t: t.T.reshape(6).reshape(3, 2).T, x, np.asarray(uneven((2, 3)), order=layout))
    np.testing.assert_array_equal(value, x)
    np.testing.assert_array_equal(gradient, uneven((2, 3)))
    w = np.asfortranarray(uneven((3, 2)))
    t = leaf(x)
    t.reshape(3, 2).backward(smolgrad.from_numpy(w))
    np.testing.assert_array_equal(t.grad.data.ravel(), w.ravel())


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3)], ids=str)
def test_logsumexp_with_its_axis_kept_is_the_one_without(shape, dim, keepdim):
    # tinygrad 9ad3c865ac added the squeezed maximum to the kept sum: wrong, and right in shape, in a square on axis 1.
    x = uneven(shape)
    value = leaf(x).logsumexp(dim, keepdim=keepdim).data
    expected = np.log(np.exp(x).sum(dim))
    np.testing.assert_allclose(value, np.expand_dims(expected, dim) if keepdim else expected, rtol=1e-13)


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize(
    ("f", "least"),
    [
        pytest.param(lambda x, d: x.sum(d), 0, id="sum"),
        pytest.param(lambda x, d: x.mean(d), 0, id="mean"),
        pytest.param(lambda x, d: x.logsumexp(d), 0, id="logsumexp"),
        pytest.param(lambda x, d: x.softmax(d), 0, id="softmax"),
        pytest.param(lambda x, d: x.log_softmax(d), 0, id="log_softmax"),
        pytest.param(lambda x, d: x.var(d), 0, id="var"),
        pytest.param(lambda x, d: x.amax(d), 1, id="amax"),
        pytest.param(lambda x, d: x.max(d).values, 1, id="max"),
        pytest.param(lambda x, d: smolgrad.cat([x, x], d), 0, id="cat"),
        pytest.param(lambda x, d: x.unsqueeze(d), 0, id="unsqueeze"),
        pytest.param(lambda x, d: x.squeeze(d), 0, id="squeeze"),
        pytest.param(lambda x, d: x.transpose(d, 0), 0, id="transpose"),
        pytest.param(lambda x, d: x.flatten(), 0, id="flatten"),
    ],
)
def test_axes_of_no_one_and_two_elements_have_a_gradient_of_the_inputs_shape(f, least, dim, length):
    # HIPS/autograd 542e218, pytorch 31515, 31782.
    shape = (length, 3) if dim == 0 else (3, length)
    x = leaf(uneven(shape))
    if length < least:
        with pytest.raises(IndexError, match="size 0"):
            f(x, dim)
        return
    y = f(x, dim)
    y.backward(tensor(uneven(y.shape)))
    assert x.grad.shape == shape


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize(
    ("f", "value", "slope"),
    [
        pytest.param(lambda x, d: x.softmax(d), 1.0, 0.0, id="softmax, tinygrad 1eb24af63b"),
        pytest.param(lambda x, d: x.log_softmax(d), 0.0, 0.0, id="log_softmax"),
        pytest.param(lambda x, d: x.logsumexp(d), 2.0, 1.0, id="logsumexp"),
        pytest.param(lambda x, d: x.sum(d), 2.0, 1.0, id="sum"),
        pytest.param(lambda x, d: x.mean(d, keepdim=True), 2.0, 1.0, id="mean"),
        pytest.param(lambda x, d: x.amax(d), 2.0, 1.0, id="amax"),
        pytest.param(lambda x, d: x.amin(d), 2.0, 1.0, id="amin"),
        pytest.param(lambda x, d: x.max(d).values, 2.0, 1.0, id="max"),
        pytest.param(lambda x, d: x.var(d, correction=0), 0.0, 0.0, id="var"),
        pytest.param(lambda x, d: x.squeeze(d), 2.0, 1.0, id="squeeze"),
        pytest.param(lambda x, d: x.unsqueeze(d), 2.0, 1.0, id="unsqueeze"),
        pytest.param(lambda x, d: x.transpose(d, 0), 2.0, 1.0, id="transpose"),
        pytest.param(lambda x, d: x.flatten(d), 2.0, 1.0, id="flatten"),
        pytest.param(lambda x, d: x.reshape(d or 1), 2.0, 1.0, id="reshape"),
        pytest.param(lambda x, d: smolgrad.stack([x], d), 2.0, 1.0, id="stack"),
        pytest.param(lambda x, d: x[...], 2.0, 1.0, id="getitem"),
        pytest.param(lambda x, d: x.T, 2.0, 1.0, id="T"),
        pytest.param(lambda x, d: x.permute(()), 2.0, 1.0, id="permute"),
    ],
)
def test_a_0d_tensor_has_one_axis_to_name(f, value, slope, dim):
    x = leaf(2.0)
    y = f(x, dim)
    y.backward(tensor(np.full(y.shape, 3.0)))
    assert y.item() == value
    assert x.grad.item() == 3 * slope
    assert x.grad.shape == ()


RANKS = [
    ((2,), (2,)), ((2,), (2, 3)), ((3, 2), (2,)), ((3, 2), (2, 4)), ((2,), (5, 2, 3)), ((5, 3, 2), (2,)),
    ((5, 3, 2), (2, 4)), ((3, 2), (5, 2, 4)), ((5, 3, 2), (5, 2, 4)), ((1, 3, 2), (5, 2, 4)), ((5, 1, 3, 2), (6, 2, 4)),
    ((3, 3, 3), (3, 3, 3)), ((3, 3), (3, 3)), ((3, 3, 3), (3,)), ((3,), (3, 3, 3)), ((1, 1), (1, 1)), ((0, 2), (2, 3)),
    ((3, 0), (0, 2)), ((2, 0), (0,)), ((0,), (0,)), ((2,), (3, 5, 2, 1)), ((1, 2), (2, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), RANKS)
def test_matmul_of_every_rank(one, other):
    # MyGrad 41a7b2e5 (1-d operands), and .T for the last two axes, which is silent in a cube of equal sides.
    a, b = uneven(one), 0.5 * uneven(other)
    x, y = leaf(a), leaf(b)
    z = x @ y
    np.testing.assert_array_equal(z.data, a @ b)
    w = uneven(z.shape)
    z.backward(tensor(w))
    # Each product of two elements, by the places in both: no matrix product in the expected value.
    rows, columns = a[..., None, :] if a.ndim == 1 else a, b[..., :, None] if b.ndim == 1 else b
    v = w.reshape(np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2]) + (rows.shape[-2], columns.shape[-1]))
    gx = (v[..., :, None, :] * columns[..., None, :, :]).sum(-1)
    gy = (v[..., :, None, :] * rows[..., :, :, None]).sum(-3)
    for t, g, kept in ((x, gx, rows.shape), (y, gy, columns.shape)):
        lead = g.ndim - len(kept)
        g = g.sum(tuple(range(lead)))
        g = g.sum(tuple(i for i, n in enumerate(kept) if n == 1 and g.shape[i] > 1), keepdims=True)
        np.testing.assert_allclose(t.grad.data, g.reshape(t.shape), rtol=1e-13, atol=1e-13)


def test_a_vector_times_a_matrix():
    a, b = leaf([1.0, 2.0]), leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    (a @ b).backward(tensor([3.0, 5.0, -7.0]))
    assert a.grad.data.tolist() == [-8.0, -5.0]
    assert b.grad.data.tolist() == [[3.0, 5.0, -7.0], [6.0, 10.0, -14.0]]


@pytest.mark.parametrize("normalized", [(4,), (3, 4), (2, 3, 4)], ids=str)
def test_layer_norm_of_many_axes_is_that_of_rows(normalized):
    # FlagGems 5392: the backward pass took the rank to be 2, and divided by the wrong size.
    x, w, b = uneven((2, 3, 4)), uneven(normalized) / 8, uneven(normalized)
    size = int(np.prod(normalized))

    def run(x, w, b, shape):
        leaves = [leaf(v) for v in (x, w, b)]
        y = F.layer_norm(leaves[0], shape, *leaves[1:])
        y.backward(tensor(uneven((2, 3, 4)).reshape(y.shape)))
        return [y.data, *(t.grad.data for t in leaves)]

    rows = run(x.reshape(-1, size), w.reshape(size), b.reshape(size), (size,))
    for found, expected in zip(run(x, w, b, normalized), rows, strict=True):
        np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-13)
    x_hat = (x.reshape(-1, size) - x.reshape(-1, size).mean(1, keepdims=True)) / np.sqrt(
        x.reshape(-1, size).var(1, keepdims=True) + 1e-5
    )
    g = uneven((2, 3, 4)).reshape(-1, size)
    np.testing.assert_allclose(rows[2], (g * x_hat).sum(0), rtol=1e-12)
    np.testing.assert_array_equal(rows[3], g.sum(0))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (4, 3, 2, 2), (3, 3, 3), (0, 3), (2, 3, 0)], ids=str)
@pytest.mark.parametrize("reduction", ["none", "sum"])
def test_the_class_axis_of_cross_entropy_is_the_second_or_the_only_one(shape, reduction):
    lane = min(1, len(shape) - 1)
    x = uneven(shape) / 8
    outer = shape[:lane] + shape[lane + 1 :]
    target = np.arange(np.prod(outer, dtype=int)).reshape(outer) % 3
    value, gradient = pulled_back(lambda t: F.cross_entropy(t, smolgrad.tensor(target), reduction=reduction), x)
    log_p = x - np.log(np.exp(x).sum(lane, keepdims=True))
    picked = np.take_along_axis(log_p, np.expand_dims(target, lane), lane).squeeze(lane)
    np.testing.assert_allclose(value, -picked if reduction == "none" else -picked.sum(), rtol=1e-13)
    one_hot = np.expand_dims(target, lane) == np.arange(3).reshape((3,) + (1,) * (len(shape) - lane - 1))
    g = np.expand_dims(uneven(value.shape), lane) if reduction == "none" else 1.0
    np.testing.assert_allclose(gradient, g * (np.exp(log_p) - one_hot), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("f", "shape", "expected"),
    [
        (lambda x: x.squeeze(), (1, 2, 1), (2,)),
        (lambda x: x.squeeze(0), (1, 2, 1), (2, 1)),
        (lambda x: x.squeeze((0, 2)), (1, 2, 1), (2,)),
        (lambda x: x.squeeze(1), (1, 2, 1), (1, 2, 1)),
        (lambda x: x.flatten(1), (2, 3, 4), (2, 12)),
        (lambda x: x.flatten(0, 1), (2, 3, 4), (6, 4)),
        (lambda x: x.flatten(1, 1), (2, 3, 4), (2, 3, 4)),
        (lambda x: x.reshape(-1, 4), (2, 3, 4), (6, 4)),
        (lambda x: x.reshape((4, 3, 2)), (2, 3, 4), (4, 3, 2)),
        (lambda x: x.reshape(2, -1), (2, 0), (2, 0)),
        (lambda x: x.reshape(0, 5), (2, 0), (0, 5)),
    ],
)
def test_reshaped_elements_keep_their_order_and_their_gradient(f, shape, expected):
    x = uneven(shape)
    value, gradient = pulled_back(f, x)
    assert value.shape == expected
    np.testing.assert_array_equal(value.ravel(), x.ravel())
    np.testing.assert_array_equal(gradient.ravel(), uneven(expected).ravel())
    assert gradient.shape == shape
