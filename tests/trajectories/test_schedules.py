"""Schedules and clipping, step for step, in float64: the same rates and gradients here and in PyTorch."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import smolgrad
from smolgrad import nn, optim
from smolgrad.chunks import CHUNK
from smolgrad.optim import lr_scheduler

# --- schedules --------------------------------------------------------------------------------------------------------


def decay(epoch):
    return 0.9**epoch


def wave(epoch):
    return 1 + (epoch % 3) / 4


FACTORS = st.sampled_from([1.0, 0.5, 1 / 3, 0.01])
# A schedule is a name, its options, and a function from the number of groups where the options depend on that.
SIMPLE = st.one_of(
    st.tuples(st.just("StepLR"), st.fixed_dictionaries(
        {"step_size": st.integers(1, 4), "gamma": st.sampled_from([0.1, 0.5, 1.0, 1.5])})),
    st.tuples(st.just("LinearLR"), st.fixed_dictionaries(
        {"start_factor": FACTORS, "end_factor": FACTORS | st.just(0.0), "total_iters": st.integers(1, 6)})),
    st.tuples(st.just("CosineAnnealingLR"), st.fixed_dictionaries(
        {"T_max": st.integers(1, 6), "eta_min": st.sampled_from([0.0, 1e-3, 0.3])})),
    st.tuples(st.just("LambdaLR"), st.fixed_dictionaries({"lr_lambda": st.sampled_from([decay, [wave, decay]])})),
)  # fmt: skip


@st.composite
def schedules(draw):
    """One schedule, or two to four in a row and the milestones between them."""
    parts = draw(st.lists(SIMPLE, min_size=1, max_size=4))
    gaps = draw(st.lists(st.integers(1, 5), min_size=len(parts) - 1, max_size=len(parts) - 1))
    return parts, np.cumsum(gaps, dtype=int).tolist()


def scheduled(library, optimizer, parts, milestones):
    """The drawn schedule in either library, whose ``lr_scheduler`` is given."""
    made = [getattr(library, name)(optimizer, **options) for name, options in parts]
    return made[0] if len(made) == 1 else library.SequentialLR(optimizer, made, milestones)


def rates(optimizer):
    return [group["lr"] for group in optimizer.param_groups]


def two_groups(library, leaf, **settings):
    return library.SGD([{"params": [leaf()], "lr": 0.2}, {"params": [leaf()]}], **settings)


def ours(**settings):
    return two_groups(optim, lambda: smolgrad.ones(2, requires_grad=True), **settings)


def theirs(**settings):
    return two_groups(torch.optim, lambda: torch.ones(2, requires_grad=True), **settings)


@given(data=st.data())
def test_rates_follow_pytorchs(data):
    parts, milestones = data.draw(schedules(), label="schedule")
    chained = data.draw(st.none() | SIMPLE, label="chained with")  # which sets the rates beside the first
    by_hand = data.draw(st.lists(st.none() | st.sampled_from([0.5, 0.0]), min_size=3, max_size=20), label="set by hand")
    libraries = ((lr_scheduler, ours(lr=0.1)), (torch.optim.lr_scheduler, theirs(lr=0.1)))
    made = [
        [scheduled(library, step, parts, milestones), *([scheduled(library, step, [chained], [])] if chained else [])]
        for library, step in libraries
    ]
    libraries[1][1].step()  # no gradients, no step: PyTorch warns of schedules that go first
    largest = 0.5
    for lr in [None, *by_hand]:
        for (_, step), schedule in zip(libraries, made, strict=True):
            if lr is not None:
                step.param_groups[0]["lr"] = lr
            for part in schedule:
                part.step()
        found, wanted = (rates(step) for _, step in libraries)
        # On the way to 0 a factor is 1 - 1 but for its rounding, which PyTorch lets go below 0 and smolgrad does not.
        largest = max(largest, *wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15 * largest)
        assert [part.get_last_lr() for part in made[0]] == [pytest.approx(x.get_last_lr()) for x in made[1]]


@given(schedule=schedules(), before=st.integers(0, 8), after=st.integers(1, 8))
def test_a_schedule_goes_on_from_its_state_as_if_it_had_not_stopped(schedule, before, after):
    def run(step, made, count):
        found = []
        for _ in range(count):
            made.step()
            found.append(rates(step))
        return found

    whole, half, resumed = ours(lr=0.1), ours(lr=0.1), ours(lr=0.7)
    wanted = run(whole, scheduled(lr_scheduler, whole, *schedule), before + after)[before:]
    first = scheduled(lr_scheduler, half, *schedule)
    run(half, first, before)
    second = scheduled(lr_scheduler, resumed, *schedule)
    state, options = first.state_dict(), half.state_dict()
    first.step()  # the state is a snapshot
    resumed.load_state_dict(options)
    second.load_state_dict(state)
    assert run(resumed, second, after) == wanted  # to the bit


def of_another_length(state):
    return state | {"base_lrs": [0.1]}


# One line a refusal: what is called with a library's schedules and an optimizer, exception, what its message says.
# PyTorch refuses the same, by the same exception.
REFUSED = [
    (lambda lrs, step: lrs.StepLR(None, 2), TypeError, "needs an Optimizer, got NoneType"),
    (lambda lrs, step: lrs.StepLR(step, 2, verbose=True), TypeError, "unexpected argument 'verbose'"),
    (lambda lrs, step: lrs.LinearLR(step, 0.0), ValueError, "0 < start_factor"),
    (lambda lrs, step: lrs.LinearLR(step, 1.5), ValueError, "0 < start_factor"),
    (lambda lrs, step: lrs.LinearLR(step, end_factor=-1), ValueError, "end_factor <= 1"),
    (lambda lrs, step: lrs.LambdaLR(step, [decay]), ValueError, "each of 2 groups, got 1"),
    (lambda lrs, step: lrs.SequentialLR(step, [], []), ValueError, "got 0 schedules and 0 milestones"),
    (lambda lrs, step: lrs.SequentialLR(step, [lrs.StepLR(step, 2)], [1]), ValueError, "1 milestones"),
    (lambda lrs, step: lrs.SequentialLR(step, [lrs.StepLR(type(step)([*step.param_groups[0]["params"]]), 2)], []),
     ValueError, "of the optim"),
    (lambda lrs, step: lrs.SequentialLR(step, [step], []), TypeError, "needs schedules, .* got SGD"),
]  # fmt: skip
# What PyTorch takes, and then divides by zero, goes another way, or never gets to. The last two are not offered.
STRICTER = [
    (lambda lrs, step: lrs.StepLR(step, 0), ValueError, "step_size must be at least 1"),
    (lambda lrs, step: lrs.StepLR(step, 1.5), TypeError, "step_size must be an integer"),
    (lambda lrs, step: lrs.LinearLR(step, total_iters=0), ValueError, "total_iters must be at least 1"),
    (lambda lrs, step: lrs.CosineAnnealingLR(step, 0), ValueError, "T_max must be at least 1"),
    (lambda lrs, step: lrs.SequentialLR(step, [lrs.StepLR(step, 2) for _ in range(3)], [3, 3]),
     ValueError, "milestones must rise"),
    (lambda lrs, step: lrs.LRScheduler(step), NotImplementedError, "defines no _next"),
    (lambda lrs, step: lrs.StepLR(step, 2, last_epoch=3), NotImplementedError, "last_epoch"),
    (lambda lrs, step: lrs.SequentialLR(step, [lrs.SequentialLR(step, [lrs.StepLR(step, 1)], [])], []),
     TypeError, "not of its own kind"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED + STRICTER, ids=[row[2] for row in REFUSED + STRICTER])
def test_what_a_schedule_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call(lr_scheduler, ours())


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_pytorchs_schedule_refuses_too(call, error, message):  # noqa: ARG001  its own words
    with pytest.raises(error):
        call(torch.optim.lr_scheduler, theirs())


# What is wrong with a state of StepLR, and how it is made.
WRONG = {
    "a key too many": lambda state: state | {"T_max": 3},
    "a key too few": lambda state: {k: v for k, v in state.items() if k != "gamma"},
    "other groups": of_another_length,
    "a number that is none": lambda state: state | {"last_epoch": "3"},
    "a fraction of a step": lambda state: state | {"last_epoch": 2.5},
    "no list": lambda state: state | {"base_lrs": 0.1},
    "no mapping": lambda state: list(state),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_state_of_another_schedule_changes_nothing(wrong):
    step = ours()
    schedule = lr_scheduler.StepLR(step, 2)
    before = schedule.state_dict()
    with pytest.raises(ValueError, match=r"load_state_dict\(\) of StepLR"):
        schedule.load_state_dict(WRONG[wrong](before))
    assert schedule.state_dict() == before


def test_a_part_of_a_row_of_schedules_is_checked_before_any_is_changed():
    step = ours()
    row = lr_scheduler.SequentialLR(step, [lr_scheduler.StepLR(step, 2), lr_scheduler.StepLR(step, 3)], [4])
    state = row.state_dict()
    row.step()
    before = row.state_dict()
    state["_schedulers"][1] = of_another_length(state["_schedulers"][1])
    with pytest.raises(ValueError, match="SequentialLR"):
        row.load_state_dict(state)
    assert row.state_dict() == before != state


def test_a_group_that_came_later_is_noticed():
    step = ours()
    schedule = lr_scheduler.StepLR(step, 2)
    step.add_param_group({"params": [smolgrad.ones(1, requires_grad=True)]})
    with pytest.raises(ValueError, match="made for 2 parameter groups, and there are 3"):
        schedule.step()
    assert schedule.last_epoch == 0


# --- clipping ---------------------------------------------------------------------------------------------------------

SCALES = st.sampled_from([1.0, 0.0, 1e-9, 1e3, 1e-160, 1e160, np.inf, np.nan])
SHAPES = st.sampled_from([(3,), (), (2, 3), (0,), (CHUNK + 1,)])


@st.composite
def gradients(draw):
    """One to four gradients of different shapes and sizes, some of them None, but not the last: PyTorch needs one."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    drawn = draw(st.lists(st.tuples(SHAPES, SCALES | st.none()), max_size=3))
    drawn.append(draw(st.tuples(SHAPES, SCALES)))
    return [(shape, None if scale is None else np.asarray(scale * rng.normal(size=shape))) for shape, scale in drawn]


