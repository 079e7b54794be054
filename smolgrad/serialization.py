"""Saving and loading: nested dicts, lists and tuples of tensors, arrays, numbers and strings, in one ``.npz`` file.

The file holds each array as NumPy's ``save`` writes it, and in ``structure.npy`` the bytes of a JSON text that says
where each belongs. Nothing is pickled, so that loading a file runs no code of its maker's.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import struct
import tokenize
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from .creation import as_tensor
from .dtypes import SUPPORTED
from .tensor import Tensor

__all__ = ["load", "save"]

DEPTH = 100  # of nesting: no state is that deep, and no recursion ends badly before
STRUCTURE = "structure.npy"
_MEMBER = re.compile(r"(structure|0|[1-9]\d*)\.npy")
# What zipfile, json and numpy.lib.format raise where bytes are not what they should be.
_DAMAGE = (
    zipfile.BadZipFile, struct.error, tokenize.TokenError, SyntaxError, EOFError, KeyError, OSError, OverflowError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip


def save(path: str | os.PathLike[str], state: Any) -> None:
    """Write ``state`` to ``path``, such that a crash at any moment leaves the file that was there or the new one.

    ``state`` is made of dicts with strings or integers as keys, lists, tuples, tensors, arrays of numbers or bools,
    numbers, strings and None. TypeError for anything else, and ValueError for what holds itself, before anything is
    written. An interrupted save may leave a hidden file ``.NAME.*.tmp`` behind, in the same folder.
    """
    arrays: list[np.ndarray] = []
    text = json.dumps(_packed(state, arrays, "state", DEPTH))
    members: dict[str, Any] = {str(i): array for i, array in enumerate(arrays)}
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb") as file:
            np.savez(file, structure=np.frombuffer(text.encode(), np.uint8), **members)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(target.parent)


def load(path: str | os.PathLike[str]) -> Any:
    """The state that ``save`` wrote to ``path``. Tensors come back as constants, arrays as arrays.

    ValueError for a file that is truncated, damaged, or not of ``save``'s making: objects, compressed members, and
    arrays that are said to be larger than the file are refused unread. OSError where there is no file to read.
    """
    with open(path, "rb") as file:
        try:
            return _read(file)
        except _DAMAGE as error:
            raise ValueError(
                f"load(): {os.fspath(path)} is no file that save() wrote, or is damaged: {error}"
            ) from error


def _sync_folder(folder: Path) -> None:
    """Have the new name of a file written to the disk, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- a state as JSON and arrays ---------------------------------------------------------------------------------------


def _packed(x: Any, arrays: list[np.ndarray], name: str, depth: int) -> Any:
    """``x`` as JSON: what is none of its own becomes ``{kind: content}``, arrays by their number in ``arrays``."""
    if depth < 0:
        raise ValueError(f"save(): {name[:80]}... is nested more than {DEPTH} deep; does it hold itself?")
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    if isinstance(x, list):
        return [_packed(item, arrays, f"{name}[{i}]", depth - 1) for i, item in enumerate(x)]
    if isinstance(x, tuple):
        return {"tuple": _packed(list(x), arrays, name, depth)}
    if isinstance(x, dict):
        for key in x:
            if type(key) not in (str, int):
                raise TypeError(f"save(): keys must be strings or integers, {name} has {key!r}")
        return {"dict": [[key, _packed(value, arrays, f"{name}[{key!r}]", depth - 1)] for key, value in x.items()]}
    array = x.data if isinstance(x, Tensor) else x
    if not isinstance(array, np.ndarray) or array.dtype not in SUPPORTED:
        kind = f"array of dtype {array.dtype}" if isinstance(array, np.ndarray) else type(x).__name__
        raise TypeError(f"save(): {name} is of a kind that is not saved: {kind}")
    arrays.append(array)
    return {"tensor" if isinstance(x, Tensor) else "array": len(arrays) - 1}


def _unpacked(x: Any, arrays: dict[int, np.ndarray], depth: int = DEPTH) -> Any:
    """The state of which ``x`` is the JSON; each of ``arrays`` is taken out as it is used."""
    if depth < 0:
        raise ValueError(f"nested more than {DEPTH} deep")
    if isinstance(x, list):
        return [_unpacked(item, arrays, depth - 1) for item in x]
    if not isinstance(x, dict):
        return x
    ((kind, content),) = x.items()
    if kind == "dict":
        found = {key: _unpacked(value, arrays, depth - 1) for key, value in content if type(key) in (str, int)}
        if len(found) != len(content):
            raise ValueError("a dict has a key twice, or one that is neither a string nor an integer")
        return found
    if kind == "tuple" and isinstance(content, list):
        return tuple(_unpacked(content, arrays, depth))
    if kind in ("tensor", "array") and type(content) is int:
        array = arrays.pop(content)
        return as_tensor(array) if kind == "tensor" else array
    raise ValueError(f"an entry of the unknown kind {kind!r}")


# --- the file ---------------------------------------------------------------------------------------------------------


def _read(file: IO[bytes]) -> Any:
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        for member in members:
            if not _MEMBER.fullmatch(member.filename) or member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"it has a member {member.filename!r}, of a kind that save() does not write")
        if len(set(names)) != len(names) or sum(member.file_size for member in members) > size:
            raise ValueError("it has a member twice, or members that are larger than itself")
        arrays = {name: _array(archive, member) for name, member in zip(names, members, strict=True)}
    structure = arrays.pop(STRUCTURE)
    numbered = {int(name.removesuffix(".npy")): array for name, array in arrays.items()}
    state = _unpacked(json.loads(structure.astype(np.uint8, casting="no").tobytes().decode()), numbered)
    if numbered:
        raise ValueError("it has arrays that belong nowhere")
    return state


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """The array of one member, whose size is compared with what its header says before any of it is made."""
    npy = np.lib.format
    with archive.open(member) as stream:
        if npy.read_magic(stream) != (1, 0):
            raise ValueError(f"{member.filename} has a header of another version")
        shape, _, dtype = npy.read_array_header_1_0(stream)
        header = stream.tell()
        if dtype not in SUPPORTED or math.prod(shape) * dtype.itemsize != member.file_size - header:
            raise ValueError(f"{member.filename} says {shape} {dtype} in its header, and holds something else")
        stream.seek(0)
        array: np.ndarray = npy.read_array(stream, allow_pickle=False)
        stream.read(1)  # nothing is left, as the sizes agree: it has zipfile compare the checksum
    return array
