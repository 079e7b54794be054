"""What the ops accept (tensors, arrays beside them, Python numbers, brought to a common dtype) and what they refuse."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..autograd import Node, Primitive, value_of, wrap
from ..dtypes import Number, as_dtype, float32, result_type

to: Primitive = Primitive("to", lambda x, dtype: x.astype(dtype), lambda g, _y, _x, *, dtype: to(g, dtype=_x.dtype))


def cast(x: Any, dtype: Any) -> Any:
    """``x``, a tensor or an array, in ``dtype``: itself where it has that, a constant where it is not floating."""
    dtype = as_dtype(dtype)
    if x.dtype == dtype:
        return x
    if isinstance(x, Node) and dtype.kind != "f":
        return wrap(x._data.astype(dtype))
    return to(x, dtype=dtype)


def tensor(op: str, x: Any) -> Any:
    """``x``, checked to be a tensor, or an array of a supported dtype. TypeError otherwise."""
    if isinstance(x, Node):
        return x
    if isinstance(x, np.generic):  # what NumPy's arithmetic makes of a 0-d array, in a rule
        x = np.asarray(x)
    if isinstance(x, np.ndarray):
        as_dtype(x.dtype)
        return x
    raise TypeError(f"{op}(): needs a Tensor, got {type(x).__name__}")


def floating(op: str, x: Any) -> Any:
    """``x`` as a floating tensor: PyTorch's default float32 where it holds integers or bools."""
    x = tensor(op, x)
    return x if x.dtype.kind == "f" else cast(x, float32)


def must_float(op: str, x: Any, error: type[Exception] = RuntimeError) -> Any:
    """``x``, checked to be floating. ``error``, as PyTorch has it, otherwise."""
    x = tensor(op, x)
    if x.dtype.kind != "f":
        raise error(f"{op}(): needs a floating dtype, got {x.dtype}")
    return x


def refuse_bool(op: str, *inputs: Any, error: type[Exception] = RuntimeError) -> None:
    """``error``, as PyTorch has it, where one of ``inputs`` is bool."""
    if any(isinstance(x, bool) or getattr(x, "dtype", None) == np.bool_ for x in inputs):
        raise error(f"{op}(): is not defined for bools; use logical operations or cast to an integer dtype")


def one_dtype(op: str, *tensors: Any) -> None:
    """RuntimeError where ``tensors`` have more than one dtype."""
    if any(x.dtype != tensors[0].dtype for x in tensors):
        raise RuntimeError(f"{op}(): all tensors must have one dtype, got {', '.join(str(x.dtype) for x in tensors)}")


def operands(op: str, a: Any, b: Any) -> tuple[Any, Any]:
    """``a`` and ``b`` in their common dtype (``torch.result_type``), with numbers left as they are.

    TypeError for what is neither tensor, array nor number, and for two numbers.
    """
    if isinstance(a, Node) and isinstance(b, Node) and a._data.dtype is b._data.dtype:
        return a, b  # the common case costs no more than it must
    tensors = isinstance(a, Node) or isinstance(b, Node)
    a, b = _operand(op, a, weak=tensors), _operand(op, b, weak=tensors)
    if isinstance(a, Number) and isinstance(b, Number):
        raise TypeError(f"{op}(): needs at least one Tensor, got {type(a).__name__}, {type(b).__name__}")
    dtype = result_type(a, b)
    return (a if isinstance(a, Number) else cast(a, dtype)), (b if isinstance(b, Number) else cast(b, dtype))


def _operand(op: str, x: Any, weak: bool) -> Any:
    # Beside a tensor a NumPy scalar is a number as good as Python's. Beside arrays it is one itself, of no dimensions.
    if isinstance(x, np.generic) and weak:
        x = x.item()
    return x if type(x) in Number else tensor(op, x)


