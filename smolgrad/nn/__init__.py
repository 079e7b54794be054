"""Modules under ``torch.nn``'s names: what holds parameters, and what finds, names, saves and loads them."""

from . import utils
from .activations import ReLU, Tanh
from .containers import Sequential
from .layers import Embedding, LayerNorm, Linear
from .module import Module, Parameter

__all__ = ["Embedding", "LayerNorm", "Linear", "Module", "Parameter", "ReLU", "Sequential", "Tanh", "utils"]
