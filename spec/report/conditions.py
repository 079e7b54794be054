"""Rare conditions: facts read off a case, and which functions can meet them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..entry import Call

if TYPE_CHECKING:
    from ..case import Case
    from .coverage import Function


@dataclass(frozen=True)
class Condition:
    """Whether a case meets it, and whether a function can: asked of the function itself, or of its entry's facts."""

    met: Callable[[Case], Any]
    possible: Callable[[Function], bool]


def _always(_function: Function) -> bool:
    return True


# --- shapes -----------------------------------------------------------------------------------------------------------


def _is_stretched(case: Case, first: bool) -> bool:
    """Whether the first input, or one of the others, is repeated to fit the output, of the shape of all together."""
    shapes = [a.shape for a in case.arrays]
    if len({*shapes}) == 1:
        return False
    try:
        whole = np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    stretched = any(shape != whole for shape in (shapes[:1] if first else shapes[1:]))
    return stretched and 0 not in whole and all(w.shape == whole for w in case.cotangents[:1])


SHAPES = {
    "size 0": Condition(lambda case: any(a.size == 0 for a in case.arrays), _always),
    "0-d": Condition(lambda case: any(a.ndim == 0 for a in case.arrays), lambda f: f.takes_0d()),
    "square": Condition(
        lambda case: any(a.ndim > 1 and a.shape[0] > 1 and len({*a.shape}) == 1 for a in case.arrays),
        lambda f: f.takes_matrices(),
    ),
    "first stretched": Condition(
        lambda case: _is_stretched(case, first=True), lambda f: f.stretches((2, 2), (2, 2, 2))
    ),
    "other stretched": Condition(
        lambda case: _is_stretched(case, first=False), lambda f: f.stretches((2, 2, 2), (2, 2))
    ),
    "one tensor twice": Condition(
        lambda case: len(case.arrays) > 1 and np.may_share_memory(*case.arrays[:2]),
        lambda f: f.most_inputs() > 1 and not f.spec.constant,
    ),
}

# --- values -----------------------------------------------------------------------------------------------------------


def _ties(case: Case) -> bool:
    """Two elements are equal where the function is not smooth then."""
    within = case.spec.unique and any(len({*numbers}) < len(numbers) for numbers in case.numbers)
    return within or (case.spec.apart and bool(np.any(case.arrays[0] == case.arrays[1])))


def _is_at_kink(case: Case) -> bool:
    domains = case.spec.domains(Call(tuple(a.shape for a in case.arrays), case.params))
    return any(kink in numbers for numbers, d in zip(case.numbers, domains, strict=True) for kink in d.kinks)


def _floats(function: Function) -> bool:
    return not function.spec.integer


VALUES = {
    "both signs": Condition(
        lambda case: any(len(numbers) > 1 and min(numbers) < 0 < max(numbers) for numbers in case.numbers),
        lambda f: any(domain.low < 0 < domain.high for domain in f.domains()),
    ),
    "tie": Condition(
        lambda case: (case.spec.unique or case.spec.apart) and _ties(case), lambda f: f.spec.unique or f.spec.apart
    ),
    "kink": Condition(
        lambda case: case.spec.kinked and _is_at_kink(case), lambda f: any(domain.kinks for domain in f.domains())
    ),
    "NaN or infinity": Condition(
        lambda case: any(not abs(x) < math.inf for numbers in case.numbers for x in numbers), _floats
    ),
    "huge or tiny": Condition(
        lambda case: any(1e100 < abs(x) < math.inf or 0 < abs(x) < 1e-100 for xs in case.numbers for x in xs), _floats
    ),
}

# --- axes -------------------------------------------------------------------------------------------------------------

_ABSENT = object()


def _dim(case: Case) -> Any:
    return case.params.get("dim", _ABSENT)


def _counted_from_the_end(params: dict[str, Any]) -> bool:
    return any(d < 0 for name, value in params.items() if "dim" in name for d in _integers(value))


def _integers(value: Any) -> Iterator[int]:
    """The integers in ``value``, in tuples of tuples too; keepdim is none."""
    if isinstance(value, tuple):
        for part in value:
            yield from _integers(part)
    elif type(value) is int:
        yield value


AXES = {
    "None": Condition(lambda case: _dim(case) is None, lambda f: f.takes(dim=None)),
    "one": Condition(lambda case: type(_dim(case)) is int, lambda f: f.takes(dim=0)),
    "from the end": Condition(
        lambda case: _counted_from_the_end(case.params),
        lambda f: any("dim" in name and name != "keepdim" for call in f.calls for name in call.params),
    ),
    "several": Condition(lambda case: type(_dim(case)) is tuple and len(_dim(case)) > 1, lambda f: f.takes(dim=(0, 1))),
    "none ()": Condition(lambda case: _dim(case) == (), lambda f: f.takes(dim=())),
    "kept": Condition(lambda case: case.params.get("keepdim", False), lambda f: f.takes(keepdim=True)),
}

