"""Derivatives of functions, under ``torch.func``'s names: what takes a function and gives another one.

The functions are of tensors, or of lists, tuples and dicts of tensors, nested at will, and give such. Transforms nest:
each works on tensors of its own, which depend on its arguments where those require grad or belong to an outer
transform, so that ``grad(grad(f))`` and ``grad(lambda x: grad(lambda y: x * y)(x))`` are what they say. Results are
constants where nothing outside wants a gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import autograd
from .autograd import enable_grad, is_grad_enabled, wrap
from .creation import ones_like, zeros, zeros_like
from .primitives.operands import refuse
from .primitives.shape import reshape, stack
from .tensor import Tensor

# --- nested containers ------------------------------------------------------------------------------------------------


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    """``tree`` with ``function`` of each leaf in its place."""
    if isinstance(tree, dict):
        return type(tree)((key, _map(function, x)) for key, x in tree.items())
    if isinstance(tree, (tuple, list)):
        parts = [_map(function, x) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return function(tree)


def _filled(tree: Any, leaves: Sequence[Any]) -> Any:
    """``tree`` with ``leaves`` in the places of its own."""
    rest = iter(leaves)
    return _map(lambda _: next(rest), tree)


def _tensors(op: str, tree: Any) -> list[Any]:
    """The leaves of ``tree``. TypeError where one is no tensor."""
    found: list[Any] = []
    _map(found.append, tree)
    for x in found:
        if not isinstance(x, Tensor):
            raise TypeError(f"{op}(): needs tensors, or lists, tuples and dicts of them, got {type(x).__name__}")
    return found


def _like(op: str, what: str, given: Any, tree: Any) -> list[Any]:
    """The tensors of ``given``. RuntimeError unless it is built like ``tree``, of the same shapes and dtypes."""
    found = _tensors(op, given)
    got, want = (_map(lambda x: (x.shape, str(x.dtype)), x) for x in (given, tree))
    if got != want or str(got) != str(want):  # dicts are equal whatever the order of their keys
        raise RuntimeError(f"{op}(): {what} must be built like {want}, got {got}")
    return found


# --- one level --------------------------------------------------------------------------------------------------------


def pull_back(outputs: Any, inputs: Any, cotangents: Any, **options: Any) -> list[Any]:
    """``autograd.grad``, with zeros for an input that the outputs do not depend on."""
    pairs = [(y, w) for y, w in zip(outputs, cotangents, strict=True) if y.requires_grad]
    found: Sequence[Any] = [None] * len(inputs)
    if pairs:
        roots, seeds = map(list, zip(*pairs, strict=True))
        found = autograd.grad(roots, inputs, seeds, allow_unused=True, **options)
    return [zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


class _Level:
    """A call of ``function`` on tensors of its own in the places of ``args``.

    ``inputs`` and ``outputs`` are these tensors and what became of them; ``wanted`` says whether somebody outside wants
    gradients of what is made here.
    """

    def __init__(self, op: str, function: Callable[..., Any], args: Any, has_aux: bool):
        recorded = is_grad_enabled()
        given = _tensors(op, args)
        with enable_grad():
            self.inputs = [x.clone() if recorded and x.requires_grad else x.detach().requires_grad_() for x in given]
            result = function(*_filled(args, self.inputs))
        self.output: Any = result[0] if has_aux else result
        self.aux: Any = result[1] if has_aux else None
        self.outputs = _tensors(op, self.output)
        self.wanted = recorded and (any(x.requires_grad for x in given) or self._others())

    def _others(self) -> bool:
        """Whether the outputs depend on leaves that require grad and are not this level's own."""
        own, roots = set(self.inputs), [y for y in self.outputs if y.requires_grad]
        return any(x._primitive is None and x not in own for x in autograd._order(roots, None))

    def released(self, tree: Any) -> Any:
        """``tree`` as it may leave: constants, unless gradients are wanted."""
        return tree if self.wanted else _map(lambda x: x.detach() if isinstance(x, Tensor) else x, tree)

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """The inputs' gradients."""
        graph = self.wanted or (is_grad_enabled() and any(w.requires_grad for w in cotangents))
        return pull_back(self.outputs, self.inputs, cotangents, retain_graph=True, create_graph=graph)

    def pushed(self) -> Callable[[Sequence[Any]], list[Any]]:
        """The function from the inputs' tangents to the outputs'.

        J v is the pullback of u ↦ J'u, which is linear, so that it does not matter at which u. Source: J. Townsend, "A
        new trick for calculating Jacobian vector products" (2017).
        """
        with enable_grad():
            dummies = [zeros_like(y).requires_grad_() for y in self.outputs]
            gradients = pull_back(self.outputs, self.inputs, dummies, create_graph=True)

        def push(tangents: Sequence[Any]) -> list[Any]:
            graph = self.wanted or (is_grad_enabled() and any(v.requires_grad for v in tangents))
            return pull_back(gradients, dummies, tangents, retain_graph=True, create_graph=graph)

        return push


