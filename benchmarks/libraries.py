"""smolgrad and PyTorch, which are called by the same names, and the check that all contenders did the same work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import smolgrad

from .environment import peer

# Of the largest element: float32 carries 6e-8, and a sum of a thousand terms may lose two digits of that.
TOLERANCE = 1e-5

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Library:
    """A library under PyTorch's names."""

    module: Any
    functional: Any

    def leaf(self, array: np.ndarray) -> Any:
        """A tensor over ``array`` that requires grad."""
        return self.module.from_numpy(array).requires_grad_()

    def constant(self, array: np.ndarray) -> Any:
        """A tensor over ``array``."""
        return self.module.from_numpy(array)

    def gradients(self, output: Any, leaves: Sequence[Any], cotangent: Any) -> tuple[Any, ...]:
        """The pullback of ``output``'s cotangent to each of ``leaves``."""
        found: tuple[Any, ...] = self.module.autograd.grad(output, leaves, cotangent)
        return found


def libraries() -> dict[str, Library]:
    """By the name that tables show: smolgrad, and PyTorch where it is installed."""
    torch = peer("torch")
    ours = {"smolgrad": Library(smolgrad, smolgrad.functional)}
    return ours | ({"PyTorch": Library(torch, torch.nn.functional)} if torch else {})


def plain(x: Any) -> np.ndarray:
    """The array of a tensor of either library, or of what is one."""
    return np.asarray(x.detach().numpy() if hasattr(x, "detach") else x)


def must_agree(what: str, found: dict[str, Sequence[Any]], reference: str) -> None:
    """ValueError unless all contenders found, within rounding, what ``reference`` did: no wrong work is timed."""
    wanted = list(map(plain, found[reference]))
    for name, results in found.items():
        for position, (got, want) in enumerate(zip(map(plain, results), wanted, strict=True)):
            same = got.shape == want.shape and got.dtype == want.dtype
            error = np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30) if same else np.inf
            if not error <= TOLERANCE:  # NaN, too
                raise ValueError(
                    f"{what}: result {position} of {name} is off from that of {reference} by {error:.1e} of the "
                    f"largest element, more than {TOLERANCE:g}: got {got.shape} {got.dtype}, want {want.shape} "
                    f"{want.dtype}"
                )
