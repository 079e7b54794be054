"""Modules under ``torch.nn``'s names: what holds parameters, and what finds, names, saves and loads them."""

from . import utils
from .activations import (
    GELU,
    CrossEntropyLoss,
    L1Loss,
    LogSoftmax,
    MSELoss,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)
from .containers import ModuleDict, ModuleList, Sequential
from .layers import (
    BatchNorm1d,
    Conv1d,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    LayerNorm,
    Linear,
    MaxPool2d,
    MultiheadAttention,
    RMSNorm,
)
from .module import Buffer, Module, Parameter

__all__ = [
    "GELU", "BatchNorm1d", "Buffer", "Conv1d", "Conv2d", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten",
    "L1Loss", "LayerNorm", "Linear", "LogSoftmax", "MSELoss", "MaxPool2d", "Module", "ModuleDict", "ModuleList",
    "MultiheadAttention", "Parameter", "RMSNorm", "ReLU", "Sequential", "SiLU", "Sigmoid", "Softmax", "Tanh", "utils",
]  # fmt: skip
