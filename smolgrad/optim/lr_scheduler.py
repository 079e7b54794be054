"""Learning rates that change over time, under ``torch.optim.lr_scheduler``'s names.

A schedule sets the rates of an optimizer's groups: once when it is made, and once at each ``step()``, which is called
after the optimizer's. The next rate follows from the last one, in PyTorch's order of operations, so that schedules can
be chained, and a rate that was set by hand in between is gone on from.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from ..primitives.operands import integer, refuse
from .optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "LRScheduler", "LambdaLR", "LinearLR", "SequentialLR", "StepLR"]


class LRScheduler:
    """The base of all schedules: ``base_lrs`` are the groups' first rates, ``last_epoch`` counts the steps.

    TypeError for what is no optimizer, NotImplementedError for PyTorch's options that are not offered: a schedule is
    resumed by ``load_state_dict``, not by ``last_epoch``.
    """

    unsaved: ClassVar[tuple[str, ...]] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, **options: Any):
        refuse(type(self).__name__, {k: None if v == -1 else v for k, v in options.items()}, "last_epoch")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}(): needs an Optimizer, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = -1
        self._last_lr: list[float] = []
        self.step()

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, one a group."""
        return list(self._last_lr)

    def step(self) -> None:
        """Set the next rates. ValueError where the optimizer has got more groups by now."""
        self._set(self.last_epoch + 1, [group["lr"] for group in self.optimizer.param_groups])

    def restart(self) -> None:
        """Begin again, from the groups' first rates."""
        self._set(0, self.base_lrs)

    def _set(self, epoch: int, rates: list[float]) -> None:
        if len(rates) != len(self.base_lrs):
            raise ValueError(
                f"{type(self).__name__}: was made for {len(self.base_lrs)} parameter groups, and there are {len(rates)}"
            )
        pairs = zip(rates, self.base_lrs, strict=True)
        rates = [self._next(epoch, rate, base, i) for i, (rate, base) in enumerate(pairs)]
        self.last_epoch, self._last_lr = epoch, rates
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def _next(self, epoch: int, rate: float, base: float, group: int) -> float:
        """The rate at ``epoch`` of a group whose last one is ``rate`` and whose first was ``base``."""
        raise NotImplementedError(f"{type(self).__name__} defines no _next()")

    def state_dict(self) -> dict[str, Any]:
        """Numbers and lists that ``load_state_dict`` goes on from. The rates themselves are the optimizer's state."""
        return {
            name: list(value) if isinstance(value, list) else value
            for name, value in vars(self).items()
            if name not in self.unsaved
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a ``state_dict``. ValueError, before anything has changed, for one of another schedule."""
        own = self.state_dict()
        if not _alike(own, state_dict):
            raise ValueError(f"load_state_dict() of {type(self).__name__}: needs a state like {own}, got {state_dict}")
        self._load(state_dict)

    def _load(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            if name not in self.unsaved:
                setattr(self, name, list(value) if isinstance(value, list) else value)


def _alike(mine: Any, value: Any) -> bool:
    """Whether ``value`` has the keys, lengths and kinds of ``mine``."""
    if isinstance(mine, dict):
        return (
            isinstance(value, Mapping)
            and value.keys() == mine.keys()
            and all(_alike(mine[name], value[name]) for name in mine)
        )
    if isinstance(mine, list):
        return isinstance(value, list) and len(value) == len(mine) and all(map(_alike, mine, value))
    return isinstance(value, int if isinstance(mine, int) else (int, float))


class LambdaLR(LRScheduler):
    """The first rate times ``lr_lambda(epoch)``: one function for all groups, or a list of one each.

    The functions are not a part of the state dict. ValueError for a list of another length.
    """

    unsaved = ("optimizer", "lr_lambdas")

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], **options: Any
    ):
        groups = len(getattr(optimizer, "param_groups", ()))
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"LambdaLR(): needs a function for each of {groups} groups, got {len(self.lr_lambdas)}")
        super().__init__(optimizer, **options)

    def _next(self, epoch: int, _rate: float, base: float, group: int) -> float:
        return base * self.lr_lambdas[group](epoch)


class StepLR(LRScheduler):
    """The last rate times ``gamma`` every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, **options: Any):
        self.step_size, self.gamma = _at_least_1("StepLR", "step_size", step_size), gamma
        super().__init__(optimizer, **options)

    def _next(self, epoch: int, rate: float, _base: float, _group: int) -> float:
        return rate if epoch == 0 or epoch % self.step_size else rate * self.gamma


