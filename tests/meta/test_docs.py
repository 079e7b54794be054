"""What the pages say is run: their code, their outputs, and the op that docs/adding-an-op.md adds."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import smolgrad
from spec.engines.smolgrad import Smolgrad
from spec.entry import OpSpec
from spec.ops import BY_NAME
from spec.oracles import scalar
from spec.report import catalogue, ledger
from spec.report.failure import Counterexample

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST = 15  # lines that a new op may take, rule and entry together

BLOCK = re.compile(r"^```(\S+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """The Python of a page, and the text that it shows directly after as its output."""
    return [(source, output or None) for kind, source, output in BLOCK.findall(page.read_text()) if kind == "python"]


def run(source: str, names: dict[str, Any]) -> str:
    """What a block prints. One that begins with the name of a file is a part of it, and has its names."""
    part_of = re.match(r"# (\S+)\.py\n", source)
    if part_of:
        names.update(vars(importlib.import_module(part_of[1].replace("/", "."))))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(source, names)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_a_page_runs_and_prints_what_is_shown(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for source, output in blocks(page):
        printed = run(source, names)
        assert printed == (output or ""), f"{page.name} prints\n{printed}"


def test_readme_names_every_property() -> None:
    named = set(re.findall(r"`(\w+)`", (ROOT / "README.md").read_text().partition("## What is checked")[2]))
    missing = set(catalogue.properties()) - named
    assert not missing


def test_readme_has_the_command_of_the_whole_check() -> None:
    command = "pytest -n auto"
    assert f"    {command} |" in (ROOT / ".ci" / "run").read_text()
    assert f"&& {command}\n" in (ROOT / "README.md").read_text()


# --- docs/adding-an-op.md ---------------------------------------------------------------------------------------------


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rule, the entry, the scalar engine's row and the wrong rule of docs/adding-an-op.md.

    The run's ledger does not see them.
    """
    monkeypatch.setattr(ledger, "lines", {})
    return [source for source, _ in blocks(ROOT / "docs" / "adding-an-op.md")]


def define(monkeypatch: pytest.MonkeyPatch, rule: str, entry: str, row: str) -> OpSpec:
    """The entry, with its op in smolgrad and its row in the scalar engine's table."""
    names: dict[str, Any] = {}
    run(row.replace("{", "row = {", 1), names)
    monkeypatch.setattr(scalar, "EXPRESSIONS", {**scalar.EXPRESSIONS, **names["row"]})
    run(rule, names)
    run(entry.replace("OpSpec(", "found = OpSpec(", 1), names)
    spec: OpSpec = names["found"]
    assert spec.name not in BY_NAME, "there is such an op now: let the page add another"
    monkeypatch.setattr(smolgrad, spec.name, names[spec.name], raising=False)
    return spec


def properties_like(name: str) -> dict[str, Any]:
    """The tests of the properties that run for the entry ``name``."""
    chosen = {prop for prop, specs in catalogue.properties().items() if BY_NAME[name] in specs}
    files = [*sorted(ROOT.glob("tests/properties/test_*.py")), *sorted(ROOT.glob("tests/parity/test_*.py"))]
    modules = [importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts)) for file in files]
    return {test: getattr(module, test) for module in modules for test in chosen if hasattr(module, test)}


def test_the_op_of_the_page_passes_every_property(page: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rule, entry, row, _ = page
    spec = define(monkeypatch, rule, entry, row)
    lines = [line for line in (rule + entry + row).splitlines() if line and not line.startswith("#")]
    assert len(lines) + 1 <= MOST  # 1: its name in __all__
    tests = properties_like("asin")
    assert len(tests) > 15
    for test in tests.values():
        test(engine=Smolgrad(), spec=spec)
    assert not ledger.empty()


def test_the_wrong_rule_of_the_page_fails_as_shown(page: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    _, entry, row, wrong = page
    spec = define(monkeypatch, wrong, entry, row)
    red = {}
    for name, test in properties_like("asin").items():
        try:
            test(engine=Smolgrad(), spec=spec)
        except Counterexample as failure:
            red[name] = str(failure)
    assert len(red) == 5, sorted(red)
    text = (ROOT / "docs" / "adding-an-op.md").read_text()
    shown = text.partition("```console\nacosh: ")[2].partition("```")[0]
    assert red["vjp_matches_finite_differences"].startswith(f"acosh: {shown.rstrip()}")


def test_a_domain_left_out_is_noticed(page: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rule, entry, row, _ = page
    spec = define(monkeypatch, rule, entry.replace("domain=Domain(low=5 / 4), ", ""), row)
    with pytest.raises(Counterexample, match="the entry's domain is wrong"):
        properties_like("asin")["vjp_matches_finite_differences"](engine=Smolgrad(), spec=spec)
