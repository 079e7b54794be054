"""Record an op, order the graph, sweep it backward.

An op's application is recorded as data on its output: which primitive, which inputs, which static arguments, and when.
A pullback is written once, with operations that mean the same for an array and for a tensor: the first-order sweep
hands it arrays and builds no graph, ``create_graph=True`` hands it tensors and the gradient is differentiable again.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy import ndarray

from . import anomaly, versions
from .versions import tick

if TYPE_CHECKING:
    from .tensor import Tensor


class Node:
    """What the engine knows of a tensor: its value, its gradient and the record of the op that made it."""

    __slots__ = (
        "_data", "_grad", "_requires_grad", "_primitive", "_inputs", "_static", "_time", "_former", "__weakref__",
    )  # fmt: skip
    kind: ClassVar[type[Any]]  # the class of every result: Tensor, which enters itself

    _data: ndarray
    _grad: Tensor | None  # a leaf's gradient
    _requires_grad: bool
    _primitive: Primitive | None  # the record: which op; None for leaves and constants
    _inputs: tuple[Any, ...] | None  # the record: its inputs, tensors and numbers; of a view () once they were let go
    _static: dict[str, Any] | None  # the record: its static arguments; None once a sweep has let it go
    _time: int  # when it was made, on the clock of versions: later than its inputs
    _former: Node | None  # the node that this one was before it was written in place


_new = object.__new__
_time_of = operator.attrgetter("_time")


def wrap(
    array: ndarray,
    primitive: Primitive | None = None,
    inputs: tuple[Any, ...] | None = None,
    static: dict[str, Any] | None = None,
) -> Any:
    """A tensor around ``array`` itself: a constant, or where ``primitive`` is given the output of a recorded op."""
    node = _new(Node.kind)
    node._data = array
    node._requires_grad = primitive is not None
    node._primitive, node._inputs, node._static = primitive, inputs, static
    node._grad = node._former = None
    node._time = tick()
    return node


def value_of(x: Any) -> Any:
    """The array of a tensor; anything else as it is."""
    return x._data if isinstance(x, Node) else x


def like(x: Any, array: ndarray) -> Any:
    """``array`` as what ``x`` is: a constant tensor or an array."""
    return wrap(array) if isinstance(x, Node) else array


# --- modes ------------------------------------------------------------------------------------------------------------


class _Mode(threading.local):
    """Whether ops are recorded, in this thread, and the values to go back to."""

    enabled = True
    watched: type[anomaly.Watched] | None = None  # what detect_anomaly keeps of a record

    def __init__(self) -> None:
        self.before: list[bool] = []


_mode = _Mode()


def is_grad_enabled() -> bool:
    """Whether ops are recorded in this thread."""
    return _mode.enabled


class _SetMode:
    """A context manager and decorator that keeps its state per thread, so that one instance may nest and recurse."""

    enabled: ClassVar[bool]

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        return mode if function is None else mode(function)

    def __enter__(self) -> None:
        _mode.before.append(_mode.enabled)
        _mode.enabled = self.enabled

    def __exit__(self, *_: object) -> None:
        _mode.enabled = _mode.before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            with self:
                result = function(*args, **kwargs)
            return _InMode(self, result) if inspect.isgenerator(result) else result

        return in_mode


class _InMode(Generator[Any, Any, Any]):
    """A generator that runs in a mode, while its caller does not find itself in it between two steps."""

    def __init__(self, mode: _SetMode, generator: Generator[Any, Any, Any]):
        self.mode, self.generator = mode, generator

    def send(self, value: Any) -> Any:
        with self.mode:
            return self.generator.send(value)

    def throw(self, *error: Any) -> Any:
        with self.mode:
            return self.generator.throw(*error)


class no_grad(_SetMode):
    """Ops are not recorded: ``with no_grad():``, ``@no_grad`` or ``@no_grad()``, in this thread only."""

    enabled = False


class enable_grad(_SetMode):
    """Ops are recorded again, inside ``no_grad``."""

    enabled = True


@contextlib.contextmanager
def detect_anomaly() -> Iterator[None]:
    """Ops that are recorded in here are watched, in this thread: ``with detect_anomaly():`` or ``@detect_anomaly()``.

    Where a sweep meets the first gradient with NaN or an infinity, or a value that was written straight into ``.data``
    since the forward pass, a RuntimeError names the op, its inputs' shapes, and the line of user code that recorded it.
    Much slower: every value that a rule reads is hashed twice.
    """
    before, _mode.watched = _mode.watched, anomaly.Watched
    try:
        yield
    finally:
        _mode.watched = before


# --- recording --------------------------------------------------------------------------------------------------------


class Primitive:
    """A differentiable op: a name, a forward, and one pullback an input.

    ``forward(*inputs, **static)`` takes arrays (and Python numbers) and gives an array.
    ``pullback(cotangent, output, *inputs, **static)`` gives the gradient of its input. It never writes to what it is
    given, and may return it or a view of it. A parameter whose name begins with an underscore is one of which the rule
    reads at most shape and dtype: writing to that value between forward and backward does not matter.

    ``broadcasts``: a gradient may come in the broadcast shape; the sweep sums it down to its input's.
    ``variadic``: any number of inputs, and one pullback that is told the ``position`` of its input.
    """

    __slots__ = ("name", "forward", "pullbacks", "broadcasts", "variadic", "reads")

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        *pullbacks: Callable[..., Any],
        broadcasts: bool = False,
        variadic: bool = False,
    ):
        self.name, self.forward, self.pullbacks = name, forward, pullbacks
        self.broadcasts, self.variadic = broadcasts, variadic
        self.reads = tuple(map(_reads, pullbacks))

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __call__(self, *inputs: Any, **static: Any) -> Any:
        """Apply to tensors and numbers, recording; arrays alone give an array."""
        values, tensors, arrays, requires_grad = [], False, False, False
        for x in inputs:
            if isinstance(x, Node):
                tensors = True
                requires_grad = requires_grad or x._requires_grad
                x = x._data
            elif isinstance(x, ndarray):
                arrays = True
            values.append(x)
        try:
            output = self.forward(*values, **static)
        except ValueError:
            if self.broadcasts:
                broadcast_shape(self.name, *map(np.shape, values))
            raise
        if type(output) is not ndarray:  # NumPy's arithmetic gives a scalar, not an array, for 0-d results
            output = np.asarray(output)
        if not tensors:
            return output
        if versions._recorded and _mode.enabled:
            _refuse_rewritten(self.name, inputs)
        if not requires_grad or not _mode.enabled:
            return wrap(output)
        if arrays:  # the caller's, which may change before the backward pass
            inputs = tuple(wrap(x.copy()) if isinstance(x, ndarray) else x for x in inputs)
        if _mode.watched is not None:
            static = _mode.watched(self, (output, *inputs), static)
        return wrap(output, self, inputs, static)


def _refuse_rewritten(op: str, inputs: Iterable[Any]) -> None:
    for x in inputs:
        if isinstance(x, Node) and versions.rewritten_after(x._data, x._time):
            raise RuntimeError(
                f"{op}(): a tensor of shape {x._data.shape} shares its memory with one that was written in place, in "
                "the graph, after this one was made: its own record no longer explains its value; take the view again "
                "after the write, or clone() before it"
            )


def broadcast_shape(op: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which ``shapes`` broadcast. RuntimeError where they do not."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise RuntimeError(
            f"{op}(): shapes {' and '.join(map(str, shapes))} do not broadcast: counted from the last, each two sizes "
            "must be equal or one of them 1"
        ) from None


def _reads(rule: Callable[..., Any]) -> tuple[int, ...]:
    """The positions, output first and inputs after it, of the values that ``rule`` reads."""
    code = rule.__code__
    names = code.co_varnames[1 : code.co_argcount]
    return tuple(i for i, name in enumerate(names) if not name.startswith("_"))


def _sum_to(x: ndarray, shape: tuple[int, ...]) -> ndarray:
    lead = x.ndim - len(shape)
    if lead:
        x = x.sum(axis=tuple(range(lead)))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] != 1)
    return x.sum(axis=stretched, keepdims=True) if stretched else x


def _stretch(x: ndarray, shape: tuple[int, ...]) -> ndarray:
    y = np.broadcast_to(x, shape)
    return x.reshape(shape) if y.size == x.size else y  # nothing is shared: unlike NumPy's, it may be written


# The two adjoints of each other, and the one place where a gradient is un-broadcast.
expand = Primitive("expand", _stretch, lambda g, _y, _x, *, shape: g, broadcasts=True)
unbroadcast = Primitive("unbroadcast", _sum_to, lambda g, _y, _x, *, shape: expand(g, shape=_x.shape))


# --- the sweep --------------------------------------------------------------------------------------------------------


class Scatter:
    """A gradient that is zero but for what it adds at some places: ``add_to(buffer)`` adds it there.

    A rule may return one for an array. The sweep adds it into the buffer that it keeps for the input anyway, so that a
    thousand small picks from one large tensor do not cost a thousand large arrays of zeros.
    """

    __slots__ = ("add_to",)

    def __init__(self, add_to: Callable[[ndarray], None]):
        self.add_to = add_to


class _Cotangents(dict[Node, Any]):
    """The cotangents of one sweep, by node: None where one is still to come.

    One is *owned* when this sweep made its array and nobody else has it: it may be added into and given away. Otherwise
    it is borrowed (a view, the caller's seed, another node's cotangent) and is copied before either.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        super().__init__(dict.fromkeys(nodes))
        self.owned: set[Node] = set()

    def add(self, node: Node, value: Any) -> None:
        """Add a second or later contribution, or a first one that is a Scatter."""
        so_far: Any = self[node]
        if type(value) is Scatter:
            buffer = np.zeros(node._data.shape, node._data.dtype) if so_far is None else self.given_away(node, so_far)
            buffer = np.asarray(buffer, order="C")  # an adopted one may have another; flat places count in this one
            value.add_to(buffer)
            value = buffer
        elif node in self.owned and type(value) is ndarray:
            so_far += value
            return
        else:
            value = so_far + value
            if isinstance(value, np.generic):
                value = np.asarray(value)
        self[node] = value
        self.owned.add(node)

    def given_away(self, node: Node, value: Any) -> Any:
        """The cotangent ``value`` of ``node`` as the caller's own: adopted where it is owned, copied where borrowed."""
        if node in self.owned:
            return value
        return np.array(value, order="C") if isinstance(value, ndarray) else value.clone()


