"""Indices of every kind, repeats, negatives and nothing: what is picked is NumPy's, what is added back its adjoint."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import smolgrad
from smolgrad import functional as F
from smolgrad.primitives import indexing
from spec.generate.indices import indices
from tests.regressions.tensors import leaf, tensor, uneven

CUBE = (3, 3, 3)
MASK = np.zeros(CUBE, bool)
MASK[0, 1, 2] = MASK[2, 2, 0] = MASK[1, 1, 1] = True
ROW = np.array([True, False, True])
INDICES = [
    pytest.param(1, id="integer"),
    pytest.param(-1, id="negative integer"),
    pytest.param((0, -1, 2), id="one element"),
    pytest.param(np.int64(2), id="NumPy integer"),
    pytest.param(..., id="ellipsis"),
    pytest.param((..., 1), id="ellipsis and integer"),
    pytest.param(None, id="new axis"),
    pytest.param((None, 1, None, ..., None), id="new axes"),
    pytest.param((), id="empty tuple"),
    pytest.param(slice(None, None, -1), id="reversed"),
    pytest.param((slice(None), slice(2, None, -2)), id="backwards by two"),
    pytest.param(slice(1, 3, 3), id="a step beyond the one element picked"),
    pytest.param((slice(0, 3, 1), slice(2, 2, 2), slice(0, 3, 1)), id="an empty and stepped slice, jax f39d111d8f"),
    pytest.param(slice(5, 9), id="a slice beyond the end"),
    pytest.param(slice(-100, 100), id="a slice beyond both ends"),
    pytest.param([-1], id="negative in an array, numpy 24147"),
    pytest.param([0, -3, 0], id="one row spelled with both signs"),
    pytest.param([0, -3], id="one row spelled with both signs and never twice alike"),
    pytest.param([1, 1, 1, 1], id="one row four times"),
    pytest.param([0, 0, 1], id="last row never picked"),
    pytest.param([[0, 2], [2, 2]], id="matrix of rows"),
    pytest.param([], id="no rows"),
    pytest.param(np.zeros((0, 2), int), id="no rows of two"),
    pytest.param(np.array(1), id="0-d array"),
    pytest.param(([0, 0, -3], [1, 1, -2]), id="one element three times"),
    pytest.param(([0, 1], [2, 2], [1, 1]), id="pairs"),
    pytest.param(([[0], [2]], [0, 2]), id="broadcast arrays"),
    pytest.param(([0, 2], 0), id="array and integer, tinygrad db6b3e1edc"),
    pytest.param((0, [1, 1]), id="integer and array"),
    pytest.param((slice(None), [2, 2]), id="slice and array"),
    pytest.param(([0, 2], slice(None), [1, 1]), id="arrays apart, tinygrad 34a05b31fe"),
    pytest.param((0, slice(None), [0, 1]), id="integer and array apart"),
    pytest.param((0, slice(None), [0, 2, 1]), id="integer and array apart, as many as the slice picks"),
    pytest.param(([[0, 1], [1, 0]], slice(None, None, -1), 2), id="matrix, reversed, integer"),
    pytest.param(([0, 1], None, [1, 1]), id="arrays about a new axis"),
    pytest.param((slice(1), [0, 1], [1, 1]), id="arrays after a slice"),
    pytest.param(MASK, id="mask of all axes"),
    pytest.param(~MASK[0], id="mask of two axes"),
    pytest.param(ROW, id="mask of one axis"),
    pytest.param((slice(None), ROW), id="mask of the second axis"),
    pytest.param((ROW, [1, 1]), id="mask and array"),
    pytest.param(([0, 0], MASK[0]), id="array and mask of two axes"),
    pytest.param(np.zeros(3, bool), id="mask of nothing"),
    pytest.param(np.ones(CUBE, bool), id="mask of all"),
    pytest.param([True, False, True], id="list of bools"),
    pytest.param(True, id="true"),
    pytest.param(False, id="false"),
    pytest.param(smolgrad.tensor([2, 2]), id="tensor of integers"),
    pytest.param(smolgrad.tensor(ROW), id="tensor of bools"),
    pytest.param(smolgrad.tensor(1), id="0-d tensor"),
    pytest.param((slice(smolgrad.tensor(1), None), smolgrad.tensor([0, 0])), id="slice from a tensor"),
]


def of_numpy(index):
    if isinstance(index, tuple):
        return tuple(of_numpy(part) for part in index)
    if isinstance(index, smolgrad.Tensor):
        return index.data
    return np.zeros(0, int) if isinstance(index, list) and not index else index


@pytest.mark.parametrize("create_graph", [False, True], ids=["arrays", "tensors"])
@pytest.mark.parametrize("index", INDICES)
def test_picking_is_numpys_and_each_pick_adds_its_cotangent_once(index, create_graph):
    x = leaf(uneven(CUBE) / 2)
    y = x[index]
    places = np.arange(27).reshape(CUBE)[of_numpy(index)]
    np.testing.assert_array_equal(y.data, x.data.ravel()[places])
    assert y.shape == np.shape(places)
    w = uneven(y.shape)
    (gradient,) = smolgrad.grad(y, x, tensor(w), create_graph=create_graph)
    np.testing.assert_array_equal(gradient.data.ravel(), np.bincount(places.ravel(), w.ravel(), 27))


@pytest.mark.parametrize("index", INDICES)
def test_what_is_overwritten_has_no_slope_and_the_last_value_written_has_all(index):
    # pytorch 473, 57006, 146299: with repeats, one value stays and yet all are credited. NumPy keeps the last.
    x = leaf(uneven(CUBE))
    places = np.arange(27).reshape(CUBE)[of_numpy(index)]
    v = leaf(uneven(np.shape(places)) / 4)
    y = x * 1
    y[index] = v
    expected = x.data.copy()
    expected[of_numpy(index)] = v.data
    np.testing.assert_array_equal(y.data, expected)
    w = uneven(CUBE) / 8
    y.backward(tensor(w))
    np.testing.assert_array_equal(x.grad.data.ravel(), np.where(np.isin(np.arange(27), places), 0, w.ravel()))
    last = {place: i for i, place in enumerate(places.ravel())}
    credited = [w.ravel()[place] if last[place] == i else 0.0 for i, place in enumerate(places.ravel())]
    np.testing.assert_array_equal(v.grad.data.ravel(), credited)


def test_duplicate_writes_credit_the_last():
    x, v = leaf([0.0, 0.0, 0.0]), leaf([1.0, 2.0])
    y = x * 1
    y[[1, -2]] = v
    y.backward(tensor([3.0, 5.0, 7.0]))
    assert y.data.tolist() == [0.0, 2.0, 0.0]
    assert x.grad.data.tolist() == [3.0, 0.0, 7.0]
    assert v.grad.data.tolist() == [0.0, 5.0]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("shape", [(1,), (1, 2)], ids=str)
def test_long_index_arrays_of_every_dtype_are_added_to_the_end(dtype, shape):
    # numpy 23457: add.at was wrong beyond 8192 elements for index dtypes other than int64.
    x = leaf(np.zeros(shape))
    w = uneven((8193, *shape[1:]))
    x[np.zeros(8193, dtype)].backward(tensor(w))
    np.testing.assert_array_equal(x.grad.data, w.sum(0).reshape(shape))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_few_numbers_pick_from_a_table_larger_than_they_can_count(dtype):
    x = leaf(np.zeros((100, 700)))
    x[np.array([99, 0, 99], dtype)].sum().backward()
    assert x.grad.data.sum(1).tolist() == [700.0, *[0.0] * 98, 1400.0]


@pytest.mark.parametrize("layout", ["C", "F", "reversed", "0-stride"])
@pytest.mark.parametrize("index", [[0, 2, 0], ([0, 2, 0], slice(None), [1, 1, 1]), slice(None, None, -1)], ids=str)
def test_the_layout_of_the_cotangent_does_not_matter(index, layout):
    x = leaf(uneven(CUBE))
    y = x[index]
    w = uneven(y.shape)
    given = {
        "C": w,
        "F": np.asfortranarray(w),
        "reversed": w[::-1, ::-1].copy()[::-1, ::-1],
        "0-stride": np.broadcast_to(w[:1], w.shape),
    }[layout]
    y.backward(smolgrad.from_numpy(given))
    expected = np.zeros(CUBE)
    np.add.at(expected, index, given)
    np.testing.assert_array_equal(x.grad.data, expected)


def test_scattering_is_the_adjoint_of_gathering():
    # burn PRs 1739 and 4064: <scatter(v), w> = <v, gather(w)>, with sizes that differ.
    index = np.array([4, 0, 4])
    v, w = leaf([1.0, 2.0, 3.0]), leaf([3.0, 5.0, 7.0, 11.0, 13.0])
    (scattered,) = smolgrad.grad(w[index], w, v, create_graph=True)
    assert scattered.data.tolist() == [2.0, 0.0, 0.0, 0.0, 4.0]
    scattered.backward(w.detach())
    assert v.grad.data.tolist() == [13.0, 3.0, 13.0]


EMBEDDED = [
    pytest.param([2, 0, 2], id="repeats, and a row never looked up"),
    pytest.param([[0, 1], [1, 1]], id="matrix"),
    pytest.param(1, id="0-d"),
    pytest.param(np.zeros((2, 0), int), id="none, tinygrad 3eb3664074"),
    pytest.param(np.array([0, 2], "int32"), id="int32"),
]


@pytest.mark.parametrize("rows", EMBEDDED)
def test_an_embedding_adds_the_cotangents_of_each_row(rows):
    table = leaf(uneven((4, 2)))
    y = F.embedding(smolgrad.tensor(rows), table)
    np.testing.assert_array_equal(y.data, table.data[rows])
    w = uneven(y.shape)
    y.backward(tensor(w))
    expected = np.zeros((4, 2))
    np.add.at(expected, rows, w)
    np.testing.assert_array_equal(table.grad.data, expected)


def test_a_batch_of_lookups_is_its_rows_one_by_one():
    # unsloth-zoo PR 776: with a wrong batch stride, the first row of a batch was right and all others wrong.
    rows, w = np.array([[0, 2, 2], [1, 1, 0], [2, 0, 1]]), uneven((3, 3, 2))
    table = leaf(uneven((3, 2)))
    F.embedding(smolgrad.tensor(rows), table).backward(tensor(w))
    whole = table.grad.data.copy()
    table.grad = None
    for row, weights in zip(rows, w, strict=True):
        F.embedding(smolgrad.tensor(row), table).backward(tensor(weights))
    np.testing.assert_array_equal(table.grad.data, whole)


@pytest.mark.parametrize("lane", [0, 1, 2, -1])
@pytest.mark.parametrize("op", ["cat", "stack"])
def test_joined_tensors_get_their_own_piece(op, lane):
    parts = [uneven((2, 3, 2)), 100 + uneven((2, 3, 2)), 1000 + uneven((2, 3, 2))]
    leaves = [leaf(p) for p in parts]
    y = getattr(smolgrad, op)(leaves, lane)
    joined = (np.concatenate if op == "cat" else np.stack)(parts, lane)
    np.testing.assert_array_equal(y.data, joined)
    y.backward(tensor(joined * joined))
    for t, p in zip(leaves, parts, strict=True):
        np.testing.assert_array_equal(t.grad.data, p * p)


@pytest.mark.parametrize("lengths", [(2, 0, 1), (0, 3), (1,), (0, 0), (3, 1, 2)], ids=str)
@pytest.mark.parametrize("lane", [0, 1])
def test_joined_tensors_of_unequal_and_of_no_length_get_their_own_piece(lengths, lane):
    parts = [10**i * uneven((n, 2) if lane == 0 else (2, n)) for i, n in enumerate(lengths)]
    leaves = [leaf(p) for p in parts]
    y = smolgrad.cat(leaves, lane)
    w = uneven(y.shape)
    y.backward(tensor(w))
    bounds = np.cumsum([0, *lengths])
    for t, start, end in zip(leaves, bounds, bounds[1:], strict=False):
        np.testing.assert_array_equal(t.grad.data, w.take(np.arange(start, end), lane))


@pytest.mark.parametrize("sizes", [(2, 3, 4), (0, 3), (1, 1), (3, 3)], ids=str)
def test_the_rows_of_a_tensor_are_its_parts(sizes):
    x = leaf(uneven(sizes))
    w = uneven(sizes)
    total = smolgrad.tensor(0.0, dtype="float64")
    for row, weights in zip(x, w, strict=True):
        total = total + (row * tensor(weights)).sum()
    if sizes[0]:
        total.backward()
        np.testing.assert_array_equal(x.grad.data, w)
    assert len(x) == len(list(x)) == sizes[0]


def test_a_function_applied_at_an_index_has_its_slope_at_that_index():
    # jax 16684: "apply at index" had a rule for the plain copy only.
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[1] = y[1].exp()
    y[[0, 2]] = y[[2, 0]] ** 2
    y.backward(tensor([3.0, 5.0, 7.0]))
    np.testing.assert_allclose(x.grad.data, [14.0, 5 * np.e**2, 18.0], rtol=1e-14)


@pytest.mark.parametrize("where", ["getitem", "setitem"])
def test_picks_in_a_graph_of_tensors_can_be_differentiated_again(where):
    x = leaf([1.0, 2.0, 3.0])
    if where == "getitem":
        y = x[[0, 2, 0]] ** 3
    else:
        h = x * 1
        h[[0, 2]] = x[[2, 0]] ** 3
        y = h**1
    (g,) = smolgrad.grad(y, x, tensor(np.array([3.0, 5.0, 7.0])), create_graph=True)
    g.backward(tensor([1.0, 10.0, 100.0]))
    expected = [6 * 10.0 * 1, 0.0, 6 * 3 * 5 * 100.0] if where == "getitem" else [6 * 1 * 7.0, 0.0, 6 * 3 * 3 * 100.0]
    assert x.grad.data.tolist() == expected


@given(data=st.data())
def test_places_that_are_counted_flat_are_numpys(data):
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple))
    _assert_counted_flat_as_numpy(shape, data.draw(indices(shape)))


@pytest.mark.parametrize("index", [*INDICES, pytest.param((ROW, [0, 2]), id="a mask and rows, which are two arrays")])
def test_places_of_every_kind_are_counted_flat(index):
    _assert_counted_flat_as_numpy(CUBE, index)


def _assert_counted_flat_as_numpy(shape, index):
    # Above _FEW values places are found by counting, in three ways; the suite's arrays are smaller.
    index = indexing._parts("getitem", index)
    found, want = np.zeros(shape), np.zeros(shape)
    values = np.arange(1.0, 1 + want[index].size).reshape(want[index].shape)
    with patch.object(indexing, "_FEW", -1):
        indexing._scatter_add(found, index, values)
    np.add.at(want, index, values)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("few", [-1, 2048])
def test_values_that_are_broadcast_are_added_as_often_as_they_are_repeated(few):
    # NumPy 2.4.6: np.add.at(np.zeros(1), np.zeros((2, 2), int), [1.0, 1.0]) adds what lies behind the values.
    places = (np.zeros((2, 2), np.int64),)
    with patch.object(indexing, "_FEW", few):
        for values in (tensor([1.0, 2.0]), tensor([[1.0], [2.0]]), tensor(1.5)):
            assert smolgrad.index_put(tensor([0.0]), places, values, accumulate=True).data.tolist() == [6.0]
