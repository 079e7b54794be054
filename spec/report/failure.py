"""A failure is a program: what differs, who says what, and a few lines that show it without this suite."""

from __future__ import annotations

import importlib
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..engines import REFUSALS
from . import ledger

if TYPE_CHECKING:
    from ..case import Case
    from ..entry import OpSpec

__tracebackhide__ = True  # pytest leaves these functions out of what it prints

replay = ""  # the options that make this run again: conftest enters its seed, and what else differs from the default


class Counterexample(AssertionError):
    """A property that does not hold, told so that a reader can run it."""


def fail(
    case: Case,
    what: str,
    detail: str,
    got: np.ndarray | None = None,
    want: np.ndarray | None = None,
    at: np.ndarray | None = None,
    votes: Mapping[str, Callable[[], Any]] | None = None,
) -> NoReturn:
    """Raise Counterexample for ``case``: ``what`` differs, first ``at`` an element."""
    lines = [f"{case.spec.name}: {ledger.current_property()}", f"{what}: {detail}" if detail else what]
    if got is not None and want is not None and at is not None:
        place = tuple(int(i) for i in at)[: got.ndim]
        told = {"got": got, "want": want, **{name: vote() for name, vote in (votes or {}).items()}}
        lines += [f"  at {list(place)}", *(f"    {name}: {np.asarray(x)[place]}" for name, x in told.items())]
    tell(lines, [program(case, "smolgrad"), program(case, "torch")])


def tell(lines: list[str], programs: Sequence[str]) -> NoReturn:
    """Raise Counterexample of ``lines``, the programs that show it, and how to run the test again."""
    lines = [*lines, "", *(line for text in programs for line in (text, ""))]
    test = os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)")
    if test:
        lines.append(f"pytest '{test}' {replay}".rstrip())
    raise Counterexample("\n".join(lines))


class Source:
    """A name that turns what is done to it into source text; what takes a statement of its own goes before."""

    def __init__(self, text: str, statements: list[str], module: str):
        self._text, self._statements, self._module = text, statements, module

    def _then(self, text: str) -> Source:
        return Source(text, self._statements, self._module)

    def _literal(self, value: Any) -> str:
        return literal(value, self._module)

    def __call__(self, *args: Any, **kwargs: Any) -> Source:
        named = [f"{key}={self._literal(value)}" for key, value in kwargs.items()]
        return self._then(f"{self._text}({', '.join([*map(self._literal, args), *named])})")

    def __getitem__(self, index: Any) -> Source:
        return self._then(f"{self._text}[{self._literal(index)}]")

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self._text.isidentifier():
            self._statements.append(f"t = {self._text}")
            self._text = "t"
        self._statements.append(f"{self._text}[{self._literal(index)}] = {self._literal(value)}")

    def __truediv__(self, divisor: Any) -> Source:
        return self._then(f"{self._text} / {self._literal(divisor)}")

    def __pow__(self, exponent: Any) -> Source:
        return self._then(f"{self._text} ** {self._literal(exponent)}")

    def __rpow__(self, base: Any) -> Source:
        return self._then(f"{self._literal(base)} ** {self._text}")

    def __getattr__(self, name: str) -> Source:
        return self._then(f"{self._text}.{name}")

    def __repr__(self) -> str:
        return self._text


def program(case: Case, module: str) -> str:
    """A script that makes the call in ``module`` and prints its outputs and gradients.

    Where PyTorch is known to answer otherwise, its program begins with a comment that says so.
    """
    names = [f"x{i}" for i in range(len(case.arrays))]
    lines = [*_known_to_differ(case, module), "import numpy as np", f"import {module}", ""]
    for x, array in zip(names, case.arrays, strict=True):
        lines.append(f"{x} = {tensor(array, module)}" + ".requires_grad_()" * (array.dtype.kind == "f"))
    inputs = [Source(x, lines, module) for x in names]
    if case.spec.seed is not None:
        lines.append(f"{module}.manual_seed({case.spec.seed})")
    lines += [f"y = {case.spec.written(op_source(case.spec, module, lines), inputs, case.params)!r}", "print(y)"]
    if outputs := _outputs_with_gradient(case):
        seeds = [tensor(w, module) for w in case.cotangents]
        if len(outputs) == 1:
            lines.append(f"{outputs[0]}.backward({seeds[0]})")
        else:
            lines.append(f"{module}.autograd.backward([{', '.join(outputs)}], [{', '.join(seeds)}])")
        lines += [f"print({x}.grad)" for x, array in zip(names, case.arrays, strict=True) if array.dtype.kind == "f"]
    return "\n".join(lines)


