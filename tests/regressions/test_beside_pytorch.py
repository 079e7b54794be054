"""Calls at the edge of what an op takes, each made in both engines: one answer, or a refusal of both."""

import copy
import math
import warnings

import numpy as np
import pytest
import torch

import smolgrad

ENGINES = {"smolgrad": smolgrad, "torch": torch}
NAN, INF = math.nan, math.inf


def functional(m):
    return m.functional if m is smolgrad else torch.nn.functional


def leaf(m, data):
    return m.tensor(data, dtype=m.float64, requires_grad=True)


def slopes(m, f, *data):
    """The gradients of the sum of ``f`` of some leaves."""
    leaves = [leaf(m, x) for x in data]
    return m.autograd.grad(f(*leaves).sum(), leaves)


def kept(m, write, data):
    """What a name that stood for a tensor of ``data`` before it was written in place shows afterwards."""
    x = before = m.tensor(data)
    write(x)
    return before


def written(x, index, value):
    x[index] = value
    return x


def assigned(m, name, value):
    """The state of a module with a parameter ``w`` and a buffer ``b``, one of which was assigned."""
    model = m.nn.Module()
    model.w = m.nn.Parameter(m.zeros(1))
    model.register_buffer("b", m.ones(1))
    setattr(model, name, value(m))
    return [
        f"{key} {value.tolist() if m is torch else value.data.tolist()}" for key, value in model.state_dict().items()
    ]


def again(m):
    model = m.nn.BatchNorm1d(1)
    model.register_buffer("running_mean", m.ones(2))
    return model.running_mean


def applied(m):
    names = []
    inner = m.nn.Sequential(m.nn.Tanh(), m.nn.Flatten())
    m.nn.Sequential(m.nn.Linear(1, 1), inner, m.nn.Sequential(inner), m.nn.ReLU()).apply(
        lambda module: names.append(type(module).__name__)
    )
    return names


def second(m, loss, difference):
    x = leaf(m, [difference])
    (slope,) = m.autograd.grad(loss(x, m.zeros(1, dtype=m.float64)), [x], create_graph=True)
    return m.autograd.grad(slope.sum(), [x])


def reshaped(m):
    """A view of what was picked, once that was written."""
    y = functional(m).pad(m.zeros((2, 2)), (0, 0), mode="reflect")
    seen = y.reshape(-1)
    y.add_(1)
    return seen


def statistics(m, shape):
    model = m.nn.BatchNorm1d(2)
    model(m.zeros(shape))
    return [model.running_mean, model.running_var]


def attended(m, mask, **options):
    """Attention of two queries to two keys, its output and the gradients of all three."""
    q, k, v = leaf(m, [[1.0], [2.0]]), leaf(m, [[1.0], [3.0]]), leaf(m, [[4.0], [5.0]])
    y = functional(m).scaled_dot_product_attention(q, k, v, attn_mask=mask(m), **options)
    return [y.detach(), *m.autograd.grad(y.sum(), [q, k, v])]


def several_heads(m, need_weights=False, **masks):
    model = m.nn.MultiheadAttention(2, 1)
    x = m.ones((2, 1, 2))
    return model(x, x, x, need_weights=need_weights, **{name: mask(m) for name, mask in masks.items()})[0].detach()


def pooled(m, name, *args, **options):
    return getattr(functional(m), name)(m.arange(16.0).reshape(1, 1, 4, 4), *args, **options)


def normed(m, x, mean=None, var=None, **options):
    return functional(m).batch_norm(m.tensor(x), mean, var, **options)


