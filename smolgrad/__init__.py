"""smolgrad: a small reverse-mode autograd engine over NumPy, with PyTorch's names and conventions."""

import importlib
from typing import Any

from . import autograd, creation, func, functional, gradcheck, nn, optim, scalar, serialization
from .autograd import enable_grad, grad, is_grad_enabled, no_grad
from .creation import *
from .dtypes import bool_ as bool
from .dtypes import float32, float64, int8, int16, int32, int64, result_type, uint8
from .functional import log_softmax, softmax
from .primitives import elementwise, indexing, linalg, operands, reduction, shape
from .primitives.elementwise import *
from .primitives.indexing import *
from .primitives.linalg import *
from .primitives.reduction import *
from .primitives.shape import *
from .serialization import *
from .tensor import Tensor

__version__ = "0.1.0"

__all__ = [
    "Tensor", "autograd", "bool", "enable_grad", "float32", "float64", "func", "functional", "grad", "gradcheck",
    "graph",  # noqa: F405 - see __getattr__
    "int8", "int16", "int32", "int64", "is_grad_enabled", "log_softmax", "nn", "no_grad", "optim", "result_type",
    "scalar", "softmax", "uint8",
    *creation.__all__, *elementwise.__all__, *indexing.__all__, *linalg.__all__, *reduction.__all__,
    *serialization.__all__, *shape.__all__,
]  # fmt: skip

operands.publish(globals(), "smolgrad.primitives")


def __getattr__(name: str) -> Any:
    if name == "graph":  # imported when it is asked for, so that python -m smolgrad.graph does not find it there
        return importlib.import_module(".graph", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
