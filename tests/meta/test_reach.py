"""Each generator produces each rare thing that it promises, and shrinks to something that a person can read."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, seed, settings
from hypothesis import strategies as st

from spec.engines.smolgrad import Smolgrad
from spec.entry import Call, Domain, OpSpec
from spec.faults.killing import LIGHT
from spec.generate import indices, layouts, shapes, values
from spec.generate.values import STEP
from spec.ops import BY_NAME, SPECS

Features = dict[str, Callable[[Any], bool]]


def look(strategy: st.SearchStrategy[Any], see: Callable[[Any], object], examples: int) -> None:
    """Let ``see`` have that many draws from ``strategy``."""

    @seed(examples)  # whether a generator reaches something does not depend on a run's seed
    @settings(**{**LIGHT, "max_examples": examples})
    @given(strategy)
    def draw(drawn: Any) -> None:
        see(drawn)

    draw()


def missing(strategy: st.SearchStrategy[Any], features: Features) -> list[str]:
    """Those of ``features`` that no draw from ``strategy`` has."""
    left = dict(features)

    def see(drawn: Any) -> None:
        for name in [name for name, holds in left.items() if holds(drawn)]:
            del left[name]

    for examples in (100, 300, 1000, 3000):
        if left:
            look(strategy, see, examples)
    return sorted(left)


def simplest(strategy: st.SearchStrategy[Any], wanted: Callable[[Any], bool]) -> Any:
    """What Hypothesis shrinks to among the draws that are ``wanted``."""
    options = {**LIGHT, "max_examples": 1000, "phases": (Phase.generate, Phase.shrink)}
    return find(strategy, wanted, settings=settings(**options), random=Random(0))


def never(strategy: st.SearchStrategy[Any], holds: Callable[[Any], bool]) -> bool:
    """Whether no draw is such that ``holds``."""
    found: list[Any] = []
    look(strategy, lambda drawn: holds(drawn) and found.append(drawn), 200)
    return not found


def drawn_by(function: Callable[..., Any], *args: Any) -> st.SearchStrategy[Any]:
    """The strategy of ``function(draw, *args)``."""
    return st.composite(lambda draw: function(draw, *args))()


# --- shapes and axes --------------------------------------------------------------------------------------------------

SHAPES: Features = {
    "0-d": lambda s: s == (),
    "size 0": lambda s: 0 in s,
    "size 0 beside larger": lambda s: 0 in s and max(s) > 1,
    "an axis of one first": lambda s: len(s) > 1 and s[0] == 1 and s[-1] > 1,
    "an axis of one last": lambda s: len(s) > 1 and s[-1] == 1 and s[0] > 1,
    "an axis of one between": lambda s: len(s) == 3 and s[1] == 1 and min(s[0], s[2]) > 1,
    "a square": lambda s: len(s) == 2 and s[0] == s[1] > 1,
    "a cube": lambda s: len(s) == 3 and len(set(s)) == 1 and s[0] > 1,
    "all sides unequal": lambda s: len(s) == 3 and len(set(s)) == 3 and min(s) > 0,
    "wider than high": lambda s: len(s) == 2 and s[1] > s[0] > 1,
    "higher than wide": lambda s: len(s) == 2 and s[0] > s[1] > 1,
}


def _lacks(long: Any, short: Any) -> int:
    """How many axes of ``short`` are stretched by ``long``."""
    return sum(n == 1 and m > 1 for n, m in zip(reversed(short), reversed(long), strict=False))


PAIRS: Features = {
    "equal": lambda p: p[0] == p[1] and len(p[0]) > 1,
    "the first stretched": lambda p: _lacks(p[1], p[0]) == 1,
    "the second stretched": lambda p: _lacks(p[0], p[1]) == 1,
    "both stretched": lambda p: bool(_lacks(*p)) and bool(_lacks(*p[::-1])),
    "two axes stretched": lambda p: _lacks(*p) > 1,
    "the first of lower rank": lambda p: 0 < len(p[0]) < len(p[1]),
    "the second of lower rank": lambda p: 0 < len(p[1]) < len(p[0]),
    "two ranks lower": lambda p: len(p[0]) + 2 <= len(p[1]),
    "0-d beside a matrix": lambda p: p[0] == () and len(p[1]) == 2,
    "leading and stretched": lambda p: len(p[0]) < len(p[1]) and bool(_lacks(p[1], p[0])),
    "stretched to nothing": lambda p: any(n == 1 and m == 0 for n, m in zip(p[0][::-1], p[1][::-1], strict=False)),
}

AXES: Features = {
    "None": lambda d: d is None,
    "none of them": lambda d: d == (),
    "one": lambda d: isinstance(d, int) and d >= 0,
    "one from the end": lambda d: isinstance(d, int) and d < 0,
    "one in a tuple": lambda d: isinstance(d, tuple) and len(d) == 1,
    "unsorted": lambda d: isinstance(d, tuple) and list(np.mod(d, 3)) != sorted(np.mod(d, 3)),
    "from both ends": lambda d: isinstance(d, tuple) and len(d) > 1 and min(d) < 0 <= max(d),
    "all": lambda d: isinstance(d, tuple) and len(d) == 3,
}


@pytest.mark.parametrize(
    ("strategy", "features"),
    [
        pytest.param(shapes.shapes(min_side=0), SHAPES, id="shapes"),
        pytest.param(shapes.broadcastable(2), PAIRS, id="pairs that broadcast"),
        pytest.param(shapes.axes(3), AXES, id="axes"),
        pytest.param(shapes.axes(0), {"0-d": lambda d: d in (0, -1), "none": lambda d: d == ()}, id="axes of 0-d"),
    ],
)
def test_shapes_and_axes(strategy: st.SearchStrategy[Any], features: Features) -> None:
    assert missing(strategy, features) == []


def test_shapes_have_few_elements_and_size_0_where_it_is_asked_for() -> None:
    assert never(shapes.shapes(max_dims=4), lambda s: np.prod(s) > shapes.MOST or 0 in s)
    assert never(shapes.broadcastable(3, min_side=1), lambda found: 0 in np.broadcast_shapes(*found))


# --- values -----------------------------------------------------------------------------------------------------------


def inputs(spec: OpSpec, *sizes: int) -> st.SearchStrategy[Any]:
    """Inputs of ``spec`` for vectors of these sizes."""
    return drawn_by(values.inputs, spec, Call(tuple((n,) for n in sizes), {}))


def an_op(domain: Domain | None = None, **facts: Any) -> OpSpec:
    return OpSpec("an op", st.nothing(), domain=domain or Domain(), **facts)


VALUES: Features = {
    "a zero": lambda x: 0 in x,
    "zeros alone": lambda x: not x.any(),
    "a tie": lambda x: len(set(x)) < len(x),
    "both signs": lambda x: x.min() < 0 < x.max(),
    "opposites": lambda x: bool({*x} & {*-x} - {0.0}),
    "the largest": lambda x: x.max() == 128 * STEP,
    "the smallest": lambda x: x.min() <= -127 * STEP,
    "all different": lambda x: len(set(x)) == len(x),
}


def test_values() -> None:
    assert missing(inputs(an_op(), 4), {name: lambda x, f=f: f(x[0]) for name, f in VALUES.items()}) == []


def test_values_are_exact_in_float32() -> None:
    assert never(inputs(an_op(), 4), lambda x: (x[0].astype("float32") != x[0]).any() or (x[0] % STEP).any())


def _gaps(x: np.ndarray) -> np.ndarray:
    return np.diff(np.sort(x.reshape(-1)))


@pytest.mark.parametrize("domain", [Domain(), Domain(low=0.25), Domain(high=-1.0), Domain(low=-3.0, kinks=(0.0,))])
def test_unique_values_never_repeat(domain: Domain) -> None:
    assert never(inputs(an_op(domain, unique=True), 5), lambda x: _gaps(x[0]).min() < STEP)


def test_inputs_kept_apart_are_never_equal() -> None:
    both = inputs(an_op(apart=True), 4, 4)
    assert never(both, lambda x: bool({*x[0]} & {*x[1]}))
    assert missing(both, {"near": lambda x: np.abs(x[0][:, None] - x[1]).min() == STEP}) == []
    assert missing(both, {"larger": lambda x: (x[0] > x[1]).all(), "smaller": lambda x: (x[0] < x[1]).all()}) == []


def test_kinks_are_kept_clear_by_a_step_and_reached_from_both_sides() -> None:
    kinks = (-0.5, 0.0, 1.0)
    found = inputs(an_op(Domain(kinks=kinks)), 4)
    assert never(found, lambda x: any(np.abs(x[0] - k).min() < STEP for k in kinks))
    near = {f"{s} of {k}": lambda x, at=k + s * STEP: at in x[0] for k in kinks for s in (1, -1)}
    assert missing(found, near) == []


def test_bounds_are_kept_clear_and_approached() -> None:
    found = inputs(an_op(Domain(low=0.25, high=2.0)), 4)
    assert never(found, lambda x: x[0].min() < 0.25 + STEP or x[0].max() > 2.0 - STEP)
    assert missing(found, {"low": lambda x: 0.25 + STEP in x[0], "high": lambda x: 2.0 - STEP in x[0]}) == []


def test_poles_are_kept_clear_on_both_sides() -> None:
    found = inputs(an_op(Domain(poles=(0.0,))), 4)
    assert never(found, lambda x: np.abs(x[0]).min() < 0.5)
    assert missing(found, {"left": lambda x: (x[0] < 0).any(), "right": lambda x: (x[0] > 0).any()}) == []


def test_a_lane_keeps_its_spread() -> None:
    assert never(inputs(an_op(Domain(spread=0.25)), 5), lambda x: _gaps(x[0]).min() < 0.25)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.kinked], ids=repr)
def test_kinks_and_ties_are_met_where_they_are_wanted(spec: OpSpec) -> None:
    def tied(drawn: Any) -> bool:
        call, arrays = drawn
        kinks = [k for domain in spec.domains(call) for k in domain.kinks]
        numbers = np.concatenate([a.reshape(-1) for a in arrays])
        return bool(np.isin(numbers, kinks).any() if kinks else len(set(numbers)) < numbers.size)

    strategy = spec.calls.flatmap(lambda call: st.tuples(st.just(call), drawn_by(values.at_kinks, spec, call)))
    assert missing(strategy, {"tied": tied}) == []


def test_special_values() -> None:
    found = drawn_by(values.special, an_op(), Call(((4,),), {}))
    features: Features = {
        "0": lambda x: bool(((x[0] == 0) & ~np.signbit(x[0])).any()),
        "-0": lambda x: bool(((x[0] == 0) & np.signbit(x[0])).any()),
        "inf": lambda x: np.inf in x[0],
        "-inf": lambda x: -np.inf in x[0],
        "NaN": lambda x: bool(np.isnan(x[0]).any()),
        "subnormal": lambda x: bool(((x[0] != 0) & (np.abs(x[0]) < 1e-308)).any()),
        "huge": lambda x: bool((np.isfinite(x[0]) & (np.abs(x[0]) > 1e100)).any()),
        "NaN beside inf": lambda x: bool(np.isnan(x[0]).any() and np.isinf(x[0]).any()),
        "a finite number beside them": lambda x: bool(np.isfinite(x[0]).any() and not np.isfinite(x[0]).all()),
    }
    assert missing(found, features) == []


def test_integers_and_bools_where_floats_are_refused() -> None:
    call = Call(((4,), (4,)), {})
    features: Features = {
        "integers": lambda xs: all(x.dtype == np.int64 for x in xs),
        "bools": lambda xs: all(x.dtype == bool for x in xs),
        "both bools in one": lambda xs: xs[0].dtype == bool and len({*xs[0]}) == 2,
        "negative ones": lambda xs: xs[0].min() < 0,
        "two dtypes": lambda xs: xs[0].dtype != xs[1].dtype,
    }
    assert missing(drawn_by(values.inputs, an_op(integer=True), call), features) == []
    ends = np.iinfo(np.int64)
    features = {"the least": lambda xs: ends.min in xs[0], "the largest beside 0": lambda xs: {ends.max, 0} <= {*xs[0]}}
    assert missing(drawn_by(values.special, an_op(integer=True), call), features) == []


def test_cotangents() -> None:
    features: Features = {
        "one-hot": lambda w: np.count_nonzero(w) == 1,
        "ones": lambda w: (w == 1).all(),
        "not the same everywhere": lambda w: len({*w.reshape(-1)}) == w.size,
        "both signs": lambda w: w.min() < 0 < w.max(),
    }
    assert missing(values.cotangents((2, 2)), features) == []
    assert never(values.cotangents((2, 2)), lambda w: not w.any())
    assert np.count_nonzero(simplest(values.cotangents((2, 2)), lambda w: w.any())) == 1
    ones: list[bool] = []
    look(values.cotangents((2, 2)), lambda w: ones.append((w == 1).all()), 300)
    assert sum(ones) < len(ones) / 4


# --- indices ----------------------------------------------------------------------------------------------------------


def _parts(index: Any) -> list[Any]:
    return list(index) if isinstance(index, tuple) else [index]


def _arrays(index: Any) -> list[np.ndarray]:
    return [part for part in _parts(index) if isinstance(part, np.ndarray) and part.dtype != bool]


def _masks(index: Any) -> list[np.ndarray]:
    return [part for part in _parts(index) if isinstance(part, np.ndarray) and part.dtype == bool]


def _slices(index: Any) -> list[slice]:
    return [part for part in _parts(index) if isinstance(part, slice)]


CUBE = (3, 3, 3)


def _places(index: Any, shape: Any = CUBE) -> np.ndarray:
    return np.asarray(np.arange(np.prod(shape)).reshape(shape)[index])


def _repeats(index: Any) -> bool:
    places = _places(index)
    return len(np.unique(places)) < places.size


def _spelled_twice(index: Any) -> bool:
    """A place is named twice, and never in the same words."""
    arrays = np.broadcast_arrays(*_arrays(index)) if _arrays(index) else []
    spelled = list(zip(*(a.reshape(-1).tolist() for a in arrays), strict=True))
    return _repeats(index) and len(set(spelled)) == len(spelled)


def _split(index: Any) -> bool:
    """Integers or arrays stand on both sides of a slice, and an array after it, so that its axes move to the front."""
    kinds = ["s" if isinstance(p, slice) else "a" if isinstance(p, np.ndarray) else "i" for p in _parts(index)]
    return "asa" in "".join(kinds) or "isa" in "".join(kinds)


def _picks_one(index: Any) -> bool:
    """A slice's step picks one, where more would be picked if it were forgotten."""
    return any(len(range(3)[s]) == 1 < len(range(3)[s.start : s.stop]) for s in _slices(index) if abs(s.step or 1) > 1)


