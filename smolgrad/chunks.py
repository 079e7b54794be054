"""Arrays a chunk at a time: work on parameters and gradients that makes nothing of their size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

CHUNK = 16 * 1024  # elements: some 64 to 128 KiB an array, which stay in the cache


def chunked(read: np.ndarray, *written: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """The elements of ``read`` and of the arrays to be ``written``, all of one shape, a chunk at a time.

    Every chunk is 1-d, whatever the arrays' layout. NumPy's iterator copies only where strides do not agree, and then
    no more than a chunk.
    """
    access: Any = [["readonly"], *[["readwrite"]] * len(written)]
    flags: Any = ["external_loop", "buffered", "zerosize_ok"]
    with np.nditer((read, *written), flags, access, buffersize=CHUNK) as chunks:
        for chunk in chunks:
            yield chunk if isinstance(chunk, tuple) else (chunk,)  # of one array alone NumPy gives no tuple