# What is called, by what it is about. Each is called in both.
SAME = {
    # made of nothing
    "zeros of no dtype": lambda m: m.zeros(2, dtype=None),
    "ones of no dtype": lambda m: m.ones((2,), dtype=None),
    "eye of no dtype": lambda m: m.eye(2, dtype=None),
    "zeros of a size by name": lambda m: m.zeros(size=(2, 1)),
    "arange of an end by name": lambda m: m.arange(end=3),
    "arange of a NumPy float": lambda m: m.arange(np.float32(2.5)),
    "arange of a NumPy int": lambda m: m.arange(np.int32(2)),
    "arange of a tensor": lambda m: m.arange(m.tensor(3)),
    "arange of a floating tensor": lambda m: m.arange(0, m.tensor(2.0, dtype=m.float64)),
    "arange in whole steps": lambda m: m.arange(0, 5, 1.9, dtype=m.int64),
    "arange in whole steps of a shorter dtype": lambda m: m.arange(5, 0, -1.5, dtype=m.int32),
    "arange to a fraction": lambda m: m.arange(1.7, 4.2, dtype=m.int64),
    "arange beyond its dtype": lambda m: m.arange(300, dtype=m.uint8),
    "full of a NumPy float": lambda m: m.full((2,), np.float64(3)),
    "full of a NumPy int": lambda m: m.full((2,), np.int32(3)),
    "full of a tensor": lambda m: m.full((2,), m.tensor(3.0, dtype=m.float64)),
    "full of a bool": lambda m: m.full((2,), True),
    "full of whole numbers": lambda m: m.full((2,), 2.7, dtype=m.int64),
    "tensor of a tensor and a float": lambda m: m.tensor([m.tensor(1), 2.5]),
    "tensor of a float and a NumPy float": lambda m: m.tensor([1.0, np.float64(2.0)]),
    "tensor of a NumPy float and a float": lambda m: m.tensor([np.float32(2.0), 1.0]),
    "tensor of a NumPy int and an int": lambda m: m.tensor([np.int32(2), 1]),
    "tensor of a bool and an int": lambda m: m.tensor([[True], [2]]),
    # kept in place
    "**=": lambda m: kept(m, lambda x: x.__ipow__(2), [3, 2]),
    "//=": lambda m: kept(m, lambda x: x.__ifloordiv__(2), [3, -3]),
    "%=": lambda m: kept(m, lambda x: x.__imod__(2), [3, -3]),
    "&=": lambda m: kept(m, lambda x: x.__iand__(1), [3, 2]),
    "|=": lambda m: kept(m, lambda x: x.__ior__(1), [3, 2]),
    "^=": lambda m: kept(m, lambda x: x.__ixor__(1), [3, 2]),
    "div_ by its rounding": lambda m: kept(m, lambda x: x.div_(2, rounding_mode="floor"), [3, -3]),
    # operators
    "in": lambda m: m.tensor([2 in m.tensor([[1, 2]]), 3 in m.tensor([[1, 2]])]),
    "== None": lambda m: m.tensor([m.ones(1) == None, m.ones(1) != None]),  # noqa: E711  it is what is asked
    "None in a list": lambda m: m.tensor([None in [m.ones(2)]]),
    "an index of one element": lambda m: m.tensor([1, 2, 3][m.tensor([1])]),
    "unary signs": lambda m: +m.tensor([1.0, -2.0]),
    "~ of bools": lambda m: ~m.tensor([True, False]),
    "~ of integers": lambda m: ~m.tensor([0, 5]),
    "^": lambda m: m.tensor([1, 2]) ^ 3,
    "a large odd power": lambda m: m.tensor([-1.0]) ** 16777217,
    # reductions
    "max of another by name": lambda m: m.max(m.zeros(2), other=m.ones(2)),
    "min of another by name": lambda m: m.min(m.zeros(2), other=m.ones(2)),
    "var with no correction said": lambda m: m.var(m.tensor([1.0, 2.0]), correction=None),
    "var of nothing": lambda m: m.var(m.zeros(0), correction=-1),
    "the slope of var with a correction of NaN": lambda m: slopes(m, lambda x: m.var(x, correction=NAN), [1.0, 2.0]),
    "a diagonal far outside": lambda m: m.diag(m.ones((2, 3)), 2**40),
    "a diagonal far below": lambda m: m.diagonal(m.ones((2, 3)), -(2**40)),
    "nansum in integers": lambda m: m.nansum(m.tensor([[NAN, 2.5], [1.0, NAN]]), 1, dtype=m.int32),
    "an input and a shape by name": lambda m: m.reshape(input=m.ones(4), shape=(2, 2)),
    "an input and dims by name": lambda m: m.permute(input=m.ones((2, 3)), dims=(1, 0)),
    # attention
    "a query that sees nothing": lambda m: attended(m, lambda m: m.tensor([[True, True], [False, False]])),
    "a query that sees nothing, in numbers": lambda m: attended(m, lambda m: m.tensor([[0.0, -INF], [-INF, -INF]])),
    "a query that is not seen by width": lambda m: functional(m).scaled_dot_product_attention(
        m.ones((1, 0)), m.ones((2, 0)), m.ones((2, 1))
    ),
    "heads that see nothing": lambda m: several_heads(m, key_padding_mask=lambda m: m.tensor([[True, True]])),
    "heads that see little": lambda m: (
        several_heads(m, attn_mask=lambda m: m.tensor([[True, True], [True, False]])).shape
    ),
    # losses and norms
    "statistics of an empty batch": lambda m: statistics(m, (0, 2)),
    "statistics of empty samples": lambda m: statistics(m, (2, 2, 0)),
    "classes whose weights are all 0": lambda m: functional(m).cross_entropy(
        m.zeros((2, 3)), m.tensor([0, 2]), weight=m.tensor([0.0, 2.0, 0.0]), label_smoothing=0.5
    ),
    "what was padded, seen by a reshape": lambda m: reshaped(m),
    "a beta below all numbers": lambda m: functional(m).smooth_l1_loss(m.tensor([0.5]), m.zeros(1), beta=1e-310),
    "the slope with a tiny beta": lambda m: slopes(
        m, lambda x: functional(m).smooth_l1_loss(x, m.zeros(1, dtype=m.float64), beta=1e-40), [0.5]
    ),
    "a vector of zeros and a tiny eps": lambda m: functional(m).cosine_similarity(
        m.zeros((1, 2)), m.ones((1, 2)), eps=1e-30
    ),
    "the curve of smooth_l1_loss at beta": lambda m: second(m, functional(m).smooth_l1_loss, 1.0),
    "the curve of huber_loss at delta": lambda m: second(m, functional(m).huber_loss, -1.0),
    "a value of 0 beside a mode": lambda m: functional(m).pad(m.ones((1, 2)), (1, 0), mode="reflect", value=0),
    # pools and convolutions
    "a kernel of one number in a tuple": lambda m: pooled(m, "max_pool2d", (2,)),
    "no strides": lambda m: pooled(m, "avg_pool2d", 2, stride=()),
    "a stride of one number in a tuple": lambda m: functional(m).conv2d(
        m.ones((1, 1, 3, 3)), m.ones((1, 1, 2, 2)), stride=(2,), padding=[1]
    ),
    # modules
    "a buffer assigned a tensor": lambda m: assigned(m, "b", lambda m: m.ones(1) + 1),
    "a buffer taken away": lambda m: assigned(m, "b", lambda m: None),
    "a parameter taken away": lambda m: assigned(m, "w", lambda m: None),
    "a buffer registered again": lambda m: again(m),
    "a dict of pairs": lambda m: list(m.nn.ModuleDict([("a", m.nn.ReLU())]).keys()),
    "what apply comes to, in order": lambda m: applied(m),
    "a weight by position": lambda m: m.nn.CrossEntropyLoss(m.tensor([1.0, 3.0]))(m.zeros((2, 2)), m.tensor([0, 1])),
    "the state of a loss": lambda m: list(m.nn.CrossEntropyLoss(m.ones(2)).state_dict()),
    "the reduction of a loss": lambda m: [m.nn.MSELoss(reduction="sum").reduction, m.nn.L1Loss().reduction],
    "a switch by position": lambda m: m.nn.ReLU(False)(m.tensor([-1.0, 1.0])),
}


