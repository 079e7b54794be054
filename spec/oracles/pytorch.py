"""The PyTorch twin of a module: the same layers with the same names, weights and modes; and the way back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import smolgrad
from smolgrad import nn

# How each leaf of a tree of modules is made in the other library: from the options that both have under one name.
_OPTIONS: dict[str, str] = {
    "Linear": "in_features out_features",
    "Embedding": "num_embeddings embedding_dim padding_idx",
    "LayerNorm": "normalized_shape eps elementwise_affine",
    "RMSNorm": "normalized_shape eps elementwise_affine",
    "BatchNorm1d": "num_features eps momentum affine track_running_stats",
    "Dropout": "p",
    "Flatten": "start_dim end_dim",
    "Conv1d": "in_channels out_channels kernel_size stride padding dilation groups padding_mode",
    "Conv2d": "in_channels out_channels kernel_size stride padding dilation groups padding_mode",
    "MaxPool2d": "kernel_size stride padding dilation",
    "MultiheadAttention": "embed_dim num_heads dropout kdim vdim batch_first",
    "ReLU": "",
    "Tanh": "",
    "Sigmoid": "",
    "SiLU": "",
    "GELU": "approximate",
    "Softmax": "dim",
    "LogSoftmax": "dim",
}
_CONTAINERS: dict[str, Callable[[OrderedDict[str, Any]], Any]] = {
    "Sequential": lambda members: members,
    "ModuleList": lambda members: list(members.values()),
    "ModuleDict": lambda members: members,
}
# Layers whose bias may be left out, and what says so.
_BIAS = {"MultiheadAttention": "in_proj_bias"}
_WITH_BIAS = ("Linear", "BatchNorm1d", "LayerNorm", "Conv1d", "Conv2d", "MultiheadAttention")


def twin(module: nn.Module) -> Any:
    """The PyTorch module of the same layers, weights, buffers and modes; TypeError for a class of one's own."""
    made = _rebuilt(module, torch.nn, {})
    if any(x.dtype == "float64" for x in module.state_dict().values()):
        made.double()
    made.load_state_dict(to_pytorch(module.state_dict()))
    return _like(module, made)


def back(module: Any) -> nn.Module:
    """The smolgrad module of a PyTorch module: the reverse of ``twin``."""
    made: nn.Module = _rebuilt(module, nn, {})
    if any(x.dtype == torch.float64 for x in module.state_dict().values()):
        made.double()
    made.load_state_dict(from_pytorch(module.state_dict()))
    return _like(module, made)


def to_pytorch(state: Any) -> Any:
    """A state dict of a module or an optimizer for PyTorch: copies, with its tensors for ours and for arrays."""
    return _converted(state, (smolgrad.Tensor, np.ndarray), lambda x: torch.from_numpy(np.array(x)))


def from_pytorch(state: Any) -> Any:
    """A state dict of PyTorch's for smolgrad: copies, with arrays for tensors."""
    return _converted(state, torch.Tensor, lambda x: x.detach().numpy().copy())


def there_and_back(module: Any, optimizer: Any) -> tuple[Any, Any]:
    """The state dicts of a training, loaded into another of its kind in the other library, and given back by that."""
    if isinstance(module, nn.Module):
        library, other, convert, revert = torch, twin(module), to_pytorch, from_pytorch
    else:
        library, other, convert, revert = smolgrad, back(module), from_pytorch, to_pytorch
    its = getattr(library.optim, type(optimizer).__name__)(other.parameters())
    its.load_state_dict(convert(optimizer.state_dict()))
    return revert(other.state_dict()), revert(its.state_dict())


def _converted(state: Any, kinds: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(state, dict):
        return {key: _converted(value, kinds, convert) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_converted(value, kinds, convert) for value in state)
    return convert(state) if isinstance(state, kinds) else state


def _rebuilt(module: Any, library: Any, made: dict[Any, Any]) -> Any:
    """``module`` in ``library``; what is in ``made`` already is held again."""
    name = type(module).__name__
    if module in made:
        return made[module]
    if name in _CONTAINERS:
        members = OrderedDict((key, _rebuilt(member, library, made)) for key, member in _members(module))
        made[module] = getattr(library, name)(_CONTAINERS[name](members))
        return made[module]
    if name not in _OPTIONS:
        raise TypeError(f"{name} has no twin: only containers and layers that both libraries have, by their names")
    options = {option: getattr(module, option) for option in _OPTIONS[name].split()}
    if name in _WITH_BIAS:
        options["bias"] = getattr(module, _BIAS.get(name, "bias")) is not None
    made[module] = getattr(library, name)(**options)
    return made[module]


def _members(module: Any) -> list[tuple[str, Any]]:
    """The modules that a container holds, one as often as it does."""
    names = [name for name, _ in module.named_modules(remove_duplicate=False) if name and "." not in name]
    return [(name, module[name] if hasattr(module, "keys") else module[int(name)]) for name in names]


def _like(module: Any, made: Any) -> Any:
    """``made`` in the modes of ``module``, with parameters that are frozen and tied where its are."""
    first: dict[Any, Any] = {}
    for a, b in zip(module.modules(), made.modules(), strict=True):
        b.training = a.training
        its = dict(b.named_parameters(recurse=False))
        for name, p in a.named_parameters(recurse=False):
            setattr(b, name, first.setdefault(p, its[name]))
            first[p].requires_grad_(p.requires_grad)
    return made
