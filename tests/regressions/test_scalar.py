"""The scalar engine: by hand, against PyTorch, and at its edges."""

import math
import random
import weakref

import pytest
import torch

from smolgrad import scalar
from smolgrad.scalar import MLP, Layer, Neuron, Value, softmax_cross_entropy

# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_squared_error_by_hand():
    w, x, b, target = Value(0.5), Value(1), Value(0.1), Value(1)
    loss = (w * x + b - target) ** 2
    loss.backward()
    assert loss.data == pytest.approx(0.16)
    assert [v.grad for v in (w, x, b, target)] == pytest.approx([-0.8, -0.4, -0.8, 0.8])


def test_numbers_on_the_left():
    q = Value(2.0)
    ((2 - q) + 3 / q).backward()
    assert q.grad == -1.75


def test_both_edges_of_a_square_count():
    x = Value(3.0)
    y = x * x
    assert y.parents == (x, x)
    y.backward()
    assert x.grad == 6


def test_a_value_waits_for_all_its_consumers():
    # micrograd 9fd9cc0: a walk that hands the gradient of a on before both have added to it gives 12 or 18.
    x = Value(3.0)
    a = x * x
    (2 * a + 3 * a).backward()
    assert x.grad == 30
    assert a.grad == 5


def test_what_is_computed_shows_how():
    x, y = Value(2.0), Value(3.0)
    z = x * y
    assert (z.data, z.grad, z.op, z.parents) == (6, 0, "*", (x, y))
    assert z.pullback(10.0) == (30, 20)
    assert repr(z) == "Value(6.0, grad=0.0)"
    assert (x.op, x.parents, x.pullback) == ("", (), None)


# --- against PyTorch --------------------------------------------------------------------------------------------------


def _piecewise(x, y):
    u = 3 * x - y + 2
    return u.relu() * x + (u * u - 5).relu() + (x - u).relu() * y


def _reassigned(x, y):
    u = x * y - y**3
    v = 1 * u  # PyTorch writes u in place below
    u += u + 1
    u += 1 + u - x * 2
    v -= (x + y).relu() * 3 + v * 2
    v *= 0.25
    w = (u - v) ** 2 / 8
    w += 5.0 / (w + 1) - (-x)
    return w / 3 - 1


def _smooth(x, y):
    u = (x / 4).tanh() + (0.5 * y).exp()
    return (u * u + 1).log() - (y * y + 0.5) ** -0.5 + (x * x + 2) ** 1.5


@pytest.mark.parametrize("function", [_piecewise, _reassigned, _smooth])
@pytest.mark.parametrize("point", [(-4.0, 2.0), (1.5, -0.75), (0.25, 3.0)], ids=str)
def test_expressions_match_pytorch(function, point):
    ours = [Value(x) for x in point]
    theirs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in point]
    y, want = function(*ours), function(*theirs)
    y.backward()
    want.backward()
    assert y.data == pytest.approx(want.item(), rel=1e-13)
    assert [v.grad for v in ours] == pytest.approx([t.grad.item() for t in theirs], rel=1e-13)


@pytest.mark.parametrize("logits", [[0.5, -1.0, 2.0], [1000.0, 0.0, -1000.0], [-1000.0, -1000.0, -999.0]], ids=str)
@pytest.mark.parametrize("target", [0, 1, 2])
def test_softmax_cross_entropy_is_pytorchs(logits, target):
    ours = [Value(z) for z in logits]
    theirs = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    loss = softmax_cross_entropy(ours, target)
    want = torch.nn.functional.cross_entropy(theirs, torch.tensor(target))
    loss.backward()
    want.backward()
    assert loss.data == pytest.approx(want.item(), rel=1e-13)
    assert [z.grad for z in ours] == pytest.approx(theirs.grad.tolist(), rel=1e-13)


# --- edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "exponent", "slope"), [(0, 0, 0), (3, 0, 0), (-2, 0.0, 0), (0, 1, 1), (0, 2, 0), (0, 1.5, 0), (-2, -1, -0.25)]
)
def test_slope_of_a_power(x, exponent, slope):
    base = Value(x)
    (base**exponent).backward()
    assert base.grad == slope


def test_slopes_at_the_kink_of_relu_and_beside_it():
    for x, slope in ((0.0, 0), (-0.0, 0), (5e-324, 1), (-5e-324, 0)):
        v = Value(x)
        v.relu().backward()
        assert v.grad == slope


@pytest.mark.parametrize("x", [-1.0, -0.0, 0, math.nan])
def test_log_of_what_is_not_positive_is_refused(x):
    with pytest.raises(ValueError, match=r"log\(\): needs a positive number, got"):
        Value(x).log()