def plain(x):
    """Dtypes and numbers, for a tensor; anything else as it is."""
    if isinstance(x, (list, tuple)):
        return [plain(part) for part in x]
    if isinstance(x, (smolgrad.Tensor, torch.Tensor)):
        array = x.detach().numpy()
        return [str(array.dtype), list(array.shape), array.tolist()]
    return x


def test_a_difference_is_seen():
    assert plain(smolgrad.ones(2)) != plain(torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("about", SAME)
def test_the_answer_is_pytorchs(about):
    ours, theirs = (plain(SAME[about](m)) for m in (smolgrad, torch))
    assert str(ours) == str(theirs)  # in which NaN equals NaN


REFUSED = {
    # numbers that do not fit
    "an element": lambda m: written(m.zeros(1), 0, 1e300),
    "an element of bytes": lambda m: written(m.zeros(1, dtype=m.uint8), 0, 300),
    "full": lambda m: m.full((1,), 1e300),
    "full of bytes": lambda m: m.full((1,), 300, dtype=m.int8),
    "where of two numbers": lambda m: m.where(m.tensor([True]), 1e300, 1.0),
    "where of one": lambda m: m.where(m.tensor([True]), 1e300, m.zeros(1)),
    "clamp": lambda m: m.clamp(m.ones(1), min=1e300),
    "clamp of bytes": lambda m: m.clamp(m.ones(1, dtype=m.uint8), max=300),
    "clamp of bools": lambda m: m.clamp(m.tensor([True]), min=True),
    "lerp": lambda m: m.lerp(m.ones(1), m.ones(1), 1e300),
    "softplus": lambda m: functional(m).softplus(m.ones(1), beta=1e300),
    "hardtanh": lambda m: functional(m).hardtanh(m.ones(1), -1.0, 1e300),
    "randint": lambda m: m.randint(0, 300, (1,), dtype=m.uint8),
    "randint from below": lambda m: m.randint(-3, 5, (1,), dtype=m.uint8),
    # arguments that are none
    "keepdim of 1": lambda m: m.sum(m.ones((2, 3)), 0, 1),
    "keepdim of 1 by name": lambda m: m.ones((2, 3)).amax(0, keepdim=1),
    "keepdim of None": lambda m: m.mean(m.ones((2, 3)), 0, keepdim=None),
    "descending of a word": lambda m: m.sort(m.ones(2), descending="no"),
    "requires_grad set to 1": lambda m: setattr(m.ones(1), "requires_grad", 1),
    "requires_grad of 1": lambda m: m.ones(2, requires_grad=1),
    "keepdim beside two tensors": lambda m: m.max(m.ones(2), m.ones(2), True),
    "a dim beside two tensors": lambda m: m.min(m.ones(2), 0, other=m.ones(2)),
    "a source and a number": lambda m: m.scatter(m.ones(1), 0, m.tensor([0]), m.ones(1), value=1.0),
    "nothing to differentiate in": lambda m: m.autograd.grad(leaf(m, [1.0]).sum(), []),
    "an argument twice": lambda m: m.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 0))(m.ones(1), m.ones(1)),
    "an argument twice, from either end": lambda m: m.func.grad(lambda a: a.sum(), argnums=(0, -1))(m.ones(1)),
    "no argument": lambda m: m.func.grad(lambda a: a.sum(), argnums=())(m.ones(1)),
    # what is not made
    "tensor of None": lambda m: m.tensor([1.0, None]),
    "tensor of None in a dtype": lambda m: m.tensor([1.0, None], dtype=m.float32),
    "tensor of a set": lambda m: m.tensor({1, 2}, dtype=m.bool),
    "full of a vector": lambda m: m.full((1,), m.ones(2)),
    "arange of bools": lambda m: m.arange(3, dtype=m.bool),
    "arange without an end": lambda m: m.arange(0, INF),
    "arange of no number": lambda m: m.arange(NAN),
    "arange in no steps": lambda m: m.arange(0, 1, NAN),
    "arange of None": lambda m: m.arange(None),
    "randint of integers that require grad": lambda m: m.randint(3, (1,), requires_grad=True),
    "None in a tensor": lambda m: None in m.ones(1),
    # options of losses and norms
    "one statistic of two": lambda m: normed(m, [[1.0], [2.0]], m.zeros(1), training=True),
    "an eps of 0 in training": lambda m: normed(m, [[1.0], [1.0]], training=True, eps=0.0),
    "statistics that require grad": lambda m: normed(m, [[1.0]], m.zeros(1, requires_grad=True), m.ones(1)),
    "a negative eps": lambda m: functional(m).cosine_similarity(m.ones((1, 2)), m.ones((1, 2)), eps=-1.0),
    "a beta of NaN": lambda m: functional(m).smooth_l1_loss(m.ones(1), m.zeros(1), beta=NAN),
    "a delta of NaN": lambda m: functional(m).huber_loss(m.ones(1), m.zeros(1), delta=NAN),
    "a mask of integers": lambda m: attended(m, lambda m: m.tensor([[1, 0], [1, 1]])),
    "a narrower dtype": lambda m: m.norm(m.ones(2, dtype=m.float64), dtype=m.float32),
    "no kernels": lambda m: functional(m).conv2d(m.ones((1, 1, 2, 2)), m.ones((0, 1, 1, 1))),
    "a pool of no channels": lambda m: functional(m).max_pool2d(m.ones((1, 0, 2, 2)), 1),
    "a mean of no rows": lambda m: functional(m).avg_pool2d(m.ones((1, 1, 0, 2)), 1, padding=0),
    # modules
    "a parameter assigned a tensor": lambda m: assigned(m, "w", lambda m: m.ones(1)),
    "a parameter assigned a module": lambda m: assigned(m, "w", lambda m: m.nn.ReLU()),
    "a parameter assigned a number": lambda m: assigned(m, "w", lambda m: 1.0),
    "a buffer assigned a number": lambda m: assigned(m, "b", lambda m: 1.0),
    "a name with a dot": lambda m: m.nn.ModuleDict({"a.b": m.nn.ReLU()}),
    "no name": lambda m: m.nn.ModuleDict({"": m.nn.ReLU()}),
    "an argument of what takes none": lambda m: m.nn.Tanh(1),
    "an option that is none": lambda m: m.nn.MSELoss(foo=1),
    # lists for tensors
    "a list as a weight": lambda m: functional(m).cross_entropy(m.zeros((1, 2)), m.tensor([0]), weight=[1.0, 2.0]),
    "a list as a value": lambda m: m.masked_fill(m.ones(2), m.tensor([True, False]), [1.0, 2.0]),
    "a list as a scale": lambda m: functional(m).rms_norm(m.ones((1, 2)), (2,), weight=[1.0, 2.0]),
    # beside a tensor
    **{f"a word and {name}": lambda m, op=op: op(m.ones(1), "a") for name, op in {
        "+": lambda x, y: x + y, "-": lambda x, y: y - x, "**": lambda x, y: x**y, "@": lambda x, y: x @ y,
    }.items()},
}  # fmt: skip


