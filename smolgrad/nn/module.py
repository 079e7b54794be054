"""What all modules are: what holds parameters, and what finds, names, saves and loads them.

Nothing is registered. A module's parameters are those that its attributes lead to, through modules, lists, tuples and
dicts (not through sets, which have no order), so a module is a plain object and its parameters are what it holds now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from reprlib import recursive_repr
from typing import Any, NamedTuple

import numpy as np

from .. import versions
from ..autograd import value_of
from ..dtypes import float32, float64
from ..primitives.operands import refuse
from ..tensor import Tensor


class Parameter(Tensor):
    """A tensor that a module finds among its attributes: a copy of ``data`` that requires grad.

    RuntimeError for integers and bools with ``requires_grad=True``.
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True):
        super().__init__(data, requires_grad=requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __reduce__(self) -> Any:
        return type(self), (self.data, self.requires_grad)  # a copy has no gradient, as in PyTorch


class Buffer(Tensor):
    """A tensor that is a part of a module's state, but not learned: a copy of ``data``, of any dtype."""

    __slots__ = ()

    def __init__(self, data: Any):
        super().__init__(data)

    def __repr__(self) -> str:
        return f"Buffer containing:\n{super().__repr__()}"


# What a state dict holds, in the order in which each module lists it.
_STATE: tuple[type[Tensor], ...] = (Parameter, Buffer)


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict`` left alone: own names that were not given, and given names that are not there."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """The base of all layers and models: assign parameters and modules to attributes, and define ``forward``."""

    training: bool = True

    def __setattr__(self, name: str, value: Any) -> None:
        # What would take a parameter or buffer out of the state unseen: PyTorch refuses it, or keeps the tensor as one.
        held = vars(self).get(name)
        if isinstance(held, Parameter) and not isinstance(value, (Parameter, type(None))):
            raise TypeError(f"{name} is a parameter: assign a Parameter or None, got {type(value).__name__}")
        if isinstance(held, Buffer) and not isinstance(value, (Tensor, Module, type(None))):
            raise TypeError(f"{name} is a buffer: assign a Tensor or None, got {type(value).__name__}")
        if isinstance(held, Buffer) and type(value) is Tensor:
            value.__class__ = Buffer
        super().__setattr__(name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes. NotImplementedError where a subclass does not say."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    # --- what it holds ------------------------------------------------------------------------------------------------

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Each parameter with its name, as ``layers.0.weight``: a module's own first, then those below, in order.

        One that is held in several places comes once, under its first name, unless ``remove_duplicate`` is False.
        """
        return self._named((Parameter,), prefix, recurse, remove_duplicate)

    def _named(
        self, kinds: Iterable[type[Tensor]], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Tensor] = set()
        for path, holder in _walk(self, prefix, set(), remove_duplicate) if recurse else [(prefix, self)]:
            for kind in kinds:
                for name, x in _items(holder):
                    if isinstance(x, kind) and x not in seen:
                        if remove_duplicate:
                            seen.add(x)
                        yield _join(path, name), x

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of ``named_parameters``, each once."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Buffer]]:
        """Each buffer with its name, as ``named_parameters`` has it."""
        return self._named((Buffer,), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """The buffers of ``named_buffers``, each once."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Let the attribute ``name`` be a buffer, a copy of ``tensor``, or None. One is always a part of the state."""
        if not persistent:
            raise NotImplementedError("register_buffer(): the option persistent=False of PyTorch's is not offered here")
        if hasattr(self, name) and not isinstance(getattr(self, name), Buffer):
            raise KeyError(f"register_buffer(): {type(self).__name__} has an attribute {name!r} already")
        setattr(self, name, None if tensor is None else Buffer(tensor))

    def named_modules(self, *, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """The module itself, named ``prefix``, and all modules below, each before those that it holds."""
        return ((name, x) for name, x in _walk(self, prefix, set(), remove_duplicate) if isinstance(x, Module))

    def modules(self) -> Iterator[Module]:
        """The modules of ``named_modules``, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that the attributes hold themselves or in lists, tuples and dicts, each once."""
        first: dict[Module, str] = {}
        for name, module in children(self):
            first.setdefault(module, name)
        return ((name, module) for module, name in first.items())

    def children(self) -> Iterator[Module]:
        """The modules of ``named_children``."""
        return (module for _, module in self.named_children())

    # --- what it does with it -----------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Any:
        """Set ``training`` here and in all modules below; the module itself. ValueError unless ``mode`` is a bool."""
        if not isinstance(mode, bool):
            raise ValueError(f"train(): mode must be a bool, got {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Any:
        """``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Let all parameters require grad, or none; the module itself."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def float(self) -> Any:
        """All floating parameters and buffers, and their gradients, in float32; the module itself."""
        return self._cast(float32)

    def double(self) -> Any:
        """All floating parameters and buffers, and their gradients, in float64; the module itself."""
        return self._cast(float64)

    def _cast(self, dtype: np.dtype[Any]) -> Any:
        for _, x in self._named(_STATE):
            if x.dtype.kind == "f" and x.dtype != dtype:
                x._data = x.data.astype(dtype)
                versions.stamp(x._data)  # what was recorded with the old array is not swept with the new one
                x._grad = None if x.grad is None else x.grad.detach().to(dtype)
        return self

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Call ``fn`` on all modules, each after those below it, one that is held twice twice; the module itself."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or fill them with zeros where not ``set_to_none``."""
        clear_grads(self.parameters(), set_to_none)

    def state_dict(self, **options: Any) -> dict[str, Tensor]:
        """A copy of each parameter and buffer by name; one that is held in several places comes under all its names."""
        refuse("state_dict", options, "destination prefix keep_vars")
        return {name: x.detach().clone() for name, x in self._named(_STATE, remove_duplicate=False)}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, **options: Any) -> IncompatibleKeys:
        """Copy the tensors or arrays of ``state_dict`` into the parameters and buffers of those names.

        RuntimeError, before anything has changed, for a shape or dtype that is not the parameter's (nothing is
        broadcast or cast), for two values for one parameter, and, where ``strict``, for names missing or unexpected.
        TypeError for what is no mapping.
        """
        refuse("load_state_dict", options, "assign")
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict(): needs a mapping of names to tensors, got {type(state_dict).__name__}")
        own = dict(self._named(_STATE, remove_duplicate=False))
        keys = IncompatibleKeys([n for n in own if n not in state_dict], [n for n in state_dict if n not in own])
        given = {name: value_of(state_dict[name]) for name in own if name in state_dict}
        faults = [_misfit(name, own[name], value) for name, value in given.items()]
        if strict:
            faults += ["missing: " + ", ".join(keys.missing_keys)] if keys.missing_keys else []
            faults += ["unexpected: " + ", ".join(map(str, keys.unexpected_keys))] if keys.unexpected_keys else []
        faults = [fault for fault in faults if fault] or _contradictions(own, given)
        if faults:
            raise RuntimeError("\n  ".join([f"load_state_dict() of {type(self).__name__}:", *faults]))
        # A value in the memory of one of our own parameters must not change before its turn comes.
        ours = {id(versions.owner(x.data)) for x in own.values()}
        given = {name: value.copy() if id(versions.owner(value)) in ours else value for name, value in given.items()}
        for name, value in given.items():
            own[name].data = value
        return keys

    # --- how it looks -------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What ``repr`` says of the module itself."""
        return ""

    def _lines(self) -> list[str]:
        """A text for each module that ``repr`` shows below this one."""
        return [f"({name}): {module!r}" for name, module in children(self)]

    @recursive_repr("...")
    def __repr__(self) -> str:
        lines = [line.replace("\n", "\n  ") for line in self._lines()]
        extra = self.extra_repr()
        if lines:
            extra = "".join(f"\n  {line}" for line in ([extra] if extra else []) + lines) + "\n"
        return f"{type(self).__name__}({extra})"


# --- walking ----------------------------------------------------------------------------------------------------------

_HOLDERS = (Module, list, tuple, dict)


def _items(holder: Any) -> list[tuple[Any, Any]]:
    """The attributes of a module, the elements of a list, tuple or dict, by name."""
    if isinstance(holder, Module):
        return list(vars(holder).items())
    return list(holder.items() if isinstance(holder, dict) else enumerate(holder))


def _join(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


def _walk(holder: Any, path: str, seen: set[int], remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
    """``holder`` and all modules and containers below, depth first; each once, or only not inside itself."""
    if id(holder) in seen:
        return
    seen.add(id(holder))
    yield path, holder
    for name, x in _items(holder):
        if isinstance(x, _HOLDERS):
            yield from _walk(x, _join(path, name), seen, remove_duplicate)
    if not remove_duplicate:
        seen.discard(id(holder))


def children(holder: Any, path: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, Module]]:
    """The modules that ``holder`` holds itself or in containers, as often as it does."""
    for name, x in _items(holder):
        if isinstance(x, Module):
            yield _join(path, name), x
        elif isinstance(x, _HOLDERS) and id(x) not in above:
            yield from children(x, _join(path, name), (*above, id(x)))


# --- state ------------------------------------------------------------------------------------------------------------


def clear_grads(parameters: Iterable[Tensor], set_to_none: bool) -> None:
    """Drop the gradients of ``parameters``, or fill them with zeros, in their memory and out of any graph."""
    for p in parameters:
        if p.grad is not None:
            p.grad = None if set_to_none else (p.grad.detach() if p.grad.requires_grad else p.grad).zero_()


def _misfit(name: str, x: Tensor, value: Any) -> str:
    """Why ``value`` cannot be copied into ``x``, or nothing."""
    if not isinstance(value, np.ndarray):
        return f"{name} must be a Tensor or an array, got {type(value).__name__}"
    if value.shape != x.shape or value.dtype != x.dtype:
        return f"{name} needs shape {x.shape} and dtype {x.dtype}, got {value.shape} and {value.dtype}"
    return "" if x.data.flags.writeable else f"{name} is read-only here"


def _contradictions(own: Mapping[str, Tensor], given: Mapping[str, np.ndarray]) -> list[str]:
    """A line for each name whose value differs from one given for the same tensor under another name."""
    first: dict[Tensor, str] = {}
    twins = [(first.setdefault(own[name], name), name) for name in given]
    differ = [(a, b) for a, b in twins if a != b and not np.array_equal(given[a], given[b], equal_nan=True)]
    return [f"{a} and {b} are one tensor here, but differ there" for a, b in differ]