class LinearLR(LRScheduler):
    """A factor of the first rate that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` equal steps.

    ValueError for a ``start_factor`` that is not in (0, 1], and for an ``end_factor`` that is not in [0, 1].
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        **options: Any,
    ):
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(
                f"LinearLR(): needs 0 < start_factor <= 1 and 0 <= end_factor <= 1, got {start_factor} and {end_factor}"
            )
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = _at_least_1("LinearLR", "total_iters", total_iters)
        super().__init__(optimizer, **options)

    def _next(self, epoch: int, rate: float, _base: float, _group: int) -> float:
        if epoch == 0:
            return rate * self.start_factor
        if epoch > self.total_iters:
            return rate
        rise = self.end_factor - self.start_factor
        factor = 1.0 + rise / (self.total_iters * self.start_factor + (epoch - 1) * rise)
        return rate * max(0.0, factor)  # on the way to 0 it may round to less, and no optimizer takes such a rate


class CosineAnnealingLR(LRScheduler):
    """From the first rate to ``eta_min`` and back as the cosine goes, with half a period of ``T_max`` steps.

    Source: Loshchilov and Hutter, "SGDR" (2017), without restarts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, **options: Any):
        self.T_max, self.eta_min = _at_least_1("CosineAnnealingLR", "T_max", T_max), eta_min
        super().__init__(optimizer, **options)

    def _next(self, epoch: int, rate: float, base: float, _group: int) -> float:
        if epoch == 0:
            return rate
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the last rate is eta_min, from which no factor leads up
            return rate + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        now, before = (1 + math.cos(math.pi * n / self.T_max) for n in (epoch, epoch - 1))
        return now / before * (rate - self.eta_min) + self.eta_min


class SequentialLR(LRScheduler):
    """One schedule after the other: at each of ``milestones``, in steps, the next one begins, from the first rates.

    ValueError for schedules of another optimizer, for as many milestones as do not lie between them, and for milestones
    that do not rise; TypeError for what is no schedule that can begin again.
    """

    unsaved = ("optimizer", "_schedulers")

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], **options: Any
    ):
        self._schedulers = list(schedulers)
        self._milestones = [integer("SequentialLR", "a milestone", m) for m in milestones]
        for schedule in self._schedulers:
            if not isinstance(schedule, LRScheduler) or isinstance(schedule, SequentialLR):
                raise TypeError(f"SequentialLR(): needs schedules, not of its own kind; got {type(schedule).__name__}")
            if schedule.optimizer is not optimizer:
                raise ValueError("SequentialLR(): all schedules must be of the optimizer that is given")
        if len(self._milestones) != len(self._schedulers) - 1:
            raise ValueError(
                "SequentialLR(): needs a milestone between each two schedules, "
                f"got {len(self._schedulers)} schedules and {len(self._milestones)} milestones"
            )
        if any(b <= a for a, b in pairwise([0, *self._milestones])):
            raise ValueError(f"SequentialLR(): milestones must rise from above 0, got {self._milestones}")
        super().__init__(optimizer, **options)

    def step(self) -> None:
        """Set the next rates, by the schedule whose turn it is."""
        epoch = self.last_epoch + 1
        turn = bisect_right(self._milestones, epoch)
        schedule = self._schedulers[turn]
        if epoch == [0, *self._milestones][turn]:
            schedule.restart()
        else:
            schedule.step()
        self.last_epoch, self._last_lr = epoch, schedule.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Whose turn it is and the rates that were set last, with the states of the schedules in a row."""
        return super().state_dict() | {"_schedulers": [schedule.state_dict() for schedule in self._schedulers]}

    def _load(self, state: Mapping[str, Any]) -> None:
        super()._load(state)
        for schedule, its in zip(self._schedulers, state["_schedulers"], strict=True):
            schedule._load(its)


def _at_least_1(op: str, name: str, value: Any) -> int:
    number: int = integer(op, name, value)
    if number < 1:
        raise ValueError(f"{op}(): {name} must be at least 1, got {number}")
    return number