@pytest.mark.parametrize("about", REFUSED)
@pytest.mark.parametrize("engine", ENGINES)
def test_both_refuse_it(about, engine):
    with pytest.raises((RuntimeError, TypeError, ValueError, KeyError, NotImplementedError)):
        REFUSED[about](ENGINES[engine])


def test_a_tensor_that_is_assigned_to_a_buffer_is_that_buffer():
    model = smolgrad.nn.BatchNorm1d(1)
    mean = smolgrad.ones(1)
    model.running_mean = mean
    assert model.running_mean is mean
    assert dict(model.named_buffers())["running_mean"] is mean


def test_a_number_of_no_dimensions_is_written_out():
    assert f"{smolgrad.tensor(1.25):.1f}" == f"{torch.tensor(1.25):.1f}" == "1.2"
    assert f"{smolgrad.ones(1)}" == "tensor([1.])"


def test_an_operator_refuses_as_python_does():
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Tensor' and 'NoneType'"):
        smolgrad.ones(1) + None


def test_a_list_for_a_tensor_is_named():
    with pytest.raises(TypeError, match=r"masked_fill\(\): needs a Tensor, got list"):
        smolgrad.ones(2).masked_fill(smolgrad.tensor([True, False]), [1.0, 2.0])
    with pytest.raises(TypeError, match=r"binary_cross_entropy\(\): needs a Tensor, got list"):
        smolgrad.functional.binary_cross_entropy(smolgrad.ones(2), smolgrad.ones(2), weight=[1.0, 2.0])
    with pytest.raises(TypeError, match=r"mse_loss\(\): needs a Tensor, got list"):
        smolgrad.functional.mse_loss(smolgrad.ones(2), smolgrad.ones(2), weight=[1.0, 2.0])


