"""Faults that modules of other engines had, each as the case in which it showed, and what modules promise beside them.

Where no engine is named, the fault is one that is easily made.
"""

import copy
import math
from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import smolgrad
from smolgrad import nn, optim
from spec.oracles import pytorch

# Each layer in both libraries, with PyTorch's arguments, and an input that it takes.
LAYERS = {
    "Linear": ((4, 3), {}, np.ones((2, 4), "float32")),
    "Linear without bias": ((4, 3), {"bias": False}, np.ones((2, 4), "float32")),
    "Embedding": ((5, 3), {}, np.arange(5)),
    "LayerNorm": ((3,), {}, np.eye(3, dtype="float32")),
    "LayerNorm over two axes": (([2, 3],), {"eps": 1e-3}, np.eye(6, dtype="float32").reshape(6, 2, 3)),
    "LayerNorm without bias": ((3,), {"bias": False}, np.eye(3, dtype="float32")),
    "LayerNorm without either": ((3,), {"elementwise_affine": False}, np.eye(3, dtype="float32")),
    "Embedding with padding": ((5, 3, -2), {}, np.arange(5)),
    "RMSNorm": ((3,), {}, np.eye(3, dtype="float32") + 1),
    "RMSNorm over two axes": (([2, 3],), {"eps": 1e-3}, np.eye(6, dtype="float32").reshape(6, 2, 3)),
    "RMSNorm without weight": ((3,), {"elementwise_affine": False}, np.eye(3, dtype="float32")),
    "BatchNorm1d": ((3,), {}, np.eye(4, 3, dtype="float32")),
    "BatchNorm1d of series": ((3,), {"momentum": 0.5}, np.eye(12, dtype="float32").reshape(6, 3, 8)),
    "BatchNorm1d of averages": ((3,), {"momentum": None, "affine": False}, np.eye(4, 3, dtype="float32")),
    "BatchNorm1d without bias": ((3,), {"bias": False}, np.eye(4, 3, dtype="float32")),
    "BatchNorm1d without track": ((3,), {"track_running_stats": False}, np.eye(4, 3, dtype="float32")),
    "Conv1d": ((2, 3, 2), {"stride": 2, "padding": 1}, np.ones((2, 2, 5), "float32")),
    "Conv2d": ((2, 3, 2), {}, np.ones((2, 2, 3, 4), "float32")),
    "Conv2d of unequal sides": (
        (2, 3, (1, 2)),
        {"padding": (1, 0), "dilation": 2, "bias": False},
        np.ones((2, 3, 4), "float32"),
    ),
    "Conv1d in groups": ((4, 6, 2), {"groups": 2}, np.ones((2, 4, 5), "float32")),
    "Conv2d of the same size": (
        (2, 3, (2, 3)),
        {"padding": "same"},
        np.sin(np.arange(24, dtype="float32")).reshape(2, 3, 4),
    ),
    "Conv2d of what is valid": (
        (2, 3, 2),
        {"padding": "valid"},
        np.sin(np.arange(24, dtype="float32")).reshape(2, 3, 4),
    ),
    **{
        f"Conv2d {mode}": (
            (1, 1, 2),
            {"padding": (1, 2), "padding_mode": mode, "dilation": (1, 2)},
            np.sin(np.arange(24, dtype="float32")).reshape(2, 1, 3, 4),
        )
        for mode in ("reflect", "replicate", "circular")
    },
    "Conv1d begun again to the same size": (
        (1, 1, 4),
        {"padding": "same", "padding_mode": "circular"},
        np.sin(np.arange(5, dtype="float32")).reshape(1, 5),
    ),
    "MaxPool2d": ((2,), {}, np.arange(16, dtype="float32").reshape(1, 4, 4)),
    "MaxPool2d that overlaps": (((3, 2), 1), {"padding": 1}, np.arange(16, dtype="float32").reshape(1, 1, 4, 4)),
    "Dropout": ((0.0,), {}, np.ones(3, "float32")),
    "Flatten": ((), {}, np.ones((2, 3, 2), "float32")),
    "Flatten from the front": ((0, 1), {}, np.ones((2, 3, 2), "float32")),
    "ReLU": ((), {}, np.ones(3, "float32")),
    "Tanh": ((), {}, np.ones(3, "float32")),
    "Sigmoid": ((), {}, np.ones(3, "float32")),
    "SiLU": ((), {}, np.ones(3, "float32")),
    "GELU": ((), {}, np.ones(3, "float32")),
    "GELU by tanh": (("tanh",), {}, np.ones(3, "float32")),
    "Softmax": ((0,), {}, np.arange(3, dtype="float32")),
    "LogSoftmax": ((-1,), {}, np.arange(3, dtype="float32")),
}
WITHOUT_PARAMETERS = {
    "MaxPool2d",
    "Dropout",
    "Flatten",
    "ReLU",
    "Tanh",
    "Sigmoid",
    "SiLU",
    "GELU",
    "Softmax",
    "LogSoftmax",
}


def layer(row, nn=nn, **options):
    positional, named, _ = LAYERS[row]
    return getattr(nn, row.split()[0])(*positional, **named, **options)