INDICES: Features = {
    "an integer": lambda i: isinstance(i, int),
    "integers alone": lambda i: isinstance(i, tuple) and len(i) == 3 and all(isinstance(p, int) for p in i),
    "an integer from the end": lambda i: any(isinstance(p, int) and p < 0 for p in _parts(i)),
    "...": lambda i: Ellipsis in [p for p in _parts(i) if not isinstance(p, np.ndarray)],
    "... between": lambda i: isinstance(i, tuple) and any(p is Ellipsis for p in i[1:-1]),
    "None": lambda i: any(p is None for p in _parts(i)),
    "nothing": lambda i: i == () if isinstance(i, tuple) else False,
    "a step of 2": lambda i: any(s.step == 2 for s in _slices(i)),
    "a step of -1": lambda i: any(s.step == -1 for s in _slices(i)),
    "a step of -2": lambda i: any(s.step == -2 for s in _slices(i)),
    "bounds outside": lambda i: any(s.stop is not None and s.stop > 3 for s in _slices(i)),
    "negative bounds": lambda i: any((s.start or 0) < 0 for s in _slices(i)),
    "an empty slice": lambda i: any(range(3)[s] == range(0) or not range(3)[s] for s in _slices(i)),
    "a step that picks one": _picks_one,
    "an array": lambda i: isinstance(i, np.ndarray) and i.dtype != bool,
    "two arrays": lambda i: len(_arrays(i)) == 2,
    "a matrix of places": lambda i: any(a.ndim == 2 for a in _arrays(i)),
    "arrays that broadcast": lambda i: len({a.shape for a in _arrays(i)}) > 1,
    "an empty array": lambda i: any(a.size == 0 for a in _arrays(i)),
    "a 0-d array": lambda i: any(a.ndim == 0 for a in _arrays(i)),
    "a repeat": _repeats,
    "a place spelled with both signs": _spelled_twice,
    "rows never picked": lambda i: bool(_arrays(i)) and 0 < len(np.unique(_places(i))) < 27,
    "the last row never picked": lambda i: bool(_arrays(i)) and _places(i).size > 0 and _places(i).max() < 18,
    "an array after a slice after an array or integer": _split,
    **{f"{dtype} places": lambda i, d=dtype: any(a.dtype == d for a in _arrays(i)) for dtype in
       ("int64", "int32", "int16", "uint8")},
    **{f"a mask of rank {n}": lambda i, n=n: any(m.ndim == n for m in _masks(i)) for n in (1, 2, 3)},
    "a mask of none": lambda i: any(not m.any() for m in _masks(i)),
    "a mask of some": lambda i: any(m.any() and not m.all() for m in _masks(i)),
    "a mask of all": lambda i: any(m.all() for m in _masks(i)),
    "a mask whose order matters": lambda i: any(m.ndim > 1 and m[1, 0].any() and m[0, 1].any() for m in _masks(i)),
    "a mask beside an array": lambda i: bool(_masks(i)) and bool(_arrays(i)),
}  # fmt: skip


