"""Modules under ``torch.nn``'s names: what holds parameters, and what finds, names, saves and loads them.

Nothing is registered. A module's parameters are those that its attributes lead to, through modules, lists, tuples and
dicts (not through sets, which have no order), so a module is a plain object and its parameters are what it holds now.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from reprlib import recursive_repr
from typing import Any, ClassVar, NamedTuple

import numpy as np

from . import functional, versions
from .creation import ones, rand, randn, zeros
from .dtypes import float32
from .primitives.operands import refuse, sizes
from .tensor import Tensor


class Parameter(Tensor):
    """A tensor that a module finds among its attributes: a copy of ``data`` that requires grad.

    RuntimeError for integers and bools with ``requires_grad=True``.
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True):
        super().__init__(data, requires_grad=requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


# What a state dict holds, in the order in which each module lists it.
_STATE: tuple[type[Tensor], ...] = (Parameter,)


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict`` left alone: own names that were not given, and given names that are not there."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """The base of all layers and models: assign parameters and modules to attributes, and define ``forward``."""

    training: bool = True

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

    def named_modules(self, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """The module itself, named ``prefix``, and all modules below, each before those that it holds."""
        return ((name, x) for name, x in _walk(self, prefix, set(), remove_duplicate) if isinstance(x, Module))

    def modules(self) -> Iterator[Module]:
        """The modules of ``named_modules``, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that the attributes hold themselves or in lists, tuples and dicts, each once."""
        first: dict[Module, str] = {}
        for name, module in _children(self):
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

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or fill them with zeros where not ``set_to_none``."""
        clear_grads(self.parameters(), set_to_none)

    def state_dict(self, **options: Any) -> dict[str, Tensor]:
        """A copy of every parameter by its name; one that is held in several places comes under each of its names."""
        refuse("state_dict", _asked(options), "destination prefix keep_vars")
        return {name: x.detach().clone() for name, x in self._named(_STATE, remove_duplicate=False)}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, **options: Any) -> IncompatibleKeys:
        """Copy the tensors or arrays of ``state_dict`` into the parameters of those names.

        RuntimeError, before anything has changed, for a shape or dtype that is not the parameter's (nothing is
        broadcast or cast), for two values for one parameter, and, where ``strict``, for names missing or unexpected.
        TypeError for what is no mapping.
        """
        refuse("load_state_dict", _asked(options), "assign")
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict(): needs a mapping of names to tensors, got {type(state_dict).__name__}")
        own = dict(self._named(_STATE, remove_duplicate=False))
        keys = IncompatibleKeys([n for n in own if n not in state_dict], [n for n in state_dict if n not in own])
        given = {name: _array(state_dict[name]) for name in own if name in state_dict}
        faults = [_misfit(name, own[name], value) for name, value in given.items()]
        if strict:
            faults += [f"{name} is missing" for name in keys.missing_keys]
            faults += [f"{name} is unexpected" for name in keys.unexpected_keys]
        faults = [fault for fault in faults if fault] or _contradictions(own, given)
        if faults:
            raise RuntimeError(f"load_state_dict() of {type(self).__name__}: " + "; ".join(faults))
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

    @recursive_repr("...")
    def __repr__(self) -> str:
        lines = [f"({name}): {module!r}".replace("\n", "\n  ") for name, module in _children(self)]
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


def _children(holder: Any, path: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, Module]]:
    """The modules that ``holder`` holds itself or in containers, as often as it does."""
    for name, x in _items(holder):
        if isinstance(x, Module):
            yield _join(path, name), x
        elif isinstance(x, _HOLDERS) and id(x) not in above:
            yield from _children(x, _join(path, name), (*above, id(x)))


# --- state ------------------------------------------------------------------------------------------------------------


def clear_grads(parameters: Iterable[Tensor], set_to_none: bool) -> None:
    """Drop the gradients of ``parameters``, or fill them with zeros, in their memory and out of any graph."""
    for p in parameters:
        if p.grad is not None:
            p.grad = None if set_to_none else (p.grad.detach() if p.grad.requires_grad else p.grad).zero_()


def _array(value: Any) -> Any:
    return value.data if isinstance(value, Tensor) else value


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