def _inputs_of(node: Node) -> tuple[Any, ...]:
    """The inputs that ``node`` was made from; one that was written in place since is taken as it was then."""
    if node._primitive is None:
        return ()
    if node._inputs is None or node._static is None:
        raise RuntimeError(
            f"the graph was already swept through {node._primitive.name}() and let go; "
            "keep it with retain_graph=True to sweep it again"
        )
    if versions._recorded:
        node._inputs = tuple(_as_it_was(x, node) if isinstance(x, Node) else x for x in node._inputs)
    return node._inputs


def is_view(node: Node) -> bool:
    """Whether ``node`` lies in the memory of an input that it was made from."""
    buffer = versions.owner(node._data)
    return any(isinstance(x, Node) and versions.owner(x._data) is buffer for x in node._inputs or ())


def _as_it_was(x: Node, consumer: Node) -> Node:
    while x._time > consumer._time:
        if x._former is None:
            raise RuntimeError("an input was written in place, and its graph was swept and let go, since it was used")
        x = x._former
    return x


def _order(roots: Iterable[Node], targets: set[Node] | None) -> list[Node]:
    """What lies on the paths from ``roots`` to ``targets`` (by default all leaves), each node after its inputs.

    An op's output is made after its inputs, so the order of making is a topological one.
    """
    found: dict[Node, None] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            for x in _inputs_of(node):
                if isinstance(x, Node) and x._requires_grad:
                    stack.append(x)
    order = sorted(found, key=_time_of)
    if targets is None:
        return order
    reaching: set[Node] = set()
    for node in order:
        if node in targets or not reaching.isdisjoint(_nodes(node)):
            reaching.add(node)
    return [node for node in order if node in reaching]


