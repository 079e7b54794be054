"""The public gradient checker: what it tells, what it refuses, what it sees beside wrong numbers."""

import numpy as np
import pytest

import smolgrad
from smolgrad import autograd
from smolgrad.autograd import Primitive
from smolgrad.gradcheck import EPS, STEP, GradcheckError, estimate, gradcheck, gradgradcheck


def leaf(values, dtype="float64"):
    return smolgrad.tensor(np.array(values, dtype), requires_grad=True)


def cubed(pullback):
    return Primitive("cubed", lambda x: x * x * x, pullback)


RIGHT = cubed(lambda g, _y, x: g * (3.0 * x * x))
WRONG = cubed(lambda g, _y, x: g * smolgrad.where(x < 0.75, 3.0 * x * x, 2.0 * x * x))
ONCE = cubed(lambda g, _y, x: (g * (3.0 * x * x)).detach() if isinstance(g, smolgrad.Tensor) else g * 3.0 * x * x)
X = leaf([[0.5, 1.0], [-2.0, 3.0]])


def test_the_bar_bounds_what_rounding_can_do():
    # The worst case: each of the six values off by half a unit, to the side that adds up in the slope.
    def move(h):
        side = {STEP: 1, STEP / 2: -1, STEP / 4: 1}[abs(h)]
        return float(np.copysign(side * EPS / 2, side * h)), 1.0

    slope, bar = estimate(move, 0.0)
    assert 0.5 * bar < abs(slope) <= bar


def test_right_gradients_pass():
    a, b = leaf([[1.0, 2.0, -3.0]]), leaf([[0.5], [0.25]])
    for fn in (lambda a, b: a * b, lambda a, b: (a * b, (a + 1).exp().sum(), a > 0)):
        assert gradcheck(fn, (a, b)) is True
        assert gradgradcheck(fn, [a, b]) is True
    assert gradcheck(RIGHT, X)
    assert gradgradcheck(RIGHT, X, leaf([[1.0, -2.0], [0.5, 0.0]]))


def test_a_report_names_input_element_got_want_and_bar():
    with pytest.raises(GradcheckError) as told:
        gradcheck(lambda x, y: WRONG(y) + x, [leaf(0.0), X])
    first, *lines = str(told.value).splitlines()
    assert first == "gradcheck(): the gradients are wrong"
    assert [line.partition(":")[0] for line in lines] == ["  input 1 at [0, 1]", "  input 1 at [1, 1]"]
    words = lines[1].split()
    got, want, bar = (float(words[words.index(word) + 1].rstrip(",")) for word in ("got", "want", "of"))
    assert got == pytest.approx(want * 2 / 3)
    assert 0 < bar < 1e-9


def test_a_report_of_many_wrong_elements_is_cut():
    with pytest.raises(GradcheckError, match=r"input 0 at \[9\]: .*\n  and 5 more$"):
        gradcheck(WRONG, leaf(np.arange(1.0, 16.0)))


def test_false_is_returned_on_demand():
    assert gradcheck(WRONG, X, raise_exception=False) is False
    assert gradgradcheck(ONCE, X, raise_exception=False) is False


def test_a_gradient_that_is_lost_is_wrong():
    with pytest.raises(GradcheckError, match="got 0, want"):
        gradcheck(lambda x: x.detach() * 2, X)
    assert gradcheck(ONCE, X)
    with pytest.raises(GradcheckError, match="got 0, want"):
        gradgradcheck(ONCE, X)


def test_a_rule_that_is_right_for_positive_cotangents_only_is_wrong():
    for sign in (1.0, -1.0):
        same = Primitive("same", np.copy, lambda g, _y, _x, sign=sign: smolgrad.where(sign * g > 0, g, 0 * g))
        with pytest.raises(GradcheckError, match="got -?0, want"):
            gradcheck(same, leaf(1.0))


def test_an_input_that_is_not_used_has_gradient_zero():
    assert gradcheck(lambda x, y: y * 2, [X, leaf([1.0])])


def test_constants_and_other_arguments_are_passed_on():
    assert gradcheck(lambda x, c, n: (x * c) ** n, [X, smolgrad.tensor([1.0, 2.0]).double(), 3])


def test_domains_and_kinks_nearby_are_stepped_around():
    assert gradcheck(smolgrad.log, leaf([0.01, 1.0]))
    assert gradcheck(smolgrad.relu, leaf([0.001, -0.001, 5.0]))


REFUSALS = [
    (lambda: gradcheck(smolgrad.relu, leaf([1.0, 0.0])), r"input 0 at \[1\] is at a kink"),
    (lambda: gradcheck(smolgrad.abs, leaf(0.0)), r"input 0 at \[\] is at a kink"),
    (lambda: gradcheck(smolgrad.maximum, [leaf([1.0, 2.0]), leaf([0.0, 2.0])]), r"input 0 at \[1\] is at a kink"),
    (lambda: gradcheck(smolgrad.exp, leaf([1.0], "float32")), r"input 0 has dtype float32.*need float64"),
    (lambda: gradcheck(lambda x: x.float(), leaf([1.0])), r"output 0 has dtype float32.*need float64"),
    (lambda: gradcheck(smolgrad.log, leaf([-1.0])), r"input 0 at \[0\] cannot be judged: finite differences give nan"),
    (lambda: gradcheck(smolgrad.exp, smolgrad.ones(2)), "no input requires grad"),
    (lambda: gradcheck(lambda x: x * np.random.default_rng().normal(), leaf([1.0])), "another value each time"),
    (lambda: gradgradcheck(lambda x: smolgrad.relu(x) * x, leaf([1.0, 0.0])), r"input 0 at \[1\] is at a kink"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_what_cannot_be_judged_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_tolerances_are_refused():
    with pytest.raises(NotImplementedError, match="option atol of PyTorch's is not offered"):
        gradcheck(smolgrad.exp, X, atol=1e-3)
    with pytest.raises(TypeError, match="unexpected argument 'tolerance'"):
        gradgradcheck(smolgrad.exp, X, tolerance=1e-3)


def test_writes_and_shared_memory_are_seen(monkeypatch):
    def writes(g, _y, x):
        right = g * (3.0 * x * x)
        x += 1.0
        return right

    with pytest.raises(GradcheckError, match="input 0 was written to by the sweep"):
        gradcheck(cubed(writes), X)
    monkeypatch.setattr(autograd, "_is_fresh", lambda *_: True)
    same = Primitive("same", np.copy, lambda g, _y, _x: g)
    with pytest.raises(GradcheckError, match="the gradient of input 0 and cotangent 0 share memory"):
        gradcheck(same, X)


def test_nothing_is_changed():
    x = leaf([1.0, 2.0])
    gradcheck(lambda x: x.exp(), x)
    assert x.grad is None
    assert x.data.tolist() == [1, 2]


def test_cotangents_depend_on_the_seed_alone():
    seen = []

    def told(seed):
        with pytest.raises(GradcheckError) as error:
            gradcheck(WRONG, X, seed=seed)
        seen.append(str(error.value))

    for seed in (0, 0, 1):
        told(seed)
    assert seen[0] == seen[1] != seen[2]