def with_gradients(drawn, ones, tensor):
    params = []
    for shape, g in drawn:
        params.append(ones(shape))
        params[-1].grad = None if g is None else tensor(g)
    return params


def pair(drawn):
    return (
        with_gradients(drawn, lambda s: smolgrad.ones(s, dtype="float64", requires_grad=True), smolgrad.tensor),
        with_gradients(drawn, lambda s: torch.ones(s, dtype=torch.float64, requires_grad=True), torch.tensor),
    )


def check_gradients(ps, qs):
    for p, q in zip(ps, qs, strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            # 1e-323: the product of a gradient and a factor may be the last subnormal number, or 0.
            np.testing.assert_allclose(p.grad.data, q.grad.numpy(), rtol=1e-12, atol=1e-323)


@given(
    drawn=gradients(), max_norm=st.sampled_from([1.0, 0.1, 1e3, 0.0, 1e200]), power=st.sampled_from([2, 1, 3.0, np.inf])
)
def test_norms_are_clipped_as_in_pytorch(drawn, max_norm, power):
    ps, qs = pair([(s, g) for s, g in drawn if power != np.inf or s != (0,)])  # which PyTorch has no largest element of
    norm = nn.utils.clip_grad_norm_(ps, max_norm, power)
    wanted = torch.nn.utils.clip_grad_norm_(qs, max_norm, power, foreach=False)
    np.testing.assert_allclose(norm.data, wanted.numpy(), rtol=1e-12, atol=0)
    check_gradients(ps, qs)


@given(drawn=gradients(), bound=st.sampled_from([1.0, 0.1, 0.0, 1e-9, np.inf]))
def test_values_are_clipped_as_in_pytorch(drawn, bound):
    ps, qs = pair(drawn)
    nn.utils.clip_grad_value_(ps, bound)
    if any(q.grad is not None for q in qs):  # of none at all PyTorch's own raises
        torch.nn.utils.clip_grad_value_(qs, bound, foreach=False)
    check_gradients(ps, qs)


def with_gradient(*gradients, dtype="float64"):
    ps = [smolgrad.ones(np.shape(g), dtype=dtype, requires_grad=True) for g in gradients]
    for p, g in zip(ps, gradients, strict=True):
        p.grad = smolgrad.tensor(g, dtype=dtype)
    return ps


def test_the_norm_is_that_of_all_gradients_together():
    # Clipped one by one, both would come out as long as max_norm; lengthened where they are short, as long as it too.
    p, q = with_gradient([3.0, 0.0], [[4.0]])
    assert nn.utils.clip_grad_norm_([p, q], 1.0).item() == 5.0
    assert (p.grad.data[0], q.grad.data[0, 0]) == pytest.approx((0.6, 0.8), rel=1e-6)
    assert nn.utils.clip_grad_norm_(iter([p]), 10.0).item() == pytest.approx(0.6, rel=1e-6)
    assert p.grad.data[0] == pytest.approx(0.6, rel=1e-6)


def test_squares_of_float32_do_not_overflow():
    # 1e20² is beyond float32, and so the norm would be infinite, and every gradient 0.
    (p,) = with_gradient([3e20, 4e20], dtype="float32")
    norm = nn.utils.clip_grad_norm_(p, 1.0)
    assert norm.dtype == p.grad.dtype == np.float32
    assert norm.item() == pytest.approx(5e20)
    assert p.grad.data.tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("size", [1e160, 1e-161])
def test_one_number_is_its_own_norm(size):
    # Its square is inf, or a subnormal of few digits.
    (p,) = with_gradient(-size)
    assert nn.utils.clip_grad_norm_(p, 1.0).item() == size
    assert p.grad.data == -(size * min(1.0, 1.0 / (size + 1e-6)))


def test_a_norm_that_is_not_finite_may_be_an_error():
    p, q = with_gradient([1.0, np.inf], [2.0])
    with pytest.raises(RuntimeError, match="norm of order 2.0 is inf"):
        nn.utils.clip_grad_norm_([p, q], 1.0, error_if_nonfinite=True)
    assert q.grad.data == 2.0
    assert np.isnan(nn.utils.clip_grad_norm_([p, *with_gradient([np.nan])], 1.0, float("inf")).data)


@pytest.mark.parametrize("clip", [nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_])
def test_clipping_writes_in_place_and_makes_nothing_of_a_gradients_size(clip):
    (p,) = with_gradient(np.ones((64, CHUNK)))
    mine = p.grad
    clip(p, 0.5)
    tracemalloc.start()
    try:
        clip(p, 0.25)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * CHUNK * 8 < mine.data.nbytes / 4
    assert p.grad is mine
    assert np.abs(mine.data).max() <= 0.25


@pytest.mark.parametrize("clip", [nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_])
def test_what_clipping_refuses(clip):
    p, q = with_gradient([3.0], [4.0])
    q.grad.data.flags.writeable = False
    with pytest.raises(RuntimeError, match=r"a gradient of shape \(1,\) is read-only"):
        clip([p, q], 1.0)
    assert p.grad.data == 3.0
    with pytest.raises(TypeError, match="needs Tensors, got float"):
        clip([p, 1.0], 1.0)
    with pytest.raises(NotImplementedError, match="foreach"):
        clip([p], 1.0, foreach=True)


def test_norms_of_other_orders_are_refused():
    with pytest.raises(NotImplementedError, match="norm_type must be above 0"):
        nn.utils.clip_grad_norm_(with_gradient([3.0]), 1.0, 0)
    assert nn.utils.clip_grad_norm_([smolgrad.ones(1, requires_grad=True)], 1.0).item() == 0  # no gradient at all


def test_a_clipped_gradient_that_a_graph_needs_is_noticed():
    p = smolgrad.tensor([2.0, 3.0], requires_grad=True)
    (p * p * p).sum().backward(create_graph=True)
    loss = (p.grad * p.grad).sum()
    nn.utils.clip_grad_value_(p, 1.0)
    with pytest.raises(RuntimeError, match="written in place"):
        loss.backward()
