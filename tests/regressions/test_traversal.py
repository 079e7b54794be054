"""Graphs that are deep, wide, shared, dropped, swept twice or not at all: no recursion, no cycle, nothing kept."""

import gc
import subprocess
import sys
import time
import weakref
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import smolgrad
from smolgrad.autograd import Primitive
from tests.regressions.tensors import leaf, tensor

DEPTH = 100_000

ROOT = Path(smolgrad.__file__).parents[1]


@contextmanager
def no_collector():
    """Reference counts alone: what lies on a cycle stays."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def chain(x, depth):
    y = x
    for k in range(depth):
        y = y + 1.0 if k % 2 else y * 1.0
    return y


# --- depth ------------------------------------------------------------------------------------------------------------


def test_a_chain_of_100000_ops_is_built_swept_twice_and_dropped():
    # micrograd PR 90, tinygrad 954cb06957: a recursive sort ends at a thousand. pytorch issue 5534: so does freeing.
    x = leaf([1.0, 2.0])
    y = chain(x, DEPTH)
    y.backward(tensor([3.0, 5.0]), retain_graph=True)
    y.backward(tensor([3.0, 5.0]))
    assert x.grad.data.tolist() == [6.0, 10.0]
    del y
    (chain(x, 10) * 1).backward(tensor([1.0, 1.0]))
    assert x.grad.data.tolist() == [7.0, 11.0]


def test_a_chain_of_every_kind_of_op_is_built_swept_and_dropped():
    x, step = leaf([[0.5, 1.0], [0.25, 2.0]]), leaf(1.0)
    for swept in (False, True):
        y = x
        for _ in range(500):
            y = y.T.reshape(4)[[0, 1, 2, 3]].reshape(2, 2).relu() * step
            y = smolgrad.maximum(smolgrad.cat([y[:1], y[1:]]), -y).unsqueeze(0).squeeze(0)
        if swept:
            y.backward(tensor([[3.0, 5.0], [7.0, 11.0]]))
        del y
    assert x.grad.data.tolist() == [[3.0, 5.0], [7.0, 11.0]]  # an even number of transposes
    assert step.grad.item() == 500 * (1.5 + 5.0 + 1.75 + 22.0)


DROPPED = f"""
import gc, sys
import smolgrad
gc.disable()
x = smolgrad.ones(1, requires_grad=True)
def build(depth, fail=False):
    y = x
    for _ in range(depth):
        y = y + 1.0
    if fail:
        raise ValueError
    return y
