"""Faults that optimizers of other engines had, each as the case in which it showed, with the right value.

Where no engine is named, the fault is one that is easily made. PyTorch's own values stand beside the cases as numbers,
so that these tests need no oracle but arithmetic; tests/trajectories/ compares with PyTorch itself.
"""

import itertools

import numpy as np
import pytest
import torch

import smolgrad
from smolgrad import optim
from spec.oracles import pytorch

OPTIMIZERS = ("SGD", "Adam", "AdamW")


def parameter(value=1.0, dtype="float64"):
    return smolgrad.tensor(value, dtype=dtype, requires_grad=True)


def path(step, p, gradients):
    """The values of the 0-d parameter ``p`` after a step for each of ``gradients``."""
    values = []
    for gradient in gradients:
        p.grad = None if gradient is None else smolgrad.tensor(gradient, dtype=p.dtype)
        step.step()
        values.append(p.item())
    return values


def moved(optimizer, gradients, value=1.0, **settings):
    p = parameter(value)
    return path(getattr(optim, optimizer)([p], **settings), p, gradients)


def close(*values):
    return pytest.approx(values, rel=1e-12, abs=0)


# --- AdamW ------------------------------------------------------------------------------------------------------------


def test_adamw_decays_the_weight_before_the_adaptive_step():
    # seen in bitsandbytes #2010, C-Optim #3 and stanford-cs336/assignment1-basics #54, whose tests pass with either:
    # the step itself was decayed too, to 0.89100, 0.78309, 0.71885. At the usual lr and decay nobody notices.
    assert moved("AdamW", [0.5, 0.5, -0.2], lr=0.1, weight_decay=0.1) == close(
        0.890000002, 0.7811000039800006, 0.7163092899130536
    )


def test_adamw_decay_does_not_pass_through_the_moments():
    # As a term of the gradient, the decay would make the first step one of lr even where the gradient is zero.
    assert moved("AdamW", [0.0, 0.0], lr=0.1, weight_decay=0.5) == close(0.95, 0.95**2)


def test_adamw_adds_eps_after_the_bias_correction():
    # seen in pytorch before #22628 and in torchani #261: eps was divided by the second bias correction as well, which
    # is 3e-8 for gradients near 1 and 28 % for these.
    assert moved("AdamW", [1e-7, 1e-9, 1e-8], lr=0.1, weight_decay=0.0) == close(
        0.9090909090909091, 0.8497392389133439, 0.7998675718402274
    )


def test_adamw_corrects_the_bias_of_its_moments():
    # The first step is one of lr whatever the gradient's size; without correction it would be 3.16 times as long.
    for gradient in (1e3, 1.0, 1e-3):
        assert moved("AdamW", [gradient], lr=0.1, weight_decay=0.0, eps=0.0) == close(0.9)


def test_adamw_counts_steps_once_a_step():
    # seen in DiffSharp #292 and flashlight #143: the counter went up once a parameter, so that later ones were
    # corrected with a wrong count.
    ps = [parameter() for _ in range(3)]
    step = optim.AdamW(ps, lr=0.1)
    for gradient in (0.5, -0.3, 0.1):
        for p in ps:
            p.grad = smolgrad.tensor(gradient, dtype="float64")
        step.step()
        assert len({p.item() for p in ps}) == 1


def test_adamw_counts_steps_of_each_parameter():
    # seen in InfiniTrain #235: with one count for all, a parameter whose gradient comes late was corrected as if it had
    # had one before, and moved by 26 % less. A gradient of zero is one and does count.
    assert moved("AdamW", [None, 0.5], lr=0.1, weight_decay=0.0) == close(1.0, 0.900000002)
    assert moved("AdamW", [0.0, 0.5], lr=0.1, weight_decay=0.0) == close(1.0, 0.9255863197475123)


def test_adamw_keeps_a_moment_for_each_parameter():
    # seen in PennyLane #1928: an index was not counted up, so that all parameters had the first one's moments, and the
    # first moment lacked its factor of 1 - beta1 at first.
    gradients = {parameter(): (1.0, 3.0), parameter(): (-2.0, 0.0)}
    step = optim.AdamW(gradients, lr=0.1)
    for i in range(2):
        for p, gs in gradients.items():
            p.grad = smolgrad.tensor(gs[i], dtype="float64")
        step.step()
    for p, (a, b) in gradients.items():
        assert step.state[p]["exp_avg"] == pytest.approx(0.1 * (0.9 * a + b), rel=1e-12)
        assert step.state[p]["exp_avg_sq"] == pytest.approx(0.001 * (0.999 * a * a + b * b), rel=1e-12)


