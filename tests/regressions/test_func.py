"""The functional transforms: how they nest, what they leave behind, what they refuse."""

import gc
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import smolgrad
from smolgrad import func


def tensor(values, **options):
    return smolgrad.tensor(np.array(values, "float64"), **options)


X = tensor([1.0, 2.0, 3.0])

# --- nesting ----------------------------------------------------------------------------------------------------------


def test_an_inner_transform_does_not_take_the_outer_variable_for_its_own():
    # The perturbation confusion of Siskind and Pearlmutter (2005): d/dx x·(d/dy (x + y)) at y = 1 is 1, and not 2.
    assert func.grad(lambda x: x * func.grad(lambda y: x + y)(tensor(1.0)))(tensor(1.0)).item() == 1
    assert func.jvp(
        lambda x: x * func.jvp(lambda y: x + y, (tensor(1.0),), (tensor(1.0),))[1], (tensor(1.0),), (tensor(1.0),)
    )[1] == tensor(1.0)


def test_derivatives_of_every_order():
    f = lambda x: x**5  # noqa: E731
    for want in (80, 160, 240, 240, 120, 0):
        f = func.grad(f)
        assert f(tensor(2.0)).item() == want


def test_a_mixed_derivative_through_a_closure():
    def slope(x):
        return func.grad(lambda y: (x * x * y).sum())(X).sum()

    assert func.grad(slope)(X).data.tolist() == [2, 4, 6]


def test_backward_goes_through_a_transform():
    x, w = tensor([1.0, 2.0], requires_grad=True), tensor([3.0, 5.0], requires_grad=True)
    slope = func.grad(lambda x: (w * x * x).sum())(x)
    slope.sum().backward()
    assert x.grad.data.tolist() == [6, 10]
    assert w.grad.data.tolist() == [2, 4]
    v = tensor([1.0, -1.0], requires_grad=True)
    func.jvp(lambda x: x * x, (x.detach(),), (v,))[1].sum().backward()
    assert v.grad.data.tolist() == [2, 4]
    u = tensor([1.0, -1.0], requires_grad=True)
    func.vjp(lambda x: x * x, x.detach())[1](u)[0].sum().backward()
    assert u.grad.data.tolist() == [2, 4]


# --- what they leave --------------------------------------------------------------------------------------------------


def everything(x):
    """What each transform gives, in one flat list."""
    cube = lambda x: x * x * x  # noqa: E731
    y, vjp_fn = func.vjp(cube, x)
    total, gradient = func.value_and_grad(lambda x: cube(x).sum())(x)
    return [
        y, *vjp_fn(x), *vjp_fn(x), *func.jvp(cube, (x,), (x,)), total, gradient, func.jacrev(cube)(x),
        func.jacfwd(cube)(x), func.hessian(cube)(x), *func.hvp(lambda x: cube(x).sum(), x, x),
        func.vjp(lambda x: (cube(x), x * 2), x, has_aux=True)[2],
    ]  # fmt: skip


def test_results_are_constants_where_nobody_wants_gradients():
    assert not any(y.requires_grad for y in everything(X))
    with smolgrad.no_grad():
        w = tensor([1.0, 2.0, 3.0], requires_grad=True)
        assert not any(y.requires_grad for y in everything(w))
    assert all(y.requires_grad for y in everything(w))
    assert w.grad is None


def test_no_grad_around_changes_no_number():
    with smolgrad.no_grad():
        quiet = everything(X)
    assert all((a.data == b.data).all() for a, b in zip(quiet, everything(X), strict=True))


def test_no_grad_inside_is_heeded():
    def f(x):
        with smolgrad.no_grad():
            c = x * x
        return (c * x).sum()

    assert func.grad(f)(X).data.tolist() == [1, 4, 9]


def test_memory_goes_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        seen = []

        def f(x):
            y = x * x
            seen.append(weakref.ref(y))
            return y.sum()

        func.grad(f)(X)
        func.hessian(f)(X)
        func.jvp(f, (X,), (X,))
        func.hvp(f, X, X)
        assert [ref() for ref in seen] == [None] * len(seen)
    finally:
        gc.enable()


