"""Named faults: one small change each that a real engine has had, or easily could.

A fault is a function that gives a context in which the engine is wrong; its docstring says how. ``dies_in`` names the
test that must fail: a property for an op, or a test of tests/regressions. To add one, write the function under
``@named``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from smolgrad import Tensor, autograd, functional, nn, optim, versions
from smolgrad.autograd import Node, Primitive, wrap
from smolgrad.primitives import elementwise, fused, indexing, linalg, reduction, shape

Planted = AbstractContextManager[Any]


@dataclass(frozen=True)
class Named:
    """A fault, and the test that it must not survive."""

    plant: Callable[[], Planted]
    dies_in: str

    @property
    def name(self) -> str:
        return self.plant.__name__

    def __repr__(self) -> str:
        return self.name


NAMED: list[Named] = []


def named(dies_in: str) -> Callable[[Callable[[], Planted]], Callable[[], Planted]]:
    """Enter a function among the named faults. It dies in ``property[op]`` or in ``test_file::test_name``."""

    def enter(plant: Callable[[], Planted]) -> Callable[[], Planted]:
        NAMED.append(Named(plant, dies_in))
        return plant

    return enter


def _together(*contexts: Planted) -> Planted:
    stack = ExitStack()
    for context in contexts:
        stack.enter_context(context)
    return stack


def _rules(primitive: Primitive, *rules: Callable[..., Any]) -> Planted:
    return patch.object(primitive, "pullbacks", rules)


def _primitive(op: Callable[[Any], Any]) -> Primitive:
    """What ``op`` records."""
    return op(Tensor(1.0, requires_grad=True))._primitive


def _dense(node: Node, value: Any) -> Any:
    if isinstance(value, autograd.Scatter):
        buffer = np.zeros(node._data.shape, node._data.dtype)
        value.add_to(buffer)
        return buffer
    return value


# --- accumulation -----------------------------------------------------------------------------------------------------


@named("an_input_used_again_adds_its_other_use[log]")
def the_last_use_wins() -> Planted:
    """A second contribution replaces the first."""
    return patch.object(autograd._Cotangents, "add", lambda self, node, g: self.__setitem__(node, _dense(node, g)))


@named("an_input_used_again_adds_its_other_use[exp]")
def third_use_dropped() -> Planted:
    """The third and later contributions to one tensor are lost."""
    add = autograd._Cotangents.add

    def add_twice(self: Any, node: Node, value: Any) -> None:
        count = self.__dict__.setdefault("count", {})
        count[node] = count.get(node, 1 if node in self else 0) + 1
        if count[node] <= 2:
            add(self, node, value)

    return patch.object(autograd._Cotangents, "add", add_twice)


@named("sweeps_add_up[log]")
def each_sweep_replaces_the_gradient() -> Planted:
    """A leaf's gradient is the last sweep's."""
    return patch.object(
        autograd, "_deposit", lambda leaf, g: setattr(leaf, "_grad", g if isinstance(g, Node) else wrap(g))
    )


@named("sweeps_add_up[tanh]")
def stale_cotangents() -> Planted:
    """The cotangents of one sweep are still there in the next."""

    class Kept(autograd._Cotangents):
        def pop(self, node: Node, default: Any = None) -> Any:
            return self.get(node, default)

    kept = Kept(())

    def cotangents(nodes: Any) -> Any:
        for node in nodes:
            kept.setdefault(node)
        return kept

    return patch.object(autograd, "_Cotangents", cotangents)


@named("test_accumulation::test_leaves_of_equal_value_stay_apart")
def equal_leaves_merged() -> Planted:
    """Tensors are told apart by value."""
    return patch.multiple(
        Tensor, __hash__=lambda self: hash(self.data.tobytes()), __eq__=lambda a, b: np.array_equal(a.data, b.data)
    )


# --- traversal --------------------------------------------------------------------------------------------------------


def _visited(roots: Any, take: int) -> list[Node]:
    """Each node when it is first met, instead of after all that use it."""
    waiting, found = list(roots), []
    while waiting:
        node = waiting.pop(take)
        if node not in found:
            found.append(node)
            waiting += _parents(node)
    return found[::-1]


def _parents(node: Node) -> list[Node]:
    return [x for x in autograd._inputs_of(node) if isinstance(x, Node) and x._requires_grad]


@named("test_accumulation::test_a_tensor_used_again_collects_every_use")
def depth_first_without_waiting() -> Planted:
    """A record is pulled back before all its uses have been: in preorder."""
    return patch.object(autograd, "_order", lambda roots, targets: _visited(roots, -1))


@named("test_accumulation::test_a_tensor_used_again_collects_every_use")
def breadth_first() -> Planted:
    """Right only where all ways to a tensor are equally long."""
    return patch.object(autograd, "_order", lambda roots, targets: _visited(roots, 0))


@named("test_traversal::test_a_chain_of_100000_ops_is_built_swept_twice_and_dropped")
def recursive_order() -> Planted:
    """The order of a graph is found by recursion."""

    def order(roots: Any, targets: Any) -> list[Node]:
        found: list[Node] = []
        seen = set()

        def visit(node: Node) -> None:
            if node not in seen:
                seen.add(node)
                for x in _parents(node):
                    visit(x)
                found.append(node)

        for root in roots:
            visit(root)
        return found

    return patch.object(autograd, "_order", order)


@named("test_traversal::test_memory_returns_without_the_collector")
def a_record_that_holds_its_output() -> Planted:
    """A cycle, which only the garbage collector frees."""
    call = Primitive.__call__

    def cyclic(self: Primitive, *inputs: Any, **static: Any) -> Any:
        node = call(self, *inputs, **static)
        if isinstance(node, Node) and node._primitive is not None:
            node._former = node
        return node

    return patch.object(Primitive, "__call__", cyclic)


@named("sweeps_add_up[log]")
def records_are_never_let_go() -> Planted:
    """A swept graph stays, and can be swept again."""
    sweep = autograd._sweep
    return patch.object(autograd, "_sweep", lambda roots, seeds, targets, _keep, create: sweep(
        roots, seeds, targets, True, create))  # fmt: skip


@named("second_order_matches_finite_differences_of_the_gradient[log]")
def create_graph_of_arrays() -> Planted:
    """``create_graph`` is accepted, and its gradients are constants: the second order is 0."""
    sweep = autograd._sweep

    def raw(roots: Any, seeds: Any, targets: Any, keep: bool, create_graph: bool) -> Any:
        found = sweep(roots, [autograd._array(s) for s in seeds], targets, keep, False)
        return {x: wrap(g) for x, g in found.items()} if create_graph else found

    return patch.object(autograd, "_sweep", raw)


# --- ownership --------------------------------------------------------------------------------------------------------


@named("test_ownership::test_a_first_contribution_held_by_reference_is_not_added_into")
def added_into_what_is_borrowed() -> Planted:
    """The first contribution is kept by reference, and the second added into it."""

    def add(self: Any, node: Node, value: Any) -> None:
        so_far = self.get(node)
        value = _dense(node, value)
        if isinstance(so_far, np.ndarray):
            value = np.add(so_far, value, out=so_far)
        elif so_far is not None:
            value = so_far + value
        self[node] = value

    return patch.object(autograd._Cotangents, "add", add)


@named("gradients_share_no_memory_and_nothing_is_written[clone]")
def a_borrowed_gradient_is_given_away() -> Planted:
    """A leaf's gradient is whatever array came along."""
    return patch.object(autograd._Cotangents, "given_away", lambda self, node, value: value)


