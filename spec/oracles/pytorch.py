"""The PyTorch twin of a module: the same layers with the same names, weights and modes; and the way back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

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
    made = _rebuilt(module, torch.nn)
    if any(x.dtype == "float64" for x in module.state_dict().values()):
        made.double()
    made.load_state_dict({name: torch.from_numpy(x.numpy()) for name, x in module.state_dict().items()})
    return _in_modes_of(module, made)


def back(module: Any) -> nn.Module:
    """The smolgrad module of a PyTorch module: the reverse of ``twin``."""
    made: nn.Module = _rebuilt(module, nn)
    if any(x.dtype == torch.float64 for x in module.state_dict().values()):
        made.double()
    made.load_state_dict({name: x.numpy() for name, x in module.state_dict().items()})
    return _in_modes_of(module, made)


def _rebuilt(module: Any, library: Any) -> Any:
    name = type(module).__name__
    if name in _CONTAINERS:
        members = OrderedDict((key, _rebuilt(member, library)) for key, member in module.named_children())
        return getattr(library, name)(_CONTAINERS[name](members))
    if name not in _OPTIONS:
        raise TypeError(f"{name} has no twin: only containers and layers that both libraries have, by their names")
    options = {option: getattr(module, option) for option in _OPTIONS[name].split()}
    if name in _WITH_BIAS:
        options["bias"] = getattr(module, _BIAS.get(name, "bias")) is not None
    return getattr(library, name)(**options)


def _in_modes_of(module: Any, made: Any) -> Any:
    for a, b in zip(module.modules(), made.modules(), strict=True):
        b.training = a.training
    for p, q in zip(module.parameters(), made.parameters(), strict=True):
        q.requires_grad_(p.requires_grad)
    return made
