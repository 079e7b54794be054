"""IDX: picking, scattering and writing by index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad.primitives import indexing

from .. import seams
from ..seams import Planted
from . import faults_of

fault = faults_of("IDX")

VJP = "vjp_matches_finite_differences"
NUMPYS = "regressions/test_indexing::test_picking_is_numpys_and_each_pick_adds_its_cotangent_once"

Add = Callable[[np.ndarray, Any, np.ndarray], None]


def _scatter(change: Callable[[Add, np.ndarray, Any, np.ndarray], None]) -> Planted:
    """``change(right, buffer, index, values)`` for adding ``values`` into ``buffer[index]``."""
    right = indexing._scatter_add
    return patch.object(indexing, "_scatter_add", lambda buffer, index, values: change(right, buffer, index, values))


def _is_integers(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype != bool


def _places(buffer: np.ndarray, index: Any) -> np.ndarray:
    """The flat places in ``buffer`` that ``index`` names, in the order of the values."""
    return np.arange(buffer.size).reshape(buffer.shape)[index].reshape(-1)


def _is_mask(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype == bool


@fault(2, f"{VJP}[getitem]", "M027")
def repeated_places_counted_once() -> Planted:
    """``out[index] += g``."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        buffer[index] += values

    return _scatter(add)


@fault(2, f"{VJP}[getitem]", "M029")
def a_mask_taken_for_one_of_all_axes() -> Planted:
    """A mask's places are taken for those of single elements: wrong where it names rows."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        if _is_mask(index[0]) and len(index) == 1 and values.size:
            places = np.flatnonzero(index[0])[: values.size]
            buffer.reshape(-1)[places] += values.reshape(-1)[: len(places)]
        else:
            right(buffer, index, values)

    return _scatter(add)


@fault(3, f"{VJP}[getitem]", "M078")
def a_bincount_without_its_length() -> Planted:
    """Rows after the last one that is picked are missing from the sums."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        if any(map(_is_integers, index)):
            sums = np.bincount(_places(buffer, index), values.reshape(-1))
            buffer += sums.astype(buffer.dtype).reshape(buffer.shape)
        else:
            right(buffer, index, values)

    return _scatter(add)


@fault(3, "results_and_gradients_have_their_inputs_dtype[functional.cross_entropy]", "M079")
def a_buffer_of_float64() -> Planted:
    """``np.zeros(shape)``, whatever is added into it."""

    def spread(values: np.ndarray, index: Any, shape: Any) -> np.ndarray:
        buffer = np.zeros(shape)
        indexing._scatter_add(buffer, index, values)
        return buffer

    return seams.forward("put", spread)


@fault(3, f"{VJP}[setitem]", "M081")
def what_is_overwritten_keeps_its_gradient() -> Planted:
    """The cotangent of the whole goes to the input, the written place included."""
    return seams.rules("setitem", lambda g, _y, _x, _value, *, index, last: g, None)


@fault(3, f"{VJP}[setitem]", "M082")
def a_value_with_axes_to_spare_gets_one_row() -> Planted:
    """A value with leading 1-axes beyond the place is taken as the first row, not as what fills all."""
    right = indexing.reshape

    def first(value: Any, shape: Any) -> Any:
        found = right(value, shape)
        return found.detach() if hasattr(found, "detach") and found.requires_grad else found

    return patch.object(indexing, "reshape", first)


@fault(4, f"{VJP}[getitem]", "M131")
def repeats_looked_for_before_signs() -> Planted:
    """A row spelled 0 and -3 is taken for two."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        arrays = np.broadcast_arrays(*[i for i in index if _is_integers(i)]) if any(map(_is_integers, index)) else []
        spelled = list(zip(*(a.reshape(-1).tolist() for a in arrays), strict=True))
        if len(set(spelled)) < len(spelled):
            right(buffer, index, values)
        else:
            buffer[index] += values

    return _scatter(add)


@fault(4, f"{VJP}[getitem]", "M133")
def a_step_that_picks_one_is_dropped() -> Planted:
    """``x[1:3:3]`` is taken back as ``x[1:3]``."""

    def without(part: Any) -> Any:
        return slice(part.start, part.stop) if isinstance(part, slice) and (part.step or 1) > 1 else part

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        dropped = tuple(map(without, index))
        one = np.broadcast_to(0, buffer.shape)[index].shape.count(1)
        if dropped != index and one and not any(isinstance(p, np.ndarray) for p in index):
            try:
                buffer[dropped] += values
            except ValueError:
                right(buffer, index, values)
        else:
            right(buffer, index, values)

    return _scatter(add)


@fault(4, f"{VJP}[getitem]", "M134")
def split_indices_taken_for_neighbours() -> Planted:
    """Indices with a slice between them put their axes first; the rule leaves them in place, where the shape fits."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        arrays = [i for i, part in enumerate(index) if _is_integers(part)]
        plain = all(isinstance(part, (int, np.integer, slice)) or _is_integers(part) for part in index)
        integers = [i for i, part in enumerate(index) if isinstance(part, (int, np.integer))]
        together = sorted(arrays + integers)
        if plain and arrays and together[-1] - together[0] >= len(together):
            count = np.broadcast(*(index[i] for i in arrays)).ndim
            before = sum(isinstance(part, slice) for part in index[: arrays[0]])
            moved = np.moveaxis(values, range(count), range(before, before + count))
            values = moved if moved.shape == values.shape else values
        right(buffer, index, values)

    return _scatter(add)


