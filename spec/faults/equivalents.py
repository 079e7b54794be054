"""Faults that are none: the engine is right all the same. Each row has its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalent:
    """``faults`` make no difference to ``op``, in its ``primitive``."""

    faults: tuple[str, ...]
    op: str
    primitive: str
    reason: str


UNBROADCAST = ("not_unbroadcast", "mean_for_sum", "first_for_sum")
THERE_AND_BACK = (
    "functional.avg_pool2d", "functional.max_pool2d", "index_add", "index_select", "scatter", "scatter_add",
)  # fmt: skip

# What is right where the gradient is 0.
OF_ZERO = ("zero", "negated", "doubled", "slightly_off", "magnitude_of_the_cotangent", "not_differentiable")

EQUIVALENTS = (
    Equivalent(("swapped",), "add", "add", "both inputs of a sum have its cotangent as their gradient"),
    Equivalent(UNBROADCAST, "Tensor.__pow__", "pow", "an exponent that is a number stretches nothing"),
    Equivalent(UNBROADCAST, "Tensor.__rpow__", "pow", "a base that is a number stretches nothing"),
    *(
        Equivalent(UNBROADCAST, op, "accumulate", "what is added has the shape of its places: nothing is stretched")
        for op in ("scatter_add", "index_add")
    ),
    *(
        Equivalent(UNBROADCAST, op, "where", "the mask is made in the shape of the input: nothing is stretched")
        for op in ("tril", "triu")
    ),
    *(
        Equivalent(("last_write_wins",), op, "getitem", "a slice names no place twice")
        for op in ("split", "chunk", "unbind")
    ),
    Equivalent(("last_write_wins",), "masked_select", "getitem", "a mask names no place twice"),
    Equivalent(UNBROADCAST, "bmm", "matmul", "both have as many matrices: nothing is stretched"),
    Equivalent(UNBROADCAST, "mm", "matmul", "both are matrices: nothing is stretched"),
    Equivalent(UNBROADCAST, "functional.leaky_relu", "mul", "an element and its slope: nothing is stretched"),
    Equivalent(OF_ZERO, "addmm", "where", "it stands for what is multiplied by 0, whose slope is 0"),
    Equivalent(UNBROADCAST, "functional.hardtanh", "where", "an element and its bound: nothing is stretched"),
    Equivalent(("swapped",), "Tensor.__pow__", "pow", "an exponent that is a number has no gradient to take the place"),
    *(
        Equivalent(("alias_of_the_cotangent",), op, primitive, "its cotangent has one axis less than its input")
        for op, primitive in (("diagonal", "diagonal"), ("prod", "prod"), ("unbind", "getitem"))
    ),
    Equivalent(
        ("alias_of_the_cotangent",), "norm", "norm", "a lane of one has its absolute value: the cotangent never fits"
    ),
    Equivalent(("transposed",), "diag", "diag_embed", "its input is a vector"),
    *(
        Equivalent(("negated",), op, "reshape", "an even number of them lies on the way: the signs cancel")
        for op in THERE_AND_BACK
    ),
    *(
        Equivalent(
            OF_ZERO,
            "Tensor.scatter",
            primitive,
            "it stands on the way of a 0-d input alone, whose one element is written over: the gradient is 0",
        )
        for primitive in ("reshape", "clone")
    ),
    Equivalent(
        ("writes_to_its_cotangent", "writes_to_its_output"),
        "functional.smooth_l1_loss",
        "huber",
        "its output is divided by beta: nobody else holds that, or the cotangent that comes back",
    ),
    Equivalent(
        ("alias_of_the_cotangent",),
        "functional.cross_entropy",
        "cross_entropy",
        "its cotangent has one axis less than its input and cannot stand for its gradient",
    ),
)


def reason(fault: str, op: str, primitive: str) -> str | None:
    """Why ``fault`` is none for ``op``; None where it is one."""
    for row in EQUIVALENTS:
        if fault in row.faults and (op, primitive) == (row.op, row.primitive):
            return row.reason
    return None


# Named faults that are none, by name, with the reason.
NAMED: dict[str, str] = {}
