"""What ``detect_anomaly`` keeps of a record: the line of user code that made it, and what its rules will read."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

_ENGINE = os.path.dirname(__file__) + os.sep


class Watched(dict[str, Any]):
    """The static arguments of a record, which go where the record goes, with its place and contents.

    ``values`` are the op's output and its inputs; of each that a rule will read, the bytes are hashed.
    """

    def __init__(self, primitive: Any, values: Sequence[Any], static: dict[str, Any], recorded: bool = True):
        super().__init__(static)
        self.primitive, self.shapes = primitive, [np.shape(_array(x)) for x in values[1:]]
        self.place = _user_line() if recorded else "before detect_anomaly() was entered"
        reads = {i for rule in primitive.reads for i in rule if i < len(values)}
        self.contents = {i: _content(values[i]) for i in reads}

    def __bool__(self) -> bool:
        return True  # a record without static arguments is watched too

    def check(self, position: int, gradient: Any, values: Sequence[Any]) -> None:
        """RuntimeError where what the rule of input ``position`` reads has changed, or its gradient is not finite."""
        name = self.primitive.name
        told = f"its inputs have shapes {', '.join(map(str, self.shapes))}, and it was recorded {self.place}"
        for i in self.primitive.reads[0 if self.primitive.variadic else position]:
            if i in self.contents and self.contents[i] != _content(values[i]):
                which = f"input {i - 1}" if i else "its output"
                raise RuntimeError(
                    f"detect_anomaly(): backward through {name}() reads {which}, which was written to since in a way "
                    f"that the engine does not see, into .data or an array that shares its memory; {told}"
                )
        array = _array(gradient)
        if isinstance(array, np.ndarray) and not np.isfinite(array).all():
            what = "NaN" if np.isnan(array).any() else "an infinity"
            raise RuntimeError(
                f"detect_anomaly(): backward through {name}() gave {what} in the gradient of input {position}; {told}"
            )


def _array(x: Any) -> Any:
    """What ``autograd.value_of`` gives; autograd imports this module, not the other way round."""
    return getattr(x, "_data", x)


def _content(x: Any) -> int:
    return hash(np.asarray(_array(x)).tobytes())


def _user_line() -> str:
    """The innermost line on the stack that is not the engine's, as a traceback shows it."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_ENGINE):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    return f'at\n  File "{file}", line {line}, in {frame.f_code.co_name}\n    {linecache.getline(file, line).strip()}'