y = build({DEPTH})
del y
try:
    build({DEPTH // 2}, fail=True)
except ValueError:
    pass
(w,) = smolgrad.grad(build({DEPTH // 4}) ** 2, x, create_graph=True)
z = build({DEPTH // 4})
sys.stdout.write("alive")  # and w, z and the leaf go as the interpreter ends
"""


def test_a_deep_graph_that_was_never_swept_is_dropped_without_a_crash():
    run = subprocess.run(
        [sys.executable, "-c", DROPPED], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "alive", "")


# --- breadth ----------------------------------------------------------------------------------------------------------


def test_forty_stacked_diamonds_are_swept_once_each():
    # 2**40 paths: a walk without a set of what it has seen does not come back.
    x = leaf([1.0, 2.0])
    y = x
    for _ in range(40):
        y = (y + y) * 0.5
        y = y * 0.25 + y * 0.75
    y.backward(tensor([3.0, 5.0]))
    assert x.grad.data.tolist() == [3.0, 5.0]
    del y


def test_each_record_is_pulled_back_once_however_many_ways_lead_to_it():
    calls = []
    counted = Primitive("counted", lambda x: x * 1, lambda g, _y, _x: calls.append(1) or g)
    x = leaf([1.0, 2.0])
    y = x
    for _ in range(10):
        y = counted(y)
        y = y + y * 2 + y
    y.backward(tensor([3.0, 5.0]))
    assert len(calls) == 10
    assert x.grad.data.tolist() == [3.0 * 4**10, 5.0 * 4**10]


def test_what_several_roots_share_is_pulled_back_once():
    calls = []
    counted = Primitive("counted", lambda x: x * 1, lambda g, _y, _x: calls.append(1) or g)
    x = leaf([1.0, 2.0])
    y = counted(x)
    smolgrad.autograd.backward([y * 2, y * 3, y], [tensor([1.0, 0.0]), tensor([0.0, 1.0]), tensor([5.0, 7.0])])
    assert len(calls) == 1
    assert x.grad.data.tolist() == [7.0, 10.0]


def test_a_sweep_costs_in_proportion_to_its_graph():
    # A picked row is added into the gradient of the whole; a table of zeros a pick would be 2000 times 2 MB, and take
    # some fifty times as long as with a small table.
    def seconds(size):
        x = smolgrad.zeros(size, requires_grad=True)
        y = x[0] * 3
        for i in range(1, 2000):
            y = y + x[i]
        began = time.process_time()
        y.backward(smolgrad.tensor(2.0))
        ended = time.process_time()
        assert x.grad.data[:3].tolist() == [6.0, 2.0, 2.0]
        assert x.grad.data.sum() == 6.0 + 2.0 * 1999
        return ended - began

    assert seconds(500_000) < 8 * min(seconds(2000) for _ in range(3))


@pytest.mark.parametrize("swap", [False, True])
def test_the_order_of_operands_does_not_change_a_bit_of_the_result(swap):
    # HIPS/autograd 677af2e: the result depended on the order of a dict.
    def gradient(swap):
        x = leaf([0.1, 0.7])
        h = x.exp()
        p, q = h * 0.3, h.log() * h
        z = q + p if swap else p + q
        z.backward(tensor([0.3, 0.9]))
        return x.grad.data

    np.testing.assert_array_equal(gradient(swap), gradient(False))


# --- memory -----------------------------------------------------------------------------------------------------------


def graphs(x):
    """A graph of each kind of record that holds something, and the tensor in its middle."""
    y = x * 2
    written = y * 1
    written[0] = y[1]
    written.mul_(y)
    z = smolgrad.cat([y.exp(), y.T, y[[0, 1]], smolgrad.where(y > 0, y, 0)]) + 1
    return y, z.sum() + written.sum() + smolgrad.functional.cross_entropy(y, smolgrad.tensor(0)) + y.max(0).values


@pytest.mark.parametrize("swept", ["not at all", "once", "twice", "by grad", "by grad with create_graph", "in vain"])
def test_memory_returns_without_the_collector(swept):
    # HIPS/autograd fcc2aed and 84b45a1, MyGrad 7417e58e, pytorch 839 and 7343, storchastic 26: a cycle through node and
    # closure, tape or gradient.
    with no_collector():
        x = leaf([1.0, 2.0])
        middle, loss = graphs(x)
        watched = [weakref.ref(t) for t in (x, middle, loss, middle.data, loss.data)]
        if swept == "once":
            loss.backward()
        elif swept == "twice":
            loss.backward(retain_graph=True)
            loss.backward(retain_graph=True)
        elif swept == "by grad":
            smolgrad.grad(loss, [x, middle])
        elif swept == "by grad with create_graph":
            gradients = smolgrad.grad(loss, [x, middle], create_graph=True)
            watched += [weakref.ref(t) for t in gradients]
            (gradients[0] * gradients[1]).sum().backward()
            del gradients
        elif swept == "in vain":
            with smolgrad.no_grad():
                middle.add_(1)
            with pytest.raises(RuntimeError):
                loss.backward()
        del x, middle, loss
        assert [r() for r in watched] == [None] * len(watched)


def test_backward_with_create_graph_is_the_one_cycle_and_clearing_the_gradient_opens_it():
    with no_collector():
        x = leaf([1.0, 2.0])
        (x**3).backward(tensor([3.0, 5.0]), create_graph=True)
        watched = weakref.ref(x.grad)
        x.grad = None
        assert watched() is None
        watched = weakref.ref(x)
        del x
        assert watched() is None


def test_a_swept_graph_holds_nothing_but_its_root():
    with no_collector():
        x = leaf([1.0, 2.0])
        y = x * 2
        z = y.exp()
        watched = weakref.ref(y.data), weakref.ref(y)
        root = z.sum()
        del y, z
        assert watched[0]() is not None
        root.backward()
        assert watched[0]() is None
        assert watched[1]() is None
        assert root.item() == pytest.approx(np.exp(2) + np.exp(4))


@pytest.mark.parametrize("retain_graph", [False, True])
def test_intermediates_go_as_the_sweep_passes_them(retain_graph):
    # The pullback nearest to the leaf finds all that came after it gone, unless the graph is kept.
    with no_collector():
        alive = []
        watched = []
        probe = Primitive(
            "probe", lambda x: x * 1, lambda g, _y, _x: alive.append([r() is not None for r in watched]) or g
        )
        x = leaf(np.ones(8))
        y = probe(x)
        for _ in range(5):
            y = y.exp() * 0.25
            watched.append(weakref.ref(y))
        y = y.sum()
        y.backward(retain_graph=retain_graph)
        assert alive == [[retain_graph] * 5]


def test_the_gradients_of_intermediates_go_as_the_sweep_passes_them():
    with no_collector():
        cotangents, alive = [], []

        def watch(g):
            alive.append(sum(r() is not None for r in cotangents))
            cotangents.append(weakref.ref(g))
            return g * 1

        watching = Primitive("watching", lambda x: x * 1, lambda g, _y, _x: watch(g))
        x = leaf(np.ones(8))
        y = x
        for _ in range(6):
            y = watching(y)
        y.backward(tensor(np.arange(8.0)))
        assert max(alive[1:]) <= 2  # the seed, which is the caller's, and the one before


def test_a_leaf_that_is_no_part_of_a_graph_is_not_held_by_the_values_made_from_it_without_grad():
    with no_collector():
        x = leaf([1.0, 2.0])
        with smolgrad.no_grad():
            y = x.exp() * x
        detached = x.detach()
        z = detached * 2
        compared = x > 1
        found = x.argmax()
        watched = weakref.ref(x)
        del x
        assert watched() is None
        assert (y.size, z.size, compared.size, found.size) == (2, 2, 2, 1)


# --- sweeps that fail -------------------------------------------------------------------------------------------------


class Refused(Exception):
    pass


def failing(name="failing"):
    def refuse(_g, _y, _x):
        raise Refused(name)

    return Primitive(name, lambda x: x * 2, refuse)


@pytest.mark.parametrize("create_graph", [False, True], ids=["arrays", "tensors"])
@pytest.mark.parametrize("swap", [False, True])
def test_a_sweep_that_fails_leaves_every_gradient_as_it_was_and_its_graph_spent(swap, create_graph):
    x, y, untouched = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([5.0, 6.0])
    (x * y).backward(tensor([1.0, 10.0]))
    before = x.grad, y.grad, x.grad.data.copy(), y.grad.data.copy()
    good, bad = (x * y * untouched), failing()(x * 1)
    z = bad + good if swap else good + bad
    with pytest.raises(Refused):
        z.backward(tensor([3.0, 5.0]), retain_graph=False, create_graph=create_graph)
    assert x.grad is before[0]
    assert y.grad is before[1]
    np.testing.assert_array_equal(x.grad.data, before[2])
    np.testing.assert_array_equal(y.grad.data, before[3])
    assert untouched.grad is None
    with pytest.raises(RuntimeError, match="already swept"):
        z.backward(tensor([3.0, 5.0]))
    np.testing.assert_array_equal(x.grad.data, before[2])
    (x * y).backward(tensor([1.0, 10.0]))
    np.testing.assert_array_equal(x.grad.data, 2 * before[2])


def test_a_sweep_that_fails_leaves_the_mode_as_it_was():
    z = failing()(leaf([1.0, 2.0]))
    for create_graph in (False, True):
        with smolgrad.no_grad(), pytest.raises(Refused):
            z.backward(tensor([3.0, 5.0]), retain_graph=True, create_graph=create_graph)
        assert smolgrad.is_grad_enabled()


def test_a_graph_kept_through_a_failure_can_be_swept_again():
    broken = []
    rule = Primitive("moody", lambda x: x * 2, lambda g, _y, _x: g * 2 if not broken else 1 / 0)
    x = leaf([1.0, 2.0])
    y = rule(x) + x
    broken.append(True)
    with pytest.raises(ZeroDivisionError):
        y.backward(tensor([3.0, 5.0]), retain_graph=True)
    assert x.grad is None
    broken.clear()
    y.backward(tensor([3.0, 5.0]))
    assert x.grad.data.tolist() == [9.0, 15.0]


def test_a_second_sweep_of_a_graph_let_go_raises_before_anything_changes():
    x = leaf([1.0, 2.0])
    shared = x * 3
    (shared * shared).backward(tensor([1.0, 1.0]))
    before = x.grad.data.copy()
    y = shared + x
    with pytest.raises(RuntimeError, match=r"already swept through mul\(\) and let go; keep it with retain_graph=True"):
        y.backward(tensor([3.0, 5.0]))
    np.testing.assert_array_equal(x.grad.data, before)


def test_only_what_lies_between_outputs_and_inputs_is_swept():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    h = x * y
    unrelated = failing()(y * 1)
    (gx,) = smolgrad.grad((h * h) + unrelated, x, tensor([1.0, 10.0]), retain_graph=True)
    assert gx.data.tolist() == [2 * 1 * 9.0, 2 * 2 * 16 * 10.0]
    with pytest.raises(Refused):
        smolgrad.grad((h * h) + unrelated, y, tensor([1.0, 10.0]))
    assert x.grad is None
    assert y.grad is None


# --- identity ---------------------------------------------------------------------------------------------------------


def test_tensors_of_equal_data_are_different_tensors_in_sets_and_dicts():
    # HIPS/autograd 65039b8, MyGrad PR 276: an elementwise == without a hash, or a membership test by value.
    a, b = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    assert len({a, b, a}) == 2
    assert {a: 1, b: 2}[b] == 2
    assert a in {a}
    assert a not in {b}
    gradients = smolgrad.grad((a * 2 + b * 3).sum(), [b, a])
    assert [g.data.tolist() for g in gradients] == [[3.0, 3.0], [2.0, 2.0]]


def test_the_same_input_wanted_twice_is_given_twice():
    a, b = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    for create_graph in (False, True):
        gradients = smolgrad.grad(a * b * b, [b, a, b], tensor([3.0, 5.0]), create_graph=create_graph)
        assert [g.data.tolist() for g in gradients] == [[6.0, 40.0], [3.0, 20.0], [6.0, 40.0]]
        assert gradients[0] is not gradients[2]
