"""Both ways: every public op has an entry, every entry an op and an oracle, and every property runs for every entry."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import smolgrad
import smolgrad.primitives
from smolgrad import autograd
from smolgrad.autograd import Node, Primitive
from spec import engines, harness
from spec.case import draw_case
from spec.engines.smolgrad import Smolgrad
from spec.entry import Call, OpSpec
from spec.faults.killing import LIGHT, primitives
from spec.generate.values import cotangents
from spec.harness import DIFFERENTIABLE
from spec.ops import BY_NAME, SPECS, elementwise
from spec.oracles import scalar
from tests.meta.test_reach import look
from tests.parity import test_numbers, test_promotion
from tests.regressions import test_beside_pytorch, test_modules

ENGINE = Smolgrad()
TESTS = Path(__file__).parents[1]

# --- ops and entries --------------------------------------------------------------------------------------------------

# What is public and has no entry, and why.
NO_ENTRY = {
    "Tensor": "a class",
    **dict.fromkeys(("autograd", "func", "functional", "gradcheck", "graph", "nn", "optim", "scalar"), "a module"),
    **dict.fromkeys(("bool", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"), "a dtype"),
    **dict.fromkeys(("enable_grad", "no_grad", "is_grad_enabled", "grad", "manual_seed"), "no op, but about them"),
    **dict.fromkeys(("get_rng_state", "set_rng_state", "save", "load"), "about state"),
    "result_type": "asks about dtypes",
    **dict.fromkeys(
        ("arange", "as_tensor", "eye", "from_numpy", "full", "ones", "ones_like", "tensor"), "makes a tensor"
    ),
    **dict.fromkeys(("rand", "randint", "randn", "zeros", "zeros_like"), "makes a tensor"),
    **dict.fromkeys(("data", "grad", "is_leaf", "requires_grad", "shape", "dtype", "ndim", "size", "kind"), "a fact"),
    **dict.fromkeys(("backward", "detach", "item", "numpy", "requires_grad_"), "no op: about the graph or the array"),
    **dict.fromkeys(
        (f"{name}_" for name in ("add", "sub", "mul", "div", "floor_divide", "remainder", "pow", "copy", "zero")),
        "in place: tests/regressions/test_in_place.py",
    ),
    **dict.fromkeys(
        (f"bitwise_{name}_" for name in ("and", "or", "xor")), "in place: tests/regressions/test_beside_pytorch.py"
    ),
    **dict.fromkeys(("to", "float", "double"), "a cast: tests/regressions/test_promotion.py"),
}


def _names(*candidates: str) -> bool:
    return any(name in BY_NAME for name in candidates)


def test_every_public_op_has_an_entry() -> None:
    public = [*smolgrad.__all__, *(name for name in dir(smolgrad.Tensor) if not name.startswith("_"))]
    missing = {name for name in public if not _names(name, f"functional.{name}", f"Tensor.{name}")}
    missing |= {name for name in smolgrad.functional.__all__ if not _names(f"functional.{name}")}
    assert missing == set(NO_ENTRY)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_every_entry_has_an_op_and_an_oracle(spec: OpSpec) -> None:
    assert callable(_op(spec))
    assert callable(spec.ref or engines.find(spec.name, torch, torch.nn, torch.Tensor))


def test_the_scalar_engine_votes_on_every_elementwise_entry() -> None:
    elementwise_ops = {spec.name for spec in elementwise.SPECS if not spec.constant}
    again = {spec.name for spec in SPECS if spec.name.removeprefix("functional.") in elementwise_ops}
    assert set(scalar.EXPRESSIONS) == elementwise_ops | again


def test_no_entry_comes_twice() -> None:
    assert [name for name, count in Counter(spec.name for spec in SPECS).items() if count > 1] == []


# --- arguments --------------------------------------------------------------------------------------------------------

# Arguments that the entries do not vary, and the tests that do: with a dtype results are not float64, what is dropped
# is drawn, no output depends on a momentum, the gradient of a row of padding is no derivative, and the larger of two
# tensors is maximum's.
WITH_DTYPE = [
    name for name in (*test_promotion.WITH_DTYPE, "functional.softmax", "functional.log_softmax") if name in BY_NAME
]
NOT_VARIED = {
    **{(name, "dtype"): test_promotion.test_the_option_dtype_is_pytorchs for name in WITH_DTYPE},
    **{(name, "other"): test_beside_pytorch.test_the_answer_is_pytorchs for name in ("max", "min")},
    ("norm", "dtype"): test_promotion.test_the_dtype_of_a_norm_is_pytorchs,
    ("functional.scaled_dot_product_attention", "dropout_p"): test_modules.test_attention_drops_weights,
    ("functional.batch_norm", "momentum"): test_modules.test_running_statistics_follow_the_batches_and_only_in_training,
    ("functional.embedding", "padding_idx"): test_modules.test_the_row_of_padding_gets_no_gradient,
}


def _op(spec: OpSpec) -> Any:
    return engines.find(spec.name, smolgrad, smolgrad.Tensor)


VARIADIC = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


class _Noted(Exception):
    """An op was called, which is all that is asked."""


def _not_varied(spec: OpSpec) -> set[str]:
    """The parameters of an entry's op to which each call of its entries gives the same number or option, or none."""
    op = _op(spec)
    if not inspect.isfunction(op):  # an attribute
        return set()
    signature, found = inspect.signature(op), dict[str, set[str]]()

    def note(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for name, value in given.arguments.items():
            is_tensor = isinstance(value, (smolgrad.Tensor, np.ndarray))
            found.setdefault(name, set()).update(["a tensor", "another"] if is_tensor else [repr(value)])
        raise _Noted

    def call(entry: OpSpec, drawn: Call) -> None:
        inputs = [smolgrad.ones(*shape) for shape in drawn.shapes]
        with contextlib.suppress(_Noted):
            entry.written(note, inputs, drawn.params)  # where that is an operator it calls the op itself, unnoted

    for entry in SPECS:
        if _op(entry) is op:
            look(entry.calls, partial(call, entry), 100)
    named = [name for name, p in signature.parameters.items() if p.kind not in VARIADIC] if found else []
    return {name for name in named if len(found.get(name, ())) < 2}


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_every_argument_is_varied(spec: OpSpec) -> None:
    assert _not_varied(spec) == {name for op, name in NOT_VARIED if op == spec.name}


# --- tests and properties ---------------------------------------------------------------------------------------------

CONCERNS = {
    "gradient_at_a_tie_is_right_along_it": [spec for spec in DIFFERENTIABLE if spec.kinked],
    "conventions_at_kinks_are_pytorchs": [spec for spec in DIFFERENTIABLE if spec.kinked],
    "second_derivatives_at_kinks_are_pytorchs": [spec for spec in DIFFERENTIABLE if spec.kinked],
    "special_values_of_constants_are_pytorchs": [spec for spec in SPECS if spec.constant],
    "values_and_gradients_match_the_scalar_engine": [spec for spec in SPECS if spec.name in scalar.EXPRESSIONS],
    "values_match_pytorch": SPECS,
    "arguments_left_out_have_pytorchs_defaults": [spec for spec in SPECS if test_numbers.optional(spec)],
    "layout_of_inputs_and_cotangents_does_not_matter": SPECS,
    "dtypes_of_results_are_pytorchs": SPECS,
}


def _files() -> list[Path]:
    return sorted(TESTS.rglob("test_*.py"))


def test_every_property_runs_for_every_entry_that_it_concerns() -> None:
    for file in _files():
        if file.parent.name in ("properties", "parity"):
            importlib.import_module(f"tests.{file.parent.name}.{file.stem}")
    assert set(harness.PROPERTIES) >= set(CONCERNS)
    for name, specs in harness.PROPERTIES.items():
        assert specs == CONCERNS.get(name, DIFFERENTIABLE), name


@pytest.mark.parametrize("file", _files(), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_no_test_hides_another_of_its_name(file: Path) -> None:
    # The second definition of a name replaces the first, which then never runs.
    tree = ast.parse(file.read_text())
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        names = [node.name for node in scope.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        assert len(names) == len(set(names))


# --- primitives -------------------------------------------------------------------------------------------------------

# Primitives that no call of an entry records, and why.
UNREACHED = {
    "recurrence": "in the slope of cumprod, recorded by a sweep with create_graph",
    "put": "the adjoint of getitem, recorded by a sweep with create_graph",
    "unbroadcast": "the adjoint of expand, recorded by a sweep with create_graph",
    "to": NO_ENTRY["to"],
}


def _all_primitives() -> set[str]:
    files = [f"smolgrad.primitives.{m.name}" for m in pkgutil.iter_modules(smolgrad.primitives.__path__)]
    owners = [autograd, *map(importlib.import_module, files)]
    values = [getattr(value, "primitive", value) for owner in owners for value in vars(owner).values()]
    found = [value for value in values if isinstance(value, Primitive)]
    # The ops of one input keep theirs in a closure.
    for owner in owners:
        for value in vars(owner).values():
            found += [c.cell_contents for c in getattr(value, "__closure__", None) or () if _is_primitive(c)]
    return {primitive.name for primitive in found}


def _is_primitive(cell: Any) -> bool:
    return isinstance(cell.cell_contents, Primitive)


def test_each_primitive_is_recorded_by_some_entry() -> None:
    reached = {primitive.name for spec in SPECS for primitive in primitives(ENGINE, spec)}
    assert _all_primitives() - reached == set(UNREACHED)


def _records(outputs: list[Any]) -> Iterator[Node]:
    while outputs:
        node = outputs.pop()
        if isinstance(node, Node) and node._primitive is not None:
            yield node
            outputs += node._inputs or ()


def _spoiled(value: Any, position: int, reads: tuple[int, ...]) -> Any:
    """``value``, or one of its shape and dtype that is all NaN where a rule does not read it."""
    return np.full_like(value, np.nan) if position not in reads and isinstance(value, np.ndarray) else value


def _unread_values_matter(node: Node, cotangent: np.ndarray) -> list[str]:
    """The inputs of ``node`` whose gradient changes with a value that its rule is said not to read."""
    primitive, static = node._primitive, node._static or {}
    values = [node._data, *(x._data if isinstance(x, Node) else x for x in node._inputs or ())]
    found = []
    for i, x in enumerate(node._inputs or ()):
        if isinstance(x, Node):
            rule = 0 if primitive.variadic else i
            where = {"position": i} if primitive.variadic else {}
            spoiled = [_spoiled(value, at, primitive.reads[rule]) for at, value in enumerate(values)]
            right, wrong = (
                _dense(primitive.pullbacks[rule](cotangent, *given, **where, **static), x)
                for given in (values, spoiled)
            )
            if not np.array_equal(right, wrong, equal_nan=True):
                found.append(f"input {i} of {primitive.name}")
    return found


def _dense(gradient: Any, x: Node) -> Any:
    if isinstance(gradient, autograd.Scatter):
        buffer = np.zeros_like(x._data)
        gradient.add_to(buffer)
        return buffer
    return gradient


def _check_reads(spec: OpSpec) -> None:
    @seed(0)
    @settings(**{**LIGHT, "max_examples": 10})
    @given(data=st.data())
    def look(data: st.DataObject) -> None:
        case = draw_case(data, ENGINE, spec)
        with np.errstate(all="ignore"):
            outputs = engines.apply(ENGINE, spec, [ENGINE.leaf(a) for a in case.arrays], case.params)
            for node in _records(outputs):
                assert not _unread_values_matter(node, data.draw(cotangents(node._data.shape)))

    look()


@pytest.mark.parametrize("spec", DIFFERENTIABLE, ids=repr)
def test_rules_read_no_more_than_they_say(spec: OpSpec) -> None:
    _check_reads(spec)


def test_a_rule_that_reads_more_than_it_says_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    (mul,) = primitives(ENGINE, BY_NAME["mul"])
    monkeypatch.setattr(mul, "reads", ((), ()))
    with pytest.raises(AssertionError, match="input 0 of mul"):
        _check_reads(BY_NAME["mul"])