def _nodes(node: Node) -> list[Node]:
    return [x for x in node._inputs or () if isinstance(x, Node)]


def _sweep(
    roots: Sequence[Node], seeds: Iterable[Any], targets: set[Node] | None, retain_graph: bool, create_graph: bool
) -> dict[Node, Any]:
    """The gradient of each target that is reached, nobody else's: an array, or a tensor where ``create_graph``."""
    order = _order(roots, targets)
    cotangents = _Cotangents(order)  # where gradients still flow to; both let the nodes go as they are done
    results: dict[Node, Any] = {}
    with enable_grad() if create_graph else no_grad(), np.errstate(all="ignore"):
        for root, seed in zip(roots, seeds, strict=True):
            if cotangents.get(root) is not None:
                cotangents.add(root, seed)
            elif root in cotangents:
                cotangents[root] = seed
        while order:
            node = order.pop()
            cotangent = cotangents.pop(node)
            if node._inputs is not None and (targets is None or not cotangents.keys().isdisjoint(_nodes(node))):
                _pull_back(node, cotangent, cotangents, retain_graph, create_graph)
            if node._primitive is None if targets is None else node in targets:
                results[node] = cotangents.given_away(node, cotangent)
            cotangents.owned.discard(node)
    return results


def _pull_back(node: Node, cotangent: Any, cotangents: _Cotangents, retain_graph: bool, create_graph: bool) -> None:
    """Hand the cotangent of ``node`` on to those of its inputs that wait for one, and let its record go."""
    primitive, inputs, static = cast("Primitive", node._primitive), node._inputs or (), node._static or {}
    if not retain_graph:
        node._inputs = () if node._data.base is not None and is_view(node) else None
        node._static = node._former = None
    given = [cotangent, node, *inputs] if create_graph else [cotangent, node._data]
    if not create_graph:
        for x in inputs:
            given.append(x._data if isinstance(x, Node) else x)
    watch: Any = static if isinstance(static, anomaly.Watched) else None
    if watch is None and _mode.watched is not None:
        watch = _mode.watched(primitive, given[1:], static, recorded=False)
    for position, x in enumerate(inputs):
        if not isinstance(x, Node) or x not in cotangents:
            continue
        if versions.latest > node._time:
            _refuse_stale(node, primitive, inputs, position)
        if primitive.variadic:
            rule, static = primitive.pullbacks[0], {**static, "position": position}
        else:
            rule = primitive.pullbacks[position]
        gradient = rule(*given, **static) if static else rule(*given)
        if watch is not None:
            watch.check(position, gradient, given[1:])
        data = x._data
        if type(gradient) is not ndarray or gradient.shape != data.shape or gradient.dtype is not data.dtype:
            gradient = _fitted(gradient, x, position, primitive, create_graph)
        if cotangents[x] is None and type(gradient) is not Scatter:
            cotangents[x] = gradient
            if x._primitive is None and _is_fresh(gradient, *given):
                cotangents.owned.add(x)
        else:
            cotangents.add(x, gradient)