def test_adamw_does_not_lose_a_small_gradient_behind_a_large_moment():
    # With a first beta of 0, m + (g - m) is 0 for 1e-9 after 1e3. PyTorch's lerp has a second formula for such weights.
    p = parameter()
    step = optim.AdamW([p], lr=0.1, betas=(0.0, 0.999))
    path(step, p, [1e3, 1e-9])
    assert step.state[p]["exp_avg"] == 1e-9


# --- SGD --------------------------------------------------------------------------------------------------------------


def test_sgd_goes_down():
    assert moved("SGD", [2.0], lr=0.25) == [0.5]
    assert moved("SGD", [2.0], lr=0.25, maximize=True) == [1.5]


def test_sgd_does_not_dampen_the_first_buffer():
    # seen in mlx #440: the first buffer is the gradient itself.
    assert moved("SGD", [1.0, 1.0, 1.0], lr=0.1, momentum=0.9, dampening=0.5) == close(0.9, 0.76, 0.584)


@pytest.mark.parametrize(
    ("momentum", "dampening", "nesterov", "decay"),
    [
        row
        for row in itertools.product((0.0, 0.9), (0.0, 0.5), (False, True), (0.0, 0.1))
        if not row[2] or (row[0] and not row[1])
    ],
)
def test_sgd_obeys_each_option_beside_each_other(momentum, dampening, nesterov, decay):
    # seen in mlx #440: weight decay did nothing without momentum.
    p, buffer, wanted = 1.0, None, []
    for gradient in (1.0, 0.0, -3.0, 2.0):
        d = gradient + decay * p
        buffer = d if buffer is None else momentum * buffer + (1 - dampening) * d
        p -= 0.1 * (d + momentum * buffer if nesterov else buffer if momentum else d)
        wanted.append(p)
    settings = {"momentum": momentum, "dampening": dampening, "nesterov": nesterov, "weight_decay": decay}
    assert moved("SGD", (1.0, 0.0, -3.0, 2.0), lr=0.1, **settings) == close(*wanted)


def test_sgd_keeps_the_learning_rate_out_of_its_buffer():
    # With a constant rate it makes no difference: it does once a schedule changes it.
    p = parameter()
    step = optim.SGD([p], lr=0.1, momentum=0.9)
    values = path(step, p, [1.0])
    step.param_groups[0]["lr"] = 0.01
    assert values + path(step, p, [1.0, 1.0]) == close(0.9, 0.881, 0.8539)


@pytest.mark.parametrize(
    "settings",
    [
        {"nesterov": True},
        {"nesterov": True, "dampening": 0.5},
        {"nesterov": True, "momentum": 0.9, "dampening": 0.5},
        {"nesterov": True, "momentum": 0.0, "dampening": 0.0},
    ],
)
def test_sgd_refuses_nesterov_for_either_reason(settings):
    # seen in review of pytorch #887: the reasons were joined with "and" where "or" was meant.
    with pytest.raises(ValueError, match="nesterov"):
        optim.SGD([parameter()], lr=0.1, **settings)


# --- both -------------------------------------------------------------------------------------------------------------


def test_a_parameter_without_a_gradient_rests():
    # seen in Muon #54 and pytorch #83769: without a gradient a parameter was decayed, and moved on by its momentum. One
    # whose gradient is zero does both.
    assert moved("SGD", [1.0, None, 0.0], lr=0.1, momentum=0.9, weight_decay=0.1) == close(0.89, 0.89, 0.7821)
    first, second, third = moved("AdamW", [1.0, None, 0.0], lr=0.1, weight_decay=0.1)
    assert third != second == first


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_weight_decay_stays_out_of_the_gradient(optimizer):
    # seen in pytorch #12218: the decay was added to p.grad itself, and from there to the next gradient accumulated.
    p = parameter([1.0, -2.0])
    p.grad = smolgrad.tensor([1.0, 0.5], dtype="float64")
    step = getattr(optim, optimizer)([p], lr=0.1, weight_decay=0.5, **({"momentum": 0.9} if optimizer == "SGD" else {}))
    step.step()
    assert p.grad.data.tolist() == [1.0, 0.5]
    buffers = [x for x in step.state[p].values() if isinstance(x, np.ndarray)]
    assert buffers
    assert not any(np.shares_memory(x, y) for x in buffers for y in (p.data, p.grad.data))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_parameter_of_several_chunks_is_moved_to_its_end(optimizer):
    p = parameter(np.ones(2 * optim.optimizer.CHUNK + 5))
    p.grad = smolgrad.ones(p.size, dtype="float64")
    getattr(optim, optimizer)([p], lr=0.1).step()
    assert (p.data == p.data[0]).all()
    assert p.data[0] < 1


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_does_not_reach_the_array_that_a_parameter_came_from(optimizer):
    data = np.ones(3)
    p = parameter(data)
    p.grad = smolgrad.ones(3, dtype="float64")
    getattr(optim, optimizer)([p], lr=0.1).step()
    assert (p.data < 1).all()
    assert (data == 1).all()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_learning_rate_of_numpys_promotes_nothing(optimizer):
    # A NumPy scalar is as strong as an array: the step would be computed in float64, or the parameter become float64.
    start = np.linspace(-1, 1, 100, dtype="float32")
    p, q = parameter(start, "float32"), parameter(start, "float32")
    data = p.data
    p.grad, q.grad = smolgrad.tensor(start**2), smolgrad.tensor(start**2)
    getattr(optim, optimizer)([p], lr=np.float64(0.1), weight_decay=np.float64(0.1)).step()
    getattr(optim, optimizer)([q], lr=0.1, weight_decay=0.1).step()
    assert p.data is data
    assert p.dtype == np.float32
    assert (p.data == q.data).all()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_state_belongs_to_a_tensor_not_to_its_address(optimizer):
    # A state that is found by id(p) is taken over by whatever parameter is later made at a freed one's address.
    step = getattr(optim, optimizer)([parameter()], lr=0.1, **({"momentum": 0.9} if optimizer == "SGD" else {}))
    path(step, step.param_groups[0]["params"][0], [1.0])
    for _ in range(20):
        step.param_groups[0]["params"] = []
        step.param_groups[0]["params"] = [parameter()]
        assert path(step, step.param_groups[0]["params"][0], [0.5]) == moved(optimizer, [0.5], lr=0.1)


