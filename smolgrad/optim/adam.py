"""Adam and AdamW: steps of each element's own length, from running means of its gradient and of its square."""

from __future__ import annotations

from typing import Any

import numpy as np

from .optimizer import Optimizer, in_range


class Adam(Optimizer):
    """Steps of a length that the gradients' signs decide more than their sizes:

    m ← m + (1 - β₁)(g - m);  v ← β₂·v + (1 - β₂)·g²;  p ← p - lr/(1 - β₁ᵗ) · m / (√v/√(1 - β₂ᵗ) + eps),

    t counting the steps of this parameter, and with ``amsgrad`` the largest v so far for v. The weight decay is a term
    of the gradient, g + weight_decay·p for g, or with ``decoupled_weight_decay`` p ← (1 - lr·weight_decay)·p before the
    step. Source: Kingma and Ba, "Adam" (2015), Reddi et al., "On the Convergence of Adam and Beyond" (2018), in
    PyTorch's form, with eps outside the root.
    """

    not_offered = f"capturable {Optimizer.not_offered}"
    remembered = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **options: Any,
    ):
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults | options, options)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        for name in ("lr", "eps", "weight_decay"):
            in_range(group, name)
        betas = group["betas"]
        if len(betas) != 2 or not all(isinstance(beta, float) and 0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas must be two floats, at least 0 and below 1, got {betas}")

    def _needed(self, _group: dict[str, Any]) -> tuple[str, ...]:
        return self.remembered if _group["amsgrad"] else self.remembered[:-1]

    def _update(self, p: np.ndarray, grad: np.ndarray, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, eps, decay, beta1, beta2 = map(float, (group["lr"], group["eps"], group["weight_decay"], *group["betas"]))
        for name in self._needed(group):
            if name not in state:
                state[name] = 0 if name == "step" else np.zeros_like(p)
        state["step"] += 1
        size = lr / (1 - beta1 ** state["step"])
        root = (1 - beta2 ** state["step"]) ** 0.5
        weight = 1 - beta1
        for g, x, m, v, *largest, s, t in self._chunks(grad, p, *(state[name] for name in self._needed(group)[1:])):
            if group["maximize"]:
                g = np.negative(g, out=s)
            if decay and group["decoupled_weight_decay"]:
                x *= 1 - lr * decay
            elif decay:
                g = np.add(g, np.multiply(x, decay, out=t), out=s)
            np.subtract(g, m, out=t)
            if weight < 0.5:
                m += np.multiply(t, weight, out=t)
            else:  # m + weight·(g - m) would lose a small g behind a large m
                np.subtract(g, np.multiply(t, 1 - weight, out=t), out=m)
            v *= beta2
            np.multiply(g, 1 - beta2, out=t)
            v += np.multiply(t, g, out=t)
            for most in largest:
                v = np.maximum(most, v, out=most)
            np.sqrt(v, out=t)
            t /= root
            t += eps
            np.multiply(m, size, out=s)
            x -= np.divide(s, t, out=s)


class AdamW(Adam):
    """Adam with weight decay apart from the gradient: p ← (1 - lr·weight_decay)·p, and then a step of Adam's.

    ValueError for a group that says otherwise. Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization"
    (2019).
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **options: Any,
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True, **options
        )

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if not group["decoupled_weight_decay"]:
            raise ValueError("AdamW decays weights apart from the gradient; take Adam for a decay that is a part of it")