# --- indices ----------------------------------------------------------------------------------------------------------


def _parts(case: Case) -> tuple[Any, ...]:
    index = case.params.get("index", ())
    return index if isinstance(index, tuple) else (index,)


def _has_repeats(case: Case) -> bool:
    """Whether an element is picked twice; for arrays of numbers beside the inputs, whether a number comes twice."""
    if "index" in case.params:
        shape = case.arrays[0].shape
        picked = [np.arange(case.arrays[0].size).reshape(shape)[case.params["index"]]] if _arrays(case, "iu") else []
    else:
        picked = [x for x in case.params.values() if isinstance(x, np.ndarray) and x.dtype.kind in "iu"]
    return any(len({*x.ravel().tolist()}) < x.size for x in picked)


def _arrays(case: Case, kinds: str) -> list[np.ndarray]:
    return [part for part in _parts(case) if isinstance(part, np.ndarray) and part.dtype.kind in kinds]


def _by_index(function: Function) -> bool:
    return any("index" in call.params for call in function.calls)


def _by_number(function: Function) -> bool:
    values = (value for call in function.calls for value in call.params.values())
    return _by_index(function) or any(isinstance(x, np.ndarray) and x.dtype.kind in "iu" for x in values)


INDICES = {
    "repeat": Condition(_has_repeats, _by_number),
    "both signs": Condition(lambda case: any(x.size and x.min() < 0 <= x.max() for x in _arrays(case, "i")), _by_index),
    "mask": Condition(lambda case: _arrays(case, "b"), _by_index),
    "step < 0": Condition(lambda case: any(type(p) is slice and (p.step or 1) < 0 for p in _parts(case)), _by_index),
    "...": Condition(lambda case: any(part is Ellipsis for part in _parts(case)), _by_index),
    "new axis": Condition(lambda case: any(part is None for part in _parts(case)), _by_index),
    "none picked": Condition(lambda case: any(x.size == 0 for x in _arrays(case, "iu")), _by_index),
}

# --- layouts ----------------------------------------------------------------------------------------------------------

# Of arrays that are not C-contiguous, or not writable.
LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "Fortran": lambda x: x.flags.fnc,
    "reversed": lambda x: x.ndim and max(x.strides) < 0,
    "strided": lambda x: not x.flags.forc and min(x.strides) > 0,
    "0 stride": lambda x: x.size > 1 and 0 in x.strides,
    "read-only": lambda x: not x.flags.writeable,
}


def _some_array(lies: Callable[[np.ndarray], Any]) -> Condition:
    return Condition(lambda case: any(not a.flags.carray and lies(a) for a in case.arrays), _always)


def _some_cotangent(lies: Callable[[np.ndarray], Any]) -> Condition:
    return Condition(
        lambda case: any(not w.flags.carray and lies(w) for w in case.cotangents), lambda f: not f.spec.constant
    )


CONDITIONS: dict[str, dict[str, Condition]] = {
    "shapes and slots": SHAPES,
    "values": VALUES,
    "axes": AXES,
    "indices": INDICES,
    "layouts of inputs": {name: _some_array(lies) for name, lies in LAYOUTS.items()},
    "layouts of cotangents": {name: _some_cotangent(lies) for name, lies in LAYOUTS.items()},
}

# Without this, a case meets none of a group's conditions. Most cases are plain: this makes the ledger cheap.
_GUARDS: dict[str, Callable[[Case], Any]] = {
    "shapes and slots": lambda case: True,
    "values": lambda case: True,
    "axes": lambda case: case.params,
    "indices": lambda case: "index" in case.params or any(isinstance(x, np.ndarray) for x in case.params.values()),
    "layouts of inputs": lambda case: not all([a.flags.carray for a in case.arrays]),  # noqa: C419  a list is faster
    "layouts of cotangents": lambda case: not all([w.flags.carray for w in case.cotangents]),  # noqa: C419
}
_GROUPS = [
    (_GUARDS[group], [(f"{group}: {name}", condition.met) for name, condition in found.items()])
    for group, found in CONDITIONS.items()
]


def met(case: Case) -> frozenset[str]:
    """The conditions that ``case`` meets, as ``group: name``."""
    return frozenset([name for guard, found in _GROUPS if guard(case) for name, holds in found if holds(case)])
