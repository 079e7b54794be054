"""Tensors to test with."""

import numpy as np

import smolgrad


def leaf(values, dtype="float64"):
    """A tensor of ``values`` that requires grad."""
    return smolgrad.tensor(np.array(values, dtype), requires_grad=True)


def tensor(values, dtype="float64"):
    """A tensor of ``values`` that requires none."""
    return smolgrad.tensor(np.array(values, dtype))


def uneven(shape):
    """An array of ``shape`` whose elements differ: 1, 2, 3, ... with every third one negative."""
    values = np.arange(1.0, 1 + np.prod(shape))
    return np.where(values % 3 == 0, -values, values).reshape(shape)
