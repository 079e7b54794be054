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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # advice about layouts
            torch.autograd.backward(list(outputs), list(cotangents), retain_graph)

    def no_grad(self) -> Any:
        return torch.no_grad()


def _own_gradient(leaf: torch.Tensor) -> None:
    if leaf.grad is not None:
        leaf.grad = leaf.grad.clone()


class Oracle(PyTorch):
    """PyTorch, where a program runs on: what a gradient or a constant is there does not depend on how it was made."""

    def call(self, spec: OpSpec, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        result = super().call(spec, inputs, params)
        if any(result is x for x in inputs):
            if spec.name.endswith("_"):  # it was written to
                return result
            result = result.view_as(result)  # there was nothing to do
        if torch.is_grad_enabled():
            return result
        # A view that is taken under no_grad would have the requires_grad of its base, as a leaf.
        return tuple(y.detach() for y in result) if isinstance(result, tuple) else result.detach()

    def leaf(self, array: np.ndarray) -> Any:
        # A leaf's gradient may be a cotangent, to which the next sweep would add, or a ZeroTensor, to which none can.
        tensor = super().leaf(array)
        tensor.register_post_accumulate_grad_hook(_own_gradient)
        return tensor

    def grad(
        self, outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], **options: Any
    ) -> list[Any]:
        # One gradient may be another one, or a cotangent; a later write to it would show in both.
        found = super().grad(outputs, inputs, cotangents, **options)
        own = found if options.get("create_graph") else [g if g is None else g.detach() for g in found]
        return [g if g is None else g.clone() for g in own]


class Copying(Oracle):
    """PyTorch with copies of every op's inputs and outputs in its records: no later write reaches a sweep.

    So a sweep that PyTorch refuses for the sake of a value that another engine's rule does not need has a gradient.
    """

    def call(self, spec: OpSpec, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        result = super().call(spec, [*inputs[:1], *(x.clone() for x in inputs[1:])], params)
        outputs = result if isinstance(result, tuple) else (result,)
        memory = {y.untyped_storage()._cdata for y in outputs}  # not its address, which is 0 where there is no element
        if any(x.untyped_storage()._cdata in memory for x in inputs[:1]):
            return result  # a write, or a view: it has no value in its record
        copied = super().call(spec, [x.clone() for x in inputs], params)
        return tuple(y.clone() for y in copied) if isinstance(copied, tuple) else copied.clone()


def _translated(value: Any) -> Any:
    """Arrays as torch tensors and NumPy dtypes as torch's."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, tuple):
        return tuple(map(_translated, value))
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    return value
