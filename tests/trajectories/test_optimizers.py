"""Optimizers, step for step, in float64: the same weights, batches and options here and in PyTorch, and the same path.

Whole models are compared from the outside (losses and weights), the optimizers alone on given gradients also from the
inside (buffers and step counts). The contracts that need no other engine stand at the end: what a step may allocate,
what it may write to, and that a step which is refused has changed nothing.
"""

import tracemalloc
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import smolgrad
from smolgrad import nn, optim
from smolgrad.chunks import CHUNK

OPTIMIZERS = ("SGD", "Adam", "AdamW")
SETTINGS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
    "Adam": {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True},
    "AdamW": {"lr": 0.01, "weight_decay": 0.1},
}

# PyTorch's default for nesterov is refused with anything but a momentum and no dampening, so it is drawn apart.
_RATES = {"lr": st.sampled_from([0.01, 0.1, 0.001]), "weight_decay": st.sampled_from([0.0, 0.1, 0.01])}
_PLAIN = st.fixed_dictionaries(
    _RATES | {"momentum": st.sampled_from([0.0, 0.9, 0.5]), "dampening": st.sampled_from([0.0, 0.5, -0.5])}
)
_NESTEROV = st.fixed_dictionaries(_RATES | {"momentum": st.sampled_from([0.9, 0.5]), "nesterov": st.just(True)})
# Half and more of 1 - beta1 is where PyTorch's lerp changes its formula: 0.5, 0.3 and 0 are beyond.
# With a second beta of 0 the step is m/(|g| + eps), which depends on g as steeply as m/eps² and is compared nowhere.
_BETAS = st.tuples(st.sampled_from([0.9, 0.99, 0.5, 0.3, 0.0]), st.sampled_from([0.999, 0.9, 0.5]))


def options(optimizer, eps):
    """Options of the optimizer of that name; Adam's and AdamW's eps is one of ``eps``."""
    if optimizer == "SGD":
        return _PLAIN | _NESTEROV
    rest = {"betas": _BETAS, "eps": st.sampled_from(eps), "amsgrad": st.booleans()}
    return st.fixed_dictionaries(_RATES | rest)


# --- whole models -----------------------------------------------------------------------------------------------------


def mlp(nn, activation, features, hidden, classes, **dtype):
    """A perceptron of either library, whose ``nn`` is given."""
    return nn.Sequential(
        nn.Linear(features, hidden, **dtype),
        getattr(nn, activation)(),
        nn.Linear(hidden, hidden, bias=False, **dtype),
        getattr(nn, activation)(),
        nn.Linear(hidden, classes, **dtype),
    )


def character_model(nn, characters, context, width, **dtype):
    """The next character from the ``context`` before it, in either library."""

    class CharacterModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(characters, width, **dtype)
            self.norm = nn.LayerNorm(width, **dtype)
            self.hidden = nn.Linear(context * width, 8, **dtype)
            self.out = nn.Linear(8, characters, **dtype)

        def forward(self, text):
            return self.out(self.hidden(self.norm(self.embedding(text)).flatten(1)).tanh())

    return CharacterModel()


def twins(build, *args):
    """The model and PyTorch's of the same weights, which come by name: the names are PyTorch's or this fails."""
    model, twin = build(nn, *args, dtype="float64"), build(torch.nn, *args, dtype=torch.float64)
    twin.load_state_dict({name: torch.from_numpy(p.numpy()) for name, p in model.state_dict().items()})
    return model, twin


def train(model, optimizer, cross_entropy, batches):
    """The losses of ``model``, one a batch, as it is trained: the same lines for both libraries."""
    losses = []
    for x, y in batches:
        loss = cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_twins(model, twin, optimizer, settings, batches):
    """The losses of both as they are trained on the same ``batches`` of arrays."""
    losses = train(
        model,
        getattr(optim, optimizer)(model.parameters(), **settings),
        smolgrad.functional.cross_entropy,
        [tuple(map(smolgrad.tensor, batch)) for batch in batches],
    )
    theirs = train(
        twin,
        getattr(torch.optim, optimizer)(twin.parameters(), **settings, foreach=False),
        torch.nn.functional.cross_entropy,
        [tuple(map(torch.tensor, batch)) for batch in batches],
    )
    return losses, theirs


