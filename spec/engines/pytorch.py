"""PyTorch as an engine: the oracle by name, and something to run the specification on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..entry import OpSpec
from ..oracles.differences import difference
from . import find

torch.set_num_threads(1)


class PyTorch:
    """PyTorch, asked the questions that smolgrad answers: see ``spec.oracles.differences`` for where they differ."""

    name = "torch"

    def call(self, spec: OpSpec, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        op = spec.ref or find(spec.name, torch, torch.nn, torch.Tensor)
        row = difference(spec.name, inputs, params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # advice to users: a division by nothing, sizes that broadcast
            if row is not None:
                return row.instead(op, *inputs, **params)
            return spec.written(op, inputs, {name: _translated(value) for name, value in params.items()})

    def leaf(self, array: np.ndarray) -> Any:
        return self.constant(array).requires_grad_(array.dtype.kind == "f")

    def constant(self, array: np.ndarray) -> Any:
        return torch.tensor(np.array(array, order="C"))  # PyTorch takes no negative strides

    def array(self, tensor: Any) -> np.ndarray:
        found: np.ndarray = tensor.detach().numpy(force=True)
        return found

    def grad(
        self, outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], **options: Any
    ) -> list[Any]:
        return list(torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True, **options))

    def backward(self, outputs: Sequence[Any], cotangents: Sequence[Any], retain_graph: bool) -> None:
        torch.autograd.backward(list(outputs), list(cotangents), retain_graph)

    def no_grad(self) -> Any:
        return torch.no_grad()


def _translated(value: Any) -> Any:
    """Arrays as torch tensors and NumPy dtypes as torch's."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    return value
