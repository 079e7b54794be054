"""What all optimizers are: parameters in groups, options that are checked, and a state that is saved and loaded.

A step works through each parameter in chunks that stay in the cache, with two scratch arrays of a chunk's size: it
makes nothing of a parameter's size, but for its state at the first step that finds a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from .. import versions
from ..autograd import enable_grad
from ..chunks import CHUNK, chunked
from ..nn.module import clear_grads
from ..primitives.operands import refuse
from ..tensor import Tensor


class Optimizer:
    """The base of all optimizers: parameters in groups, each with its options, and what is remembered of each.

    ``params`` are tensors, or dicts of ``params`` and the options that differ from ``defaults``. ``param_groups`` are
    dicts of the same kind with every option, and may be written to between steps. ``state`` holds arrays and step
    counts by parameter. TypeError for what is no tensor; ValueError for no parameters, for one that is given twice or
    was made by an op, and for options out of range; NotImplementedError for PyTorch's options that are ``not_offered``.
    """

    not_offered: ClassVar[str] = "foreach differentiable fused"
    remembered: ClassVar[tuple[str, ...]] = ()  # in a parameter's state: "step", and arrays of its shape

    def __init__(self, params: Any, defaults: dict[str, Any], options: Iterable[str] = ()):
        for name in options:
            if name not in self.not_offered.split():
                raise TypeError(f"{type(self).__name__}(): got an unexpected argument {name!r}")
        given = _listed(params)
        if not given:
            raise ValueError(f"{type(self).__name__}(): got an empty parameter list")
        self._check(defaults)
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = {}
        self.param_groups: list[dict[str, Any]] = []
        self._scratch: dict[np.dtype[Any], np.ndarray] = {}
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take on more parameters, with options of their own."""
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(f"{name}(): a parameter group must be a dict, got {type(param_group).__name__}")
        if "params" not in param_group:
            raise KeyError(f"{name}(): a parameter group needs 'params', got {', '.join(map(str, param_group))}")
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else _listed(params)
        group = {"params": params, **self.defaults, **{k: v for k, v in param_group.items() if k != "params"}}
        known = {p for earlier in self.param_groups for p in earlier["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"{name}(): optimizes Tensors, got {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(f"{name}(): optimizes leaves; a tensor of shape {p.shape} was made by an op")
            if p in known:
                raise ValueError(f"{name}(): a parameter of shape {p.shape} is given twice")
            known.add(p)
        self._check(group)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or fill them with zeros where not ``set_to_none``."""
        clear_grads(self._parameters(), set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient, once; the rest is not touched, nor is any gradient.

        ``closure``, where given, computes loss and gradients first, and its loss is returned. ValueError for options
        that are out of range by now and for read-only parameters: nothing has changed then.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        moving = [(p, p.grad, group) for group in self.param_groups for p in group["params"] if p.grad is not None]
        for group in self.param_groups:
            self._check(group)
        for p, _, _ in moving:
            if not p.data.flags.writeable:
                raise ValueError(f"step(): a parameter of shape {p.shape} is read-only")
        with np.errstate(all="ignore"):
            for p, grad, group in moving:
                self._update(p.data, grad.data, self.state.setdefault(p, {}), group)
                versions.stamp(p.data)
        return loss

    def state_dict(self) -> dict[str, Any]:
        """A copy of options and state, with parameters by number, in the order of the groups: numbers and arrays.

        The form is PyTorch's: ``{"state": {0: {...}, ...}, "param_groups": [{"lr": ..., "params": [0, ...]}, ...]}``.
        """
        number = {p: i for i, p in enumerate(self._parameters())}
        return {
            "state": {
                number[p]: {k: np.copy(x) if isinstance(x, np.ndarray) else x for k, x in state.items()}
                for p, state in self.state.items()
                if p in number
            },
            "param_groups": [group | {"params": [number[p] for p in group["params"]]} for group in self.param_groups],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on with a copy of a ``state_dict``'s options and state, PyTorch's with arrays for tensors too.

        ValueError, before anything has changed, for groups of other sizes, options out of range, and a state that is
        none of this optimizer's or has other shapes or dtypes than the parameters (nothing is cast).
        """
        name = f"load_state_dict() of {type(self).__name__}"
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= state_dict.keys():
            raise ValueError(f"{name}: needs a mapping with 'state' and 'param_groups'")
        groups, params = [dict(group) for group in state_dict["param_groups"]], self._parameters()
        counts = [[len(group["params"]) for group in some] for some in (self.param_groups, groups)]
        if counts[0] != counts[1]:
            raise ValueError(f"{name}: its groups have {counts[0]} parameters, those of the state {counts[1]}")
        numbers = [number for group in groups for number in group["params"]]
        own = dict(zip(numbers, params, strict=True))
        if len(own) != len(numbers) or not state_dict["state"].keys() <= own.keys():
            raise ValueError(f"{name}: the numbers of the parameters do not fit their states: {numbers}")
        for mine, group in zip(self.param_groups, groups, strict=True):
            if missing := self.defaults.keys() - group.keys():
                raise ValueError(f"{name}: a group lacks {', '.join(sorted(missing))}")
            self._check(group)
            for number in group["params"]:
                self._check_state(f"{name}: parameter {number}", own[number], state_dict["state"].get(number), group)
            group["params"] = mine["params"]
        self.state = {own[number]: _restored(own[number], state) for number, state in state_dict["state"].items()}
        for mine, group in zip(self.param_groups, groups, strict=True):
            mine.clear()
            mine.update(group)

    def _check_state(self, name: str, p: Tensor, state: Any, group: dict[str, Any]) -> None:
        """ValueError where ``state`` is no state of ``p``."""
        if not state:
            return
        given = {key for key, value in state.items() if value is not None}
        if not set(self._needed(group)) <= given <= set(self.remembered):
            raise ValueError(f"{name} has a state of {sorted(given)}, not of {' '.join(self.remembered)}")
        for key in given:
            value = np.asarray(state[key])
            if key == "step":
                if value.shape or value.dtype.kind not in "iuf" or not 0 <= value < np.inf or value % 1:
                    raise ValueError(f"{name}: step must be a count, got {state[key]!r}")
            elif value.shape != p.shape or value.dtype != p.dtype:
                raise ValueError(f"{name}: {key} needs {p.shape} {p.dtype}, got {value.shape} {value.dtype}")

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _needed(self, _group: dict[str, Any]) -> tuple[str, ...]:
        """What the state of a parameter that has moved must have."""
        return ()

    def _check(self, group: dict[str, Any]) -> None:
        """ValueError for an option that is out of range, NotImplementedError for one that is on and not offered."""
        asked = {name: group.get(name) or None for name in self.not_offered.split()}
        refuse(type(self).__name__, asked, self.not_offered)

    def _update(self, p: np.ndarray, grad: np.ndarray, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of the parameter ``p``, in its own memory."""
        raise NotImplementedError(f"{type(self).__name__} defines no _update()")

    def _chunks(self, grad: np.ndarray, *written: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
        """``chunked(grad, *written)``, and two scratch arrays of each chunk's size."""
        if grad.dtype not in self._scratch:
            self._scratch[grad.dtype] = np.empty((2, CHUNK), grad.dtype)
        s, t = self._scratch[grad.dtype]
        for chunk in chunked(grad, *written):
            n = len(chunk[0])
            yield *chunk, s[:n], t[:n]


def _restored(p: Tensor, state: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``state``, its arrays in the layout of ``p``."""
    made: dict[str, Any] = {}
    for name, value in state.items():
        if name == "step":
            made[name] = int(value)
        elif value is not None:
            made[name] = np.empty_like(p.data)
            made[name][...] = value
    return made


def _listed(params: Any) -> list[Any]:
    if isinstance(params, (Tensor, set, frozenset)):
        raise TypeError(f"an optimizer needs Tensors or groups in a list or the like, got a {type(params).__name__}")
    return list(params)


def in_range(group: dict[str, Any], name: str, low: float = 0.0) -> None:
    """ValueError where the option ``name`` of ``group`` is less than ``low``, infinite or NaN."""
    if not low <= group[name] or not math.isfinite(group[name]):
        raise ValueError(f"{name} must be finite and at least {low}, got {group[name]}")
