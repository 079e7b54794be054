"""Writing in place: what is written is in the graph, and a rule that needs what was there before raises.

Either the gradient is that of the program as it ran, or backward raises and names the op: never a gradient computed
from a value that was not there in the forward pass.
"""

import numpy as np
import pytest

import smolgrad
from smolgrad import functional as F
from tests.regressions.tensors import leaf, tensor

W = [3.0, 5.0]

# --- what is written is in the graph ----------------------------------------------------------------------------------

WRITES = [
    pytest.param(lambda y, x: y.add_(10), [11.0, 12.0], [1.0, 1.0], id="add_"),
    pytest.param(lambda y, x: y.sub_(10), [-9.0, -8.0], [1.0, 1.0], id="sub_"),
    pytest.param(lambda y, x: y.mul_(10), [10.0, 20.0], [10.0, 10.0], id="mul_"),
    pytest.param(lambda y, x: y.div_(4), [0.25, 0.5], [0.25, 0.25], id="div_"),
    pytest.param(lambda y, x: y.pow_(2), [1.0, 4.0], [2.0, 4.0], id="pow_"),
    pytest.param(lambda y, x: y.remainder_(0.75), [0.25, 0.5], [1.0, 1.0], id="remainder_"),
    pytest.param(lambda y, x: y.floor_divide_(0.75), [1.0, 2.0], [0.0, 0.0], id="floor_divide_"),
    pytest.param(lambda y, x: y.div_(0.75, rounding_mode="trunc"), [1.0, 2.0], [0.0, 0.0], id="div_ by its rounding"),
    pytest.param(lambda y, x: y.add_(x), [2.0, 4.0], [2.0, 2.0], id="add_ of the leaf"),
    pytest.param(lambda y, x: y.mul_(x), [1.0, 4.0], [2.0, 4.0], id="mul_ by the leaf"),
    pytest.param(lambda y, x: y.mul_(y), [1.0, 4.0], [2.0, 4.0], id="mul_ by itself"),
    pytest.param(lambda y, x: y.div_(y), [1.0, 1.0], [0.0, 0.0], id="div_ by itself"),
    pytest.param(lambda y, x: y.mul_(y[0]).mul_(y[1]), [2.0, 4.0], None, id="mul_ by its own elements"),
    pytest.param(lambda y, x: y.zero_(), [0.0, 0.0], [0.0, 0.0], id="zero_"),
    pytest.param(lambda y, x: y.copy_(x * 7), [7.0, 14.0], [7.0, 7.0], id="copy_"),
    pytest.param(lambda y, x: y.mul_(3).add_(x).mul_(2), [8.0, 16.0], [8.0, 8.0], id="three in a row"),
]


@pytest.mark.parametrize(("write", "value", "slopes"), WRITES)
def test_a_write_is_recorded(write, value, slopes):
    x = leaf([1.0, 2.0])
    y = x * 1
    assert write(y, x) is y
    assert y.data.tolist() == value
    y.backward(tensor(W))
    if slopes is None:  # y0 (y0 y1) (y0 y1 written again): y = (x0**2, x0 x1), then times x0 x1
        slopes = [(3 * 3 * 1 * 2 + 5 * 2 * 1 * 4) / 3, (3 * 1 + 5 * 1 * 2 * 2) / 5]
    np.testing.assert_allclose(x.grad.data, np.array(W) * slopes, rtol=1e-14)


