"""The real data of the experiments: where it is looked for, how it is fetched, and that it is what it should be.

1. The directory is ``$SMOLGRAD_DATA``, or ``~/.cache/smolgrad`` where that is not set.
2. In it, ``mnist/`` holds the four IDX files, packed (``.gz``) or not, and ``tinyshakespeare/`` holds ``input.txt``.
3. A file that is not there is downloaded to its place. A broken connection is taken up again where it broke; a download
   that fails in the end leaves nothing behind.
4. Whatever was found or fetched is used only if the SHA-256 of its unpacked contents is the one below. A file that is
   there and wrong is refused by name, and never overwritten.

All that can go wrong is a ``DataError``, whose message names the file.
"""

from __future__ import annotations

import gzip
import hashlib
import http
import http.client
import math
import os
import tempfile
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

VARIABLE = "SMOLGRAD_DATA"
ATTEMPTS = 3  # connections to one address, each going on where the last one broke
TIMEOUT = 20  # seconds without a byte
CHUNK = 64 * 1024


class DataError(Exception):
    """Data cannot be had, or is not what it should be."""


@dataclass(frozen=True)
class Source:
    """A file below the data directory, the SHA-256 of its unpacked contents, and where it can be fetched."""

    path: str
    sha256: str
    addresses: tuple[str, ...]


MNIST_ADDRESSES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
MNIST_SHA256 = {
    "train-images-idx3-ubyte.gz": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte.gz": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte.gz": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte.gz": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
MNIST = [
    Source(f"mnist/{name}", sha256, tuple(address + name for address in MNIST_ADDRESSES))
    for name, sha256 in MNIST_SHA256.items()
]
SHAKESPEARE = Source(
    "tinyshakespeare/input.txt",
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ("https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",),
)


# --- what the experiments ask for -------------------------------------------------------------------------------------


def mnist(dtype: Any) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Training and test set, each of pixels (N, 784) in [0, 1] and classes (N,) in int64. DataError."""
    images, classes, test_images, test_classes = (parse_idx(contents(source), source.path) for source in MNIST)
    return (_pixels(images, dtype), classes.astype("int64")), (
        _pixels(test_images, dtype),
        test_classes.astype("int64"),
    )


def _pixels(images: np.ndarray, dtype: Any) -> np.ndarray:
    return images.reshape(len(images), -1).astype(dtype) / 255


def shakespeare() -> tuple[str, np.ndarray]:
    """The alphabet of Tiny Shakespeare, and its text as places (N,) in that alphabet, in int64. DataError."""
    return parse_text(contents(SHAKESPEARE), SHAKESPEARE.path)


# --- finding and checking ---------------------------------------------------------------------------------------------


def directory() -> Path:
    """Where data is looked for, and where it is downloaded to."""
    return Path(os.environ.get(VARIABLE) or Path.home() / ".cache" / "smolgrad")


def contents(source: Source) -> bytes:
    """The unpacked contents of ``source``, found or fetched, and checked. DataError."""
    path = directory() / source.path
    unpacked = path.with_suffix("") if path.suffix == ".gz" else path
    if not path.exists() and not unpacked.exists():
        download(source, path)
    return checked(path if path.exists() else unpacked, source.sha256)


def checked(path: Path, sha256: str) -> bytes:
    """The contents of ``path``, unpacked if it ends in .gz. DataError where it cannot be read or is another file."""
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise DataError(f"{path} is not the file it should be: its contents have SHA-256 {found}, not {sha256}")
    return data


# --- fetching ---------------------------------------------------------------------------------------------------------


def download(source: Source, path: Path) -> None:
    """Fetch ``source`` from the first address that has it, and put it at ``path`` once it is whole. DataError."""
    faults = []
    for address in source.addresses:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix="download-", suffix=path.suffix, dir=path.parent)
            part = Path(name)
            try:
                with open(handle, "wb") as file:
                    _fetch(address, file)
                checked(part, source.sha256)
                part.replace(path)
                return
            finally:
                part.unlink(missing_ok=True)  # after an interrupt, too
        except (OSError, http.client.HTTPException, DataError) as error:
            faults.append(f"\n  {address}: {error}")
    raise DataError(f"{path} is not there and cannot be downloaded:{''.join(faults)}")


def _fetch(address: str, file: Any) -> None:
    """Write what is at ``address`` to ``file``, in as many as ATTEMPTS connections."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task(address.rpartition("/")[2], total=None)
        for attempt in range(ATTEMPTS):
            try:
                _connect(address, file, progress, task)
                return
            except urllib.error.HTTPError:
                raise  # the server has answered: asking again changes nothing
            except (OSError, http.client.HTTPException):
                if attempt == ATTEMPTS - 1:
                    raise


def _connect(address: str, file: Any, progress: Progress, task: Any) -> None:
    """One connection: ask for the bytes that ``file`` does not have yet. OSError where they do not all come."""
    begin = file.tell()
    request = urllib.request.Request(address, headers={"Range": f"bytes={begin}-"} if begin else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        if begin and answer.status != http.HTTPStatus.PARTIAL_CONTENT:  # this server cannot go on: all from the start
            begin = file.seek(0)
            file.truncate()
        total = begin + int(answer.headers["Content-Length"]) if "Content-Length" in answer.headers else None
        progress.update(task, total=total, completed=begin)
        while chunk := answer.read(CHUNK):
            file.write(chunk)
            progress.update(task, advance=len(chunk))
    if total is not None and file.tell() != total:
        raise ConnectionError(f"the connection broke after {file.tell()} of {total} bytes")


# --- parsing ----------------------------------------------------------------------------------------------------------


def parse_idx(data: bytes, name: str) -> np.ndarray:
    """The array of unsigned bytes in an IDX file. DataError, which calls it ``name``, where it is none, or not whole.

    The format: two zero bytes, 8 for unsigned bytes, the number of axes, each axis's size as four bytes with the
    highest first, and the elements, the last axis fastest.
    """
    if data[:3] != b"\0\0\x08" or len(data) < 4:
        raise DataError(
            f"{name} is no IDX file of bytes: it begins with {data[:3].hex(' ') or 'nothing'}, not 00 00 08"
        )
    begin = 4 + 4 * data[3]
    if len(data) < begin:
        raise DataError(f"{name} is truncated: it has {len(data)} bytes of a header of {begin}")
    shape = tuple(np.frombuffer(data, ">u4", data[3], 4).tolist())
    if len(data) - begin != math.prod(shape):
        raise DataError(f"{name} needs {math.prod(shape)} bytes for its shape {shape}, and has {len(data) - begin}")
    return np.frombuffer(data, np.uint8, offset=begin).reshape(shape)


def parse_text(data: bytes, name: str) -> tuple[str, np.ndarray]:
    """The alphabet of a text in UTF-8, in order, and the text as places (N,) in it. DataError, which says ``name``."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is no text in UTF-8: {error}") from error
    if not text:
        raise DataError(f"{name} is empty")
    alphabet, codes = np.unique(np.array(list(text)), return_inverse=True)
    return "".join(alphabet), codes.astype("int64")