def _asked(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that ask for something: PyTorch's switches are off by default, and off is what there is."""
    return {name: None if value is False else value for name, value in options.items()}


# --- layers -----------------------------------------------------------------------------------------------------------


class Linear(Module):
    """``x @ weight.T + bias``: (*, in_features) gives (*, out_features).

    ``weight`` is (out_features, in_features), ``bias`` (out_features,) or None. Both are drawn uniformly within
    1/sqrt(in_features), which is PyTorch's kaiming_uniform(a=sqrt(5)). ``dtype`` is float32 unless given.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = None, **options: Any):
        refuse("Linear", options, "device")
        shape = self.out_features, self.in_features = sizes("Linear", (out_features, in_features))
        bound = 1 / math.sqrt(shape[1]) if shape[1] > 0 else 0.0
        self.weight = _uniform(shape, bound, dtype)
        self.bias = _uniform(shape[:1], bound, dtype) if bias else None

    def forward(self, input: Any) -> Any:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _uniform(shape: tuple[int, ...], bound: float, dtype: Any) -> Parameter:
    return Parameter(rand(shape, dtype=dtype or float32) * (2 * bound) - bound)


class Embedding(Module):
    """The rows of ``weight`` (num_embeddings, embedding_dim) that integers name: (*) gives (*, embedding_dim).

    Drawn from N(0, 1), in float32 unless ``dtype`` is given. ``padding_idx`` is not offered.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: None = None, *, dtype: Any = None, **options: Any
    ):
        asked = _asked({"padding_idx": padding_idx, **options})
        refuse("Embedding", asked, "padding_idx max_norm norm_type scale_grad_by_freq sparse _weight _freeze device")
        self.num_embeddings, self.embedding_dim = sizes("Embedding", (num_embeddings, embedding_dim))
        self.weight = Parameter(randn(self.num_embeddings, self.embedding_dim, dtype=dtype or float32))

    def forward(self, input: Any) -> Any:
        return functional.embedding(input, self.weight)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class LayerNorm(Module):
    """Each lane over the last axes, of sizes ``normalized_shape``, brought to mean 0 and variance 1, and made affine.

    ``weight`` (ones) and ``bias`` (zeros) have shape ``normalized_shape``, in float32 unless ``dtype`` is given, or are
    None. Source: Ba et al., "Layer Normalization" (2016).
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = None,
        **options: Any,
    ):
        refuse("LayerNorm", options, "device")
        self.normalized_shape = shape = sizes("LayerNorm", (normalized_shape,))
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Parameter(ones(shape, dtype=dtype or float32)) if elementwise_affine else None
        self.bias = Parameter(zeros(shape, dtype=dtype or float32)) if elementwise_affine and bias else None

    def forward(self, input: Any) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class _Activation(Module):
    """A function of each element as a module: a subclass names the function, and the options that are not offered."""

    function: ClassVar[Callable[[Any], Any]]
    not_offered: ClassVar[str] = ""

    def __init__(self, **options: Any):
        refuse(type(self).__name__, _asked(options), self.not_offered)

    def forward(self, input: Any) -> Any:
        return type(self).function(input)


class ReLU(_Activation):
    """The larger of each element and 0."""

    function, not_offered = functional.relu, "inplace"


class Tanh(_Activation):
    """The hyperbolic tangent of each element."""

    function = functional.tanh


class Sequential(Module):
    """Modules one after the other: ``Sequential(a, b)(x)`` is ``b(a(x))``. An OrderedDict gives them names."""

    def __init__(self, *modules: Any):
        named = len(modules) == 1 and isinstance(modules[0], OrderedDict)
        for name, module in modules[0].items() if named else enumerate(modules):
            if not isinstance(module, Module):
                raise TypeError(f"Sequential(): needs modules, got {type(module).__name__}")
            setattr(self, str(name), module)

    def __len__(self) -> int:
        return len(list(_children(self)))

    def __iter__(self) -> Iterator[Module]:
        return (module for _, module in _children(self))

    def __getitem__(self, index: int | slice) -> Any:
        """One module, or a Sequential of the same modules under the same names. IndexError where there is none."""
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(_children(self))[index]))
        return list(self)[index]

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input
