"""smolgrad: a small reverse-mode autograd engine over NumPy, with PyTorch's names and conventions."""

from . import autograd, functional
from .autograd import enable_grad, grad, is_grad_enabled, no_grad
from .creation import (
    arange,
    as_tensor,
    eye,
    from_numpy,
    full,
    manual_seed,
    ones,
    ones_like,
    rand,
    randint,
    randn,
    tensor,
    zeros,
    zeros_like,
)
from .dtypes import bool_ as bool
from .dtypes import float32, float64, int8, int16, int32, int64, result_type, uint8
from .functional import log_softmax, softmax
from .primitives.elementwise import (
    abs,
    add,
    bitwise_and,
    bitwise_or,
    clamp,
    div,
    eq,
    exp,
    ge,
    gt,
    le,
    log,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    pow,
    relu,
    sigmoid,
    sign,
    sqrt,
    sub,
    tanh,
    where,
)
from .primitives.linalg import matmul
from .primitives.reduction import amax, amin, argmax, logsumexp, max, mean, sum, var
from .primitives.shape import cat, clone, expand, flatten, permute, reshape, squeeze, stack, transpose, unsqueeze
from .tensor import Tensor

__version__ = "0.1.0"