@fault(4, f"{VJP}[getitem]")
def a_mask_read_columns_first() -> Planted:
    """A mask of several dimensions is taken back in Fortran's order."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        parts: list[Any] = []
        for part in index:
            if _is_mask(part) and part.ndim > 1:
                parts += reversed([axis.copy() for axis in part.T.nonzero()])
            else:
                parts.append(part)
        right(buffer, tuple(parts), values)

    return _scatter(add)


@fault(4, f"{VJP}[getitem]")
def only_repeats_side_by_side_are_added() -> Planted:
    """As if indices were sorted: in [0, 1, 0] the second 0 replaces the first."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        places, flat = _places(buffer, index), buffer.reshape(-1)
        starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]]) if places.size else places
        if places.size:
            flat[places[starts]] = flat[places[starts]] + np.add.reduceat(values.reshape(-1), starts)

    return _scatter(add)


@fault(3, f"{VJP}[getitem]")
def a_negative_step_is_not_turned_round() -> Planted:
    """``x[::-1]`` is taken back in the order in which it was picked."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        if all(isinstance(part, (int, slice)) for part in index):
            slices = [part for part in index if isinstance(part, slice)]
            values = values[tuple(slice(None, None, -1 if (part.step or 1) < 0 else 1) for part in slices)]
        right(buffer, index, values)

    return _scatter(add)


@fault(4, "regressions/test_indexing::test_few_numbers_pick_from_a_table_larger_than_they_can_count")
def places_counted_in_the_indexs_dtype() -> Planted:
    """Flat places are computed in uint8 or int16, and wrap in a table that is larger than they can count."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        if _is_integers(index[0]) and buffer.size:
            places = _places(buffer, index).astype(index[0].dtype) % buffer.size
            np.add.at(buffer.reshape(-1), places, values.reshape(-1))
        else:
            right(buffer, index, values)

    return _scatter(add)


@fault(3, f"{VJP}[functional.embedding]")
def a_row_looked_up_often_gets_the_mean() -> Planted:
    """Each row's sum is divided by how often it was looked up."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        if len(index) == 1 and _is_integers(index[0]):
            total, count = np.zeros_like(buffer), np.zeros_like(buffer)
            right(total, index, values)
            right(count, index, np.ones_like(values))
            buffer += total / np.maximum(count, 1)
        else:
            right(buffer, index, values)

    return _scatter(add)


@fault(4, f"{VJP}[getitem]")
def a_place_named_three_times_counts_twice() -> Planted:
    """Repeats are looked for once: the third is lost."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        flat, met = buffer.reshape(-1), Counter[int]()
        for place, value in zip(_places(buffer, index).tolist(), values.reshape(-1).tolist(), strict=True):
            met[place] += 1
            if met[place] <= 2:
                flat[place] += value

    return _scatter(add)


@fault(3, f"{VJP}[setitem]")
def every_write_to_a_place_counts() -> Planted:
    """Of values written to one place, all get its gradient, not the last alone."""
    return patch.object(indexing, "_last", lambda shape, index, picked: None)


@fault(3, f"{VJP}[setitem]")
def a_stretched_value_gets_one_place() -> Planted:
    """A value of one element that fills several places has the gradient of the first."""

    def first(gradient: Any, g: Any, y: Any, x: Any, value: Any, **static: Any) -> Any:
        if value.size == 1 and gradient.size > 1:
            return gradient.reshape(-1)[:1].reshape(value.shape)
        return gradient

    return seams.changed("setitem", 1, first)


@fault(3, "second_order_matches_finite_differences_of_the_gradient[getitem]")
def putting_back_is_not_picked_again() -> Planted:
    """The second order of a pick is 0: its adjoint forgets its own."""
    return seams.changed("put", 0, lambda gradient, *_, **__: gradient * 0.0)


@fault(4, f"{VJP}[getitem]")
def an_integer_beside_an_array_is_counted_from_the_front() -> Planted:
    """x[-1, array] is taken back as x[0, array]: alone, -1 is right."""

    def add(right: Add, buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        if any(map(_is_integers, index)):
            index = tuple(~part if isinstance(part, int) and part < 0 else part for part in index)
        right(buffer, index, values)

    return _scatter(add)
