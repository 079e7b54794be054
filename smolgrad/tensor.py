"""Tensor: an array that remembers how it was made."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import autograd, functional, versions
from .autograd import Node, is_grad_enabled, value_of, wrap
from .dtypes import OF_NUMBER, Number, as_dtype, float32, join, kind
from .primitives import elementwise, indexing, linalg, reduction
from .primitives import shape as shape_ops
from .primitives.operands import cast, public


def array_of(data: Any, dtype: Any = None) -> np.ndarray:
    """A new array of ``data``: Python floats become float32, integers int64; arrays and tensors keep their dtype."""
    found = _dtypes(data) or {float32}
    return np.array(value_of(data), dtype=as_dtype(dtype, join(found)), order="C")


def _dtypes(data: Any) -> set[np.dtype[Any]]:
    """The dtypes of what is in a nested list. TypeError for what is neither number nor array nor tensor."""
    if isinstance(data, (list, tuple, range)):
        kinds = set(map(type, data))
        return {OF_NUMBER[k] for k in kinds} if kinds <= OF_NUMBER.keys() else set().union(*map(_dtypes, data))
    if isinstance(data, (Tensor, np.ndarray, np.generic)):
        return {data.dtype}
    if type(data) not in OF_NUMBER:
        raise TypeError(f"a tensor is made of numbers, lists, arrays and tensors, got {type(data).__name__}")
    return {OF_NUMBER[type(data)]}


def _operators(name: str, op: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """The operator of ``op``, that of the right-hand operand, and the method ``name`` that writes in place."""
    checked = public(op)

    def left(self: Tensor, other: Any) -> Any:
        return op(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def right(self: Tensor, other: Any) -> Any:
        return op(other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def in_place(self: Tensor, other: Any, **options: Any) -> Tensor:
        return self._write(name, functools.partial(checked, **options), other)

    in_place.__name__, in_place.__doc__ = name, f"``{op.__name__}``, written in place."
    return left, right, in_place


_OPERANDS = (Node, *Number, np.ndarray, np.generic)


class Tensor(Node):
    """An array with a gradient: ``Tensor(data, dtype=None, requires_grad=False)`` copies what it is given.

    ``data`` is a number, a nested list, an array or a tensor. Python floats become float32, integers int64; arrays keep
    their dtype. TypeError for float16, complex and other dtypes; RuntimeError for an integer tensor to require grad.
    """

    __slots__ = ()

    def __init__(self, data: Any, dtype: Any = None, requires_grad: bool = False):
        self._data = array_of(data, dtype)
        self._grad = self._primitive = self._inputs = self._static = self._former = None
        self._time = versions.tick()
        self._requires_grad = False
        if requires_grad:
            self.requires_grad_()

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def data(self) -> np.ndarray:
        """The array itself. Assigning to it writes into it: another array of its shape and dtype."""
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        value = value_of(value)
        if not isinstance(value, np.ndarray) or value.shape != self.shape or value.dtype != self.dtype:
            got = f"{value.shape} {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
            raise RuntimeError(f"data: needs an array of {self.shape} {self.dtype}, got {got}")
        self._refuse_read_only("data")
        self._data[...] = value
        versions.stamp(self._data)

    @property
    def grad(self) -> Tensor | None:
        """A leaf's gradient, of its shape and dtype, or None."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad: needs a Tensor or None, got {type(value).__name__}")
            if value.shape != self.shape or value.dtype != self.dtype:
                raise RuntimeError(f"grad: needs {self.shape} {self.dtype}, got {value.shape} {value.dtype}")
            if value is self:
                raise RuntimeError("grad: a tensor cannot be its own gradient")
        self._grad = value

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this tensor. Only a leaf's can be set, and only a floating one's to True."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set ``requires_grad``, and return the tensor. RuntimeError where that is not possible."""
        if not isinstance(requires_grad, bool):
            raise TypeError(f"requires_grad must be a bool, got {requires_grad!r}")
        if requires_grad and self.dtype.kind != "f":
            raise RuntimeError(f"only floating tensors can require grad, this one has dtype {self.dtype}")
        if not self.is_leaf and not requires_grad:
            raise RuntimeError("requires_grad can be changed for leaves only; take a detach() of this tensor")
        self._requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made it."""
        return self._primitive is None

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self._data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements, NumPy's."""
        return self._data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._data.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._data.size

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return len(self._data)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        text = np.array2string(self._data, separator=", ", prefix="tensor(")
        default = self.dtype in (np.float32, np.int64, np.bool_)
        notes = ["" if default and self.size else f", dtype={self.dtype}"]
        if self._primitive is not None:
            notes.append(f", grad_fn={self._primitive.name}")
        elif self._requires_grad:
            notes.append(", requires_grad=True")
        return f"tensor({text}{''.join(notes)})"

    def item(self) -> Any:
        """The one element as a Python number. RuntimeError where there are more or none."""
        if self.size != 1:
            raise RuntimeError(f"item(): needs a tensor of one element, got shape {self.shape}")
        return self._data.item()

    def __contains__(self, element: Any) -> bool:
        return bool(elementwise.eq(self, element).any())

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if self.ndim else format(self.item(), spec)

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iub" or self.size != 1:
            raise TypeError("only an integer tensor of one element can serve as an index")
        return int(self.item())

    __hash__ = Node.__hash__

    # --- arrays -------------------------------------------------------------------------------------------------------

    def numpy(self) -> np.ndarray:
        """The array itself, shared. RuntimeError for a tensor that requires grad: say ``t.detach().numpy()``."""
        if self._requires_grad:
            raise RuntimeError("numpy(): this tensor requires grad and an array has none; take t.detach().numpy()")
        return self._data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # ndarray's operators come here when a tensor stands on their right; any other ufunc wants arrays.
        op = _OPERATORS.get(ufunc.__name__)
        if op is not None and method == "__call__" and not kwargs:
            return op(*inputs)
        return getattr(ufunc, method)(*(np.asarray(x) for x in inputs), **kwargs)

    # --- graph --------------------------------------------------------------------------------------------------------

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False) -> None:
        """Add this tensor's gradients, weighted by ``gradient``, to the leaves': see ``autograd.backward``."""
        autograd.backward([self], [gradient], retain_graph, create_graph)

    def __reduce__(self) -> Any:
        # A copy, a pickled one too, has neither a record nor this one's time, which is of this process's clock.
        if not self.is_leaf:
            raise RuntimeError("only leaves can be copied or pickled; take a detach() of this tensor")
        return _restored, (type(self), self._data, self._requires_grad, self._grad)

    def detach(self) -> Tensor:
        """The same memory as a constant."""
        return wrap(self._data)

    def to(self, dtype: Any) -> Tensor:
        """The tensor in ``dtype``: itself where it has that, a constant where ``dtype`` is not floating."""
        return cast(self, dtype)

    def float(self) -> Tensor:
        """The tensor in float32."""
        return cast(self, "float32")

    def double(self) -> Tensor:
        """The tensor in float64."""
        return cast(self, "float64")

    # --- writing in place ---------------------------------------------------------------------------------------------

    def _write(self, op: str, function: Callable[..., Any], *others: Any) -> Tensor:
        """Let this tensor become ``function(itself, *others)``, in its own memory and, where recorded, in the graph."""
        self._refuse_read_only(op)
        if is_grad_enabled():
            self._refuse_write(op)
        buffer = versions.owner(self._data)
        others = tuple(
            shape_ops.clone(x) if isinstance(x, Node) and versions.owner(x._data) is buffer else x for x in others
        )
        former = wrap(self._data)
        for slot in ("_requires_grad", "_primitive", "_inputs", "_static", "_time", "_former"):
            setattr(former, slot, getattr(self, slot))
        result = function(former, *others)
        if result.shape != self.shape:
            raise RuntimeError(f"{op}(): the result has shape {result.shape}, which does not fit into {self.shape}")
        if kind(result.dtype) > kind(self.dtype):
            raise RuntimeError(f"{op}(): a result of dtype {result.dtype} cannot be written into {self.dtype}")
        result = cast(result, self.dtype)
        recorded = result._primitive is not None
        if recorded:
            former._data = self._data.copy()  # the rule may read what was here before
        self._data[...] = result._data
        versions.stamp(self._data, recorded)
        if recorded:
            versions.stamp(former._data)  # whoever read it before the write read something else now
            self._requires_grad, self._primitive = True, result._primitive
            self._inputs, self._static = result._inputs, result._static
            self._time, self._former = versions.tick(), former
        return self

    def _refuse_read_only(self, op: str) -> None:
        if self._data.flags.writeable:
            return
        if self._data.size:
            raise RuntimeError(
                f"{op}(): this tensor is not written in place: its memory is read-only, or elements share it (expand); "
                "write to a clone()"
            )
        self._data = self._data.copy()  # of nothing, of which nothing can be shared

    def _refuse_write(self, op: str) -> None:
        if self._requires_grad and self.is_leaf:
            raise RuntimeError(f"{op}(): a leaf that requires grad is written in place only under no_grad()")
        if self._inputs == () or autograd.is_view(self):
            raise RuntimeError(
                f"{op}(): this tensor is a view of one that requires grad and is not written in place; write to that "
                "one, or under no_grad()"
            )

    def copy_(self, source: Any) -> Tensor:
        """Take the values of ``source``, broadcast and cast, in place."""
        self[...] = source
        return self

    def zero_(self) -> Tensor:
        """Become zero in place."""
        self[...] = 0
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        recorded = self._requires_grad or (isinstance(value, Node) and value._requires_grad)
        if recorded and is_grad_enabled():
            self._write("setitem", lambda x, v: indexing.setitem(x, index, v), value)
        else:
            self._refuse_read_only("setitem")
            if is_grad_enabled():
                autograd._refuse_rewritten("setitem", (self, value))
            parts, value, _ = indexing.place("setitem", self, index, value)
            self._data[parts] = value_of(value)
            versions.stamp(self._data)

    # --- the ops, as operators and methods ----------------------------------------------------------------------------

    __add__, __radd__, add_ = _operators("add_", elementwise.add)
    __sub__, __rsub__, sub_ = _operators("sub_", elementwise.sub)
    __mul__, __rmul__, mul_ = _operators("mul_", elementwise.mul)
    __truediv__, __rtruediv__, div_ = _operators("div_", elementwise.div)
    __floordiv__, __rfloordiv__, floor_divide_ = _operators("floor_divide_", elementwise.floor_divide)
    __mod__, __rmod__, remainder_ = _operators("remainder_", elementwise.remainder)
    __pow__, __rpow__, pow_ = _operators("pow_", elementwise.pow)
    __and__, __rand__, bitwise_and_ = _operators("bitwise_and_", elementwise.bitwise_and)
    __or__, __ror__, bitwise_or_ = _operators("bitwise_or_", elementwise.bitwise_or)
    __xor__, __rxor__, bitwise_xor_ = _operators("bitwise_xor_", elementwise.bitwise_xor)
    __iadd__, __isub__, __imul__, __itruediv__, __ifloordiv__ = add_, sub_, mul_, div_, floor_divide_
    __imod__, __ipow__, __iand__, __ior__, __ixor__ = remainder_, pow_, bitwise_and_, bitwise_or_, bitwise_xor_
    __matmul__, __rmatmul__, _ = _operators("", linalg.matmul)
    __eq__, __ne__, _ = *(_operators("", op)[0] for op in (elementwise.eq, elementwise.ne)), None
    __lt__, __le__, __gt__, __ge__ = elementwise.lt, elementwise.le, elementwise.gt, elementwise.ge
    __neg__, __abs__, __invert__ = elementwise.neg, elementwise.abs, elementwise.bitwise_not
    __pos__, __getitem__ = shape_ops.clone, indexing.getitem

    def where(self, condition: Any, other: Any) -> Any:
        """This tensor where ``condition`` holds, ``other`` elsewhere."""
        return elementwise.where(condition, self, other)

    softmax, log_softmax = functional.softmax, functional.log_softmax
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # the ops as methods, which are entered below

    mT = property(shape_ops.mT)
    T = property(shape_ops.T)


