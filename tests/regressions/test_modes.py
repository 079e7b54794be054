"""no_grad and enable_grad: as blocks and as decorators, nested, recursive, in generators, threads and exceptions."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import smolgrad
from smolgrad import enable_grad, is_grad_enabled, no_grad
from smolgrad import functional as F
from tests.regressions.tensors import leaf

MODES = {True: enable_grad, False: no_grad}
X = leaf([1.0, 2.0])


def recorded():
    """Whether an op is recorded just now, by what it does and not by what is said of it."""
    found = (X * 2).requires_grad
    assert found == is_grad_enabled()
    return found


# --- a model of nesting -----------------------------------------------------------------------------------------------

# One level: a mode, how it is entered, and whether it is left by an exception. A fresh instance, a shared one, or a
# decorator, which is made before it is used and may be used at several levels at once.
FORMS = ("block", "shared block", "decorator", "bare decorator", "shared decorator", "method")
levels = st.lists(st.tuples(st.booleans(), st.sampled_from(FORMS), st.booleans()), min_size=1, max_size=8)
SHARED = {mode: MODES[mode]() for mode in MODES}
CALL = {mode: SHARED[mode](lambda go: go()) for mode in MODES}


class Caller:
    @no_grad()
    def without(self, go):
        return go()

    @enable_grad
    def within(self, go):
        return go()


class Thrown(Exception):
    pass


def enter(mode, form, go):
    """Call ``go`` inside ``mode``, entered as ``form`` says."""
    if form == "block":
        with MODES[mode]():
            return go()
    if form == "shared block":
        with SHARED[mode]:
            return go()
    if form == "decorator":
        return MODES[mode]()(go)()
    if form == "bare decorator":
        return MODES[mode](go)()
    if form == "shared decorator":
        return CALL[mode](go)
    return (Caller().within if mode else Caller().without)(go)


def nest(rest, outer):
    """Enter the levels of ``rest`` inside the mode ``outer``; on every way out the mode is what it was."""
    assert recorded() is outer
    if not rest:
        return
    (mode, form, throws), *inner = rest

    def go():
        nest(inner, mode)
        assert recorded() is mode
        if throws:
            raise Thrown

    if throws:
        with pytest.raises(Thrown):
            enter(mode, form, go)
    else:
        enter(mode, form, go)
    assert recorded() is outer


@given(levels, levels)
def test_nested_modes_are_a_stack(first, second):
    # pytorch 10858: a decorated call inside a block switched recording back on as it returned.
    nest(first, True)
    nest(second, True)
    with no_grad():
        nest(first, False)


# --- the cases by name ------------------------------------------------------------------------------------------------


def test_a_decorated_call_inside_a_block_gives_back_the_blocks_mode():
    @no_grad()
    def f():
        return recorded()

    with no_grad():
        assert f() is False
        assert recorded() is False
    assert recorded() is True


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_decorated_function_may_call_itself(depth):
    # pytorch 44531: one instance kept the mode to go back to in itself, and the inner call overwrote it.
    def walk(depth):
        assert recorded() is True
        if depth:
            with no_grad():
                decorated(depth - 1)
                assert recorded() is False
        assert recorded() is True

    decorated = enable_grad()(walk)
    with no_grad():
        decorated(depth)
        assert recorded() is False
    assert recorded() is True


def test_one_instance_may_be_entered_while_it_is_entered():
    off, on = no_grad(), enable_grad()
    with off:
        with on:
            with off, off:
                assert recorded() is False
            assert recorded() is True
        assert recorded() is False
    assert recorded() is True


@pytest.mark.parametrize("decorate", [no_grad, no_grad(), enable_grad, enable_grad()])
@pytest.mark.parametrize("inside", [False, True])
def test_defining_a_decorated_function_changes_nothing(decorate, inside):
    # pytorch 113298: the mode changed where the function was defined.
    with no_grad() if inside else enable_grad():

        @decorate
        def f():
            """What it does."""

        @decorate
        def g():
            yield

        generator = g()
        assert recorded() is not inside
        del generator
    assert recorded() is True
    assert (f.__name__, f.__doc__) == ("f", "What it does.")


def test_making_a_mode_without_entering_it_changes_nothing():
    no_grad()
    assert recorded() is True
    with no_grad():
        enable_grad()
        assert recorded() is False


def test_arguments_and_results_pass_through_a_decorated_function():
    @no_grad
    def f(a, *rest, b=1, **more):
        return a, rest, b, more, recorded()

    assert f(1, 2, 3, b=4, c=5) == (1, (2, 3), 4, {"c": 5}, False)


def test_an_exception_restores_the_mode():
    @no_grad()
    def fail():
        raise Thrown

    with pytest.raises(Thrown):
        fail()
    assert recorded() is True
    with pytest.raises(Thrown), no_grad(), enable_grad(), no_grad():
        raise Thrown
    assert recorded() is True


# --- generators -------------------------------------------------------------------------------------------------------


@no_grad()
def three():
    sent = []
    for _ in range(3):
        assert recorded() is False
        sent.append((yield recorded()))
    return sent


def test_a_decorated_generator_runs_in_its_mode_and_leaves_its_caller_in_theirs():
    seen = []
    for item in three():
        seen.append((item, recorded()))
    assert seen == [(False, True)] * 3


def test_interleaved_generators_do_not_mix_their_modes():
    @enable_grad()
    def on():
        for _ in range(3):
            yield recorded()

    with no_grad():
        assert list(zip(three(), on(), strict=True)) == [(False, True)] * 3
        assert recorded() is False
    assert recorded() is True


def test_a_generator_gives_whoever_asks_their_own_mode_back():
    @no_grad()
    def steps():
        for _ in range(3):
            yield recorded()

    generator = steps()
    next(generator)
    with no_grad():
        next(generator)
        assert recorded() is False
    next(generator)
    assert recorded() is True


def test_a_generator_is_sent_to_thrown_into_and_closed_in_its_mode():
    generator = three()
    next(generator)
    generator.send("a")
    generator.send("b")
    with pytest.raises(StopIteration) as stop:
        generator.send("c")
    assert stop.value.value == ["a", "b", "c"]
    seen = []

    @no_grad
    def careful():
        try:
            yield 1
        except Thrown:
            seen.append(recorded())
            yield 2
        finally:
            seen.append(recorded())

    generator = careful()
    assert next(generator) == 1
    assert generator.throw(Thrown()) == 2
    assert recorded() is True
    generator.close()
    assert seen == [False, False]
    assert recorded() is True
    generator = careful()
    next(generator)
    generator.close()
    assert seen == [False] * 3
    with pytest.raises(StopIteration):
        next(generator)


def test_an_exception_of_a_generator_comes_out_of_it():
    @no_grad()
    def fail():
        yield 1
        raise Thrown

    generator = fail()
    next(generator)
    with pytest.raises(Thrown):
        next(generator)
    assert recorded() is True


def test_a_generator_can_delegate_to_a_decorated_one():
    def outer():
        assert recorded() is True
        got = yield from three()
        assert recorded() is True
        return got

    generator = outer()
    assert list(generator) == [False] * 3


# --- threads ----------------------------------------------------------------------------------------------------------


def test_a_mode_holds_in_its_own_thread_only():
    inside, checked, seen = threading.Event(), threading.Event(), {}

    def without():
        with no_grad():
            inside.set()
            assert checked.wait(10)
            seen["without"] = recorded()

    def plain():
        assert inside.wait(10)
        seen["plain"] = recorded()
        with enable_grad():
            pass
        seen["after"] = recorded()
        checked.set()

    threads = [threading.Thread(target=f) for f in (without, plain)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"without": False, "plain": True, "after": True}


def test_one_instance_and_one_decorated_function_serve_many_threads():
    shared, wrong = no_grad(), []
    decorated = enable_grad()(recorded)
    barrier = threading.Barrier(4, timeout=10)

    def run(k):
        for _ in range(50):
            barrier.wait()
            if k % 2:
                with shared:
                    barrier.wait()
                    if recorded() or not decorated() or recorded():
                        wrong.append(k)
            else:
                barrier.wait()
            if not recorded():
                wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_thread_started_inside_no_grad_records():
    seen = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(recorded()))
        thread.start()
        thread.join()
    assert seen == [True]


# --- what is not recorded ---------------------------------------------------------------------------------------------

M, LABELS = leaf([[1.0, 2.0], [3.0, 5.0]]), smolgrad.tensor([0, 1])
OPS = {
    "add": lambda: M + 1,
    "sub": lambda: 1 - M,
    "mul": lambda: M * M,
    "div": lambda: M / M,
    "pow": lambda: M**2,
    "neg": lambda: -M,
    "abs": lambda: abs(M),
    "exp": M.exp,
    "relu": M.relu,
    "maximum": lambda: smolgrad.maximum(M, M),
    "clamp": lambda: M.clamp(0, 1),
    "where": lambda: smolgrad.where(M > 1, M, 0),
    "sum": M.sum,
    "mean": M.mean,
    "var": M.var,
    "amax": M.amax,
    "max": lambda: M.max(0).values,
    "logsumexp": lambda: M.logsumexp(0),
    "softmax": lambda: M.softmax(0),
    "reshape": lambda: M.reshape(4),
    "T": lambda: M.T,
    "expand": lambda: M.expand(3, 2, 2),
    "clone": M.clone,
    "cat": lambda: smolgrad.cat([M, M]),
    "getitem": lambda: M[0],
    "matmul": lambda: M @ M,
    "to": M.float,
    "linear": lambda: F.linear(M, M),
    "layer_norm": lambda: F.layer_norm(M, (2,), M[0]),
    "mse_loss": lambda: F.mse_loss(M, M, reduction="none"),
    "cross_entropy": lambda: F.cross_entropy(M, LABELS, reduction="none"),  # MyGrad f45fae01: a loss took no notice
    "embedding": lambda: F.embedding(LABELS, M),
}


@pytest.mark.parametrize("op", OPS)
def test_no_op_records_under_no_grad_and_every_op_does_outside(op):
    with no_grad():
        y = OPS[op]()
        assert not y.requires_grad
        assert y.is_leaf
        with pytest.raises(RuntimeError, match="does not require grad"):
            y.sum().backward()
        with enable_grad():
            assert OPS[op]().requires_grad
    z = OPS[op]()
    assert z.requires_grad
    assert not z.is_leaf
    np.testing.assert_array_equal(y.data, z.data)


def test_a_leaf_made_under_no_grad_requires_grad_as_it_was_told():
    with no_grad():
        x = leaf([1.0, 2.0])
    assert x.requires_grad
    (x * 3).backward(smolgrad.tensor(np.array([3.0, 5.0])))
    assert x.grad.data.tolist() == [9.0, 15.0]


def test_backward_under_no_grad_sweeps_what_was_recorded_before():
    x = leaf([1.0, 2.0])
    y = x * x
    with no_grad():
        y.backward(smolgrad.tensor(np.array([3.0, 5.0])))
        assert recorded() is False
    assert x.grad.data.tolist() == [6.0, 20.0]


def test_what_was_made_under_no_grad_is_a_constant_in_a_graph():
    x = leaf([1.0, 2.0])
    with no_grad():
        c = x * x
    (c * x).backward(smolgrad.tensor(np.array([3.0, 5.0])))
    assert x.grad.data.tolist() == [3.0, 20.0]


def test_a_detached_constant_is_a_tensor_of_its_own():
    x = smolgrad.tensor([1.0, 2.0])
    y = x.detach().requires_grad_()
    assert y.requires_grad
    assert not x.requires_grad


def test_a_detached_tensor_is_a_constant_that_shares_its_memory():
    x = leaf([1.0, 2.0])
    y = x * 3
    d = y.detach()
    assert not d.requires_grad
    assert d.is_leaf
    assert np.shares_memory(d.data, y.data)
    (d * x).backward(smolgrad.tensor(np.array([3.0, 5.0])))
    assert x.grad.data.tolist() == [9.0, 30.0]
    d.requires_grad_()
    (d * 7).backward(smolgrad.tensor(np.array([3.0, 5.0])))
    assert d.grad.data.tolist() == [21.0, 35.0]
    assert x.grad.data.tolist() == [9.0, 30.0]


def test_gradients_do_not_flow_to_what_no_longer_requires_them():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    w.requires_grad_(False)
    (x * w).backward(smolgrad.tensor(np.array([1.0, 10.0])))
    assert w.grad is None
    assert x.grad.data.tolist() == [3.0, 50.0]
    w.requires_grad = True
    (x * w).backward(smolgrad.tensor(np.array([1.0, 10.0])))
    assert w.grad.data.tolist() == [1.0, 20.0]
