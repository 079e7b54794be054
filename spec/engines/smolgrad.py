"""smolgrad under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import smolgrad
from smolgrad.autograd import no_grad

from ..entry import OpSpec
from . import find


class Smolgrad:
    """The engine of this repository."""

    name = "smolgrad"

    def call(self, spec: OpSpec, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        if spec.seed is not None:
            smolgrad.manual_seed(spec.seed)
        return spec.written(find(spec.name, smolgrad, smolgrad.Tensor), inputs, params)

    def leaf(self, array: np.ndarray) -> Any:
        return self.constant(array).requires_grad_(array.dtype.kind == "f")

    def constant(self, array: np.ndarray) -> Any:
        return smolgrad.from_numpy(np.asarray(array))

    def array(self, tensor: Any) -> np.ndarray:
        found: np.ndarray = tensor.data
        return found

    def grad(
        self, outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], **options: Any
    ) -> list[Any]:
        return list(smolgrad.grad(outputs, inputs, cotangents, allow_unused=True, **options))

    def backward(self, outputs: Sequence[Any], cotangents: Sequence[Any], retain_graph: bool) -> None:
        smolgrad.autograd.backward(outputs, cotangents, retain_graph)

    def no_grad(self) -> Any:
        return no_grad()