# --- Adam -------------------------------------------------------------------------------------------------------------


def test_adam_decay_is_a_part_of_the_gradient():
    # AdamW's would be 0.95 times the weight.
    assert moved("Adam", [0.0], lr=0.1, weight_decay=0.5, eps=0.0) == close(0.9)


def test_amsgrad_takes_the_maximum_before_the_bias_correction():
    # Taken after it, the maximum would be the first step's, whose correction is the largest, and later steps too short.
    p = parameter()
    step = optim.Adam([p], lr=0.1, betas=(0.0, 0.5), eps=0.0, amsgrad=True)
    path(step, p, [4.0, 0.0, 1.0])
    # v is 8, 4, 2.5; the largest stays 8, and is divided by 1 - 0.5³ in the third step.
    assert step.state[p]["exp_avg_sq"] == 2.5
    assert step.state[p]["max_exp_avg_sq"] == 8.0
    assert p.item() == pytest.approx(1 - 0.1 - 0.1 / (8 / 0.875) ** 0.5, rel=1e-12)


def test_amsgrad_may_be_switched_on_later():
    p = parameter()
    step = optim.Adam([p], lr=0.1)
    path(step, p, [1.0])
    step.param_groups[0]["amsgrad"] = True
    path(step, p, [1.0])
    assert step.state[p]["max_exp_avg_sq"] == step.state[p]["exp_avg_sq"]


# --- state dicts ------------------------------------------------------------------------------------------------------

SAVED = {"SGD": {"momentum": 0.9}, "Adam": {"amsgrad": True, "betas": (0.8, 0.9)}, "AdamW": {"weight_decay": 0.1}}


def pair(optimizer, **settings):
    """Two parameters in groups of their own, and an optimizer that has moved the first of them twice."""
    ps = [parameter([1.0, -2.0]), parameter([[3.0]])]
    step = getattr(optim, optimizer)([{"params": [p]} for p in ps], lr=0.1, **SAVED[optimizer] | settings)
    step.param_groups[1]["lr"] = 0.01
    go_on(step, ps[:1], [0.5, 2.0])
    return ps, step