Node.kind = Tensor

# Every op is a method too, but for those that PyTorch has as functions alone.
for _family in (elementwise, reduction, shape_ops, indexing, linalg):
    for _name in _family.__all__:
        if _name not in ("cat", "einsum", "hstack", "stack", "tensordot", "vstack", "where"):
            setattr(Tensor, _name, public(getattr(_family, _name)))


def _restored(kind: type[Tensor], array: np.ndarray, requires_grad: bool, grad: Tensor | None) -> Tensor:
    """The leaf that was taken apart to be copied or pickled, of its class: a parameter stays one."""
    tensor: Tensor = wrap(array)
    tensor.__class__ = kind
    tensor._requires_grad, tensor._grad = requires_grad, grad
    return tensor


# What ndarray's operators call when a tensor stands on their right.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": elementwise.add, "subtract": elementwise.sub, "multiply": elementwise.mul, "divide": elementwise.div,
    "power": elementwise.pow, "matmul": linalg.matmul, "equal": elementwise.eq, "not_equal": elementwise.ne,
    "less": elementwise.lt, "less_equal": elementwise.le, "greater": elementwise.gt, "greater_equal": elementwise.ge,
    "bitwise_and": elementwise.bitwise_and, "bitwise_or": elementwise.bitwise_or,
    "bitwise_xor": elementwise.bitwise_xor, "floor_divide": elementwise.floor_divide,
    "remainder": elementwise.remainder,
}  # fmt: skip