@pytest.mark.parametrize(("x", "exponent"), [(-2, 0.5), (-1, -1.5), (0, 0.5), (0, -1), (-0.0, -2)])
def test_powers_without_a_real_slope_are_refused(x, exponent):
    with pytest.raises(ValueError, match="has no real derivative"):
        Value(x) ** exponent


@pytest.mark.parametrize(
    "call",
    [
        lambda v: v**v,
        lambda v: 2**v,
        lambda v: v ** "2",
        lambda v: v + "2",
        lambda v: [1] * v,
        lambda v: Value("2"),
        lambda v: Value(v),
        lambda v: Value(1j),
    ],
)
def test_what_is_no_number_is_refused(call):
    with pytest.raises(TypeError):
        call(Value(2.0))


@pytest.mark.parametrize(
    ("target", "error"), [(3, IndexError), (-1, IndexError), (1.0, TypeError), (True, TypeError), (None, TypeError)]
)
def test_targets_are_checked(target, error):
    with pytest.raises(error, match="target"):
        softmax_cross_entropy([1.0, 2.0, 3.0], target)


# --- the sweep --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "op",
    [
        lambda a, b: a * b,
        lambda a, b: a / b,
        lambda a, b: a**3,
        lambda a, b: a.tanh(),
        lambda a, b: a.exp(),
        lambda a, b: b.log(),
        lambda a, b: a.relu(),
    ],
)
def test_operands_changed_after_the_op_do_not_reach_backward(op):
    gradients = []
    for changed in (False, True):
        a, b = Value(0.5), Value(1.5)
        y = op(a, b)
        if changed:
            a.data, b.data, y.data = -7.0, 11.0, 13.0
        y.backward()
        gradients.append((a.grad, b.grad))
    assert gradients[0] == gradients[1] != (0, 0)


def test_a_used_graph_is_refused_and_nothing_changes():
    x = Value(3.0)
    a = x * x
    y = a + 1
    y.backward()
    for again in (y, a, a * 2 + Value(1.0) * x):
        with pytest.raises(RuntimeError, match="already swept"):
            again.backward()
        assert (x.grad, a.grad, y.grad) == (6, 1, 1)


def test_gradients_of_leaves_add_up_over_graphs():
    x = Value(3.0)
    for total in (6, 12):
        (x * x).backward()
        assert x.grad == total


def test_a_leaf_is_its_own_root():
    x = Value(3.0)
    x.backward()
    x.backward()
    assert x.grad == 2


def test_a_chain_of_100000_multiplies_is_built_swept_and_freed():
    x = Value(1.0)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    y.backward()
    assert x.grad == 1
    middle = weakref.ref(y.parents[0].parents[0])
    del y
    assert middle() is None


def test_paths_are_not_walked_one_by_one():
    x = y = Value(1.0)
    for _ in range(200):
        y = y + y
    y.backward()
    assert x.grad == 2.0**200


# --- networks ---------------------------------------------------------------------------------------------------------

POINTS = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
WANTED = [1.0, -1.0, -1.0, 1.0]


@pytest.mark.parametrize("seed", range(3))
def test_a_network_learns_four_points(seed):
    model = MLP(3, [4, 4, 1], seed)
    assert len(model.parameters()) == 41
    for _ in range(200):
        loss = sum((model(x) - y) ** 2 for x, y in zip(POINTS, WANTED, strict=True))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.05 * p.grad
    assert [math.copysign(1, model(x).data) for x in POINTS] == WANTED
    assert loss.data < 0.1


def test_weights_depend_on_the_seed_alone():
    random.seed(1)
    first = [p.data for p in MLP(2, [3, 2]).parameters()]
    random.seed(2)
    assert first == [p.data for p in MLP(2, [3, 2]).parameters()]
    assert first != [p.data for p in MLP(2, [3, 2], seed=1).parameters()]
    assert len(set(first[:2] + first[3:5])) == 4


def test_several_outputs_come_in_a_list_each_a_tanh():
    outputs = MLP(2, [3, 2])([100.0, -100.0])
    assert len(outputs) == 2
    assert all(isinstance(y, Value) and y.op == "tanh" for y in outputs)


@pytest.mark.parametrize("network", [Neuron(3), Layer(3, 2), MLP(3, [2, 1])], ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("width", [0, 2, 4])
def test_widths_of_inputs_are_checked(network, width):
    with pytest.raises(ValueError, match=f"needs 3 inputs, got {width}"):
        network([1.0] * width)


def test_a_module_says_what_is_missing():
    with pytest.raises(NotImplementedError, match=r"Module defines no parameters\(\)"):
        scalar.Module().zero_grad()


def test_a_neuron_weighs_its_inputs():
    neuron = Neuron(3)
    x = [2.0, -3.0, 0.5]
    assert neuron(x).data == pytest.approx(math.tanh(sum(w.data * xi for w, xi in zip(neuron.w, x, strict=True))))