# --- arguments --------------------------------------------------------------------------------------------------------


def test_keywords_and_other_arguments_are_passed_on():
    gradient = func.grad(lambda x, n, *, scale: (x**n).sum() * scale)
    assert gradient(X, 2, scale=3.0).data.tolist() == [6, 12, 18]
    assert gradient.__wrapped__


def test_gradients_are_built_like_the_arguments():
    pair = namedtuple("pair", "a b")
    tree = OrderedDict(w=[tensor(2.0), (tensor(3.0),)], p=pair(tensor(5.0), tensor(7.0)))
    found = func.grad(lambda t: t["w"][0] * t["w"][1][0] * t["p"].a * t["p"].b)(tree)
    assert isinstance(found, OrderedDict)
    assert isinstance(found["p"], pair)
    assert [found["w"][0].item(), found["w"][1][0].item(), *map(float, found["p"])] == [105, 70, 42, 30]
    assert func.grad(lambda a, b: a * b, argnums=(1,))(tensor(2.0), tensor(3.0)) == (tensor(2.0),)


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
@pytest.mark.parametrize(("n", "m"), [(0, 2), (2, 0), (0, 0)])
def test_jacobians_of_nothing_have_their_shape_and_dtype(transform, n, m):
    x = smolgrad.zeros(n, dtype="float64")
    found = transform(lambda x: smolgrad.zeros(3, m, dtype="float64") * x.sum())(x)
    assert found.shape == (3, m, n)
    assert found.dtype == np.float64


REFUSALS = [
    (lambda: func.grad(lambda x: x)(X), RuntimeError, r"grad\(\): .*must give a scalar.*got shape \(3,\)"),
    (lambda: func.grad(lambda x: (x.sum(),))(X), RuntimeError, r"grad\(\): .*must give a scalar.*got tuple"),
    (lambda: func.grad(lambda x: x.sum(), 1)(X), RuntimeError, "there is no argument 1 among 1"),
    (lambda: func.grad(lambda x: x * x)(2.0), TypeError, r"vjp\(\): needs tensors, or lists.*got float"),
    (lambda: func.grad(lambda x: 2.0)(X), TypeError, r"vjp\(\): needs tensors, or lists.*got float"),
    (lambda: func.grad(lambda x: x.sum())(smolgrad.arange(3)), RuntimeError, "only floating tensors"),
    (lambda: func.vjp(lambda x: x, X)[1](X[:2]), RuntimeError, r"vjp\(\): cotangents must be built like .*\(3,\)"),
    (lambda: func.vjp(lambda x: x, X)[1](X.float()), RuntimeError, r"float64.*got .*float32"),
    (lambda: func.vjp(lambda x: {"a": x, "b": x}, X)[1]({"b": X, "a": X}), RuntimeError, "must be built like"),
    (lambda: func.jvp(lambda x: x, (X,), (X, X)), RuntimeError, r"jvp\(\): tangents must be built like"),
    (lambda: func.jvp(lambda x: x, (X,), [X]), RuntimeError, r"jvp\(\): tangents must be built like"),
    (lambda: func.jvp(lambda x: x > 0, (X,), (X,)), RuntimeError, "only floating tensors"),
    (lambda: func.jvp(lambda x: x, (X,), (X,), strict=True), NotImplementedError, "option strict"),
    (lambda: func.jacrev(lambda x: x, chunk_size=2), NotImplementedError, "option chunk_size"),
    (lambda: func.jacfwd(lambda x: x, randomness="same"), NotImplementedError, "option randomness"),
    (lambda: func.hvp(lambda x: x.sum(), X, X, create_graph=True), NotImplementedError, "option create_graph"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS)
def test_wrong_calls_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


TRANSFORMS = [func.grad, func.value_and_grad, func.jacrev, func.jacfwd, func.hessian]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda transform: transform.__name__)
def test_a_transformed_function_keeps_its_name(transform):
    def energy(x):
        """Half the square."""
        return (x * x).sum() / 2

    found = transform(energy)
    assert (found.__name__, found.__doc__) == ("energy", "Half the square.")