@named("gradients_share_no_memory_and_nothing_is_written[reshape]")
def a_view_is_taken_for_fresh() -> Planted:
    """What a rule returns is taken for its own, views of its cotangent too."""
    return patch.object(autograd, "_is_fresh", lambda *_: True)


@named("gradients_share_no_memory_and_nothing_is_written[relu]")
def relu_writes_its_cotangent() -> Planted:
    """The cotangent is masked in place."""

    def rule(g: Any, y: Any, x: Any) -> Any:
        if isinstance(g, np.ndarray) and g.flags.writeable:
            g[y <= 0] = 0
            return g
        return elementwise.where(y <= 0, 0, g)

    return _rules(elementwise.relu.primitive, rule)


@named("arguments_changed_after_the_call_do_not_reach_backward[getitem]")
def an_index_kept_by_reference() -> Planted:
    """The caller's index array is remembered, not a copy."""
    return patch.object(indexing, "_part", lambda op, part: part)


# --- un-broadcasting --------------------------------------------------------------------------------------------------


def _sum_down(function: Callable[..., Any]) -> Planted:
    return patch.object(autograd.unbroadcast, "forward", function)


def _stretched(x: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] != 1)


def _leading(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return x.sum(axis=tuple(range(x.ndim - len(shape))))


@named("vjp_matches_finite_differences[mul]")
def only_leading_axes_are_summed() -> Planted:
    """Axes of size 1 that were stretched are left."""
    return _sum_down(_leading)


@named("vjp_matches_finite_differences[mul]")
def only_axes_of_one_are_summed() -> Planted:
    """Leading axes that were added are left."""
    return _sum_down(lambda x, shape: x.sum(axis=_stretched(x, shape), keepdims=True) if x.ndim == len(shape) else x)


@named("vjp_matches_finite_differences[add]")
def only_the_first_stretched_axis_is_summed() -> Planted:
    """Two stretched axes are one too many."""

    def forward(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        x = _leading(x, shape)
        return x.sum(axis=_stretched(x, shape)[:1], keepdims=True)

    return _sum_down(forward)


@named("vjp_matches_finite_differences[add]")
def what_was_stretched_to_nothing_is_not_summed() -> Planted:
    """Axes longer than 1 are summed, those of size 0 kept."""

    def forward(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        x = _leading(x, shape)
        return x.sum(axis=tuple(i for i in _stretched(x, shape) if x.shape[i] > 1), keepdims=True)

    return _sum_down(forward)


@named("vjp_matches_finite_differences[maximum]")
def stretched_axes_are_averaged() -> Planted:
    """The mean for the sum."""

    def forward(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        right = autograd._sum_to(x, shape)
        return right * (right.size / x.size) if x.size else right

    return _sum_down(forward)


# --- axes -------------------------------------------------------------------------------------------------------------


def _inserted(kept: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """``kept``, a reduced shape, with a 1 put back at each of ``dims`` in turn."""
    for d in dims:
        kept = kept[:d] + (1,) + kept[d:]
    return kept


def _put_back_wrongly(order: Callable[[Any, int], tuple[int, ...]]) -> Planted:
    named_as_given: list[tuple[int, ...]] = []
    axes = reduction.axes

    def given(op: str, dim: Any, ndim: int) -> tuple[int, ...]:
        found = axes(op, dim, ndim)
        named_as_given[:] = [order(dim, ndim) if isinstance(dim, (int, tuple)) and ndim else found]
        return found

    def kept(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
        left = tuple(n for i, n in enumerate(shape) if i not in dims)
        return _inserted(left, named_as_given[0] if named_as_given else dims)

    return _together(patch.object(reduction, "axes", given), patch.object(reduction, "_kept", kept))


@named("vjp_matches_finite_differences[sum]")
def a_negative_axis_put_back_unnormalised() -> Planted:
    """The reduced axis is put back where its negative number points to in the reduced shape."""
    return _put_back_wrongly(lambda dim, ndim: (dim,) if isinstance(dim, int) else tuple(sorted(d % ndim for d in dim)))


@named("test_axes::test_a_reduction_and_its_gradient_mean_the_same_axes")
def axes_put_back_in_the_order_given() -> Planted:
    """A tuple of axes is not sorted before they are put back."""
    return _put_back_wrongly(lambda dim, ndim: tuple(d % ndim for d in (dim if isinstance(dim, tuple) else (dim,))))


def _variance_over(count: Callable[..., int]) -> Planted:
    def rule(g: Any, _y: Any, x: Any, *, dims: Any, keepdim: bool, correction: float) -> Any:
        degrees = max(0.0, count(x, dims) - correction)
        return reduction._spread(g * 2.0 / degrees, x, dims) * (x - reduction.mean(x, dims, True))

    return _rules(reduction._var, rule)


@named("vjp_matches_finite_differences[var]")
def divided_by_all_elements() -> Planted:
    """The size of the input for that of a lane."""
    return _variance_over(lambda x, dims: x.size)


@named("vjp_matches_finite_differences[var]")
def divided_by_the_first_axis() -> Planted:
    """Of several axes the first is counted."""
    return _variance_over(lambda x, dims: x.shape[dims[0]] if dims else 1)


@named("vjp_matches_finite_differences[functional.softmax]")
def softmax_along_the_last_axis() -> Planted:
    """The rule's axis is -1, whatever the call's."""
    return _rules(fused.softmax, lambda g, y, _x, *, lane: y * (g - reduction.sum(g * y, -1, True)))


@named("vjp_matches_finite_differences[matmul]")
def all_axes_transposed() -> Planted:
    """``.T`` for ``.mT``: the batch goes along."""
    matmul = linalg._matmul
    return _rules(matmul, lambda g, _y, _a, b: matmul(g, shape.T(b)), lambda g, _y, a, _b: matmul(shape.T(a), g))


@named("vjp_matches_finite_differences[permute]")
def permuted_the_same_way_again() -> Planted:
    """The order of axes for its inverse: wrong from three axes on."""
    return _rules(shape._permute, lambda g, _y, _x, *, dims: shape._permute(g, dims=dims))


@named("layout_of_inputs_and_cotangents_does_not_matter[reshape]")
def reshaped_in_memory_order() -> Planted:
    """The rule reads columns first where its cotangent lies so."""

    def rule(g: Any, _y: Any, _x: Any, *, shape: Any) -> Any:
        return g.reshape(_x.shape, order="A") if isinstance(g, np.ndarray) else g.reshape(_x.shape)

    return _rules(shape._reshape, rule)


@named("vjp_matches_finite_differences[cat]")
def a_piece_counted_from_the_end() -> Planted:
    """``[low:-rest]``, with nothing left after it."""

    def rule(g: Any, _y: Any, *_inputs: Any, lane: int, bounds: Any, position: int) -> Any:
        rest = bounds[position + 1] - bounds[-1]
        return g[(slice(None),) * lane + (slice(bounds[position], rest),)]

    return _rules(shape._cat, rule)


# --- indices ----------------------------------------------------------------------------------------------------------


def _scatter(function: Callable[..., None]) -> Planted:
    return patch.object(indexing, "_scatter_add", function)


def _with(index: tuple[Any, ...], change: Callable[[int, Any], Any]) -> tuple[Any, ...]:
    return tuple(change(i, part) for i, part in enumerate(index))


def _is_integers(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype != bool


@named("vjp_matches_finite_differences[getitem]")
def repeated_places_counted_once() -> Planted:
    """``out[index] += g``."""

    def add(buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        buffer[index] += values

    return _scatter(add)


@named("vjp_matches_finite_differences[getitem]")
def repeats_looked_for_before_signs() -> Planted:
    """A row spelled 0 and -3 is taken for two."""
    right = indexing._scatter_add

    def add(buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        arrays = np.broadcast_arrays(*[i for i in index if _is_integers(i)]) if any(map(_is_integers, index)) else []
        spelled = list(zip(*(a.reshape(-1).tolist() for a in arrays), strict=True))
        if len(set(spelled)) < len(spelled):
            right(buffer, index, values)
        else:
            buffer[index] += values

    return _scatter(add)


@named("test_indexing::test_picking_is_numpys_and_each_pick_adds_its_cotangent_once")
def a_step_that_picks_one_is_dropped() -> Planted:
    """``x[1:3:3]`` is taken back as ``x[1:3]``."""
    right = indexing._scatter_add

    def add(buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        dropped = _with(index, lambda i, p: slice(p.start, p.stop) if isinstance(p, slice) and (p.step or 1) > 1 else p)
        if (
            dropped != index
            and np.broadcast_to(0, buffer.shape)[index].shape.count(1)
            and not any(isinstance(p, np.ndarray) for p in index)
        ):
            try:
                buffer[dropped] += values
            except ValueError:
                right(buffer, index, values)
        else:
            right(buffer, index, values)

    return _scatter(add)


@named("test_indexing::test_picking_is_numpys_and_each_pick_adds_its_cotangent_once")
def split_indices_taken_for_neighbours() -> Planted:
    """Indices with a slice between them put their axes first; the rule leaves them in place, where the shape fits."""
    right = indexing._scatter_add

    def add(buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
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


@named("test_indexing::test_picking_is_numpys_and_each_pick_adds_its_cotangent_once")
def a_mask_read_columns_first() -> Planted:
    """A mask of several dimensions is taken back in Fortran's order."""
    right = indexing._scatter_add

    def add(buffer: np.ndarray, index: Any, values: np.ndarray) -> None:
        parts: list[Any] = []
        for part in index:
            if isinstance(part, np.ndarray) and part.dtype == bool and part.ndim > 1:
                parts += reversed([axis.copy() for axis in part.T.nonzero()])
            else:
                parts.append(part)
        right(buffer, tuple(parts), values)

    return _scatter(add)


@named("results_and_gradients_have_their_inputs_dtype[functional.cross_entropy]")
def a_buffer_of_float64() -> Planted:
    """``np.zeros(shape)``, whatever is added into it."""

    def spread(values: np.ndarray, index: Any, shape: Any) -> np.ndarray:
        buffer = np.zeros(shape)
        indexing._scatter_add(buffer, index, values)
        return buffer

    return patch.object(indexing._put, "forward", spread)


@named("vjp_matches_finite_differences[setitem]")
def what_is_overwritten_keeps_its_gradient() -> Planted:
    """The cotangent of the whole goes to the input, the written place included."""
    return _rules(indexing._setitem, lambda g, _y, _x, _value, *, index, last: g, indexing._of_value)


@named("vjp_matches_finite_differences[setitem]")
def every_write_to_a_place_counts() -> Planted:
    """Of values written to one place, all get its gradient, not the last alone."""
    return patch.object(indexing, "_last", lambda shape, index, picked: None)


# --- kinks ------------------------------------------------------------------------------------------------------------


@named("test_nonsmooth::test_the_slope_at_a_kink_is_pytorchs")
def relu_is_steep_at_zero() -> Planted:
    """Slope 1 at 0."""
    return _rules(elementwise.relu.primitive, lambda g, y, x: elementwise.where(x >= 0, g, 0))


@named("gradient_at_a_tie_is_right_along_it[amax]")
def every_tie_gets_it_all() -> Planted:
    """Each of several largest elements gets the whole gradient."""
    return _rules(
        reduction._amax,
        lambda g, y, x, *, dims, keepdim: elementwise.where(
            x == reduction._spread(y, x, dims), reduction._spread(g, x, dims), 0
        ),
    )


def _larger(first: Callable[..., Any], second: Callable[..., Any]) -> Planted:
    return _rules(elementwise.maximum.primitive, first, second)


@named("test_nonsmooth::test_equal_operands_take_half_the_slope_each")
def the_left_of_two_equals_gets_it_all() -> Planted:
    """maximum(a, b) is a where they are equal, and so is its slope."""
    where = elementwise.where
    return _larger(lambda g, _y, a, b: where(a >= b, g, 0), lambda g, _y, a, b: where(b > a, g, 0))


@named("test_nonsmooth::test_a_tie_is_an_exact_one")
def near_ties_are_ties() -> Planted:
    """``isclose`` for ``==``: finite differences agree, as their step is longer than the gap."""
    right = elementwise.maximum.primitive.pullbacks

    def rule(i: int) -> Callable[..., Any]:
        def near(g: Any, y: Any, a: Any, b: Any) -> Any:
            tied = np.isclose(autograd._array(a), autograd._array(b))
            return elementwise.where(tied, g / 2, right[i](g, y, a, b))

        return near

    return _larger(rule(0), rule(1))


@named("test_nonsmooth::test_the_slope_at_a_kink_is_pytorchs")
def a_clamp_open_at_one_end() -> Planted:
    """Slope 0 at the lower bound, 1 at the upper."""

    def rule(g: Any, _y: Any, x: Any, *, low: Any, high: Any) -> Any:
        at_low = (x == low) if low is not None else np.zeros(x.shape, bool)
        return elementwise.where(at_low, 0, elementwise.where(elementwise._within(x, low, high), g, 0))

    return _rules(elementwise._clamp, rule)


# --- singular and extreme points --------------------------------------------------------------------------------------


@named("test_singular::test_a_power_and_both_slopes_are_pytorchs_at_singular_points")
def a_power_without_its_singular_points() -> Planted:
    """b·a^(b-1), which is 0·inf where a = b = 0."""
    return _rules(elementwise._pow, lambda g, _y, a, b: g * (b * a ** (b - 1)), elementwise._pow.pullbacks[1])


@named("test_stability::test_far_from_zero_slopes_are_finite_and_right")
def a_sigmoid_of_large_powers() -> Planted:
    """e^x/(1 + e^x)², which is inf/inf far from 0."""
    exp = elementwise.exp
    return _rules(_primitive(elementwise.sigmoid), lambda g, _y, x: g * exp(x) / ((1 + exp(x)) ** 2))


@named("test_stability::test_each_lane_is_shifted_by_its_own_largest")
def one_shift_for_all_lanes() -> Planted:
    """The largest of all elements is subtracted: lanes far below it underflow."""
    return patch.object(fused, "_shifted", lambda x, lane: x - np.max(x, initial=-np.inf))


@named("test_stability::test_a_small_variance_beside_a_large_mean")
def variance_in_one_pass() -> Planted:
    """E[x²] - E[x]², which loses all digits where the mean is large."""

    def forward(x: Any, dims: Any, keepdim: bool, correction: float) -> Any:
        n = reduction._count(x.shape, dims)
        spread = (x * x).mean(axis=dims, keepdims=keepdim) - x.mean(axis=dims, keepdims=keepdim) ** 2
        return np.asarray(spread * n / (n - correction), x.dtype)

    return patch.object(reduction._var, "forward", forward)


@named("test_axes::test_logsumexp_with_its_axis_kept_is_the_one_without")
def a_squeezed_shift() -> Planted:
    """With ``keepdim`` the shift is added without its axis: silent for squares."""
    right = reduction._logsumexp.forward

    def forward(x: Any, dims: Any, keepdim: bool) -> Any:
        if not keepdim:
            return right(x, dims, keepdim)
        top = np.max(x, axis=dims, keepdims=True, initial=-np.inf)
        return np.log(np.sum(np.exp(x - top), axis=dims, keepdims=True)) + top.squeeze(dims)

    return patch.object(reduction._logsumexp, "forward", forward)


@named("results_and_gradients_have_their_inputs_dtype[sqrt]")
def a_constant_of_float64() -> Planted:
    """NumPy's scalars are not weak."""
    return _rules(_primitive(elementwise.sqrt), lambda g, y, _x: g / (y * np.asarray([2.0]).sum()))


@named("vjp_matches_finite_differences[div]")
def the_denominators_sign() -> Planted:
    """d(a/b)/db without its minus."""
    return _rules(elementwise.div.primitive, elementwise.div.primitive.pullbacks[0], lambda g, y, _a, b: g * (y / b))


# --- writing in place -------------------------------------------------------------------------------------------------


@named("a_write_between_forward_and_backward_is_refused_or_does_not_matter[mul]")
def writes_go_unnoticed() -> Planted:
    """No record asks whether what it reads was written."""
    return patch.object(versions, "written_after", lambda array, time: False)


@named("a_write_between_forward_and_backward_is_refused_or_does_not_matter[exp]")
def the_output_is_not_watched() -> Planted:
    """A rule that reads its output, and does not say so."""
    return patch.object(_primitive(elementwise.exp), "reads", ((1,),))


@named("test_in_place::test_every_slot_of_an_earlier_op_keeps_the_old_tensor")
def only_the_first_slot_keeps_the_old_value() -> Planted:
    """A tensor that was written is taken as it was in the first slot that holds it."""
    right = autograd._inputs_of

    def inputs_of(node: Node) -> Any:
        before = node._inputs or ()
        after = right(node)
        changed = [i for i, (x, y) in enumerate(zip(before, after, strict=True)) if x is not y]
        if changed:
            node._inputs = tuple(after[i] if i == changed[0] else x for i, x in enumerate(before))
        return after if not changed else node._inputs

    return patch.object(autograd, "_inputs_of", inputs_of)


# --- refusals and modes -----------------------------------------------------------------------------------------------


@named("test_singular::test_cross_entropy_leaves_out_the_ignored")
def the_ignored_count_in_the_mean() -> Planted:
    """The mean is over all targets."""
    reduced = functional._reduced
    return patch.object(
        functional, "_reduced", lambda losses, reduction, count: reduced(losses, reduction, max(losses.size, count))
    )


@named("test_refusals::test_a_wrong_call_is_refused_by_name_and_changes_nothing")
def an_index_from_the_end_is_a_class() -> Planted:
    """Class -1 is the last."""
    return patch.object(functional, "_in_range", lambda op, numbers, size: None)


@named("test_refusals::test_a_wrong_call_is_refused_by_name_and_changes_nothing")
def any_output_may_be_swept_from() -> Planted:
    """An output of several elements gets a gradient of ones that nobody gave."""
    right = autograd._seeds

    def seeds(outputs: Any, given: Any, create_graph: bool) -> Any:
        grads = [None] * len(outputs) if given is None else autograd._sequence(given)
        ones = [wrap(np.ones_like(y._data)) if g is None else g for y, g in zip(outputs, grads, strict=True)]
        return right(outputs, ones, create_graph)

    return patch.object(autograd, "_seeds", seeds)


@named("test_modes::test_nested_modes_are_a_stack")
def leaving_a_mode_records_again() -> Planted:
    """``no_grad`` ends with recording on, wherever it stood."""

    def leave(self: Any, *_: object) -> None:
        autograd._mode.before.pop()
        autograd._mode.enabled = True

    return patch.object(autograd._SetMode, "__exit__", leave)


@named("test_modes::test_a_generator_is_sent_to_thrown_into_and_closed_in_its_mode")
def a_generator_keeps_its_mode_between_steps() -> Planted:
    """A decorated generator is in its mode from the first step to the last."""

    def whole(mode: Any, generator: Any) -> Any:
        with mode:
            return (yield from generator)

    return patch.object(autograd, "_InMode", whole)


# --- optimizers and modules -------------------------------------------------------------------------------------------


def _update(optimizer: Any, change: Callable[..., Any]) -> Planted:
    """``change(right, p, grad, state, group)`` for the right update of a parameter."""
    right = optimizer._update
    return patch.object(
        optimizer,
        "_update",
        lambda self, p, g, state, group: change(lambda *args: right(self, *args), p, g, state, group),
    )


@named("test_optimizers::test_sgd_goes_down")
def uphill() -> Planted:
    """The step is added."""
    return _update(optim.SGD, lambda right, p, g, state, group: right(p, -g, state, group))


@named("test_optimizers::test_weight_decay_stays_out_of_the_gradient")
def decay_added_to_the_gradient_itself() -> Planted:
    """``p.grad`` is another one after the step."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        g += group["weight_decay"] * p
        right(p, g, state, {**group, "weight_decay": 0.0})

    return _update(optim.SGD, change)


@named("test_optimizers::test_sgd_keeps_the_learning_rate_out_of_its_buffer")
def the_learning_rate_in_the_buffer() -> Planted:
    """The same while it is constant."""
    return _update(optim.SGD, lambda right, p, g, state, group: right(p, g * group["lr"], state, {**group, "lr": 1.0}))


@named("test_optimizers::test_adamw_decay_does_not_pass_through_the_moments")
def decay_through_the_moments() -> Planted:
    """Adam's L2 penalty for AdamW's decay."""
    return _update(
        optim.AdamW,
        lambda right, p, g, state, group: right(
            p, g + group["weight_decay"] * p, state, {**group, "weight_decay": 0.0}
        ),
    )


@named("test_optimizers::test_adamw_decays_the_weight_before_the_adaptive_step")
def decay_after_the_step() -> Planted:
    """2e-9 at the usual options."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        right(p, g, state, {**group, "weight_decay": 0.0})
        p *= 1 - group["lr"] * group["weight_decay"]

    return _update(optim.AdamW, change)


@named("test_optimizers::test_adamw_corrects_the_bias_of_its_moments")
def no_bias_correction() -> Planted:
    """The moments of the first steps are too small."""

    def change(right: Any, p: Any, g: Any, state: Any, group: Any) -> None:
        if not state:
            state.update(step=10**6, exp_avg=np.zeros_like(p), exp_avg_sq=np.zeros_like(p))
        right(p, g, state, group)

    return _update(optim.AdamW, change)


@named("test_modules::test_a_state_dict_is_a_snapshot")
def a_state_dict_of_live_arrays() -> Planted:
    """What was saved moves with the next step."""
    return patch.object(nn.Module, "state_dict", lambda self: {name: p.detach() for name, p in self.named_parameters()})


@named("test_modules::test_a_tied_parameter_is_one_parameter_with_two_names")
def a_tied_parameter_twice() -> Planted:
    """Parameters are counted by name."""
    right = nn.Module._named
    return patch.object(
        nn.Module,
        "_named",
        lambda self, kinds, prefix="", recurse=True, remove_duplicate=True: right(self, kinds, prefix, recurse, False),
    )


@named("test_modules::test_loading_checks_everything_before_it_changes_anything")
def loading_broadcasts() -> Planted:
    """``p[...] = value`` takes whatever fits somehow."""
    return patch.object(nn, "_misfit", lambda name, x, value: "")