def shared(m, make):
    """What a tensor made of another shows of a later write to that one."""
    x = m.zeros(1)
    made = make(x)
    with m.no_grad():
        x.add_(1)
    return made.detach()


def state_of(m, x):
    model = m.nn.Module()
    model.register_buffer("b", x)
    state = model.state_dict()["b"]
    with m.no_grad():
        model.b.add_(1)
    return state


def infinite(m, f, *numbers):
    """The gradient of an infinite cotangent."""
    x = leaf(m, list(numbers))
    y = f(m, x)
    return m.autograd.grad([y], [x], [m.full(tuple(y.shape), INF, dtype=m.float64)])


def added(x, y):
    x = x.double()
    x[0] += y[0]
    return x


def copied(x):
    (x * 2).sum().backward()
    return [copy.copy(x).grad]


def in_place(m):
    x = m.ones(1)
    functional(m).dropout(x, 0.5, False).zero_()
    return x


def curvature(m, f, a, b):
    """The second derivatives of ``f`` in its second argument, and in both."""
    x, y = leaf(m, [a]), leaf(m, [b])
    (slope,) = m.autograd.grad([f(x, y).sum()], [y], create_graph=True)
    return m.autograd.grad([slope.sum()], [y, x])


# What docs/DESIGN.md lists as different on purpose: what is called, and what smolgrad gives, or "refused".
DIFFERENT = {
    # indices are NumPy's
    "a nested list is one array": (lambda m: m.arange(9).reshape(3, 3)[[[0, 1], [1, 2]]].shape, (2, 2, 3)),
    "a list of tensors is one array": (lambda m: m.arange(9).reshape(3, 3)[[m.tensor(0), m.tensor(1)]].shape, (2, 3)),
    "two ellipses": (lambda m: m.ones((2, 2))[..., ...], "refused"),
    # what does not fit is not converted
    "a cotangent of another dtype": (lambda m: leaf(m, [1.0]).mul(2).backward(m.ones(1)), "refused"),
    "a condition of bytes": (lambda m: m.where(m.ones(1, dtype=m.uint8), m.ones(1), 0.0), "refused"),
    "a bool to the power of a bool": (lambda m: m.tensor([True]) ** True, "refused"),
    "an empty index of another rank": (lambda m: m.gather(m.ones((2, 2)), 0, m.zeros(0, dtype=m.int64)), "refused"),
    "a leading axis of what index_put writes": (
        lambda m: m.index_put(m.zeros(2), (m.tensor([0, 1]),), m.ones((1, 2))),
        ("float32", (2,), [1.0, 1.0]),
    ),
    "a list of tensors of one element": (lambda m: m.tensor([m.tensor([1.0]), m.tensor([2.0])]).shape, (2, 1)),
    "an index of bytes": (lambda m: m.tensor([10, 20])[m.tensor([0, 1], dtype=m.uint8)], ("int64", (2,), [10, 20])),
    # memory
    "an element of a constant, added to in the graph": (lambda m: added(m.zeros(2), leaf(m, [1.0, 2.0])), "refused"),
    "the gradient of a copied leaf": (lambda m: copied(leaf(m, [1.0])), [("float64", (1,), [2.0])]),
    "what dropout gives where it drops nothing": (lambda m: in_place(m), ("float32", (1,), [1.0])),
    "what a parameter is made of": (lambda m: shared(m, m.nn.Parameter), ("float32", (1,), [0.0])),
    "what state_dict gives": (lambda m: state_of(m, m.zeros(1)), ("float32", (1,), [0.0])),
    "elements that share memory": (lambda m: written(m.ones(1).expand(2), 0, 2.0), "refused"),
    # gradients
    "an infinite cotangent where the slope of 0 is selected": (
        lambda m: infinite(m, lambda m, x: m.amax(x), 1.0, 2.0),
        [("float64", (2,), [0.0, INF])],
    ),
    "an infinite cotangent where the slope of 0 is a factor": (
        lambda m: infinite(m, lambda m, x: x ** m.zeros(1, dtype=m.float64), 2.0),
        [("float64", (1,), [NAN])],
    ),
    "the second derivatives of a power of 0": (
        lambda m: curvature(m, lambda x, y: x**y, 0.0, 2.0),
        [("float64", (1,), [0.0]), ("float64", (1,), [0.0])],
    ),
    "the curve of a norm at the zero vector": (
        lambda m: curvature(m, lambda x, y: m.norm(y) * x, 1.0, 0.0),
        [("float64", (1,), [0.0]), ("float64", (1,), [0.0])],
    ),
    "a sum in integers": (lambda m: m.sum(leaf(m, [1.0]), dtype=m.int64).requires_grad, False),
    "the slope of a number's remainder": (lambda m: slopes(m, lambda x: 2 % x, [1.5]), [("float64", (1,), [-1.0])]),
    # nothing to look at
    "weights of heads that see nothing": (
        lambda m: several_heads(m, need_weights=True, key_padding_mask=lambda m: m.tensor([[True, True]])),
        ("float32", (2, 1, 2), [[[0.0, 0.0]], [[0.0, 0.0]]]),
    ),
    "kernels over no channels": (
        lambda m: functional(m).conv2d(m.ones((1, 0, 1, 1)), m.ones((1, 0, 1, 1))),
        ("float32", (1, 1, 1, 1), [[[[0.0]]]]),
    ),
    # far out
    "softplus with a threshold above all exponents": (
        lambda m: functional(m).softplus(m.tensor([100.0]), threshold=1000.0),
        ("float32", (1,), [100.0]),
    ),
}


def answer(call, m):
    try:
        with warnings.catch_warnings(action="ignore"):  # PyTorch's, of what it will not take for long
            return str(plain(call(m)))
    except (RuntimeError, IndexError, NotImplementedError):
        return "refused"


@pytest.mark.parametrize("about", DIFFERENT)
def test_the_answer_is_another_one_on_purpose(about):
    call, ours = DIFFERENT[about]
    assert answer(call, smolgrad) == str(plain(ours))
    assert answer(call, torch) != str(plain(ours))