def _refuse_stale(node: Node, primitive: Primitive, inputs: tuple[Any, ...], position: int) -> None:
    for read in primitive.reads[0 if primitive.variadic else position]:
        value = inputs[read - 1] if read else node
        if isinstance(value, Node) and versions.written_after(value._data, node._time):
            raise RuntimeError(
                f"backward through {primitive.name}() needs {f'input {read - 1}' if read else 'its output'}, of shape "
                f"{value._data.shape}, as it was in the forward pass, but it was written in place since; write to a "
                "clone() instead"
            )


def _fitted(gradient: Any, x: Node, position: int, primitive: Primitive, create_graph: bool) -> Any:
    """``gradient`` summed down to the shape of ``x`` where the op broadcasts. RuntimeError where it does not fit."""
    if type(gradient) is Scatter:
        return gradient
    if isinstance(gradient, np.generic):
        gradient = np.asarray(gradient)
    shape, dtype = x._data.shape, x._data.dtype
    got = type(gradient).__name__
    if isinstance(gradient, Node if create_graph else ndarray):
        gradient = cast("Tensor", gradient)
        if primitive.broadcasts and gradient.shape != shape and gradient.ndim >= len(shape):
            gradient = unbroadcast(gradient, shape=shape)
        if gradient.shape == shape and gradient.dtype == dtype:
            return gradient
        got = f"shape {gradient.shape} and dtype {gradient.dtype}"
    raise RuntimeError(
        f"the pullback of {primitive.name}() for input {position} gave {got}; it must give the input's "
        f"shape {shape} and dtype {dtype}"
    )