def largest_difference(model, twin):
    """The largest difference between weights of the two."""
    pairs = zip(model.parameters(), twin.parameters(), strict=True)
    return max(np.abs(p.data - q.detach().numpy()).max() for p, q in pairs)


def check_trajectory(model, twin, optimizer, settings, batches):
    before = model.state_dict()
    losses, theirs = train_twins(model, twin, optimizer, settings, batches)
    np.testing.assert_allclose(losses, theirs, rtol=1e-12, atol=0)
    assert largest_difference(model, twin) <= 1e-12
    assert any((p.data != before[name].data).any() for name, p in model.named_parameters())


# Where a gradient is zero in theory and rounding noise in practice, Adam divides the noise by itself and each engine
# takes a step of lr in a direction of its own. An eps well above the noise is what makes a whole model comparable.
MODEL_EPS = [1e-3, 1e-2]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@given(data=st.data())
def test_a_perceptron_trains_as_in_pytorch(optimizer, data):
    features, hidden, classes, size = (data.draw(st.integers(low, 6), label=name) for low, name in
                                       ((1, "features"), (1, "hidden"), (2, "classes"), (1, "batch size")))  # fmt: skip
    activation = data.draw(st.sampled_from(["Tanh", "ReLU"]), label="activation")
    settings = data.draw(options(optimizer, MODEL_EPS), label="options")
    rng = smolgrad.manual_seed(data.draw(st.integers(0, 2**32), label="seed"))
    model, twin = twins(mlp, activation, features, hidden, classes)
    batches = [(rng.normal(size=(size, features)), rng.integers(classes, size=size)) for _ in range(20)]
    check_trajectory(model, twin, optimizer, settings, batches)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@given(data=st.data())
def test_a_character_model_trains_as_in_pytorch(optimizer, data):
    characters, context, size = (data.draw(st.integers(low, 5), label=name) for low, name in
                                 ((2, "characters"), (1, "context"), (1, "batch size")))  # fmt: skip
    width = data.draw(st.integers(3, 5), label="width")  # over two elements LayerNorm is a sign function
    settings = data.draw(options(optimizer, MODEL_EPS), label="options")
    rng = smolgrad.manual_seed(data.draw(st.integers(0, 2**32), label="seed"))
    model, twin = twins(character_model, characters, context, width)
    batches = [(rng.integers(characters, size=(size, context)), rng.integers(characters, size=size)) for _ in range(20)]
    check_trajectory(model, twin, optimizer, settings, batches)


@pytest.mark.parametrize(
    ("optimizer", "settings"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3}),
        ("AdamW", {"lr": 0.01, "weight_decay": 1e-3, "eps": 1e-3}),
    ],
)
def test_300_steps_end_within_1e_13_of_pytorch(optimizer, settings):
    rng = smolgrad.manual_seed(0)
    model, twin = twins(mlp, "Tanh", 4, 16, 3)
    x = rng.normal(size=(300, 32, 4))
    batches = [(batch, np.abs(batch[:, :3]).argmax(axis=1)) for batch in x]  # which of three is the farthest from 0
    losses, _ = train_twins(model, twin, optimizer, settings, batches)
    difference = largest_difference(model, twin)
    print(f"{optimizer}: loss {losses[0]:.3f} to {losses[-1]:.3f}, largest weight difference {difference:.2g}")
    assert np.mean(losses[-20:]) < 0.6 * losses[0]  # it was a training, not a standstill
    assert 0 < difference <= 1e-13  # and not one library compared with itself


# --- the optimizers alone ---------------------------------------------------------------------------------------------