def test_indices() -> None:
    assert missing(indices.indices(CUBE), INDICES) == []


def test_common_faults_of_indices_are_met_often() -> None:
    # A run has some thirty examples: what an index gets wrong must come more than once among them.
    count = {"repeats": 0, "both signs": 0, "split": 0, "picks one": 0}

    def see(index: Any) -> None:
        count["repeats"] += _repeats(index)
        count["both signs"] += _spelled_twice(index)
        count["split"] += _split(index)
        count["picks one"] += _picks_one(index)

    look(indices.indices(CUBE), see, 500)
    assert min(count.values()) > 45, count


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1,), (2, 3, 1, 2)], ids=str)
def test_indices_fit_every_shape(shape: Any) -> None:
    look(indices.indices(shape), lambda index: _places(index, shape), 100)


# --- layouts ----------------------------------------------------------------------------------------------------------

FLAGS: dict[str, Callable[[np.ndarray], bool]] = {
    "fortran": lambda x: x.flags.f_contiguous and not x.flags.c_contiguous,
    "reversed_": lambda x: max(x.strides) < 0,
    "strided": lambda x: not x.flags.c_contiguous and not x.flags.f_contiguous and min(x.strides) > 0,
    "read_only": lambda x: not x.flags.writeable,
    "zero_stride": lambda x: 0 in x.strides,
}


