"""Optimizers under ``torch.optim``'s names, in PyTorch's order of floating-point operations.

A step works through each parameter in chunks that stay in the cache, with two scratch arrays of a chunk's size: it
makes nothing of a parameter's size, but for its state at the first step that finds a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from . import versions
from .autograd import enable_grad
from .nn import clear_grads
from .primitives.operands import refuse
from .tensor import Tensor

CHUNK = 16 * 1024  # elements: some 64 to 128 KiB an array


class Optimizer:
    """The base of all optimizers: parameters in groups, each with its options, and what is remembered of each.

    ``params`` are tensors, or dicts of ``params`` and the options that differ from ``defaults``. ``param_groups`` are
    dicts of the same kind with every option, and may be written to between steps. ``state`` holds arrays and step
    counts by parameter. TypeError for what is no tensor; ValueError for no parameters, for one that is given twice or
    was made by an op, and for options out of range; NotImplementedError for PyTorch's options that are ``not_offered``.
    """

    not_offered: ClassVar[str] = "foreach differentiable fused"

    def __init__(self, params: Any, defaults: dict[str, Any], options: Iterable[str] = ()):
        for name in options:
            if name not in self.not_offered.split():
                raise TypeError(f"{type(self).__name__}(): got an unexpected argument {name!r}")
        given = _listed(params)
        if not given:
            raise ValueError(f"{type(self).__name__}(): got an empty parameter list")
        self._check(defaults)
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = {}
        self.param_groups: list[dict[str, Any]] = []
        self._scratch: dict[np.dtype[Any], np.ndarray] = {}
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take on more parameters, with options of their own."""
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(f"{name}(): a parameter group must be a dict, got {type(param_group).__name__}")
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else _listed(params)
        group = {"params": params, **self.defaults, **{k: v for k, v in param_group.items() if k != "params"}}
        known = {p for earlier in self.param_groups for p in earlier["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"{name}(): optimizes Tensors, got {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(f"{name}(): optimizes leaves; a tensor of shape {p.shape} was made by an op")
            if p in known:
                raise ValueError(f"{name}(): a parameter of shape {p.shape} is given twice")
            known.add(p)
        self._check(group)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or fill them with zeros where not ``set_to_none``."""
        clear_grads((p for group in self.param_groups for p in group["params"]), set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient, once; the rest is not touched, nor is any gradient.

        ``closure``, where given, computes loss and gradients first, and its loss is returned. ValueError for options
        that are out of range by now and for read-only parameters: nothing has changed then.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        moving = [(p, p.grad, group) for group in self.param_groups for p in group["params"] if p.grad is not None]
        for group in self.param_groups:
            self._check(group)
        for p, _, _ in moving:
            if not p.data.flags.writeable:
                raise ValueError(f"step(): a parameter of shape {p.shape} is read-only")
        with np.errstate(all="ignore"):
            for p, grad, group in moving:
                self._update(p.data, grad.data, self.state.setdefault(p, {}), group)
                versions.stamp(p.data)
        return loss

    def _check(self, group: dict[str, Any]) -> None:
        """ValueError for an option that is out of range, NotImplementedError for one that is on and not offered."""
        asked = {name: group.get(name) or None for name in self.not_offered.split()}
        refuse(type(self).__name__, asked, self.not_offered)

    def _update(self, p: np.ndarray, grad: np.ndarray, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of the parameter ``p``, in its own memory."""
        raise NotImplementedError(f"{type(self).__name__} defines no _update()")

    def _chunks(self, grad: np.ndarray, *written: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
        """The elements of ``grad`` and of the arrays to be ``written``, a chunk at a time, and two scratch arrays.

        Every chunk is 1-d, whatever the arrays' layout. NumPy's iterator copies only where strides do not agree, and
        then no more than a chunk.
        """
        if grad.dtype not in self._scratch:
            self._scratch[grad.dtype] = np.empty((2, CHUNK), grad.dtype)
        s, t = self._scratch[grad.dtype]
        access = [["readonly"], *[["readwrite"]] * len(written)]
        flags = ["external_loop", "buffered", "zerosize_ok"]
        with np.nditer((grad, *written), flags, access, buffersize=CHUNK) as chunks:  # type: ignore[arg-type]
            for chunk in chunks:
                n = len(chunk[0])
                yield *chunk, s[:n], t[:n]


def _listed(params: Any) -> list[Any]:
    if isinstance(params, (Tensor, set, frozenset)):
        raise TypeError(f"an optimizer needs Tensors or groups in a list or the like, got a {type(params).__name__}")
    return list(params)


def _in_range(group: dict[str, Any], name: str, low: float = 0.0) -> None:
    if not low <= group[name] or not math.isfinite(group[name]):
        raise ValueError(f"{name} must be finite and at least {low}, got {group[name]}")


class SGD(Optimizer):
    """Gradient descent, with momentum and weight decay as a term of the gradient.

    g + weight_decay·p for g; buffer ← momentum·buffer + (1 - dampening)·g, and g itself at first; p ← p - lr·buffer, or
    with ``nesterov`` p - lr·(g + momentum·buffer). Source: Sutskever et al. (2013), in PyTorch's form, with lr outside
    the buffer.
    """

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
            _in_range(group, name)
        _in_range(group, "dampening", low=-math.inf)
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


class AdamW(Optimizer):
    """Adam with weight decay apart from the gradient: p ← (1 - lr·weight_decay)·p, and then

    m ← m + (1 - β₁)(g - m);  v ← β₂·v + (1 - β₂)·g²;  p ← p - lr/(1 - β₁ᵗ) · m / (√v/√(1 - β₂ᵗ) + eps),

    t counting the steps of this parameter. Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization"
    (2019), in PyTorch's form, with eps outside the root.
    """

    not_offered = f"amsgrad capturable {Optimizer.not_offered}"

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
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, defaults | {"maximize": maximize} | options, options)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        for name in ("lr", "eps", "weight_decay"):
            _in_range(group, name)
        betas = group["betas"]
        if len(betas) != 2 or not all(isinstance(beta, float) and 0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas must be two floats, at least 0 and below 1, got {betas}")

    def _update(self, p: np.ndarray, grad: np.ndarray, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, eps, decay, beta1, beta2 = map(float, (group["lr"], group["eps"], group["weight_decay"], *group["betas"]))
        if not state:
            state.update(step=0, exp_avg=np.zeros_like(p), exp_avg_sq=np.zeros_like(p))
        state["step"] += 1
        size = lr / (1 - beta1 ** state["step"])
        root = (1 - beta2 ** state["step"]) ** 0.5
        weight = 1 - beta1
        for g, x, m, v, s, t in self._chunks(grad, p, state["exp_avg"], state["exp_avg_sq"]):
            if group["maximize"]:
                g = np.negative(g, out=s)
            if decay:
                x *= 1 - lr * decay
            np.subtract(g, m, out=t)
            if weight < 0.5:
                m += np.multiply(t, weight, out=t)
            else:  # m + weight·(g - m) would lose a small g behind a large m
                np.subtract(g, np.multiply(t, 1 - weight, out=t), out=m)
            v *= beta2
            np.multiply(g, 1 - beta2, out=t)
            v += np.multiply(t, g, out=t)
            np.sqrt(v, out=t)
            t /= root
            t += eps
            np.multiply(m, size, out=s)
            x -= np.divide(s, t, out=s)