def _is_fresh(gradient: Any, *given: Any) -> bool:
    """Whether a rule made the array of ``gradient`` itself, rather than return what it was given or a view of it."""
    array = value_of(gradient)
    return array.base is None and array.flags.writeable and not any(array is value_of(x) for x in given)


# --- backward() and grad() --------------------------------------------------------------------------------------------


def _sequence(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def _seeds(outputs: Sequence[Node], given: Any, create_graph: bool) -> list[Any]:
    """One cotangent an output, checked: what was given for it, or one where it has a single element."""
    grads = [None] * len(outputs) if given is None else _sequence(given)
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(grads)} output gradients for {len(outputs)} outputs; one is needed for each")
    _refuse_rewritten("backward", outputs)
    seeds = []
    for output, seed in zip(outputs, grads, strict=True):
        if not isinstance(output, Node):
            raise TypeError(f"backward from outputs: they must be Tensors, got {type(output).__name__}")
        shape, dtype = output._data.shape, output._data.dtype
        if not output._requires_grad:
            raise RuntimeError(f"backward from a tensor of shape {shape} that does not require grad: none is recorded")
        if seed is None:
            if output._data.size != 1:
                raise RuntimeError(
                    f"only a scalar output has an implicit gradient of one; this one has shape {shape}: "
                    "give a gradient of that shape"
                )
            seed = np.ones(shape, dtype)
        array = value_of(seed)
        if not isinstance(array, ndarray):
            raise TypeError(f"an output's gradient must be a Tensor or None, got {type(seed).__name__}")
        if array.shape != shape or array.dtype != dtype:
            raise RuntimeError(
                f"got a gradient of shape {array.shape} and dtype {array.dtype} for an output of shape {shape} and "
                f"dtype {dtype}; both must be the same"
            )
        seeds.append((seed if isinstance(seed, Node) else wrap(array)) if create_graph else array)
    return seeds


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False
) -> None:
    """Add the gradients of ``tensors``, weighted by ``grad_tensors``, to the ``.grad`` of the leaves they came from.

    ``grad_tensors`` have their tensors' shapes and dtypes; None stands for one where a tensor has a single element. The
    graph is let go as the sweep passes unless ``retain_graph`` (by default: as ``create_graph``). RuntimeError where it
    was let go before, where a value that a rule reads was written since, or where a rule's gradient does not fit; then
    no ``.grad`` has changed.
    """
    roots = _sequence(tensors)
    seeds = _seeds(roots, grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    for leaf, gradient in _sweep(roots, seeds, None, keep, create_graph).items():
        _deposit(leaf, gradient)


def _deposit(leaf: Node, gradient: Any) -> None:
    so_far = leaf._grad
    if so_far is None:
        leaf._grad = cast("Tensor", gradient if isinstance(gradient, Node) else wrap(gradient))
    elif isinstance(gradient, Node) or so_far._requires_grad or not so_far._data.flags.writeable:
        with enable_grad():
            leaf._grad = so_far + gradient
    else:
        np.add(so_far._data, gradient, out=so_far._data)
        versions.stamp(so_far._data)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of ``outputs``, weighted by ``grad_outputs``, with respect to each of ``inputs``; ``.grad`` stays.

    One tensor an input, of its shape and dtype; None for one that the outputs do not depend on, where ``allow_unused``
    (RuntimeError otherwise, and for an input that does not require grad). With ``create_graph`` they can be
    differentiated again.
    """
    roots, wanted = _sequence(outputs), _sequence(inputs)
    if not wanted or not all(isinstance(x, Node) and x._requires_grad for x in wanted):
        raise RuntimeError("grad() with respect to a tensor that does not require grad, or to none at all")
    _refuse_rewritten("grad", wanted)
    seeds = _seeds(roots, grad_outputs, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    results = _sweep(roots, seeds, set(wanted), keep, create_graph)
    gradients: list[Any] = []
    for i, x in enumerate(wanted):
        gradient = results.get(x)
        if gradient is None and not allow_unused:
            raise RuntimeError(f"input {i} was not used to compute the outputs; say allow_unused=True if it may be so")
        if gradient is not None and any(x is earlier for earlier in wanted[:i]):
            gradient = gradient.copy() if isinstance(gradient, ndarray) else gradient.clone()
        gradients.append(wrap(gradient) if isinstance(gradient, ndarray) else gradient)
    return tuple(gradients)