@pytest.mark.parametrize("layout", layouts.LAYOUTS, ids=lambda layout: layout.__name__)
def test_layouts_lie_as_they_are_named(layout: Any) -> None:
    x = np.arange(6.0).reshape(2, 3)
    laid_out = layout(x)
    assert FLAGS[layout.__name__](laid_out)
    assert np.array_equal(laid_out, x[:1].repeat(2, 0) if layout is layouts.zero_stride else x)
    assert not np.shares_memory(laid_out, x)
    for shape in ((), (0,), (2, 0, 3), (1,)):
        assert layout(np.ones(shape)).shape == shape


# --- calls of entries -------------------------------------------------------------------------------------------------


def _ranks(call: Call) -> tuple[int, ...]:
    return tuple(map(len, call.shapes))


CALLS: dict[str, Features] = {
    "matmul": {
        **{f"ranks {a} and {b}": lambda c, r=(a, b): _ranks(c) == r for a in (1, 2, 3, 4) for b in (1, 2, 3, 4)},
        "squares": lambda c: len({n for s in c.shapes for n in s}) == 1 and min(_ranks(c)) > 1 and c.shapes[0][0] > 1,
        "nothing inside": lambda c: c.shapes[0][-1] == 0,
        "batches that broadcast": lambda c: c.shapes[0][:-2] != c.shapes[1][:-2] and min(_ranks(c)) > 2,
    },
    "cat": {
        "one": lambda c: len(c.shapes) == 1,
        "three": lambda c: len(c.shapes) == 3,
        "one of size 0": lambda c: len({0 in s for s in c.shapes}) == 2,
        "the last axis": lambda c: c.params["dim"] < 0,
    },
    "where": {
        "a condition that is stretched": lambda c: c.params["condition"].size == 1 and max(map(np.prod, c.shapes)) > 1,
        "0-d in the first": lambda c: c.shapes[0] == () and c.shapes[1] != (),
        "0-d in the second": lambda c: c.shapes[1] == () and c.shapes[0] != (),
        "both branches": lambda c: len({*c.params["condition"].reshape(-1)}) == 2,
    },
    "clamp": {
        "no upper bound": lambda c: c.params["max"] is None,
        "no lower bound": lambda c: c.params["min"] is None,
        "bounds the wrong way round": lambda c: None not in c.params.values() and c.params["min"] > c.params["max"],
    },
    "setitem": {
        "a value to be stretched": lambda c: c.shapes[1] == () and _places(c.params["index"], c.shapes[0]).size > 1,
        "leading axes to spare": lambda c: len(c.shapes[1]) > _places(c.params["index"], c.shapes[0]).ndim,
    },
    "reshape": {
        "-1": lambda c: -1 in c.params["shape"],
        "a new rank": lambda c: len(c.params["shape"]) > len(c.shapes[0]),
        "size 0": lambda c: 0 in c.shapes[0],
    },
    "permute": {
        "a cycle of three": lambda c: _ranks(c) == (3,) and [*np.mod(c.params["dims"], 3)] in ([1, 2, 0], [2, 0, 1])
    },
    "functional.embedding": {
        "a repeat": lambda c: len(np.unique(c.params["input"])) < c.params["input"].size,
        "the last row never": lambda c: c.params["input"].size > 0 and c.params["input"].max() < c.shapes[0][0] - 1,
        "none": lambda c: c.params["input"].size == 0,
    },
    "functional.cross_entropy": {
        "probabilities": lambda c: len(c.shapes) == 2,
        "classes, smoothed": lambda c: len(c.shapes) == 1 and c.params["label_smoothing"] > 0,
        "classes, weighed": lambda c: len(c.shapes) == 1 and c.params["weight"] is not None,
    },
    "functional.nll_loss": {
        "one sample": lambda c: len(c.shapes[0]) == 1,
        "images": lambda c: len(c.shapes[0]) == 4,
        "an ignored target": lambda c: (c.params["target"] == c.params["ignore_index"]).any(),
        "none": lambda c: c.params["target"].size == 0,
        **{r: lambda c, r=r: c.params["reduction"] == r for r in ("mean", "sum", "none")},
    },
    "scatter_add": {
        "a repeat": lambda c: len(np.unique(c.params["places"])) < c.params["places"].size,
        "0-d": lambda c: c.shapes[0] == (),
        "none": lambda c: c.params["places"].size == 0,
        "a larger source": lambda c: np.prod(c.shapes[1]) > c.params["places"].size > 0,
        "an axis that is not covered": lambda c: c.params["places"].shape[:1] < c.shapes[0][:1],
    },
    "einsum": {
        "a repeated label": lambda c: any(
            t.count(x) > 1 for t in c.params["equation"].split("->")[0].split(",") for x in "abC"
        ),
        "an ellipsis": lambda c: "..." in c.params["equation"],
        "three operands": lambda c: len(c.shapes) == 3,
        "a result": lambda c: "->" in c.params["equation"],
        "none": lambda c: "->" not in c.params["equation"],
        "a size of 0": lambda c: any(0 in shape for shape in c.shapes),
    },
    "functional.linear": {
        "a bias": lambda c: len(c.shapes) == 3,
        "none": lambda c: len(c.shapes) == 2,
        "one row": lambda c: len(c.shapes[0]) == 1,
        "a batch of rows": lambda c: len(c.shapes[0]) == 3,
    },
    "functional.layer_norm": {f"{n} inputs": lambda c, n=n: len(c.shapes) == n for n in (1, 2, 3)},
    **{
        op: {
            "size 0 beside the lane": lambda c: 0 in c.shapes[0] and isinstance(c.params["dim"], int),
            "nothing reduced of nothing": lambda c: 0 in c.shapes[0] and c.params["dim"] == (),
            "all of a cube": lambda c: c.params["dim"] is None and len(c.shapes[0]) == 3,
        }
        for op in ("mean", "amax", "amin", "var", "logsumexp")
    },
    **{
        op: {
            "of all": lambda c: c.params["dim"] is None and np.prod(c.shapes[0]) > 1,
            "size 0 beside the lane": lambda c: 0 in c.shapes[0],
            "one axis kept": lambda c: c.params["dim"] is not None and c.params["keepdim"],
        }
        for op in ("max", "argmax")
    },
    **{
        f"functional.{op}": {
            "an empty lane": lambda c: c.shapes[0] != () and c.shapes[0][c.params["dim"]] == 0,
            "empty lanes' number": lambda c: 0 in c.shapes[0] and c.shapes[0][c.params["dim"]] > 0,
        }
        for op in ("softmax", "log_softmax")
    },
    "functional.mse_loss": {
        "nothing summed": lambda c: 0 in np.broadcast_shapes(*c.shapes) and c.params["reduction"] == "sum",
        "nothing kept": lambda c: 0 in np.broadcast_shapes(*c.shapes) and c.params["reduction"] == "none",
        "a mean of a stretched one": lambda c: c.params["reduction"] == "mean" and c.shapes[0] != c.shapes[1],
    },
    "sum": {"the first axis kept": lambda c: c.params["keepdim"] and c.params["dim"] == 0 and _ranks(c) == (3,)},
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    assert missing(BY_NAME[name].calls, CALLS[name]) == []


def test_lanes_that_are_divided_or_picked_from_are_never_empty() -> None:
    def lane(call: Call) -> list[int]:
        (shape,), dim = call.shapes, call.params["dim"]
        dims = range(len(shape)) if dim is None else dim if isinstance(dim, tuple) else [dim]
        return [shape[d] for d in dims if shape]

    for op in ("mean", "amax", "max", "argmax", "var"):
        assert never(BY_NAME[op].calls, lambda call: 0 in lane(call))
    nothing = {"a mean of nothing": lambda c: 0 in np.broadcast_shapes(*c.shapes) and c.params["reduction"] == "mean"}
    assert missing(BY_NAME["functional.mse_loss"].calls, nothing) == ["a mean of nothing"]


# --- shrinking --------------------------------------------------------------------------------------------------------


def test_shapes_shrink_to_the_fewest_and_smallest_axes() -> None:
    assert simplest(shapes.shapes(), lambda s: True) == ()
    assert simplest(shapes.shapes(), lambda s: len(s) == 2 and s[0] != s[1]) in ((1, 2), (2, 1))
    assert simplest(shapes.broadcastable(2), lambda p: p[0] != p[1]) in (
        ((0,), (1,)),
        ((1,), (0,)),
        ((0,), ()),
        ((), (0,)),
    )


def test_values_shrink_to_zero_and_one_step() -> None:
    assert not simplest(inputs(an_op(), 3), lambda x: True)[0].any()
    assert sorted(simplest(inputs(an_op(), 3), lambda x: x[0].any())[0]) == [0, 0, STEP]
    assert simplest(inputs(an_op(Domain(low=0.25)), 1), lambda x: True)[0] == 0.25 + STEP


def test_indices_shrink_to_one_array_and_little_beside_it() -> None:
    def is_array(index: Any) -> bool:
        return bool(_arrays(index)) and _repeats(index)

    found = simplest(indices.indices(CUBE), is_array)
    assert len(_arrays(found)) == 1
    assert len(_parts(found)) <= 3
    assert not np.concatenate([a.reshape(-1) for a in _arrays(found)])[:1].any()


def test_a_failing_case_shrinks_to_a_small_one() -> None:
    # The case of a fault that needs a stretched operand: one element beside two, and no more.
    engine = Smolgrad()

    def drawn(draw: Any) -> Any:
        call = draw(BY_NAME["mul"].calls)
        return call, values.inputs(draw, BY_NAME["mul"], call)

    def stretched(found: Any) -> bool:
        call, arrays = found
        y = engine.call(BY_NAME["mul"], [engine.constant(a) for a in arrays], call.params)
        return y.size > min(a.size for a in arrays) > 0

    call, arrays = simplest(drawn_by(drawn), stretched)
    assert sorted(map(np.prod, call.shapes)) == [1, 2]
    assert not any(a.any() for a in arrays)


def test_mapped_strategies_shrink_to_what_is_plainest() -> None:
    assert simplest(shapes.stretched((2, 3)), lambda s: True) == (2, 3)  # nothing is stretched
    assert simplest(shapes.axes(3), lambda d: True) is None
    assert simplest(shapes.one_axis(3), lambda d: True) == 0
    assert simplest(shapes.some_axes(3), lambda d: len(d) > 1) == (0, 1)
    assert not simplest(indices.masks((2, 2)), lambda m: True).any()
    assert np.count_nonzero(simplest(indices.masks((2, 2)), lambda m: m.any())) == 1
    assert simplest(indices.index_arrays(3, (2,)), lambda i: True).tolist() == [0, 0]
    assert simplest(indices.slices(3), lambda s: True) == slice(None)
    assert simplest(BY_NAME["amax"].calls, lambda call: True) == Call(((),), {"dim": None, "keepdim": False})
    assert simplest(BY_NAME["max"].calls, lambda c: c.params["dim"] is None) == Call(((),), {"dim": None})


def test_facts_of_a_domain_shrink_to_the_nearest_that_is_allowed() -> None:
    for domain, nearest in (
        (Domain(poles=(0.0,)), 16 * STEP),
        (Domain(kinks=(0.0,)), STEP),
        (Domain(high=-1.0), -1.0 - STEP),
        (Domain(low=1.0, high=2.0), 1.0 + STEP),
    ):
        assert simplest(inputs(an_op(domain), 1), lambda x: True)[0] == nearest
    assert (np.diff(np.sort(simplest(inputs(an_op(unique=True), 3), lambda x: True)[0])) == STEP).all()
    first, second = simplest(inputs(an_op(apart=True), 1, 1), lambda x: True)
    assert second - first == STEP
