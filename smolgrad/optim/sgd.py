"""Gradient descent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .optimizer import Optimizer, in_range


class SGD(Optimizer):
    """Gradient descent, with momentum and weight decay as a term of the gradient.

    g + weight_decay·p for g; buffer ← momentum·buffer + (1 - dampening)·g, and g itself at first; p ← p - lr·buffer, or
    with ``nesterov`` p - lr·(g + momentum·buffer). Source: Sutskever et al. (2013), in PyTorch's form, with lr outside
    the buffer.
    """

    remembered = ("momentum_buffer",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **options: Any,
    ):
        defaults = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, defaults | {"nesterov": nesterov, "maximize": maximize} | options, options)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        for name in ("lr", "momentum", "weight_decay"):
            in_range(group, name)
        in_range(group, "dampening", low=-math.inf)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("nesterov needs a momentum above 0 and a dampening of 0")

    def _update(self, p: np.ndarray, grad: np.ndarray, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, momentum, dampening, decay = (float(group[k]) for k in ("lr", "momentum", "dampening", "weight_decay"))
        first = momentum != 0 and "momentum_buffer" not in state
        if first:
            state["momentum_buffer"] = np.zeros_like(p)
        for g, x, *buffer, s, t in self._chunks(grad, p, *([state["momentum_buffer"]] if momentum else [])):
            if group["maximize"]:
                g = np.negative(g, out=s)
            if decay:
                g = np.add(g, np.multiply(x, decay, out=t), out=s)
            if momentum:
                b = buffer[0]
                if first:
                    b[...] = g
                else:
                    b *= momentum
                    b += np.multiply(g, 1 - dampening, out=t)
                g = np.add(g, np.multiply(b, momentum, out=t), out=s) if group["nesterov"] else b
            x -= np.multiply(g, lr, out=t)