def with_names(nn):
    """A model of either library with parameters in all kinds of places, some before and some after the modules."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.inner = nn.Linear(width, width)
            self.scale = nn.Parameter(one(nn))
            self.norm = nn.LayerNorm(width)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), Block(4))
            self.blocks = several(nn, [Block(2), nn.Sequential(nn.Linear(2, 2, bias=False))])
            self.heads = by_name(nn, {"mean": nn.Linear(2, 1), "spread": Block(2)})
            self.gains = loose(nn, [nn.Parameter(one(nn)), nn.Parameter(one(nn))])
            self.last = nn.Parameter(one(nn))

    return Model()


def one(library):
    return smolgrad.ones(()) if library is nn else torch.ones(())


def several(library, modules):
    return modules if library is nn else torch.nn.ModuleList(modules)


def by_name(library, modules):
    return modules if library is nn else torch.nn.ModuleDict(modules)


def loose(library, parameters):
    return parameters if library is nn else torch.nn.ParameterList(parameters)


# --- finding parameters -----------------------------------------------------------------------------------------------


def test_names_and_their_order_are_pytorchs():
    model, twin = with_names(nn), with_names(torch.nn)
    assert [name for name, _ in model.named_parameters()] == [name for name, _ in twin.named_parameters()]
    assert [name for name, _ in model.named_parameters(prefix="m")] == [name for name, _ in twin.named_parameters("m")]
    assert [name for name, _ in model.named_parameters(recurse=False)] == ["last"]
    assert list(model.state_dict()) == list(twin.state_dict())
    containers = {"blocks", "heads", "gains"}  # modules there, plain lists and dicts here
    assert [name for name, _ in model.named_modules()] == [
        name for name, _ in twin.named_modules() if name not in containers
    ]
    assert " ".join(name for name, _ in model.named_children()) == "first blocks.0 blocks.1 heads.mean heads.spread"
    assert list(model.children())[1] is model.blocks[0]
    assert next(model.modules()) is model


# A tree of modules, lists, tuples and dicts with a number of parameters in it: the containers of each node, from above.
TREES = st.recursive(
    st.just("parameter"),
    lambda below: st.tuples(st.sampled_from(["module", "list", "tuple", "dict"]), st.lists(below, max_size=3)),
    max_leaves=12,
)


def grown(tree, made):
    """The tree of real modules and containers, noting in ``made`` every parameter made."""
    if tree == "parameter":
        made.append(nn.Parameter(0.0))
        return made[-1]
    kind, below = tree
    members = [grown(branch, made) for branch in below]
    if kind == "module":
        holder = nn.Module()
        for i, member in enumerate(members):
            setattr(holder, f"member{i}", member)
        return holder
    return {"list": list, "tuple": tuple, "dict": lambda xs: dict(enumerate(xs))}[kind](members)


@given(tree=TREES)
def test_every_parameter_is_found_once_wherever_it_is_held(tree):
    made = []
    model = nn.Module()
    model.tree = grown(tree, made)
    model.again = [model.tree]  # all of it a second time, by another way
    found = dict(model.named_parameters())
    assert len(found) == len(made)
    assert set(found.values()) == set(made)
    assert len(model.state_dict()) == 2 * len(made)  # under each of its names
    for name, p in found.items():
        holder = model
        for part in name.split("."):
            holder = vars(holder)[part] if isinstance(holder, nn.Module) else holder[int(part)]
        assert holder is p  # the name is the way to it


def test_a_tied_parameter_is_one_parameter_with_two_names():
    model = nn.Module()
    model.table, model.out = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False)
    model.out.weight = model.table.weight
    assert [name for name, _ in model.named_parameters()] == ["table.weight"]
    assert list(model.state_dict()) == ["table.weight", "out.weight"]  # as in PyTorch's files
    optim.SGD(model.parameters(), lr=0.1)  # which refuses one that is given twice
    model.out(model.table(smolgrad.tensor([0, 1]))).sum().backward()
    assert model.table.weight.grad.shape == (4, 3)


def test_a_module_may_hold_itself():
    model = nn.Sequential(nn.Linear(2, 2))
    model.up = [model]
    model.up.append(model.up)
    assert len(list(model.parameters())) == 2
    assert list(model.state_dict()) == ["0.weight", "0.bias"]
    assert list(model.train().modules()) == [model, model[0]]
    assert repr(model) == "Sequential(\n  (0): Linear(in_features=2, out_features=2, bias=True)\n  (up.0): ...\n)"


def test_shared_modules_cost_no_more_than_their_number():
    model = nn.Linear(1, 1)
    for _ in range(12):  # 4096 ways down
        above = nn.Module()
        above.left = above.right = model
        model = above
    assert len(list(model.parameters())) == 2
    assert len(list(model.modules())) == 13
    assert [name for name, _ in model.named_children()] == ["left"]  # the first of its names


@pytest.mark.parametrize("row", LAYERS)
def test_every_parameter_requires_grad_and_gets_one(row):
    # seen in tinygrad #15242: layers' parameters did not require grad until an optimizer had seen them.
    made = layer(row)
    y = made(smolgrad.tensor(LAYERS[row][2]))
    if list(made.parameters()):
        (y * y + y).sum().backward()
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in made.parameters())
    assert all(p.grad is not None and p.grad.data.any() for p in made.parameters())


def test_a_parameter_is_a_copy_that_requires_grad():
    data = np.ones(2)
    p = nn.Parameter(data)
    data[:] = 5
    assert (p.data == 1).all()
    assert p.requires_grad
    assert p.is_leaf
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    assert type(p * 2) is type(p.detach()) is smolgrad.Tensor
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], dtype=float64, requires_grad=True)"
    with pytest.raises(RuntimeError, match="only floating tensors"):
        nn.Parameter([1, 2])


def test_a_copied_model_has_parameters_of_its_own():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    twin = copy.deepcopy(model)
    twin[0].weight.data = np.zeros((2, 2), "float32")
    assert model[0].weight.data.all()
    assert [type(p) for p in twin.parameters()] == [nn.Parameter] * 2


# --- state dicts ------------------------------------------------------------------------------------------------------


def small():
    return nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3))


def test_a_state_dict_is_a_snapshot():
    # A state dict of live arrays changes with the model that it was to keep.
    model = small()
    state = model.state_dict()
    before = {name: x.data.copy() for name, x in state.items()}
    for p in model.parameters():
        p.grad = smolgrad.ones_like(p)
    optim.SGD(model.parameters(), lr=1.0).step()
    assert all((state[name].data == before[name]).all() for name in state)
    assert not any(x.requires_grad for x in state.values())
    assert all((p.data != before[name]).all() for name, p in model.named_parameters())


def test_loading_copies():
    # seen in pytorch, where an optimizer's load_state_dict still shares its buffers with the dict (2.13): two models
    # that were loaded from one dict must not train each other.
    state, one, other = small().state_dict(), small(), small()
    arrays = [p.data for p in one.parameters()]
    assert one.load_state_dict(state) == other.load_state_dict(state) == ([], [])
    assert all(p.data is array for p, array in zip(one.parameters(), arrays, strict=True))  # in place
    for p, q, x in zip(one.parameters(), other.parameters(), state.values(), strict=True):
        assert (p.data == x.data).all()
        assert not np.shares_memory(p.data, x.data)
        assert not np.shares_memory(p.data, q.data)


def test_loading_is_a_write_that_backward_notices():
    model = nn.Linear(2, 2)
    y = (model.weight * model.weight).sum()
    model.load_state_dict(model.state_dict())
    with pytest.raises(RuntimeError, match="written in place"):
        y.backward()


def test_loading_arrays_and_pytorchs_names():
    twin = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LayerNorm(3))
    model = small()
    model.load_state_dict({name: x.numpy() for name, x in twin.state_dict().items()})
    x = np.ones((1, 2), "float32")
    assert np.allclose(model(smolgrad.tensor(x)).detach().numpy(), twin(torch.tensor(x)).detach().numpy(), atol=1e-6)


def test_loading_two_parameters_into_each_other():
    # The second must not read what the first has just been given.
    model = nn.Module()
    model.a, model.b = nn.Parameter([1.0]), nn.Parameter([2.0])
    model.load_state_dict({"a": model.b, "b": model.a.detach()})
    assert (model.a.item(), model.b.item()) == (2.0, 1.0)


@pytest.mark.parametrize("order", [list, sorted, reversed])
def test_loading_is_by_name_whatever_the_order(order):
    model, other = nn.Linear(3, 3), nn.Linear(3, 3)
    model.bias, other.bias = nn.Parameter(np.eye(3, dtype="float32")), nn.Parameter(np.zeros((3, 3), "float32"))
    state = model.state_dict()
    other.load_state_dict({name: state[name] for name in order(list(state))})
    assert (other.weight.data == model.weight.data).all()
    assert (other.bias.data == model.bias.data).all()
    other.load_state_dict(model.state_dict())
    assert (other.bias.data == model.bias.data).all()


F = np.float32
# What is wrong with a state dict of small(), and what the refusal says.
WRONG = {
    "broadcast": ({"0.weight": np.ones((1, 2), F)}, r"0.weight needs shape \(3, 2\).*got \(1, 2\)"),
    "broadcast from fewer axes": ({"0.weight": np.ones(2, F)}, r"0.weight needs shape \(3, 2\)"),
    "one element": ({"0.bias": np.ones((), F)}, r"0.bias needs shape \(3,\)"),
    "as many elements": ({"0.weight": np.ones((2, 3), F)}, r"0.weight needs shape \(3, 2\)"),
    "a wider dtype": ({"1.bias": np.ones(3)}, "1.bias needs.*float32, got.*float64"),
    "integers": ({"1.bias": np.ones(3, int)}, "1.bias needs.*float32, got.*int64"),
    "a list": ({"1.bias": [1.0, 1.0, 1.0]}, "1.bias must be a Tensor or an array, got list"),
    "a surplus name": ({"2.bias": np.ones(3, F)}, "unexpected: 2.bias"),
    "a missing name": ({"1.bias": None}, "missing: 1.bias"),
    "three faults": (
        {"0.bias": np.ones(1, F), "1.weight": None, "1.bias": None, "x": np.ones(1, F), "y": np.ones(1, F)},
        "0.bias needs.*\n  missing: 1.weight, 1.bias\n  unexpected: x, y$",
    ),
}


@pytest.mark.parametrize("row", WRONG)
def test_loading_checks_everything_before_it_changes_anything(row):
    # A copy by p[...] = value broadcasts a wrong shape without a word, and one fault in the last entry finds the model
    # half loaded.
    change, message = WRONG[row]
    model = small()
    before = [p.data.copy() for p in model.parameters()]
    state = {name: smolgrad.tensor(x.data + 1) for name, x in model.state_dict().items()} | change
    state = {name: x for name, x in state.items() if x is not None}
    with pytest.raises(RuntimeError, match=f"(?s)load_state_dict\\(\\) of Sequential:\n  .*{message}"):
        model.load_state_dict(state)
    assert all((p.data == b).all() for p, b in zip(model.parameters(), before, strict=True))


def test_loading_not_strictly_takes_what_fits_by_name():
    model = small()
    keys = model.load_state_dict({"0.bias": np.full(3, 7, F), "other": np.ones(1)}, strict=False)
    assert keys.missing_keys == ["0.weight", "1.weight", "1.bias"]
    assert keys.unexpected_keys == ["other"]
    assert (model[0].bias.data == 7).all()
    with pytest.raises(RuntimeError, match=r"0\.bias needs shape"):  # what has a name must fit all the same
        model.load_state_dict({"0.bias": np.ones(1, F)}, strict=False)


def test_loading_two_values_for_one_parameter():
    model = nn.Module()
    model.a = model.b = nn.Parameter([1.0, float("nan")])
    model.load_state_dict(model.state_dict())
    model.load_state_dict({"b": np.array([3, 4], F)}, strict=False)
    with pytest.raises(RuntimeError, match="a and b are one tensor here, but differ there"):
        model.load_state_dict({"a": np.array([5, 6], F), "b": np.array([5, 7], F)})
    assert model.a.data.tolist() == [3, 4]


def test_loading_into_what_cannot_be_written():
    model = small()
    model[1].bias.data.flags.writeable = False
    before = model[0].weight.data.copy()
    with pytest.raises(RuntimeError, match=r"1\.bias is read-only"):
        model.load_state_dict(small().state_dict())
    assert (model[0].weight.data == before).all()
    with pytest.raises(TypeError, match="needs a mapping"):
        model.load_state_dict([])


# --- modes, gradients, looks ------------------------------------------------------------------------------------------


def test_modes_reach_every_module():
    model = with_names(nn)
    assert all(m.training for m in model.modules())
    assert model.eval() is model
    assert not any(m.training for m in model.modules())
    model.blocks[0].train()
    assert [m.training for m in model.blocks] == [True, False]
    with pytest.raises(ValueError, match="mode must be a bool, got 'eval'"):
        model.train("eval")


def test_zero_grad():
    model = small()
    model(smolgrad.ones(1, 2)).sum().backward()
    grads = [p.grad for p in model.parameters()]
    model.zero_grad(set_to_none=False)
    assert all(p.grad is g and not g.data.any() for p, g in zip(model.parameters(), grads, strict=True))
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_forward_must_be_defined():
    with pytest.raises(NotImplementedError, match=r"Module defines no forward\(\)"):
        nn.Module()(1)


@pytest.mark.parametrize("row", LAYERS)
def test_looks_and_values_are_pytorchs(row):
    made, theirs, x = layer(row), layer(row, torch.nn), LAYERS[row][2]
    assert repr(made) == repr(theirs)
    theirs.load_state_dict({name: torch.from_numpy(p.numpy()) for name, p in made.state_dict().items()})
    y = made(smolgrad.tensor(x))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), atol=1e-6)


def test_attention_drops_in_training_alone():
    x = np.random.default_rng(0).normal(size=(3, 2, 4)).astype("float32")
    made, theirs = nn.MultiheadAttention(4, 2, 0.5).eval(), torch.nn.MultiheadAttention(4, 2, 0.5).eval()
    theirs.load_state_dict({name: torch.from_numpy(p.numpy()) for name, p in made.state_dict().items()})
    y, _ = made(*[smolgrad.tensor(x)] * 3, need_weights=False)
    want, _ = theirs(*[torch.tensor(x)] * 3, need_weights=False)
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), atol=1e-6)
    again, _ = made.train()(*[smolgrad.tensor(x)] * 3, need_weights=False)
    assert (again.data != y.data).any()


def test_a_model_looks_like_pytorchs():
    build = lambda nn: nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.Sequential(nn.Tanh(), nn.Sequential())))  # noqa: E731
    assert repr(build(nn)) == repr(build(torch.nn))

    class Model(nn.Module):
        def __init__(self):
            self.layers = [nn.ReLU()]

        def extra_repr(self):
            return "depth=1"

    assert repr(Model()) == "Model(\n  depth=1\n  (layers.0): ReLU()\n)"


def test_sequential_is_a_sequence_of_modules():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(model) == 3
    assert list(model) == [model[0], model[1], model[-1]]
    assert [name for name, _ in model[1:].named_parameters()] == ["2.weight", "2.bias"]
    assert next(model[1:].parameters()) is model[2].weight
    x = smolgrad.ones(1, 2)
    assert model(x).item() == model[2](model[1](model[0](x))).item()
    assert nn.Sequential()(x) is x
    shared = nn.ReLU()
    assert len(nn.Sequential(shared, shared)) == 2
    with pytest.raises(IndexError):
        model[3]
    with pytest.raises(TypeError, match="needs modules, got function"):
        nn.Sequential(smolgrad.relu)


# --- initial values ---------------------------------------------------------------------------------------------------


def test_initial_values_follow_pytorchs_distributions():
    # kaiming_uniform(a=√5) of a (out, in) weight: gain √(2/(1 + 5)) = 1/√3, bound √3 · gain / √in = 1/√in.
    smolgrad.manual_seed(0)
    linear = nn.Linear(100, 400)
    for p in (linear.weight, linear.bias):
        assert np.abs(p.data).max() <= 0.1 * (1 + 1e-6)
        assert np.abs(p.data).max() > 0.098
        assert p.data.std() == pytest.approx(0.1 / math.sqrt(3), rel=0.05)
        assert abs(p.data.mean()) < 0.01
    table = nn.Embedding(200, 100).weight.data
    assert table.std() == pytest.approx(1, rel=0.02)
    assert abs(table.mean()) < 0.02
    assert np.abs(table).max() > 3
    norm = nn.LayerNorm((2, 3))
    assert (norm.weight.data == 1).all()
    assert (norm.bias.data == 0).all()
    assert nn.Linear(0, 2).bias.data.tolist() == [0, 0]


@pytest.mark.parametrize(
    "row", ["Linear(100, 400)", "Conv1d(20, 200, 5)", "Conv2d(20, 100, (3, 5))", "MultiheadAttention(40, 4)"]
)
def test_initial_values_spread_as_pytorchs(row):
    smolgrad.manual_seed(0)
    torch.manual_seed(0)
    ours, theirs = (eval(f"nn.{row}", {"nn": library}) for library in (nn, torch.nn))
    for (name, p), (other, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert name == other
        q = q.detach().numpy()
        assert p.data.std() == pytest.approx(q.std(), rel=0.15)
        assert np.abs(p.data).max() == pytest.approx(np.abs(q).max(), rel=0.05)


def test_initial_values_come_from_the_seed():
    def draws():
        smolgrad.manual_seed(3)
        return [p.data for p in nn.Sequential(nn.Linear(2, 3), nn.Embedding(2, 2)).parameters()]

    assert all((a == b).all() for a, b in zip(draws(), draws(), strict=True))
    assert (nn.Linear(2, 2).weight.data != nn.Linear(2, 2).weight.data).any()


@pytest.mark.parametrize("dtype", [None, "float32", "float64", smolgrad.float64])
@pytest.mark.parametrize("row", LAYERS)
def test_parameters_have_the_dtype_that_was_asked_for(row, dtype):
    if row.split()[0] not in WITHOUT_PARAMETERS:
        assert all(p.dtype == (dtype or "float32") for p in layer(row, dtype=dtype).parameters())


def padded(mode, padding):
    return nn.Conv1d(1, 1, 1, padding=padding, padding_mode=mode)


def attention(**given):
    return nn.MultiheadAttention(2, 1)(**dict.fromkeys(("query", "key", "value"), smolgrad.ones(3, 1, 2)) | given)


# One line a refusal: what is called, exception, what its message says.
REFUSED = [
    (lambda: nn.Linear(2, 3, device="cpu"), NotImplementedError, "device"),
    (lambda: nn.Linear(2, 3, weight=1), TypeError, "unexpected argument 'weight'"),
    (lambda: nn.Linear(2.0, 3), TypeError, "must be an integer"),
    (lambda: nn.Linear(-2, 3), RuntimeError, "must not be negative"),
    (lambda: nn.Linear(2, 3, dtype="float16"), TypeError, "float16"),
    (lambda: nn.Embedding(2, 3, 2), AssertionError, "padding_idx 2 is out of range"),
    (lambda: nn.BatchNorm1d(2)(smolgrad.ones(2)), ValueError, r"needs \(N, C\) or \(N, C, L\)"),
    (lambda: nn.BatchNorm1d(2)(smolgrad.ones(1, 2)), ValueError, "more than one value a channel"),
    (lambda: nn.Dropout(1.5), ValueError, "p must be in"),
    (lambda: nn.Dropout(inplace=True), NotImplementedError, "inplace"),
    (lambda: nn.Conv2d(3, 2, 1, groups=2), ValueError, "groups must divide 3 and 2 channels, got 2"),
    (lambda: nn.Conv1d(2, 3, 1, groups=2), ValueError, "groups must divide 2 and 3 channels, got 2"),
    (lambda: nn.Conv2d(2, 2, 1, groups=0), ValueError, "groups must divide"),
    (lambda: nn.Conv2d(2, 2, 1, padding_mode="mirror"), ValueError, "padding_mode must be one of .* got 'mirror'"),
    (lambda: nn.Conv2d(2, 2, 1, padding="full"), ValueError, "'same' or 'valid', got 'full'"),
    (lambda: nn.Conv2d(2, 2, 1, padding="same", stride=2), ValueError, "needs strides of 1"),
    (lambda: padded("reflect", 2)(smolgrad.ones(1, 2)), RuntimeError, "'reflect' cannot widen 2 elements by 2"),
    (lambda: padded("circular", 3)(smolgrad.ones(1, 2)), RuntimeError, "'circular' cannot widen 2 elements by 3"),
    (lambda: padded("replicate", 1)(smolgrad.ones(1, 0)), RuntimeError, "'replicate' cannot widen 0 elements"),
    (lambda: padded("replicate", 1)(smolgrad.ones(2)), NotImplementedError, "the last one of 2 or 3 axes"),
    (lambda: nn.MaxPool2d(2, ceil_mode=True), NotImplementedError, "ceil_mode"),
    (lambda: nn.MultiheadAttention(3, 2), AssertionError, "2 heads cannot share 3"),
    (lambda: nn.MultiheadAttention(2, 0), ValueError, "must be at least 1, got 2 and 0"),
    (lambda: nn.MultiheadAttention(2, 1, add_bias_kv=True), NotImplementedError, "add_bias_kv"),
    (lambda: nn.MultiheadAttention(2, 1, add_zero_attn=True), NotImplementedError, "add_zero_attn"),
    (lambda: attention(is_causal=True), RuntimeError, "is_causal is a hint"),
    (lambda: attention(key=smolgrad.ones(3, 1, 3)), AssertionError, r"of sizes \[2, 2, 2\].* got .*\(3, 1, 3\)"),
    (lambda: attention(key=smolgrad.ones(4, 1, 2)), AssertionError, "the same others"),
    (lambda: attention(query=smolgrad.ones(3, 2)), AssertionError, "two or three axes"),
    (lambda: attention(query=smolgrad.ones(3, 2, 2)), RuntimeError, "not of one batch"),
    (lambda: attention(attn_mask=np.ones((3, 2), bool)), RuntimeError, r"attn_mask must have shape \(3, 3\) or"),
    (lambda: attention(attn_mask=np.ones((3, 3), int)), AssertionError, "bools or floating numbers, got int64"),
    (lambda: attention(key_padding_mask=np.ones((3, 1), bool)), AssertionError, r"must have shape \(1, 3\)"),
    (lambda: nn.ModuleList([smolgrad.relu]), TypeError, "needs modules, got function"),
    (lambda: nn.ModuleDict({"keys": nn.ReLU()}), KeyError, "one of its methods"),
    (lambda: nn.Linear(1, 1).register_buffer("weight", None), KeyError, "an attribute 'weight' already"),
    (lambda: nn.Linear(1, 1).register_buffer("b", 0, persistent=False), NotImplementedError, "persistent"),
    (lambda: nn.Embedding(2, 3, max_norm=1.0), NotImplementedError, "max_norm"),
    (lambda: nn.Embedding(2, 3, sparse=True), NotImplementedError, "sparse"),
    (lambda: nn.Embedding(2, 3, scale_grad_by_freq=True), NotImplementedError, "scale_grad_by_freq"),
    (lambda: nn.LayerNorm(3, device="cpu"), NotImplementedError, "device"),
    (lambda: nn.LayerNorm(3, dtype="int64"), RuntimeError, "only floating"),
    (lambda: nn.ReLU(inplace=True), NotImplementedError, "inplace"),
    (lambda: nn.Tanh(inplace=True), TypeError, r"Tanh\(\) takes no arguments"),
    (lambda: small().state_dict(keep_vars=True), NotImplementedError, "keep_vars"),
    (lambda: small().load_state_dict({}, assign=True), NotImplementedError, "assign"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_modules_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_options_that_are_off_are_no_options():
    nn.ReLU(inplace=False)
    nn.Embedding(2, 3, sparse=False, max_norm=None)
    small().load_state_dict(small().state_dict(keep_vars=False), assign=False)


# --- buffers, dtypes, freezing ----------------------------------------------------------------------------------------


def test_buffers_are_state_but_are_not_learned():
    model, twin = (
        nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1)),
        torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1)),
    )
    assert list(model.state_dict()) == list(twin.state_dict())
    assert [name for name, _ in model.named_buffers()] == [name for name, _ in twin.named_buffers()]
    assert len(list(model.parameters())) == 4
    assert next(model.buffers()) is model[0].running_mean
    assert repr(model[0].num_batches_tracked) == "Buffer containing:\ntensor(0)"
    model.register_buffer("scale", [2.0])
    model.register_buffer("nothing", None)
    assert next(iter(model.state_dict())) == "scale"
    assert model.nothing is None


@pytest.mark.parametrize("momentum", [0.3, 0.0, None])
def test_running_statistics_follow_the_batches_and_only_in_training(momentum):
    model, twin = nn.BatchNorm1d(2, momentum=momentum), torch.nn.BatchNorm1d(2, momentum=momentum)
    rng = np.random.default_rng(0)
    for training in (True, True, False, True):
        x = rng.normal(size=(3, 2)).astype("float32")
        y, z = model.train(training)(smolgrad.tensor(x)), twin.train(training)(torch.tensor(x))
        np.testing.assert_allclose(y.data, z.detach().numpy(), atol=1e-6)
        for name, b in twin.named_buffers():
            np.testing.assert_allclose(getattr(model, name).data, b.numpy(), rtol=1e-6)
            assert getattr(model, name).dtype == b.numpy().dtype
    assert model.num_batches_tracked.item() == 3


@pytest.mark.parametrize("padding", [-4, -3, -1, 0, 2, 3])
def test_the_row_of_padding_is_counted_from_either_end(padding):
    rows, weight, w = np.array([[1, 0, 3], [3, 2, 1]]), np.arange(8.0).reshape(4, 2), np.arange(12.0).reshape(2, 3, 2)
    ours, theirs = smolgrad.tensor(weight, requires_grad=True), torch.tensor(weight, requires_grad=True)
    smolgrad.functional.embedding(smolgrad.tensor(rows), ours, padding).backward(smolgrad.tensor(w))
    torch.nn.functional.embedding(torch.tensor(rows), theirs, padding).backward(torch.tensor(w))
    np.testing.assert_array_equal(ours.grad.data, theirs.grad.numpy())
    assert nn.Embedding(4, 2, padding).padding_idx == torch.nn.Embedding(4, 2, padding).padding_idx


@pytest.mark.parametrize("padding", [-5, 4])
def test_a_row_of_padding_that_is_not_there_is_refused(padding):
    with pytest.raises(RuntimeError, match=f"padding_idx {padding} is out of range; there are 4 rows"):
        smolgrad.functional.embedding(smolgrad.tensor([0]), smolgrad.zeros(4, 2), padding)
    with pytest.raises(AssertionError, match=f"padding_idx {padding} is out of range"):
        nn.Embedding(4, 2, padding)


def test_the_row_of_padding_gets_no_gradient():
    table, theirs = nn.Embedding(4, 2, padding_idx=1, dtype="float64"), torch.nn.Embedding(4, 2, 1, dtype=torch.float64)
    assert not table.weight.data[1].any()
    rows = np.array([[1, 0, 3], [3, 1, 1]])
    for x, y in ((table(smolgrad.tensor(rows)), table.weight), (theirs(torch.tensor(rows)), theirs.weight)):
        (x * x + x).sum().backward()
        assert not y.grad[1].any() if isinstance(y, torch.Tensor) else not y.grad.data[1].any()
    with smolgrad.no_grad():
        assert table(smolgrad.tensor(rows)).shape == (2, 3, 2)


def test_a_model_in_another_dtype_keeps_its_parameters():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
    params = list(model.parameters())
    model(smolgrad.randn(3, 2)).sum().backward()
    y = (model[1].weight * model[1].weight).sum()
    assert model.double() is model
    assert all(p is q for p, q in zip(model.parameters(), params, strict=True))
    assert {x.dtype.name for x in (*params, *(p.grad for p in params), model[0].running_mean)} == {"float64"}
    assert model[0].num_batches_tracked.dtype == "int64"
    with pytest.raises(RuntimeError, match="written in place"):
        y.backward()
    assert {p.dtype.name for p in model.float().parameters()} == {"float32"}
    assert model(smolgrad.randn(3, 2)).dtype == "float32"


def test_a_frozen_model_gets_no_gradients():
    model = small()
    assert model.requires_grad_(False) is model
    assert not model(smolgrad.ones(1, 2)).requires_grad
    model.requires_grad_()
    assert all(p.requires_grad for p in model.parameters())


def test_apply_reaches_what_is_below_first():
    model, seen = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Tanh())), []
    model.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "Tanh", "Sequential", "Sequential"]  # as in PyTorch


def test_lists_and_dicts_of_modules_have_pytorchs_names():
    def build(nn):
        model = nn.ModuleList([nn.Linear(1, 2), nn.ReLU(), nn.ReLU(), *[nn.Sequential(nn.Tanh()) for _ in range(3)]])
        model.append(nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Tanh()}))
        return model

    model, twin = build(nn), build(torch.nn)
    assert list(model.state_dict()) == list(twin.state_dict())
    assert repr(model) == repr(twin)
    assert len(model) == 7
    assert list(model[1:].named_modules())[1][0] == "0"
    assert model[-1]["a"] is next(iter(model[-1].values()))
    assert list(model[-1]) == list(model[-1].keys()) == [name for name, _ in model[-1].items()] == ["a", "b"]
    assert ("a" in model[-1], "c" in model[-1], len(model[-1])) == (True, False, 2)


def test_dropout_keeps_and_scales_what_it_says_and_its_gradient_the_same():
    # The mask of the backward pass must be that of the forward pass, and not a new draw.
    smolgrad.manual_seed(0)
    drop, x = nn.Dropout(0.25), smolgrad.ones(2000, requires_grad=True)
    y = drop(x)
    assert set(np.unique(y.data)) == {0, np.float32(1 / 0.75)}
    assert np.mean(y.data == 0) == pytest.approx(0.25, abs=0.05)
    (y * smolgrad.arange(2000.0)).sum().backward()
    assert (x.grad.data == np.where(y.data == 0, 0, np.float32(1 / 0.75) * np.arange(2000, dtype="float32"))).all()
    assert (drop(x).data != y.data).any()
    assert (drop.eval()(x).data == 1).all()


def test_attention_drops_weights():
    # Of values that are the rows of a unit matrix the result is the weights themselves.
    x, values = smolgrad.zeros(50, 2), smolgrad.from_numpy(np.eye(50)).requires_grad_()
    smolgrad.manual_seed(0)
    weights = smolgrad.functional.scaled_dot_product_attention(x.double(), x.double(), values, dropout_p=0.25)
    np.testing.assert_allclose(np.unique(weights.data), [0, 1 / 50 / 0.75], rtol=1e-12)
    assert np.mean(weights.data == 0) == pytest.approx(0.25, abs=0.05)
    weights.sum().backward()
    np.testing.assert_allclose(values.grad.data, np.tile(weights.data.sum(0)[:, None], 50), rtol=1e-12)


@given(data=st.data())
def test_attention_of_several_heads_is_pytorchs(data):
    # What comes out, the weights that led to it, and every gradient.
    draw = lambda name, *values: data.draw(st.sampled_from(values), label=name)  # noqa: E731
    heads, length, size, n = (draw(name, 1, 2, 3) for name in ("heads", "queries", "keys", "batch"))
    options = {"kdim": draw("kdim", None, 3), "vdim": draw("vdim", None, 5), "bias": draw("bias", True, False)}
    ours = nn.MultiheadAttention(2 * heads, heads, batch_first=draw("batch first", True, False), **options).double()
    theirs = pytorch.twin(ours)
    single = draw("without a batch", False, True)
    n = 1 if single else n
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32), label="seed"))

    def drawn(rows, width):
        x = rng.normal(size=(n, rows, width))
        return x[0] if single else x if ours.batch_first else x.swapaxes(0, 1)

    arrays = [drawn(length, 2 * heads), drawn(size, ours.kdim), drawn(size, ours.vdim)]
    # Each query sees the first key: of a row without any the softmax is NaN.
    masks = {
        "attn_mask": draw("mask", None, (length, size), (n * heads, length, size)),
        "key_padding_mask": draw("padding", None, (size,) if single else (n, size)),
    }
    masks = {name: shape and rng.normal(size=shape) for name, shape in masks.items()}
    if draw("bools", True, False):
        masks = {name: mask if mask is None else (mask > 0) & (np.arange(size) > 0) for name, mask in masks.items()}
    given = {"need_weights": draw("weights", True, False), "average_attn_weights": draw("average", True, False)}
    if draw("causal", False, True):
        masks["attn_mask"], given["is_causal"] = np.triu(np.ones((length, size), bool), 1), draw("hint", True, False)
    found = []
    for module, make in ((ours, smolgrad.tensor), (theirs, torch.tensor)):
        xs = [make(a, requires_grad=True) for a in arrays]
        made = {name: mask if mask is None else make(mask) for name, mask in masks.items()}
        y, weights = module(*xs, **made, **given)
        loss = (y * y + y).sum()
        if weights is not None:
            loss = loss + (weights * weights).sum()
        loss.backward()
        grads = [x.grad for x in (*xs, *module.parameters())]
        found.append([x if x is None else x.detach().numpy() for x in (y, weights, *grads)])
    for a, b in zip(*found, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_evaluation_of_batch_norm_has_pytorchs_gradients():
    model = nn.Sequential(nn.BatchNorm1d(2)).double()
    model[0].running_mean.data, model[0].running_var.data = np.array([0.5, -1.0]), np.array([0.25, 4.0])
    twin = pytorch.twin(model.eval())
    values = np.random.default_rng(0).normal(size=(3, 2))
    x, y = smolgrad.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    (model(x) ** 3).sum().backward()
    (twin(y) ** 3).sum().backward()
    np.testing.assert_allclose(x.grad.data, y.grad.numpy(), rtol=1e-12)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.data, q.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("row", LAYERS)
def test_a_twin_and_back_again(row):
    made = nn.Sequential(layer(row), nn.ModuleDict({"a": nn.ModuleList([layer(row)])})).double()
    made[0].eval()
    again = pytorch.back(pytorch.twin(made))
    assert repr(again) == repr(made)
    assert [m.training for m in again.modules()] == [m.training for m in made.modules()]
    for (name, x), (other, y) in zip(made.state_dict().items(), again.state_dict().items(), strict=True):
        assert name == other
        assert x.dtype == y.dtype
        assert (x.data == y.data).all()


def test_a_twin_is_tied_where_its_module_is():
    table, head, shared = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False), nn.Linear(4, 4)
    head.weight = table.weight
    model = nn.Sequential(table, head, shared, nn.Tanh(), shared).requires_grad_(False)
    for other in (pytorch.twin(model), pytorch.back(pytorch.twin(model))):
        assert other[1].weight is other[0].weight
        assert other[4] is other[2]
        assert [p.requires_grad for p in other.parameters()] == [False] * 3
        assert list(other.state_dict()) == list(model.state_dict())


def test_a_class_of_ones_own_has_no_twin():
    with pytest.raises(TypeError, match="Module has no twin"):
        pytorch.twin(nn.Module())