# --- products with a Jacobian -----------------------------------------------------------------------------------------


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """``func(*primals)``, and the function from cotangents, built like the output, to the tuple of primals' gradients.

    With ``has_aux``, ``func`` gives (output, aux), and aux comes third. TypeError for what is no tensor, RuntimeError
    for cotangents that are not built like the output.
    """
    level = _Level("vjp", func, primals, has_aux)

    def vjp_fn(cotangents: Any) -> Any:
        return _filled(primals, level.pull(_like("vjp", "cotangents", cotangents, level.output)))

    return (level.released(level.output), vjp_fn, *([level.released(level.aux)] if has_aux else []))


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False, **options: Any) -> Any:
    """``func(*primals)``, and how it changes along ``tangents``, built like the tuple ``primals``.

    There are no forward rules. It is found by two reverse sweeps, the first of which builds a graph: through six layers
    of a perceptron it took 3.3 times as long as the function, where ``vjp`` took 2.0. Errors as in ``vjp``.
    """
    refuse("jvp", options, "strict")
    along = _like("jvp", "tangents", tangents, primals)
    level = _Level("jvp", func, primals, has_aux)
    pushed = _filled(level.output, level.pushed()(along))
    return (level.released(level.output), pushed, *([level.released(level.aux)] if has_aux else []))


def hvp(func: Callable[..., Any], inputs: Any, v: Any, **options: Any) -> tuple[Any, Any]:
    """``func(*inputs)``, a scalar, and its Hessian times ``v``; ``inputs`` is one tensor or a tuple, ``v`` the same.

    The form is that of ``torch.autograd.functional.hvp``.
    """
    refuse("hvp", options, "create_graph strict")
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    both = value_and_grad(func, tuple(range(len(args))))
    _, vjp_fn, value = vjp(lambda xs: both(*xs)[::-1], args, has_aux=True)
    (product,) = vjp_fn(v if isinstance(inputs, tuple) else (v,))
    return value, product if isinstance(inputs, tuple) else product[0]


# --- gradients and Jacobians ------------------------------------------------------------------------------------------


def _of(func: Callable[..., Any], argnums: Any, args: tuple[Any, ...], kwargs: Any) -> tuple[Callable[[Any], Any], Any]:
    """``func`` as a function of the arguments ``argnums`` alone, one or in a tuple, and these."""
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    for i in chosen:
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"argnums: there is no argument {i} among {len(args)}")
    if not chosen or len({i % len(args) for i in chosen}) < len(chosen):
        raise RuntimeError(f"argnums: needs one argument at least, and none twice, got {argnums}")

    def partial(picked: Any) -> Any:
        full = list(args)
        for i, x in zip(chosen, picked if isinstance(argnums, tuple) else [picked], strict=True):
            full[i] = x
        return func(*full, **kwargs)

    return partial, tuple(args[i] for i in chosen) if isinstance(argnums, tuple) else args[argnums]


def value_and_grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that gives ``func``'s value, a scalar, and its gradient in argument ``argnums``, or a tuple of them.

    With ``has_aux``, ``func`` gives (value, aux), and so does the first of the two. RuntimeError where the value is no
    0-d tensor.
    """

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        partial, picked = _of(func, argnums, args, kwargs)
        value, vjp_fn, *aux = vjp(partial, picked, has_aux=has_aux)
        if not isinstance(value, Tensor) or value.ndim:
            got = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
            raise RuntimeError(f"grad(): the function must give a scalar, a 0-d tensor, got {got}")
        return (value, *aux) if has_aux else value, *vjp_fn(ones_like(value))

    return both


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of ``func``: ``value_and_grad`` without the value; with ``has_aux``, the gradient and aux."""
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def _basis(tensors: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
    """For each element of each tensor, which that is, and tensors that are 0 but for a 1 there."""
    for i, x in enumerate(tensors):
        for place in range(x.size):
            one = np.zeros(x.shape, x.dtype)
            one.reshape(-1)[place] = 1
            yield i, [wrap(one) if j == i else zeros_like(other) for j, other in enumerate(tensors)]


def _jacobian(op: str, func: Callable[..., Any], argnums: Any, has_aux: bool, reverse: bool) -> Callable[..., Any]:
    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, picked = _of(func, argnums, args, kwargs)
        level = _Level(op, partial, (picked,), has_aux)
        xs, ys = level.inputs, level.outputs
        rows: dict[tuple[int, int], list[Any]] = {(i, j): [] for i in range(len(ys)) for j in range(len(xs))}
        product = level.pull if reverse else level.pushed()
        for near, one in _basis(ys if reverse else xs):
            for far, found in enumerate(product(one)):
                rows[(near, far) if reverse else (far, near)].append(found)

        def block(i: int, j: int) -> Any:
            shape, found = ys[i].shape + xs[j].shape, rows[i, j]
            return reshape(stack(found, 0 if reverse else -1), shape) if found else zeros(shape, dtype=xs[j].dtype)

        blocks = [_filled(picked, [block(i, j) for j in range(len(xs))]) for i in range(len(ys))]
        found = _filled(level.output, blocks)
        return (found, level.released(level.aux)) if has_aux else found

    return jacobian


def jacrev(func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False, **options: Any) -> Callable[..., Any]:
    """The Jacobian of ``func`` in argument ``argnums``, by one reverse sweep an element of the output.

    For a tensor of shape s and an argument of shape t it has shape s + t; containers give, for each tensor of the
    output, what is built like the argument, or like the tuple of arguments.
    """
    refuse("jacrev", options, "chunk_size")
    return _jacobian("jacrev", func, argnums, has_aux, reverse=True)


def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **options: Any) -> Callable[..., Any]:
    """The Jacobian as ``jacrev`` gives it, by columns: one sweep an element of the argument, after one for all."""
    refuse("jacfwd", options, "randomness")
    return _jacobian("jacfwd", func, argnums, has_aux, reverse=False)


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """``jacfwd(jacrev(func))``: for a scalar function of a tensor of shape s, of shape s + s."""
    return jacfwd(jacrev(func, argnums), argnums)