def backwards(a):
    return a[(..., *[slice(None, None, -1)] * a.ndim)]  # the ellipsis keeps a 0-d array an array


# The same values in arrays of their own that lie differently in memory, for parameters and for gradients.
LAYOUTS = {
    "C": lambda a: a.copy(),
    "Fortran": lambda a: a.copy(order="F"),
    "reversed": lambda a: backwards(backwards(a).copy()),
    "strided": lambda a: np.repeat(a[..., None], 2, axis=-1)[..., 0],
}
SHAPES = [(3,), (), (2, 3), (0,), (2, 0), (1, 1), (2, 3, 2), (CHUNK + 1,)]
# A step's gradient: none, exactly zero, or normal draws of this size.
SCALES = st.sampled_from([1.0, None, 0.0, 1e-9, 1e-7, 1e-3, 1e3])


def leaf(array, layout):
    return smolgrad.from_numpy(LAYOUTS[layout](array)).requires_grad_()


class Same:
    """Checks arrays against PyTorch's to 1e-12 of the largest term that went into each element, since sums cancel."""

    def __init__(self):
        self.largest = {}

    def made_of(self, key, terms):
        """Take ``terms``, one an element, or what bounds them, into account."""
        self.largest[key] = np.fmax(self.largest.get(key, 0.0), np.abs(terms))

    def made_of_gradient(self, i, g, weight_decay, beta=0.0):
        """The gradient ``g`` and what decays of the parameter go into the state, with Adam's ``beta`` squared."""
        terms = np.abs(g) + weight_decay * self.largest[f"parameter {i}"]
        for key in ("momentum_buffer", "exp_avg"):
            self.made_of(f"{key} {i}", terms)
        for key in ("exp_avg_sq", "max_exp_avg_sq"):
            self.made_of(f"{key} {i}", (1 - beta) * terms**2)

    def made_of_step(self, i, lr, state, eps=0.0):
        """A step along the state goes into the parameter: of SGD of the buffer, of Adam of the mean over the root."""
        over = np.sqrt(state["exp_avg_sq"].numpy()) + eps if "exp_avg_sq" in state else 1.0
        with np.errstate(all="ignore"):
            self.made_of(f"parameter {i}", lr * self.largest.get(f"exp_avg {i}", 0.0) / over)

    def __call__(self, key, ours, theirs):
        theirs = theirs.detach().numpy()
        assert ours.shape == theirs.shape, key
        assert ours.dtype == theirs.dtype, key
        self.made_of(key, theirs)
        close = np.abs(ours - theirs) <= 1e-12 * self.largest[key]
        wrong = ~(close | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
        assert not wrong.any(), f"{key}: {ours[wrong].flat[0]!r} instead of {theirs[wrong].flat[0]!r}"


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@given(data=st.data())
def test_given_gradients_move_parameters_and_state_as_in_pytorch(optimizer, data):
    settings = data.draw(options(optimizer, [1e-8, 1e-3, 0.0]), label="options")
    settings["maximize"] = data.draw(st.booleans(), label="maximize")
    shapes = data.draw(st.lists(st.sampled_from(SHAPES), min_size=2, max_size=4), label="shapes")
    steps = data.draw(st.lists(st.tuples(*[SCALES] * len(shapes)), min_size=3, max_size=8), label="gradients")
    rates = [data.draw(st.sampled_from([None, 0.05, 0.0, 1e-4]), label="new lr") for _ in steps]
    layouts = [data.draw(st.sampled_from(sorted(LAYOUTS)), label="layout") for _ in shapes]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32), label="seed"))

    start = [rng.normal(size=shape) * data.draw(st.sampled_from([1.0, 0.0]), label="weights") for shape in shapes]
    ps = [leaf(np.asarray(a), layout) for a, layout in zip(start, layouts, strict=True)]
    qs = [torch.tensor(a, requires_grad=True) for a in start]
    groups, theirs = ([{"params": xs[:1], "lr": 0.2}, {"params": xs[1:]}] for xs in (ps, qs))
    ours = getattr(optim, optimizer)(groups, **settings)
    theirs = getattr(torch.optim, optimizer)(theirs, **settings, foreach=False)
    same = Same()
    for i, a in enumerate(start):
        same.made_of(f"parameter {i}", a)
    for scales, rate in zip(steps, rates, strict=True):
        for i, (p, q, scale) in enumerate(zip(ps, qs, scales, strict=True)):
            g = None if scale is None else np.asarray(scale * rng.normal(size=p.shape))
            layout = data.draw(st.sampled_from(sorted(LAYOUTS)), label="gradient's layout")
            p.grad = None if g is None else smolgrad.from_numpy(LAYOUTS[layout](g))
            q.grad = None if g is None else torch.tensor(g)
            if g is not None:
                same.made_of_gradient(i, g, settings["weight_decay"], *settings.get("betas", ())[1:])
        for group in ours.param_groups[1:] + theirs.param_groups[1:]:
            group["lr"] = group["lr"] if rate is None else rate
        ours.step()
        theirs.step()
        for i, (p, q) in enumerate(zip(ps, qs, strict=True)):
            state = {k: v for k, v in theirs.state[q].items() if v is not None}  # SGD's buffer without momentum is None
            same.made_of_step(i, theirs.param_groups[min(i, 1)]["lr"], state, settings.get("eps", 0.0))
            same(f"parameter {i}", p.data, q)
            assert ours.state.get(p, {}).keys() == state.keys()
            for key, value in state.items():
                same(f"{key} {i}", np.asarray(ours.state[p][key], "float32" if key == "step" else None), value)


