"""The entries, file for file beside smolgrad/primitives/ and functional.py."""

from ..entry import OpSpec
from . import elementwise, functional, indexing, linalg, reduction, shape

SPECS: list[OpSpec] = [
    spec for family in (elementwise, reduction, shape, indexing, linalg, functional) for spec in family.SPECS
]
BY_NAME = {spec.name: spec for spec in SPECS}