def go_on(step, ps, gradients):
    for gradient in gradients:
        for p in ps:
            p.grad = smolgrad.full(p.shape, gradient, dtype="float64")
        step.step()
    return [p.data.tobytes() for p in ps]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_resumed_is_uninterrupted_to_the_bit(optimizer):
    # seen in pytorch #1107 and tinygrad: the count of steps was lost, and with it the bias correction.
    ps, step = pair(optimizer)
    qs = [parameter(p.data.copy()) for p in ps]
    resumed = getattr(optim, optimizer)([{"params": [q]} for q in qs], lr=0.7)
    resumed.load_state_dict(step.state_dict())
    assert resumed.state_dict()["param_groups"] == step.state_dict()["param_groups"]
    assert resumed.state.keys() == {qs[0]}  # the second has not moved, and is at its first step after it, too
    assert go_on(resumed, qs, [1.0, -3.0, 0.1]) == go_on(step, ps, [1.0, -3.0, 0.1])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizers_state_dict_is_a_snapshot_and_loading_copies(optimizer):
    # seen in pytorch 2.13, whose optimizers share their buffers with the dict that they gave and were given.
    ps, step = pair(optimizer)
    state = step.state_dict()
    arrays = [x for x in state["state"][0].values() if isinstance(x, np.ndarray)]
    before = [x.copy() for x in arrays]
    step.load_state_dict(state)
    go_on(step, ps, [7.0])
    assert arrays
    assert all((x == y).all() for x, y in zip(arrays, before, strict=True))
    state["param_groups"][0]["lr"] = 5.0
    state["param_groups"][0]["params"].append(9)
    assert step.param_groups[0]["lr"] == 0.1
    assert step.param_groups[0]["params"] == ps[:1]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_pytorchs_state_dicts_are_understood_in_both_directions(optimizer):
    ps, step = pair(optimizer)
    qs = [torch.tensor(p.data, requires_grad=True) for p in ps]
    theirs = getattr(torch.optim, optimizer)([{"params": [q]} for q in qs], foreach=False, **SAVED[optimizer])
    theirs.load_state_dict(pytorch.to_pytorch(step.state_dict()))
    for q in qs:
        q.grad = torch.full(q.shape, 0.5, dtype=torch.float64)
    theirs.step()
    go_on(step, ps, [0.5])
    for p, q in zip(ps, qs, strict=True):
        np.testing.assert_allclose(p.data, q.detach().numpy(), rtol=1e-12)

    other = getattr(optim, optimizer)([{"params": [parameter(p.data)]} for p in ps])
    other.load_state_dict(pytorch.from_pytorch(theirs.state_dict()))
    rs = [p for group in other.param_groups for p in group["params"]]
    go_on(other, rs, [2.0])
    go_on(step, ps, [2.0])
    for p, r in zip(ps, rs, strict=True):
        np.testing.assert_allclose(p.data, r.data, rtol=1e-12)


def changed(state, **entries):
    """``state`` with other entries for its first parameter."""
    return state | {"state": {0: state["state"][0] | entries}}


def regrouped(state, **options):
    groups = state["param_groups"]
    return state | {"param_groups": [groups[0], groups[1] | options]}


# What is wrong with a state dict of Adam's, how it is made, and what the refusal says.
WRONG = {
    "no mapping": (lambda state: [state], "needs a mapping"),
    "half of one": (lambda state: {"state": state["state"]}, "needs a mapping with"),
    "a group too few": (lambda state: state | {"param_groups": state["param_groups"][:1]}, r"\[1, 1\] .* \[1\]"),
    "a parameter too many": (lambda state: regrouped(state, params=[1, 2]), r"\[1, 1\] .* \[1, 2\]"),
    "one parameter twice": (lambda state: regrouped(state, params=[0]), r"numbers .* do not fit .*\[0, 0\]"),
    "a state of nobody": (lambda state: state | {"state": {5: state["state"][0]}}, "do not fit"),
    "a shape": (lambda state: changed(state, exp_avg=np.ones((2, 1))), r"exp_avg needs \(2,\) float64, got \(2, 1\)"),
    "a shape that broadcasts": (lambda state: changed(state, exp_avg_sq=np.ones(1)), r"exp_avg_sq needs \(2,\)"),
    "a dtype": (lambda state: changed(state, max_exp_avg_sq=np.ones(2, "float32")), "got .* float32"),
    "a missing entry": (lambda state: changed(state, exp_avg=None), r"a state of \['exp_avg_sq'"),
    "a surplus entry": (lambda state: changed(state, momentum_buffer=np.ones(2)), "momentum_buffer"),
    "no amsgrad in the state": (lambda state: changed(state, max_exp_avg_sq=None), "a state of"),
    "half a step": (lambda state: changed(state, step=1.5), "step must be a count, got 1.5"),
    "a step before the first": (lambda state: changed(state, step=-1), "step must be a count"),
    "a step that is none": (lambda state: changed(state, step="2"), "step must be a count"),
    "endless steps": (lambda state: changed(state, step=float("inf")), "step must be a count"),
    "an option out of range": (lambda state: regrouped(state, lr=float("nan")), "lr must be finite"),
    "an option that is not offered": (lambda state: regrouped(state, capturable=True), "capturable"),
    "options that are missing": (
        lambda state: state | {"param_groups": [{"params": [0]}, {"params": [1]}]}, "lacks amsgrad"
    ),
    "another optimizer": (lambda state: pair("SGD")[1].state_dict(), "a group lacks amsgrad"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_state_dict_of_another_optimizer_changes_nothing(wrong):
    change, message = WRONG[wrong]
    _, step = pair("Adam")
    state = step.state_dict()
    _, other = pair("Adam", maximize=True)
    before = other.state_dict()
    with pytest.raises((ValueError, NotImplementedError), match=message):
        other.load_state_dict(change(state))
    after = other.state_dict()
    assert after["param_groups"] == before["param_groups"]
    assert {k: np.array(x).tobytes() for k, x in after["state"][0].items()} == {
        k: np.array(x).tobytes() for k, x in before["state"][0].items()
    }
