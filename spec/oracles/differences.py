"""Where PyTorch is not asked the same question, or answers it otherwise: one row each, with the reason.

``instead`` is how the oracle answers our question with PyTorch's own ops; tests/parity/test_differences.py has a test
for each row, that PyTorch still differs and that ours is what the reason says.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from ..ops import BY_NAME
from ..ops.elementwise import held_between
from ..program import Backward, Call, Grad, Leaf, Run, Step, Write

Asked = Callable[..., Any]


@dataclass(frozen=True)
class Difference:
    """For which ops and calls (inputs, params) the oracle answers by ``instead(op, *inputs, **params)``, and why."""

    ops: tuple[str, ...]
    when: Callable[[Sequence[Any], dict[str, Any]], bool]
    instead: Callable[..., Any]
    reason: str


def _over_nothing(op: Asked, x: Any, **params: Any) -> Any:
    kept = {"keepdim": False} if "keepdim" in params else {}
    return op(x[..., None], **{**params, "dim": -1, **kept})


def _tied(x: Any) -> bool:
    return len(x.unique()) < x.numel() or int(x.isnan().sum()) > 1


def _far(x: Any) -> bool:
    """Whether products may overflow, underflow or be NaN."""
    return not bool(((x == 0) | ((abs(x) > 1e-100) & (abs(x) < 1e100))).all())


def _line(x: Any, dim: int | None) -> Any:
    """``x`` with the axis ``dim`` first, or as a single axis."""
    return x.reshape(-1) if dim is None or not x.ndim else x.movedim(dim, 0)


def _products(line: Any) -> list[Any]:
    return list(accumulate(line.unbind(0), torch.mul))


def _multiplied(op: Asked, x: Any, *, dim: int | None, keepdim: bool = False) -> Any:
    if not (x.is_floating_point() and _far(x) and x.numel()):
        y = op(x) if dim is None else op(x, dim)
    else:
        y = _products(_line(x, dim))[-1]
    if not keepdim or not x.ndim:
        return y
    return y.reshape((1,) * x.ndim) if dim is None else y.unsqueeze(dim)


def _cumulated(_op: Asked, x: Any, *, dim: int) -> Any:
    return torch.stack(_products(_line(x, dim))).movedim(0, dim) if x.ndim else x.clone()


def _in_order(_op: Asked, x: Any, *, dim: int, descending: bool, stable: bool) -> Any:  # noqa: ARG001
    return torch.sort(x, dim=dim, descending=descending, stable=True)


def _top(_op: Asked, x: Any, *, k: int, dim: int, largest: bool, sorted: bool) -> Any:  # noqa: ARG001
    values, indices = torch.sort(x, dim=dim, descending=largest, stable=True)
    return (values.narrow(dim, 0, k), indices.narrow(dim, 0, k)) if x.ndim else (values, indices)


def _variance(x: Any, **params: Any) -> Any:
    return _over_nothing(torch.var, x, **params) if params.get("dim") == () else torch.var(x, **params)


def _is_of_one(x: Any, params: dict[str, Any]) -> bool:
    """Whether a norm is of one number each, or of none."""
    return params.get("dim") == () or x.numel() in (0, torch.norm(x, **params).numel())


def _absolute(_op: Asked, x: Any, p: Any, **params: Any) -> Any:  # noqa: ARG001
    if params.get("dim") == ():
        return _over_nothing(torch.sum, x.abs(), **params)
    return torch.sum(x.abs(), **params)


def _zero_vectors(x: Any, **params: Any) -> Any:
    return torch.norm(x.detach(), **{**params, "p": torch.inf}) == 0


def _length(op: Asked, x: Any, **params: Any) -> Any:
    zero = _zero_vectors(x, **{**params, "keepdim": params.get("dim") is not None})
    y = op(torch.where(zero, 1, x), **params)
    return torch.where(zero.reshape(y.shape), 0, y)


def _root(_op: Asked, x: Any, **params: Any) -> Any:
    variance = _variance(x, **params)
    return torch.where(variance == 0, 0 * variance, torch.where(variance == 0, 1, variance).sqrt())


def _places(shape: Sequence[int], index: Any) -> np.ndarray:
    return np.arange(int(np.prod(shape))).reshape(tuple(shape))[index]


def _is_numpys(index: Any) -> bool:
    """Whether PyTorch has no such index, or puts the axes of its arrays elsewhere."""
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    places = [part for part in parts if isinstance(part, (int, np.integer, np.ndarray))]
    backward = any(isinstance(part, slice) and (part.step or 1) < 0 for part in parts)
    small = any(array.dtype.name not in ("bool", "int64") for array in arrays)
    return backward or small or (bool(arrays) and len(places) > 1)


def _pick(_op: Asked, x: Any, *, index: Any) -> Any:
    places = np.asarray(_places(x.shape, index))
    return torch.take(x, torch.from_numpy(places.astype(np.int64).copy()))


def _write(_op: Asked, x: Any, value: Any, *, index: Any) -> Any:
    places = np.asarray(_places(x.shape, index))
    turn = np.full(x.numel(), -1)
    turn[places.reshape(-1)] = np.arange(places.size)  # NumPy: the last write to a place stays
    spare = torch.zeros(1, dtype=x.dtype)
    value = value.reshape(value.shape[max(0, value.ndim - places.ndim) :])
    values = torch.cat([value.to(x.dtype).broadcast_to(places.shape).reshape(-1), spare])
    taken = values[torch.from_numpy(turn)]
    return torch.where(torch.from_numpy(turn >= 0), taken, x.reshape(-1)).reshape(x.shape)


def _in_step(places: np.ndarray, shape: Sequence[int], dim: int) -> tuple[Any, ...]:
    """``places`` along ``dim`` as a full index."""
    grid: list[Any] = [*np.ogrid[tuple(slice(n) for n in places.shape)]] if places.ndim else []
    lane = dim % max(len(shape), 1)
    return (*grid[:lane], places, *grid[lane + 1 :])


def _scatter(op: Asked, x: Any, source: Any, *, dim: int, places: Any) -> Any:
    part = source[tuple(slice(n) for n in places.shape)]
    return _write(op, x, part, index=_in_step(places, x.shape, dim))


def _named_twice(shape: Sequence[int], index: Any) -> bool:
    try:
        places = _places(shape, index)
    except IndexError:
        return False  # PyTorch refuses it too
    return bool(np.unique(places).size < np.size(places))


def _is_larger(source: Sequence[int], places: Sequence[int]) -> bool:
    return tuple(source) != tuple(places) and all(m >= n for m, n in zip(source, places, strict=False))


def _one_hot(numbers: np.ndarray, table: Any) -> Any:
    return torch.nn.functional.one_hot(torch.from_numpy(numbers.astype(np.int64)), table.shape[0]).to(table.dtype)


def _power(op: Asked, a: Any, b: Any) -> Any:
    if not (a.is_floating_point() and b.is_floating_point()):
        return op(a, b)
    smooth = (b == 0) & (a > 0) & (a < np.inf)
    base, exponent = torch.where(smooth, a, 1), torch.where(smooth, b, 0)
    y = op(a, b)
    return torch.where(smooth, torch.exp(exponent * torch.log(base)).to(y.dtype), y)


def _standardized(_op: Asked, x: Any, *affine: Any, normalized_shape: Any, eps: float = 1e-5) -> Any:
    lanes = tuple(range(-len(normalized_shape), 0))
    deviation = x - x.mean(lanes, keepdim=True)
    y = deviation / torch.sqrt((deviation * deviation).mean(lanes, keepdim=True) + eps)
    for w, combine in zip(affine, (torch.mul, torch.add), strict=False):
        y = combine(y, w)
    return y


def _is_alone(x: Any, lane: tuple[int, ...]) -> bool:
    """Whether each lane of ``x`` is one number."""
    return x.is_floating_point() and set(lane) == {1} and tuple(x.shape[-len(lane) :]) == lane


def _alone(op: Asked, x: Any, *affine: Any, normalized_shape: Any, **params: Any) -> Any:
    op(x, normalized_shape, *affine, **params)  # refuses what it refuses
    return _standardized(op, x, *affine, normalized_shape=normalized_shape, **params)


def _grouped(_op: Asked, x: Any, *affine: Any, num_groups: int, eps: float = 1e-5) -> Any:
    lanes = x.reshape(x.shape[0], num_groups, x[:1].numel() // num_groups)
    y = _standardized(_op, lanes, normalized_shape=lanes.shape[2:], eps=eps).reshape(x.shape)
    for w, combine in zip(affine, (torch.mul, torch.add), strict=False):
        y = combine(y, w.reshape(-1, *[1] * (x.ndim - 2)))
    return y


def _cosine(op: Asked, a: Any, b: Any, *, dim: int = 1, eps: float = 1e-8) -> Any:
    op(a, b, dim, eps)  # refuses what it refuses
    pair = torch.broadcast_tensors(a, b)
    a, b = (x / torch.sqrt(torch.clamp((x * x).sum(dim, keepdim=True), min=eps * eps)) for x in pair)
    return (a * b).sum(dim)


def _dropped(op: Asked, x: Any, *, p: float = 0.5, training: bool = True) -> Any:
    op(x, p, training)  # refuses what it refuses
    draws = np.random.default_rng(BY_NAME["functional.dropout"].seed).random(tuple(x.shape))
    return x * (torch.tensor(draws >= p).to(x.dtype) * (1 / (1 - p)))


def _one_by_one(op: Asked, x: Any, *, dim: int, **params: Any) -> Any:
    pieces = op(x.detach(), *params.values(), dim)  # refuses what it refuses
    if op is torch.unbind:
        return tuple(x.select(dim, i) for i in range(len(pieces)))
    ends = np.cumsum([y.shape[dim] for y in pieces]).tolist()
    return tuple(x.narrow(dim, end - y.shape[dim], y.shape[dim]) for y, end in zip(pieces, ends, strict=True))


def _binary(_op: Asked, x: Any, t: Any, *, reduction: str = "mean", weight: Any = None) -> Any:
    losses = -(t * torch.log(x) + (1 - t) * torch.log1p(-x))
    if weight is not None:
        losses = losses * torch.from_numpy(weight).to(x.dtype)
    return losses if reduction == "none" else getattr(torch, reduction)(losses)


def _divergence(_op: Asked, x: Any, t: Any, *, reduction: str = "mean") -> Any:
    losses = torch.where(t == 0, 0, t * torch.log(t)) - t * x
    if reduction == "batchmean":
        return losses.sum() / (x.shape[0] if x.ndim else 1)
    return losses if reduction == "none" else getattr(torch, reduction)(losses)


def _in_vectors(op: Asked, x: Any, **params: Any) -> Any:
    """``op`` of so many elements that its vectorised kernel takes all of them."""
    return op(x.reshape(-1).repeat(32), **params)[: x.numel()].reshape(x.shape)


def _rooted(_op: Asked, x: Any, *weight: Any, normalized_shape: Any, eps: float | None = None) -> Any:
    lanes = tuple(range(-len(normalized_shape), 0))
    y = x / torch.sqrt((x * x).mean(lanes, keepdim=True) + (torch.finfo(x.dtype).eps if eps is None else eps))
    return y * weight[0] if weight else y


def _by_element(op: Asked, *xs: Any) -> Any:
    xs = torch.broadcast_tensors(*xs)
    pairs = zip(*(x.reshape(-1) for x in xs), strict=True)
    return torch.stack([op(*pair) for pair in pairs]).reshape(xs[0].shape) if xs[0].numel() else op(*xs)


def _held(op: Asked, *xs: Any, which: str) -> Any:
    x, low, *_ = xs = torch.broadcast_tensors(*xs)
    y = held_between(op, xs, {"which": which})
    if which == "both":
        y = torch.where((x < low) & (low == xs[2]), low, y)
    return torch.where(y != y, y.detach(), y)


_REDUCTIONS = ("sum", "nansum", "mean", "amax", "amin", "var", "std", "norm", "count_nonzero", "logsumexp")

_BY_VECTORS = (
    "PyTorch's slope at NaN depends on the number of elements: one for its vectors, another for what they leave"
)

DIFFERENCES = (
    Difference(
        ("Tensor.clamp",),
        lambda xs, params: len({x.dtype for x in xs}) == 1,
        _held,
        "PyTorch refuses to sweep some shapes of three tensors; it gives no slope to bounds that are equal, and one to "
        "a bound at a NaN",
    ),
    Difference(
        ("fmod", "remainder"),
        lambda xs, params: (
            len(xs) == 2 and xs[0].is_floating_point() and bool((abs(xs[0].double() / xs[1].double()) > 2.0**52).any())
        ),
        _by_element,
        "PyTorch's vectorised kernel gives NaN where the quotient is beyond the range; that of one element does not",
    ),
    Difference(
        ("addmm",),
        lambda xs, params: (
            params.get("alpha", 1) not in (0, 1) and any(bool(((x != 0) & (abs(x) < 1e-300)).any()) for x in xs)
        ),
        lambda _op, x, a, b, *, beta=1, alpha=1: (beta * x if beta else 0) + alpha * (a @ b),
        "PyTorch scales a matrix before it multiplies: what is subnormal may become 0",
    ),
    Difference(
        ("floor_divide",),
        lambda xs, params: True,
        lambda _op, input, other: torch.div(input, torch.as_tensor(other), rounding_mode="floor"),
        "PyTorch has no derivative of it; here it is that of div with rounding_mode='floor'",
    ),
    Difference(
        ("std",),
        lambda xs, params: xs[0].is_floating_point() and bool((_variance(xs[0], **params) == 0).any()),
        _root,
        "where nothing is spread the slope is a constant 0, and so is its derivative; PyTorch's is NaN",
    ),
    Difference(
        ("norm",),
        lambda xs, params: params.get("p", 0) != 0 and xs[0].is_floating_point() and _is_of_one(xs[0], params),
        _absolute,
        "the norm of one number is its absolute value, and has its slope; PyTorch's, and that of none, may be 0 / 0",
    ),
    Difference(
        ("norm",),
        lambda xs, params: (
            params.get("dim") != ()
            and (params.get("p", "fro") == "fro" or (isinstance(params["p"], (int, float)) and params["p"] > 0))
            and xs[0].is_floating_point()
            and xs[0].numel() > 0
            and bool(_zero_vectors(xs[0], **params).any())
        ),
        _length,
        "at the zero vector the slope is a constant 0, and so is its derivative; PyTorch's is NaN",
    ),
    Difference(
        _REDUCTIONS, lambda xs, params: params.get("dim") == (), _over_nothing, "dim=() reduces nothing, as in NumPy"
    ),
    Difference(
        ("logsumexp",),
        lambda xs, params: params.get("dim", 0) is None,
        lambda op, x, dim, **params: op(x, dim=tuple(range(x.ndim)), **params) if x.ndim else op(x, dim=0, **params),
        "dim=None reduces everything in every reduction",
    ),
    Difference(
        ("functional.dropout",),
        lambda xs, params: not params.get("training", True) or params.get("p") == 0,
        lambda _op, x, **params: x.clone(),
        "with nothing to drop it is a new tensor, not its input itself",
    ),
    *(
        Difference(
            (name,),
            lambda xs, params: params.get("dim", 0) is None,
            lambda _op, x, dim, of_all=of_all: of_all(x),
            f"dim=None is {of_all.__name__} of everything; PyTorch wants the argument left out, and then has a slope "
            "of 1 at a NaN, where that one has NaN",
        )
        for name, of_all in (("max", torch.amax), ("min", torch.amin))
    ),
    Difference(
        ("prod",),
        lambda xs, params: "dim" in params and (params["dim"] is None or (xs[0].is_floating_point() and _far(xs[0]))),
        _multiplied,
        "dim=None is every axis; and slopes are products of the others, where PyTorch divides by the element",
    ),
    Difference(
        ("cumprod",),
        lambda xs, params: "dtype" not in params and xs[0].is_floating_point() and xs[0].numel() and _far(xs[0]),
        _cumulated,
        "slopes are products of the others, where PyTorch divides by the element",
    ),
    Difference(
        ("median",),
        lambda xs, params: params.get("dim", 0) is None,
        lambda op, x, dim, keepdim=False: op(x).reshape((1,) * x.ndim if keepdim else ()),
        "dim=None is the median of everything",
    ),
    Difference(
        ("round",),
        lambda xs, params: "decimals" in params and xs[0].dtype not in (torch.bool, torch.float32, torch.float64),
        lambda _op, x, *, decimals: torch.round(x.double(), decimals=decimals).to(x.dtype),
        "PyTorch rounds integers only where no decimals are given",
    ),
    Difference(
        ("sort",),
        lambda xs, params: "descending" in params and _tied(xs[0]),
        _in_order,
        "equal elements stay in their order; PyTorch does not say so unless stable=True",
    ),
    Difference(
        ("topk",),
        lambda xs, params: "sorted" in params and xs[0].dtype != torch.bool and (_tied(xs[0]) or not params["sorted"]),
        _top,
        "of equal elements the first, and always in order; PyTorch does not say which, nor the order unless sorted",
    ),
    Difference(
        ("squeeze",),
        lambda xs, params: params.get("dim", 0) is None,
        lambda op, x, dim: op(x),
        "dim=None squeezes every axis, as in NumPy; PyTorch wants the argument left out",
    ),
    Difference(
        ("split", "chunk", "unbind"),
        lambda xs, params: "dim" in params,
        _one_by_one,
        "each piece is a view like any other; PyTorch refuses writes in place to one of several views from one call",
    ),
    Difference(
        ("getitem",),
        lambda xs, params: _is_numpys(params["index"]),
        _pick,
        "negative steps, and the place of the axes of mixed advanced indices, are NumPy's",
    ),
    Difference(
        ("setitem",),
        lambda xs, params: True,
        _write,
        "indices are NumPy's, and of repeated places the last write stays",
    ),
    Difference(
        ("Tensor.__setitem__",),
        lambda xs, params: xs[0].dtype != xs[1].dtype,
        lambda _op, x, value, *, index: x.copy_(_write(_op, x, value, index=index)),
        "what is written is cast, where index arrays name the place as elsewhere",
    ),
    Difference(
        ("scatter",),
        lambda xs, params: (
            xs[0].dtype == getattr(params.get("src", xs[-1]), "dtype", None)
            and _named_twice(xs[0].shape, _in_step(params["places"], xs[0].shape, params["dim"]))
        ),
        _scatter,
        "of repeated places the last write stays, and alone has a gradient: PyTorch gives all of them one",
    ),
    Difference(
        ("scatter", "scatter_add"),
        lambda xs, params: len(xs) == 2 and _is_larger(xs[1].shape, params["places"].shape),
        lambda op, x, source, *, dim, places: op(
            x, dim, torch.from_numpy(places), source[tuple(slice(n) for n in places.shape)]
        ),
        "PyTorch's gradient of a source that is larger than its index raises",
    ),
    Difference(
        ("index_put",),
        lambda xs, params: (
            not params.get("accumulate") and xs[0].dtype == xs[1].dtype and _named_twice(xs[0].shape, params["places"])
        ),
        lambda op, x, value, *, places, accumulate=False: _write(op, x, value, index=places),
        "of repeated places the last write stays, and alone has a gradient",
    ),
    Difference(
        ("einsum",),
        lambda xs, params: len(xs) == 1,
        lambda op, x, *, equation: op(equation, x).clone(),
        "of one operand too it is a new tensor, not a view",
    ),
    Difference(
        ("pow",),
        lambda xs, params: bool((xs[1] == 0).any()),
        _power,
        "at exponent 0 PyTorch's slope in the base is a constant 0, so its mixed second derivative is 0; it is 1/base",
    ),
    Difference(
        ("functional.huber_loss",),
        lambda xs, params: xs[0].dtype != xs[1].dtype and all(x.is_floating_point() for x in xs[:2]),
        lambda op, x, y, weight=None, **params: op(x, y.to(x.dtype), weight=weight, **params),
        "PyTorch takes two floating dtypes and refuses the sweep",
    ),
    Difference(
        ("functional.layer_norm",),
        lambda xs, params: not bool((abs(xs[0] * 1.0) < 1e100).all()),
        _standardized,
        "PyTorch squares before it subtracts the mean: NaN where only that overflows",
    ),
    Difference(
        ("functional.layer_norm",),
        lambda xs, params: _is_alone(xs[0], params["normalized_shape"]),
        _alone,
        "the weight's gradient at a lane of one number is 0, x - x; PyTorch's is x/s - x/s, off by up to 512 eps",
    ),
    Difference(
        ("functional.group_norm",),
        lambda xs, params: (
            len({x.dtype for x in xs}) == 1
            and (xs[0].numel() == 0 < xs[0].shape[0] or not bool((abs(xs[0] * 1.0) < 1e100).all()))
        ),
        _grouped,
        "PyTorch squares numbers whose squares overflow; and of no values its gradient of the weight is NaN",
    ),
    Difference(
        ("functional.cosine_similarity",),
        lambda xs, params: any(
            x.is_floating_point()
            and not bool(((x * x).sum(params.get("dim", 1), keepdim=True) >= params.get("eps", 1e-8) ** 2).all())
            for x in xs
        ),
        _cosine,
        "PyTorch's slope of a vector whose norm is below eps is that of one whose norm is not",
    ),
    Difference(
        ("functional.rms_norm",),
        lambda xs, params: xs[0].dtype == torch.float64 and not bool((abs(xs[0]) < 1e100).all()),
        _rooted,
        "PyTorch cubes the root of the mean square: its slope is off where only that overflows",
    ),
    Difference(
        ("functional.embedding",),
        lambda xs, params: xs[0].shape[-1] == 0 or params["input"].size == 0,
        lambda _op, weight, input: _one_hot(input, weight) @ weight,
        "PyTorch's second derivative raises where nothing is looked up, and for rows of no width",
    ),
    Difference(
        ("functional.binary_cross_entropy",),
        lambda xs, params: (
            {x.dtype for x in xs} in ({torch.float64}, {torch.float32})
            and all(bool(((x > 0.01) & (x < 0.99)).all()) for x in xs)
        ),
        _binary,
        "PyTorch's second derivatives are those of a formula with 1e-12 added to its denominators",
    ),
    Difference(
        ("functional.kl_div",),
        lambda xs, params: "log_target" not in params and bool((xs[1] < 0).any()),
        _divergence,
        "a slope that is NaN, as that of log t below 0, is NaN times any cotangent; times 0 PyTorch's xlogy makes it 0",
    ),
    Difference(
        tuple(f"functional.{name}" for name in ("elu", "selu", "hardtanh")),
        lambda xs, params: any(bool((x != x).any()) for x in xs),
        _in_vectors,
        _BY_VECTORS,
    ),
    Difference(
        ("functional.hardswish",),
        lambda xs, params: any(bool((x != x).any()) for x in xs),
        lambda op, x: _in_vectors(op, x * 16),
        _BY_VECTORS,
    ),
    Difference(
        ("functional.dropout",),
        lambda xs, params: params.get("training", True) and 0 < params.get("p", 0.5) < 1,
        _dropped,
        "PyTorch has a generator of its own, which draws other numbers; what is drawn here is NumPy's",
    ),
)


# Calls that are refused here and not in PyTorch.
STRICTER = {
    **dict.fromkeys(
        ("matmul", "mm", "bmm", "mv", "addmm", "tensordot"),
        "PyTorch does not look at dtypes where there is nothing to multiply",
    ),
    "einsum": "PyTorch looks at dtypes only where it multiplies matrices",
    **dict.fromkeys(("index_put", "index_add"), "PyTorch looks at dtypes and at alpha only where it writes an element"),
    "functional.pad": "PyTorch looks at the value only where it writes one",
    "functional.linear": "PyTorch multiplies bools for some shapes and not for others",
    **dict.fromkeys(("functional.conv1d", "functional.conv2d"), "PyTorch convolves integers, here floats alone"),
    "functional.avg_pool2d": "PyTorch takes means of integers, rounded, here floats alone",
    "lerp": "PyTorch promotes a weight of no dimensions, and looks at no dtype where there is no element",
    "functional.scaled_dot_product_attention": "the formula, in PyTorch's ops, takes integers as query and key",
    **dict.fromkeys(
        ("functional.softmax", "functional.log_softmax", "functional.batch_norm", "functional.dropout"),
        "PyTorch does not look at dtypes where there is no element",
    ),
}


# Properties that PyTorch does not have: they, and no others, fail in ``pytest --engine torch tests/properties``.
LACKING = {
    "gradients_share_no_memory_and_nothing_is_written": "after backward(v) a leaf's .grad may be v itself, "
    "the caller's, where all on the way are views; the next sweep adds into it, and so into v",
    "sweeps_add_up": "a fourth sweep by the same v gives 8 v, for the reason above; and a graph may be swept again "
    "without retain_graph where no op of it has saved a value",
    "wrong_calls_are_refused": "its messages are its own, and it takes the options that are not offered here",
}


def difference(name: str, inputs: Sequence[Any], params: dict[str, Any]) -> Difference | None:
    """The row, if there is one, by which the oracle answers a call of the op ``name``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # advice to users, of what a row asks PyTorch
        return next((row for row in DIFFERENCES if name in row.ops and row.when(inputs, params)), None)