OPERATORS = {
    "+=": (lambda y: y.__iadd__(10), 1.0),
    "-=": (lambda y: y.__isub__(10), 1.0),
    "*=": (lambda y: y.__imul__(10), 10.0),
    "/=": (lambda y: y.__itruediv__(4), 0.25),
    "//=": (lambda y: y.__ifloordiv__(4), 0.0),
    "%=": (lambda y: y.__imod__(4), 1.0),
    "**=": (lambda y: y.__ipow__(1), 1.0),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_augmented_assignment_writes_in_place(operator):
    write, slope = OPERATORS[operator]
    x = leaf([1.0, 2.0])
    y = x * 1
    memory = y.data
    assert write(y) is y
    assert y.data is memory
    y.backward(tensor(W))
    np.testing.assert_allclose(x.grad.data, np.array(W) * slope, rtol=1e-15)


def test_a_write_makes_a_constant_part_of_the_graph():
    c, w = tensor([1.0, 2.0]), leaf(7.0)
    c.mul_(w)
    c[0] = w * w
    assert c.requires_grad
    c.backward(tensor(W))
    assert w.grad.item() == 3 * 14 + 5 * 2


def test_a_value_used_before_a_write_keeps_the_gradient_of_the_old_one():
    x = leaf([1.0, 2.0])
    y = x * 1
    z = y + y
    y[0] = 4.0
    (z * y).backward(tensor(W))
    # z = 2 x, y = (4, x1): the slopes are 8 and 4 x1.
    assert x.grad.data.tolist() == [24.0, 40.0]


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
def test_every_slot_of_an_earlier_op_keeps_the_old_tensor(slots):
    # MyGrad 5b8448cf: only the first of the slots was led back to the old one.
    x = leaf([1.0, 2.0])
    y = x * 1
    z = smolgrad.cat([y] * slots)
    y.mul_(100)
    y[0] = 4.0
    (z.reshape(slots, 2).sum(0) + y).backward(tensor(W))
    assert x.grad.data.tolist() == [3.0 * slots, 5.0 * (slots + 100)]


def test_each_use_between_several_writes_has_its_own_former_value():
    x = leaf([1.0, 2.0])
    y = x * 1
    uses = []
    for k in (2, 3, 5):
        uses.append(y + 0)
        y.mul_(k)
    uses.append(y + 0)
    total = sum((u * 10**i for i, u in enumerate(uses)), 0)
    assert [u.data.tolist() for u in uses] == [[1, 2], [2, 4], [6, 12], [30, 60]]
    total.backward(tensor(W))
    slope = 1 + 2 * 10 + 6 * 100 + 30 * 1000
    assert x.grad.data.tolist() == [3.0 * slope, 5.0 * slope]


def test_a_long_chain_of_writes_is_swept_and_dropped():
    x = leaf([1.0, 2.0])
    y = x * 1
    for _ in range(5000):
        y.add_(1.0)
    y.backward(tensor(W))
    assert x.grad.data.tolist() == W
    y = x * 1
    for _ in range(5000):
        y.add_(1.0)
    del y


def test_a_write_between_two_sweeps_of_a_retained_graph_is_seen_by_the_second_only():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y + 1
    z.backward(tensor(W), retain_graph=True)
    y.mul_(10)
    z.backward(tensor(W), retain_graph=True)
    y.backward(tensor(W))
    assert x.grad.data.tolist() == [3.0 * 24, 5.0 * 24]


def test_a_write_after_its_graph_was_let_go_has_no_way_back():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.backward(tensor(W))
    y.mul_(10)
    with pytest.raises(RuntimeError, match=r"already swept through mul\(\).*retain_graph=True"):
        y.backward(tensor(W))
    assert x.grad.data.tolist() == [6.0, 10.0]


# --- a rule that reads what was overwritten ---------------------------------------------------------------------------

READS = [
    pytest.param(lambda y: y * y, r"mul\(\) needs input", id="mul reads its inputs"),
    pytest.param(lambda y: y / tensor([2.0, 4.0]) * y, r"mul\(\)", id="mul of a quotient"),
    pytest.param(lambda y: 1 / y, r"div\(\)", id="div reads its divisor"),
    pytest.param(lambda y: y**3, r"pow\(\) needs input 0", id="pow"),
    pytest.param(lambda y: y.log(), r"log\(\) needs input 0", id="log"),
    pytest.param(lambda y: abs(y), r"abs\(\)", id="abs"),
    pytest.param(lambda y: smolgrad.maximum(y, tensor([1.5, 1.5])), r"maximum\(\)", id="maximum"),
    pytest.param(lambda y: y.clamp(0, 1.5), r"clamp\(\)", id="clamp"),
    pytest.param(lambda y: y.amax(), r"amax\(\)", id="amax"),
    pytest.param(lambda y: y.var(), r"var\(\)", id="var"),
    pytest.param(lambda y: y.logsumexp(0), r"logsumexp\(\)", id="logsumexp"),
    pytest.param(lambda y: y @ y, r"matmul\(\)|mul\(\)", id="matmul"),
    pytest.param(lambda y: F.linear(y, y.unsqueeze(0)), r"linear\(\)", id="linear"),
    pytest.param(lambda y: F.layer_norm(y, (2,)), r"standardize\(\)", id="layer_norm"),
    pytest.param(lambda y: F.cross_entropy(y, smolgrad.tensor(1)), r"cross_entropy\(\)", id="cross_entropy"),
]
SPELLINGS = {
    "add_": lambda y: y.add_(1),
    "setitem": lambda y: y.__setitem__(0, 9.0),
    "add_ under no_grad": lambda y: smolgrad.no_grad(y.add_)(1),
    "setitem under no_grad": lambda y: smolgrad.no_grad(y.__setitem__)(slice(1), 9.0),
    "a view under no_grad": lambda y: smolgrad.no_grad(y[1:].mul_)(2),
    "one element under no_grad": lambda y: smolgrad.no_grad(y[0].mul_)(2),
    "a view of a view under no_grad": lambda y: smolgrad.no_grad(y[::-1].unsqueeze(0)[:, :1].zero_)(),
    "detach": lambda y: y.detach().add_(1),
    "a view of detach": lambda y: y.detach().T[:1].zero_(),
    "as_tensor of numpy": lambda y: smolgrad.as_tensor(y.detach().numpy()).add_(1),
    "from_numpy of a view": lambda y: smolgrad.from_numpy(y.detach().numpy()[::-1]).add_(1),
    "data": lambda y: setattr(y, "data", np.array([7.0, 8.0])),
    "copy_ under no_grad": lambda y: smolgrad.no_grad(y.copy_)(tensor([7.0, 8.0])),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("f", "message"), READS)
def test_backward_raises_where_what_a_rule_reads_was_overwritten(f, message, spelling):
    # pytorch 14571, 197887, PRs 14633 and 178315: the counter missed writes under no_grad, and views made anew.
    x = leaf([1.0, 2.0])
    y = x * 1
    z = f(y)
    SPELLINGS[spelling](y)
    seed = tensor(1.0 + np.arange(z.size).reshape(z.shape))
    with pytest.raises(RuntimeError, match=message + r".*written in place since.*clone\(\)"):
        z.backward(seed)
    assert x.grad is None


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "f", [smolgrad.exp, smolgrad.sqrt, smolgrad.tanh, smolgrad.sigmoid, smolgrad.relu, lambda x: x.softmax(0)]
)
def test_backward_raises_where_the_output_that_a_rule_reads_was_overwritten(f, spelling):
    x = leaf([1.0, 2.0])
    y = f(x)
    SPELLINGS[spelling](y)
    with pytest.raises(RuntimeError, match="needs its output.*written in place since"):
        y.backward(tensor(W))
    assert x.grad is None


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("f", "slope"),
    [
        pytest.param(lambda y: y + 1, 1.0, id="add"),
        pytest.param(lambda y: y * 3, 3.0, id="mul by a number"),
        pytest.param(lambda y: y * tensor([3.0, 3.0]), 3.0, id="mul by a constant"),
        pytest.param(lambda y: 1 - y, -1.0, id="sub"),
        pytest.param(lambda y: y.clone(), 1.0, id="clone"),
        pytest.param(lambda y: y / 4, 0.25, id="div"),
        pytest.param(lambda y: y.unsqueeze(0).expand(2, 2).sum(0).clone(), 2.0, id="expand"),
        pytest.param(lambda y: smolgrad.stack([y, y]).sum(0), 2.0, id="stack"),
        pytest.param(lambda y: smolgrad.where(np.array([True, True]), y, 0), 1.0, id="where"),
        pytest.param(lambda y: y[[0, 1]], 1.0, id="getitem"),
        pytest.param(lambda y: y @ tensor([[2.0, 0.0], [0.0, 2.0]]), 2.0, id="matmul with a constant"),
    ],
)
def test_a_write_that_no_rule_minds_is_allowed(f, slope, spelling):
    x = leaf([1.0, 2.0])
    y = x * 1
    z = f(y)
    SPELLINGS[spelling](y)
    z.backward(tensor(W))
    np.testing.assert_array_equal(x.grad.data, np.array(W) * slope)


