"""What tests of the suite share."""

from __future__ import annotations

from typing import Any

import pytest

from spec.report import ledger


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> dict[Any, ledger.Line]:
    """A ledger of the test's own."""
    fresh: dict[Any, ledger.Line] = {}
    monkeypatch.setattr(ledger, "lines", fresh)
    return fresh
