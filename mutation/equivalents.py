"""Mutants that change nothing that anybody could notice: each row with its reason."""

from __future__ import annotations

# By file, operator, and the line as it was and as it is.
EQUIVALENTS: dict[tuple[str, str, str, str], str] = {}