def integer(op: str, name: str, value: Any) -> int:
    """``value`` as an int. TypeError for anything that is not an integer, bools included."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{op}(): {name} must be an integer, got {value!r}") from None


def integers(op: str, x: Any) -> np.ndarray:
    """The array of the indices ``x``, checked to be int64 or int32. RuntimeError otherwise."""
    array: np.ndarray = value_of(tensor(op, x))
    if array.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{op}(): indices must be int64 or int32, got {array.dtype}")
    return array


def in_range(op: str, numbers: np.ndarray, size: int, error: type[Exception] = IndexError, least: int = 0) -> None:
    """``error`` where one of ``numbers`` is none from ``least`` to below ``size``."""
    wrong = numbers[(numbers < least) | (numbers >= size)]
    if wrong.size:
        raise error(f"{op}(): index {wrong.flat[0]} is out of range; with {size} it goes from {least} to {size - 1}")


def factor(op: str, name: str, value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """The number ``value`` in ``dtype``, truncated for integers. RuntimeError for one that does not fit.

    Where there is nothing below 0 an integer counts from the end: -1 is the largest.
    """
    limits = None if dtype.kind == "b" else (np.finfo if dtype.kind == "f" else np.iinfo)(dtype)
    least = limits and (limits.min or -limits.max * isinstance(value, int))
    if limits and not least <= value <= limits.max and (dtype.kind != "f" or np.isfinite(value)):
        raise RuntimeError(f"{op}(): {name} {value} is out of range for {dtype}")
    return np.asarray(value).astype(dtype)


def axis(op: str, dim: Any, ndim: int) -> int:
    """``dim`` counted from the front. IndexError where a tensor of ``ndim`` dimensions (0-d counts as 1) has none."""
    number, room = integer(op, "dim", dim), max(ndim, 1)
    if not -room <= number < room:
        raise IndexError(f"{op}(): dim {number} is out of range; with {ndim} dims it goes from {-room} to {room - 1}")
    return number % room


def axes(op: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """The axes that ``dim`` names, from the front and in rising order: an int, a tuple or list, or None for all.

    For a 0-d tensor, whose one nominal axis is not NumPy's, the result is empty. RuntimeError where one is named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    named = dim if isinstance(dim, (tuple, list)) else (dim,)
    found = sorted(axis(op, d, ndim) for d in named)
    for d, following in pairwise(found):
        if d == following:
            raise RuntimeError(f"{op}(): dim {d} is named twice in {tuple(named)}")
    return tuple(found) if ndim else ()


def sizes(op: str, given: Sequence[Any]) -> tuple[int, ...]:
    """A shape given as ``(2, 3)`` or as ``2, 3``."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    return tuple(integer(op, "a size", n) for n in given)


# --- options ----------------------------------------------------------------------------------------------------------

# Those of PyTorch's that no op has here, unless it names them itself.
_NOT_OFFERED = (
    "_stacklevel alpha axis device dtype enable_gqa generator implicit inplace keepdims layout max_norm memory_format "
    "norm_type out out_dtype pin_memory reduce return_indices scale_grad_by_freq size_average sparse sparse_grad "
    "unbiased"
)
_BY_DEFAULT = ("reduce", "size_average", "unbiased")  # those that are on where nothing is said


def refuse(op: str, options: dict[str, Any], not_offered: str) -> None:
    """NotImplementedError for options that are not offered and ask for something, TypeError for what is none at all."""
    for name, value in options.items():
        if name not in not_offered.split():
            raise TypeError(f"{op}(): got an unexpected argument {name!r}")
        if value is not None and (value is not False or name in _BY_DEFAULT):
            raise NotImplementedError(f"{op}(): the option {name} of PyTorch's is not offered here")


def publish(names: dict[str, Any], home: str) -> None:
    """Let what is defined in ``home`` of all that a module exports, whose ``names`` these are, be ``public`` ops."""
    for name in names["__all__"]:
        if inspect.isfunction(names.get(name)) and names[name].__module__.startswith(home):
            names[name] = public(names[name])


@functools.cache
def public(op: Callable[..., Any]) -> Callable[..., Any]:
    """``op``, which refuses by name what is not offered, takes ``*size`` as ``size=`` too, and bools as switches."""
    name, parameters = op.__name__, inspect.signature(op).parameters
    places = {p.name: i for i, p in enumerate(parameters.values()) if p.kind is p.POSITIONAL_OR_KEYWORD}
    switches = [(n, places.get(n, sys.maxsize)) for n, p in parameters.items() if isinstance(p.default, bool)]
    many = [p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL]
    known = parameters.keys() - many

    @functools.wraps(op)
    def checked(*args: Any, **options: Any) -> Any:
        if options and not options.keys() <= known:
            args += tuple(options.pop(k) for k in [*places, *many] if many and k in options)
            refuse(name, {k: v for k, v in options.items() if k not in known}, _NOT_OFFERED)
            options = {k: v for k, v in options.items() if k in known}
        for switch, place in switches:
            given = args[place] if place < len(args) else options.get(switch, False)
            if not isinstance(given, bool):
                raise TypeError(f"{name}(): {switch} must be a bool, got {given!r}")
        return op(*args, **options)

    return checked