# --- programs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusal:
    """What is refused by one engine alone, and why; ``when`` is asked before the step, of the oracle's run."""

    here: bool
    when: Callable[[Run, Step], bool]
    reason: str


def _uses(step: Step) -> tuple[int, ...]:
    if isinstance(step, Leaf):
        return ()
    return step.inputs if isinstance(step, (Call, Write)) else step.outputs + getattr(step, "inputs", ())


REFUSALS = (
    Refusal(
        True,
        lambda run, step: isinstance(step, Write) and step.recorded and step.inputs[0] in run.views,
        "a view of a tensor that requires grad is not written in place: views stay plain NumPy views",
    ),
    Refusal(
        True,
        lambda run, step: not run.rewritten.isdisjoint(_uses(step)),
        "a view is not used after its base was written in the graph, nor a base after its view was: the same",
    ),
    Refusal(
        True,
        lambda run, step: (
            isinstance(step, (Grad, Backward)) and any(run.ancestors[i] & run.let_go for i in step.outputs)
        ),
        "a graph is swept twice only if it was retained, whatever its ops have saved",
    ),
    Refusal(
        False,
        lambda run, step: (
            isinstance(step, (Grad, Backward))
            and any(i in run.of_gradients and run.ancestors[i] & run.let_go for i in step.outputs)
        ),
        "the gradient of what is linear is constant, so that no sweep of it lets a graph go",
    ),
    Refusal(
        True,
        lambda run, step: (
            isinstance(step, Call) and step.spec.name in STRICTER and len({run.array(i).dtype for i in step.inputs}) > 1
        ),
        "inputs have one dtype, also where there is no element",
    ),
    Refusal(
        False,
        lambda run, step: (
            isinstance(step, Write) and any(run.memory[i] == run.memory[step.inputs[0]] for i in step.inputs[1:])
        ),
        "what is written may lie in the memory that it is written to: it is copied first",
    ),
    *(
        Refusal(
            here,
            lambda run, step: (
                isinstance(step, (Grad, Backward)) and any(run.ancestors[i] & run.overwritten for i in step.outputs)
            ),
            "whether a rule reads its inputs or its output is its own affair, and so is what must not be written",
        )
        for here in (True, False)
    ),
)


def refused_by_one(run: Run, step: Step, here: bool) -> bool:
    """Whether a row says that ``step`` may be refused by smolgrad alone, if ``here``, or by PyTorch alone."""
    return any(row.here is here and row.when(run, step) for row in REFUSALS)