def test_a_leaf_overwritten_under_no_grad_is_noticed_by_the_graph_from_before_and_not_by_the_one_after():
    x = leaf([1.0, 2.0])
    before = x * x
    with smolgrad.no_grad():
        x.mul_(3)
    after = x * x
    with pytest.raises(RuntimeError, match=r"mul\(\) needs input"):
        before.backward(tensor(W))
    after.backward(tensor(W))
    assert x.is_leaf
    assert x.grad.data.tolist() == [2 * 3 * 3.0, 2 * 6 * 5.0]


def test_a_write_is_noticed_through_a_second_order_graph():
    x = leaf([1.0, 2.0])
    (g,) = smolgrad.grad(x**3, x, tensor(W), create_graph=True)
    with smolgrad.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="written in place since"):
        g.backward(tensor(W))


# --- views ------------------------------------------------------------------------------------------------------------

VIEWS = {
    "slice": lambda y: y[0:1],
    "one element": lambda y: y[0, 0],
    "row": lambda y: y[0],
    "reversed": lambda y: y[::-1],
    "new axis": lambda y: y[None],
    "ellipsis": lambda y: y[...],
    "T": lambda y: y.T,  # MyGrad 73d9f371: .T was an op of its own that forgot to say that it returns a view
    "mT": lambda y: y.mT,
    "transpose": lambda y: y.transpose(0, 1),
    "permute": lambda y: y.permute(1, 0),
    "reshape": lambda y: y.reshape(4),
    "flatten": lambda y: y.flatten(),
    "unsqueeze": lambda y: y.unsqueeze(0),
    "squeeze": lambda y: y.squeeze(),
    "chain": lambda y: y[:, 1][::-1].unsqueeze(0).T,  # MyGrad 9b958b90: of a chain, only the last view counted
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shares_memory_and_a_write_through_it_is_refused_where_it_would_be_lost(view):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    v = VIEWS[view](y)
    assert np.shares_memory(v.data, y.data)
    kept = y.data.copy()
    for write in (lambda: v.add_(1), lambda: v.__setitem__(..., 5.0), lambda: v.mul_(y[0, 0]), v.zero_):
        with pytest.raises(RuntimeError, match=r"view of one that requires grad.*no_grad\(\)"):
            write()
    np.testing.assert_array_equal(y.data, kept)
    with smolgrad.no_grad():
        v.mul_(10)
    assert (y.data == 10 * kept).sum() == v.size


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_leaf_is_refused_too(view):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    v = VIEWS[view](x)
    with pytest.raises(RuntimeError, match="view of one that requires grad"):
        v.add_(1)
    assert x.data.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_constant_writes_to_the_constant(view):
    c = tensor([[1.0, 2.0], [3.0, 4.0]])
    v = VIEWS[view](c)
    before = c.data.copy()
    v.add_(10)
    assert (c.data - before).sum() == 10 * v.size
    v.zero_()
    assert (c.data == 0).sum() == v.size


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_taken_before_a_recorded_write_is_refused_where_its_record_would_be_wrong(view):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    v = VIEWS[view](y)
    y.mul_(10)
    with pytest.raises(RuntimeError, match=r"mul\(\): a tensor.*shares its memory.*take the view again"):
        v * 2
    w = VIEWS[view](y)
    (w * 2).sum().backward()
    assert x.grad.data.sum() == 20.0 * w.size


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_constant_that_was_written_in_the_graph_is_refused_even_beside_constants(view):
    c, w = tensor([[1.0, 2.0], [3.0, 4.0]]), leaf(5.0)
    v = VIEWS[view](c)
    c.mul_(w)
    with pytest.raises(RuntimeError, match=r"mul\(\): a tensor.*shares its memory.*take the view again"):
        v * 2
    with smolgrad.no_grad():
        assert (v * 2).data.sum() == 10 * VIEWS[view](tensor([[1.0, 2.0], [3.0, 4.0]])).data.sum()
    (VIEWS[view](c) * 2).sum().backward()
    assert w.grad.data == 2 * VIEWS[view](tensor([[1.0, 2.0], [3.0, 4.0]])).data.sum()


@pytest.mark.parametrize("view", VIEWS)
def test_a_constant_whose_view_was_written_in_the_graph_is_refused_where_its_gradient_would_be_lost(view):
    c, w = tensor([[1.0, 2.0], [3.0, 4.0]]), leaf(5.0)
    VIEWS[view](c).mul_(w)
    with pytest.raises(RuntimeError, match=r"a tensor.*shares its memory"):
        c * leaf(2.0)


def test_a_chain_of_views_written_under_no_grad_changes_the_value_and_not_the_slope():
    x = leaf(np.arange(9.0).reshape(3, 3))
    h = x * 1
    y = h[:, 2][:-1][::-1]
    with smolgrad.no_grad():
        y.mul_(tensor([2.0, 3.0]))
    assert h.data.tolist() == [[0.0, 1.0, 6.0], [3.0, 4.0, 10.0], [6.0, 7.0, 8.0]]
    w = np.arange(9.0).reshape(3, 3) - 3
    (h * 2).backward(tensor(w))
    np.testing.assert_array_equal(x.grad.data, 2 * w)


def test_a_chain_of_picks_written_and_put_back_scales_the_slopes_of_what_it_touched():
    # MyGrad 9b958b90, with the write spelled so that it is recorded.
    x = leaf(np.arange(9.0).reshape(3, 3))
    h = x * 1
    h[:2, 2] = h[:, 2][:-1][::-1] * tensor([2.0, 3.0])
    w = np.arange(9.0).reshape(3, 3) - 3
    h.backward(tensor(w))
    expected = w.copy()
    expected[0, 2], expected[1, 2] = 3 * w[1, 2], 2 * w[0, 2]
    np.testing.assert_array_equal(x.grad.data, expected)


def test_an_overlapping_write_reads_before_it_writes():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[1:] = y[:-1]
    assert y.data.tolist() == [1.0, 1.0, 2.0]
    y += y[::-1]
    assert y.data.tolist() == [3.0, 2.0, 3.0]
    y.backward(tensor([3.0, 5.0, 7.0]))
    assert x.grad.data.tolist() == [10.0 + 10.0, 10.0, 0.0]
    c = tensor([1.0, 2.0, 3.0])
    c[1:] = c[:-1]
    c.sub_(c[0])
    assert c.data.tolist() == [0.0, 0.0, 1.0]


# --- what an op keeps is its own --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_an_index_changed_after_the_forward_pass_does_not_reach_the_backward_pass(kind):
    make = (lambda v: np.array(v)) if kind == "array" else smolgrad.tensor
    x, rows, mask = leaf([1.0, 2.0, 3.0]), make([0, 0]), make([True, False, True])
    a, b = x[rows], x[mask]
    c = x * 1
    c[rows] = leaf([7.0, 8.0])
    rows[:] = 2
    mask[:] = False
    for y, expected in ((a, [8.0, 0.0, 0.0]), (b, [3.0, 0.0, 5.0])):
        x.grad = None
        y.backward(tensor(W))
        assert x.grad.data.tolist() == expected
    x.grad = None
    c.backward(tensor([3.0, 5.0, 7.0]))
    assert x.grad.data.tolist() == [0.0, 5.0, 7.0]


def test_the_bounds_of_a_slice_changed_after_the_forward_pass_do_not_reach_the_backward_pass():
    x, n = leaf([1.0, 2.0, 3.0]), smolgrad.tensor(1)
    y = x[n:]
    z = x[np.array(0) : n]
    n.add_(1)
    y.backward(tensor(W))
    z.backward(tensor([7.0]))
    assert x.grad.data.tolist() == [7.0, 3.0, 5.0]


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_conditions_labels_and_rows_changed_after_the_forward_pass_do_not_reach_the_backward_pass(kind):
    make = (lambda v: np.array(v)) if kind == "array" else smolgrad.tensor
    condition, labels, rows = make([True, False]), make([0, 1]), make([0, 0])
    x = leaf([[1.0, 2.0], [3.0, 5.0]])
    results = [
        smolgrad.where(condition, x, 0),
        F.cross_entropy(x, labels, reduction="none"),
        F.embedding(rows, x),
        F.cross_entropy(x, labels, ignore_index=1, reduction="none"),
    ]
    seeds = [tensor(np.arange(1.0, 1 + y.size).reshape(y.shape)) for y in results]
    before = [smolgrad.grad(y, x, seed, retain_graph=True)[0].data for y, seed in zip(results, seeds, strict=True)]
    condition[:] = False
    labels[:] = 1
    rows[:] = 1
    for y, seed, expected in zip(results, seeds, before, strict=True):
        assert expected.any()
        np.testing.assert_array_equal(smolgrad.grad(y, x, seed)[0].data, expected)


def test_what_is_read_of_a_max_over_a_dim_is_the_index_it_had_found():
    x = leaf([[1.0, 2.0], [4.0, 3.0]])
    values, indices = (x * 1).max(1)
    indices[:] = 0
    values.backward(tensor(W))
    assert x.grad.data.tolist() == [[0.0, 3.0], [5.0, 0.0]]


# --- refused writes ---------------------------------------------------------------------------------------------------

REFUSED = [
    pytest.param(lambda x, y: x.add_(1), r"add_\(\): a leaf that requires grad.*no_grad", id="a leaf"),
    pytest.param(lambda x, y: x.__setitem__(0, 1.0), r"setitem\(\): a leaf", id="an element of a leaf"),
    pytest.param(lambda x, y: x.zero_(), "a leaf that requires grad", id="zero_ of a leaf"),
    pytest.param(
        lambda x, y: y.add_(tensor(np.ones((3, 2)))), r"shape \(3, 2\).*does not fit into \(2,\)", id="too large"
    ),
    pytest.param(lambda x, y: y.mul_(tensor([1.0, 2.0, 3.0])), "do not broadcast", id="of another size"),
    pytest.param(
        lambda x, y: y.__setitem__(0, tensor([1.0, 2.0])), "does not broadcast to the place", id="in one place"
    ),
    pytest.param(lambda x, y: y.copy_(tensor([[1.0], [2.0]])), "does not broadcast", id="copy_ of a column"),
    pytest.param(
        lambda x, y: smolgrad.tensor([1, 2]).mul_(1.5), "float32 cannot be written into int64", id="float in int"
    ),
    pytest.param(
        lambda x, y: smolgrad.tensor([1, 2]).div_(2), "float32 cannot be written into int64", id="div_ of ints"
    ),
    pytest.param(lambda x, y: smolgrad.tensor([True]).add_(1), "int64 cannot be written into bool", id="int in bool"),
    pytest.param(lambda x, y: smolgrad.ones(1).expand(3).add_(1), "elements share it", id="expanded"),
    pytest.param(lambda x, y: smolgrad.ones(1).expand(3).zero_(), "elements share it", id="zero_ expanded"),
]


@pytest.mark.parametrize(("write", "message"), REFUSED)
def test_a_write_that_cannot_be_is_refused_and_nothing_has_changed(write, message):
    x = leaf([1.0, 2.0])
    y = x * 3
    with pytest.raises(RuntimeError, match=message):
        write(x, y)
    assert (x.data.tolist(), y.data.tolist()) == ([1.0, 2.0], [3.0, 6.0])
    y.backward(tensor(W))
    assert x.grad.data.tolist() == [9.0, 15.0]


def test_a_write_to_an_index_that_is_not_there_is_refused():
    x = leaf([1.0, 2.0])
    y = x * 3
    with pytest.raises(IndexError, match=r"setitem\(\).*shape \(2,\)"):
        y[2] = 5.0
    y.backward(tensor(W))
    assert x.grad.data.tolist() == [9.0, 15.0]


def test_memory_given_read_only_is_not_written():
    array = np.array([1.0, 2.0])
    array.flags.writeable = False
    t = smolgrad.from_numpy(array)
    for write in (lambda: t.add_(1), t.zero_, lambda: setattr(t, "data", np.zeros(2))):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert array.tolist() == [1.0, 2.0]


# --- found by random programs -----------------------------------------------------------------------------------------


def test_a_maximum_has_memory_of_its_own():
    for x in (leaf(2.0), leaf([1.0, 3.0])):
        values = (x * 1).max(0)[0]
        values.mul_(2)
        values.sum().backward()
        np.testing.assert_array_equal(x.grad.data, 2.0 * (x.data == x.data.max()))


def test_a_product_with_a_vector_is_written_in_place():
    a, v = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([1.0, -1.0])
    y = (a @ v).mul_(2)
    y.backward(tensor([1.0, 1.0]))
    np.testing.assert_array_equal(v.grad.data, [8.0, 12.0])


def test_a_sweep_neither_begins_nor_ends_at_a_view_whose_base_was_written_since():
    x = leaf([1.0, 2.0])
    b = x.clone()
    v = b.reshape(2)
    b.add_(v)
    with pytest.raises(RuntimeError, match=r"backward\(\): a tensor of shape \(2,\) shares its memory"):
        v.backward(tensor([1.0, 1.0]))
    with pytest.raises(RuntimeError, match=r"grad\(\): a tensor of shape \(2,\) shares its memory"):
        smolgrad.grad(b, [v], tensor([1.0, 1.0]))
    assert x.grad is None


def test_an_expansion_that_stretches_nothing_is_written_in_place():
    x = smolgrad.tensor([1.0, 2.0])
    x.expand(1, 2).add_(1)
    np.testing.assert_array_equal(x.data, [2.0, 3.0])


def test_what_has_no_elements_is_written_though_it_was_expanded():
    x = tensor([0.0]).expand(0)
    assert x.mul_(2.0).shape == (0,)
    x[...] = 1.0
    assert x.add_(leaf(np.zeros(0))).requires_grad


@pytest.mark.parametrize("of_a_leaf", [True, False])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_stays_one_when_its_graph_was_let_go(view, of_a_leaf):
    # Found by a program: the write went through, and changed the leaf.
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    seen = VIEWS[view](x if of_a_leaf else x * 1)
    seen.backward(tensor(np.ones(seen.shape)))
    with pytest.raises(RuntimeError, match="is a view of one that requires grad"):
        seen.mul_(2)
    assert x.data.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_what_is_no_view_is_written_when_its_graph_was_let_go():
    x, weight = leaf([[1.0, 2.0]]), leaf([[3.0, 4.0]])
    y = F.linear(x, weight)  # an array with a base of its own
    y.sum().backward()
    y.mul_(2)
    assert y.data.tolist() == [[22.0]]


STALE = {
    "an element of an earlier view": lambda x, v, y: (x.add_(y), v.__setitem__(0, 7.0)),
    "an earlier view": lambda x, v, y: (x.add_(y), v.zero_()),
    "what an earlier view shows": lambda x, v, y: (v.copy_(y[:2]), x.__setitem__(0, 1.0)),
    "what it shows, whole": lambda x, v, y: (v.copy_(y[:2]), x.zero_()),
    "another tensor, with it": lambda x, v, y: (v.copy_(y[:2]), smolgrad.zeros(3, dtype="float64").copy_(x)),
    "another tensor, with the view": lambda x, v, y: (x.add_(y), smolgrad.zeros(2, dtype="float64").copy_(v)),
}


@pytest.mark.parametrize("what", STALE)
def test_a_constant_whose_memory_was_written_in_the_graph_is_neither_written_nor_copied(what):
    # The other one's record would no longer explain its value, or the copy would have no record.
    x, y = tensor([1.0, 2.0, 3.0]), leaf([4.0, 5.0, 6.0])
    with pytest.raises(RuntimeError, match="shares its memory with one that was written in place"):
        STALE[what](x, x[:2], y)
    with smolgrad.no_grad():
        STALE[what](x, x[:2], y)