# --- what a step may do -----------------------------------------------------------------------------------------------


def ready(optimizer, *arrays, **settings):
    """Parameters around ``arrays`` with gradients, and their optimizer."""
    rng = np.random.default_rng(0)
    ps = [smolgrad.from_numpy(np.asarray(a)).requires_grad_() for a in arrays]
    for p in ps:
        p.grad = smolgrad.tensor(rng.normal(size=p.shape), dtype=p.dtype)
    return ps, getattr(optim, optimizer)(ps, **SETTINGS[optimizer] | settings)


def arrays_of(step):
    """The arrays of an optimizer's state, in order."""
    return [x for state in step.state.values() for x in state.values() if isinstance(x, np.ndarray)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_makes_nothing_of_a_parameters_size(optimizer, layout):
    (p,), step = ready(optimizer, LAYOUTS[layout](np.ones((64, CHUNK))), maximize=True)
    step.step()
    tracemalloc.start()
    try:
        step.step()
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A copied chunk of each operand where strides differ; nothing but views of a few bytes where they do not.
    assert peak < (64 * 1024 if layout == "C" else 8 * CHUNK * p.dtype.itemsize) < p.data.nbytes / 4
    assert left < 4096


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_state_is_made_once_and_then_written(optimizer):
    (p, q), step = ready(optimizer, np.ones((3, 4)), np.ones(2))
    q.grad = None
    assert not step.state
    step.step()
    assert list(step.state) == [p]  # a parameter without a gradient has no state yet
    first = arrays_of(step)
    values = [x.copy() for x in first]
    for _ in range(3):
        step.step()
    assert all(x is y for x, y in zip(first, arrays_of(step), strict=True))
    assert all((x != y).any() for x, y in zip(first, values, strict=True))
    assert not any(np.shares_memory(x, y) for x in first for y in (p.data, p.grad.data))


def sgd_by_hand(p, g, steps, lr, momentum, weight_decay):
    buffer = None
    for _ in range(steps):
        d = g + p * weight_decay
        buffer = d if buffer is None else buffer * momentum + d
        p = p - buffer * lr
    return p


def adam_by_hand(p, gradient, steps, lr, weight_decay, betas=(0.9, 0.999), eps=1e-8, decoupled=False, amsgrad=False):
    m = v = largest = np.zeros_like(p)
    for t in range(1, steps + 1):
        g = gradient if decoupled else gradient + p * weight_decay
        p = p * (1 - lr * weight_decay) if decoupled else p
        m = m + (g - m) * (1 - betas[0])
        v = v * betas[1] + g * (1 - betas[1]) * g
        largest = np.maximum(largest, v) if amsgrad else v
        p = p - m * (lr / (1 - betas[0] ** t)) / (np.sqrt(largest) / (1 - betas[1] ** t) ** 0.5 + eps)
    return p


BY_HAND = {"SGD": sgd_by_hand, "Adam": adam_by_hand, "AdamW": partial(adam_by_hand, decoupled=True)}


@pytest.mark.parametrize(("optimizer", "by_hand"), BY_HAND.items())
def test_float32_stays_float32_to_the_last_bit(optimizer, by_hand):
    # Beside float64, in one optimizer, and with NumPy's scalars, which would promote where Python's numbers do not.
    start = np.linspace(-1, 1, 500)
    (p, q), step = ready(optimizer, start.copy(), start.astype("float32"))
    gradients = p.grad.data, q.grad.data
    for group in step.param_groups:
        group.update({key: np.float64(group[key]) for key in SETTINGS[optimizer]})
        if "betas" in group:
            group["betas"] = tuple(map(np.float64, group["betas"]))
    for _ in range(3):
        step.step()
    for x, dtype, g in zip((p, q), ("float64", "float32"), gradients, strict=True):
        assert {x.dtype, x.grad.dtype, *(a.dtype for a in step.state[x].values() if isinstance(a, np.ndarray))} == {
            np.dtype(dtype)
        }
        assert (x.data == by_hand(start.astype(dtype), g, 3, **SETTINGS[optimizer])).all()


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_gradients_are_bit_identical_after_a_step(optimizer, maximize):
    ps, step = ready(optimizer, np.ones((3, 4)), np.ones(2), maximize=maximize)
    grads = [p.grad for p in ps]
    before = [g.data.copy() for g in grads]
    for _ in range(3):
        step.step()
    assert all(p.grad is g for p, g in zip(ps, grads, strict=True))
    assert all(g.data.tobytes() == b.tobytes() for g, b in zip(grads, before, strict=True))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_between_forward_and_backward_is_noticed(optimizer):
    (p,), step = ready(optimizer, np.ones(3))
    loss = (p * p).sum()
    step.step()
    with pytest.raises(RuntimeError, match=r"mul\(\) needs input.*written in place"):
        loss.backward()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_closure_gives_loss_and_gradients_even_under_no_grad(optimizer):
    (p,), step = ready(optimizer, np.ones(3))

    def closure():
        step.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with smolgrad.no_grad():
        assert step.step(closure).item() == 3
    assert (p.grad.data == 2).all()
    assert (p.data < 1).all()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_zero_grad_drops_gradients_or_fills_them_with_zeros(optimizer):
    (p, q), step = ready(optimizer, np.ones(3), np.ones(2))
    (q * q).sum().backward(create_graph=True)
    mine, graphed = p.grad, q.grad.data
    step.zero_grad(set_to_none=False)
    assert p.grad is mine
    assert q.grad.data is graphed  # the same memory, out of its graph
    assert not q.grad.requires_grad
    assert not p.grad.data.any()
    assert not q.grad.data.any()
    step.zero_grad()
    assert p.grad is None
    assert q.grad is None
    step.zero_grad(set_to_none=False)  # nothing to fill
    assert p.grad is None


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("fault", ["an option out of range", "a read-only parameter"])
def test_a_step_that_is_refused_has_changed_nothing(optimizer, fault):
    ps, step = ready(optimizer, np.ones(3), np.ones(2))
    step.step()
    step.add_param_group({"params": [smolgrad.as_tensor(np.ones(2)).requires_grad_()]})
    extra = step.param_groups[1]["params"][0]
    extra.grad = smolgrad.ones(2, dtype="float64")
    if fault == "an option out of range":
        step.param_groups[1]["lr"] = float("nan")
    else:
        extra.data.flags.writeable = False
    before = [x.copy() for x in [*(p.data for p in ps), *arrays_of(step)]]
    counts = [state.get("step") for state in step.state.values()]
    with pytest.raises(ValueError, match="lr must be finite" if "option" in fault else "read-only"):
        step.step()
    after = [*(p.data for p in ps), *arrays_of(step)]
    assert all((x == y).all() for x, y in zip(before, after, strict=True))
    assert counts == [state.get("step") for state in step.state.values()]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_is_done_whole_whatever_numpy_is_told_to_raise(optimizer):
    (p, q), step = ready(optimizer, np.ones(2), np.ones(2))
    p.grad.data = np.array([1e300, 5e-324])
    with np.errstate(all="raise"):
        step.step()
    assert np.isfinite(p.data[1])
    assert (q.data != 1).all()


# --- what is refused --------------------------------------------------------------------------------------------------


def some(library=smolgrad):
    return [library.ones(2, requires_grad=True)]


def twice(library):
    return some(library) * 2


def none(_library):
    return []


NAN, INF = float("nan"), float("inf")
# One line a refusal: optimizer, parameters in a library, options, exception, what its message says. PyTorch refuses the
# same, by the same exception.
REFUSED = [
    *[(name, none, {}, ValueError, "empty parameter list") for name in OPTIMIZERS],
    *[(name, lambda lib: some(lib)[0], {}, TypeError, "got a Tensor") for name in OPTIMIZERS],
    ("SGD", lambda lib: [np.ones(2)], {}, TypeError, "optimizes Tensors, got ndarray"),
    ("SGD", lambda lib: [*some(lib), 1.0], {}, TypeError, "optimizes Tensors, got float"),
    ("SGD", lambda lib: [{"params": some(lib)}, some(lib)[0]], {}, TypeError, "group must be a dict, got Tensor"),
    ("SGD", lambda lib: [{"lr": 0.1}], {}, KeyError, "a parameter group needs 'params'"),
    ("SGD", lambda lib: [{"params": set(some(lib))}], {}, TypeError, "got a set"),
    ("AdamW", lambda lib: [some(lib)[0] * 2], {}, ValueError, "made by an op"),
    ("SGD", lambda lib: [{"params": p} for p in twice(lib)], {}, ValueError, "given twice"),
    *[(name, some, {"lr": -0.1}, ValueError, "lr must be finite") for name in OPTIMIZERS],
    *[(name, some, {"lr": NAN}, ValueError, "lr must be finite") for name in ("Adam", "AdamW")],
    *[(name, some, {"lr": "fast"}, TypeError, "not supported between") for name in OPTIMIZERS],
    *[(name, some, {"weight_decay": -1}, ValueError, "weight_decay must be") for name in OPTIMIZERS],
    ("SGD", some, {"momentum": -0.1}, ValueError, "momentum must be"),
    ("SGD", some, {"nesterov": True}, ValueError, "nesterov needs"),
    ("SGD", some, {"nesterov": True, "dampening": 0.5}, ValueError, "nesterov needs"),
    ("SGD", some, {"nesterov": True, "momentum": 0.9, "dampening": 0.5}, ValueError, "nesterov needs"),
    ("SGD", lambda lib: [{"params": some(lib), "lr": 0.1}], {"lr": -1}, ValueError, "lr must be finite"),  # unused
    *[("AdamW", some, {"eps": eps}, ValueError, "eps must be") for eps in (-1e-9, NAN)],
    *[("AdamW", some, {"betas": betas}, ValueError, "betas must be") for betas in
      ((1.0, 0.9), (0.9, 1.0), (-0.1, 0.9), (0.9, -0.1), (0.9, NAN), (0, 0.9))],
    *[(name, some, {"steps": 3}, TypeError, "unexpected argument 'steps'") for name in OPTIMIZERS],
    ("AdamW", some, {"decoupled_weight_decay": True}, TypeError, "decoupled_weight_decay"),
    ("SGD", some, {"betas": (0.9, 0.9)}, TypeError, "unexpected argument 'betas'"),
    ("SGD", some, {"capturable": True}, TypeError, "unexpected argument 'capturable'"),
]  # fmt: skip
# What PyTorch takes, with a warning at most, or refuses as something else: it would train to NaN, move a parameter
# twice, in an order that no two runs share, or not at all.
STRICTER = [
    ("AdamW", twice, {}, ValueError, "given twice"),
    ("SGD", lambda lib: set(some(lib)), {}, TypeError, "got a set"),
    ("SGD", some, {"lr": NAN}, ValueError, "lr must be finite"),
    *[(name, some, {"lr": INF}, ValueError, "lr must be finite") for name in OPTIMIZERS],
    *[("SGD", some, {"momentum": momentum}, ValueError, "momentum must be") for momentum in (NAN, INF)],
    ("SGD", some, {"dampening": NAN}, ValueError, "dampening must be"),
    ("SGD", lambda lib: [{"params": some(lib), "momentum": -1}], {}, ValueError, "momentum must be"),
    ("AdamW", some, {"eps": INF}, ValueError, "eps must be"),
    *[("AdamW", some, {"betas": betas}, ValueError, "betas must be") for betas in ((0.9,), (0.9, 0.9, 0.9))],
    *[(name, some, {option: True}, NotImplementedError, option) for name in OPTIMIZERS
      for option in ("foreach", "fused", "capturable", "differentiable") if (name, option) != ("SGD", "capturable")],
    ("AdamW", lambda lib: [{"params": some(lib), "capturable": True}], {}, NotImplementedError, "capturable"),
    ("AdamW", lambda lib: [{"params": some(lib), "decoupled_weight_decay": False}], {}, ValueError, "take Adam"),
]  # fmt: skip


def refusals(rows):
    names = ("name", "params", "settings", "error", "message")
    return pytest.mark.parametrize(names, [pytest.param(*row, id=f"{row[0]} {row[4]} {row[2]}") for row in rows])


@refusals(REFUSED + STRICTER)
def test_what_an_optimizer_refuses(name, params, settings, error, message):
    with pytest.raises(error, match=message):
        getattr(optim, name)(params(smolgrad), **settings)


@refusals(REFUSED)
def test_what_pytorchs_optimizer_refuses_too(name, params, settings, error, message):  # noqa: ARG001  its own words
    with pytest.raises(error):
        getattr(torch.optim, name)(params(torch), **settings)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_options_that_are_off_are_no_options(optimizer):
    off = {"foreach": False, "differentiable": False, "fused": None, "maximize": False}
    assert getattr(optim, optimizer)(some(), **off).param_groups[0]["lr"] == 1e-3


def test_an_optimizer_without_an_update_says_so():
    (p,) = some()
    p.grad = smolgrad.ones(2)
    with pytest.raises(NotImplementedError, match="_update"):
        optim.Optimizer([p], {"lr": 0.1}).step()


def test_a_group_that_is_refused_is_not_taken_on():
    (p,), (q,) = some(), some()
    group = {"params": [q], "lr": -1}
    step = optim.SGD([p])
    with pytest.raises(ValueError, match="lr"):
        step.add_param_group(group)
    assert len(step.param_groups) == 1
    assert group == {"params": [q], "lr": -1}  # the caller's dict is the caller's
    step.add_param_group({"params": q, "lr": 0.5, "name": "head"})
    assert step.param_groups[1] == {**step.param_groups[0], "params": [q], "lr": 0.5, "name": "head"}