def _known_to_differ(case: Case, module: str) -> list[str]:
    if module != "torch":
        return []
    import torch

    from ..oracles.differences import difference

    row = difference(case.spec.name, [torch.tensor(np.array(x)) for x in case.arrays], case.params)
    return [f"# PyTorch differs here (spec/oracles/differences.py): {row.reason}"] if row else []


def _outputs_with_gradient(case: Case) -> list[str]:
    """What the outputs that the case has cotangents for are called; none where the call itself fails."""
    engine = case.engine
    try:
        with engine.no_grad(), np.errstate(all="ignore"):
            made = engine.call(case.spec, [engine.constant(array) for array in case.arrays], case.params)
    except REFUSALS:  # the program shows it
        return []
    named = {f"y[{i}]": y for i, y in enumerate(made)} if isinstance(made, tuple) else {"y": made}
    found = [name for name, y in named.items() if engine.array(y).dtype.kind == "f"]
    differentiable = any(array.dtype.kind == "f" for array in case.arrays)
    return found if differentiable and len(found) == len(case.cotangents) else []


def op_source(spec: OpSpec, module: str, lines: list[str]) -> Any:
    """The op of an entry in ``module`` as source: ``torch.log``; of a property, what takes it from its owner."""
    if module == "torch" and spec.ref is not None:  # no name of PyTorch's, and maybe a lambda
        lines += ["from spec.ops import BY_NAME  # in the root of the checkout", f"ref = BY_NAME[{spec.name!r}].ref"]
        return Source("ref", lines, module)
    name = spec.name
    owner: Any = importlib.import_module(module)
    homes = {module: owner, f"{module}.nn": getattr(owner, "nn", None), f"{module}.Tensor": owner.Tensor}
    for home, found in homes.items():
        for part in name.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return Source(f"{home}.{name}", lines, module)
        if found is not None:
            return operator.attrgetter(name.rpartition(".")[2])
    return Source(name, lines, module)


def tensor(array: np.ndarray, module: str) -> str:
    """A tensor of ``array`` as source text."""
    # PyTorch makes its own layout of what it copies, and takes no negative strides.
    return f"torch.tensor({_plain(array)})" if module == "torch" else f"{module}.from_numpy({_array(array)})"


def literal(value: Any, module: str = "smolgrad") -> str:
    """``value`` as source text that ``module`` takes: arrays with dtype, size-0 shapes and layout."""
    if isinstance(value, np.ndarray):
        return tensor(value, module) if module == "torch" else _array(value)
    if isinstance(value, (list, tuple)):
        inside = ", ".join(literal(item, module) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if isinstance(value, slice):
        return f"slice({value.start}, {value.stop}, {value.step})"
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.dtype):
        return f"torch.{value.name}" if module == "torch" else f"np.dtype({value.name!r})"
    if isinstance(value, float) and not np.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


def _plain(x: np.ndarray) -> str:
    """The shape, dtype and numbers of ``x``."""
    if x.size == 0:
        return f"np.zeros({x.shape}, dtype={x.dtype.name!r})"
    numbers = repr(x.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    return f"np.array({numbers}, dtype={x.dtype.name!r})"


def _array(x: np.ndarray) -> str:
    """``x``, and how it lies in memory: repeated, reversed, columns first, with gaps, read-only."""
    repeated = tuple(slice(0, 1) if s == 0 and n > 1 else slice(None) for n, s in zip(x.shape, x.strides, strict=True))
    backward = ["::-1" if s < 0 and n > 1 else ":" for n, s in zip(x.shape, x.strides, strict=True)]
    if x.size == 0:
        text = _plain(x)
    elif slice(0, 1) in repeated:
        return f"np.broadcast_to({_plain(x[repeated])}, {x.shape})"
    elif "::-1" in backward:
        flip = tuple(slice(None, None, -1) if part == "::-1" else slice(None) for part in backward)
        text = f"{_array(x[flip])}[{', '.join(backward)}]"
    elif x.flags.c_contiguous:
        text = _plain(x)
    elif x.flags.f_contiguous:
        text = f"np.asfortranarray({_plain(x)})"
    else:
        text = f"np.repeat({_plain(x)}, 2, axis=-1)[..., ::2]"
    return text if x.flags.writeable else f"np.broadcast_to({text}, {x.shape})"
