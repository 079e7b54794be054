"""``python -m spec``: what it shows, and what it says where it cannot."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import smolgrad
import spec.__main__ as command
from spec.faults import campaign
from spec.ops import BY_NAME, SPECS
from spec.oracles import scalar
from spec.report import catalogue
from spec.report import coverage as rare

ROOT = Path(__file__).parents[2]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command line prints, in 80 columns or so many."""

    def said(*words: str, width: int = 80) -> str:
        monkeypatch.setattr(sys, "argv", ["spec", *words])
        monkeypatch.setattr(command.console, "width", width)
        assert command.main() == 0
        return capsys.readouterr().out

    return said


def test_list_has_every_entry_in_80_columns(say: Any) -> None:
    printed = say("list")
    lines = printed.splitlines()
    inputs = lines[0].index("inputs")
    rows: dict[str, str] = {}
    for line in lines[1:]:
        name, rest = line[:inputs].strip(), line[inputs:]
        if not rest.startswith(" ") and rest:
            rows[name] = line
        elif name and not name.startswith("spec/"):  # a long name goes on in the next line
            before, row = rows.popitem()
            rows[before + name] = row
    assert {spec.name for spec in SPECS} <= rows.keys()
    assert max(map(len, lines)) <= 80
    assert re.search(r"kink at 0 +elementwise:\d+ +\d+ +2\d$", rows["relu"])


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_rule_and_entry_are_found(spec: Any) -> None:
    for place in (catalogue.rule(spec), catalogue.entry(spec)):
        file, _, line = place.partition(":")
        text = (ROOT / file).read_text().splitlines()[int(line) - 1 :]
        assert spec.name.rpartition(".")[2].strip("_") in " ".join(text[:2])


def test_show_tells_all_about_an_entry(say: Any) -> None:
    printed = say("show", "logsumexp")
    for part in ("torch.logsumexp", "but: dim=() reduces nothing", "vjp matches finite differences", "is out of range"):
        assert part in printed
    assert printed.count("y = smolgrad.logsumexp(x0, ") == 3


def test_show_wraps_what_is_too_long_for_the_window(say: Any) -> None:
    printed = say("show", "getitem")
    assert max(map(len, printed.splitlines())) <= 80
    assert "…" not in printed


@pytest.mark.parametrize("op", ["getitem", "einsum", "functional.conv2d", "sort"])
def test_a_wrapped_program_is_the_same_program(op: str) -> None:
    for program in catalogue.programs(BY_NAME[op], 10):
        wrapped = catalogue.wrapped(program, 60)
        assert ast.dump(ast.parse(wrapped)) == ast.dump(ast.parse(program))
        assert max(map(len, wrapped.splitlines())) <= 80  # a call without commas is longer than 60 alone
        assert catalogue.wrapped(program, 1000) == program
    assert catalogue.wrapped("f(one, two, three, four)", 12) == "f(one, two,\n    three,\n    four)"
    outside_brackets = "first, second = 1, 2"
    assert catalogue.wrapped(outside_brackets, 10) == outside_brackets


def test_generated_calls_are_neither_the_smallest_nor_the_largest() -> None:
    def size(program: str) -> int:
        names: dict[str, Any] = {"np": np, "smolgrad": smolgrad}
        exec(program, names)
        return int(names["x0"].size)

    assert 2 <= size(catalogue.programs(BY_NAME["exp"], 1)[0]) <= 8


def test_only_pytorch_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> Any:
        raise ImportError(f"no {name}", name=name)

    monkeypatch.setattr(catalogue.importlib, "import_module", lambda _file: without("torch"))
    assert catalogue.properties() is catalogue.PROPERTIES
    monkeypatch.setattr(catalogue.importlib, "import_module", lambda _file: without("scipy"))
    with pytest.raises(ImportError, match="no scipy"):
        catalogue.properties()


def test_faults_are_planted_and_told_in_80_columns(say: Any) -> None:
    names = ["a_square_left_out", "slightly_off"]
    printed = say("faults", *names, "--op", "tanh", "--seed", "1", "-n", "1")
    assert max(map(len, printed.splitlines())) <= 80
    assert "…" not in printed
    assert re.search(r"FRM +1 +own +a square left out +tanh +\d+ +[\d.]+ +\d+ +vjp matches", printed)
    assert re.search(r"slightly off +1 +1 +0 ", printed)
    assert "2 of 2 faults dead" in printed


def test_a_fault_that_survives_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    right = campaign.Trial("no_fault", "FRM", "log", nullcontext, ("vjp_matches_finite_differences[log]",), tier=1)
    monkeypatch.setattr(campaign, "named", lambda: [right])
    monkeypatch.setattr(sys, "argv", ["spec", "faults", "no_fault", "-n", "1"])
    assert command.main() == 1


def test_an_unknown_fault_or_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["spec", "faults", "no_such_fault"])
    with pytest.raises(SystemExit, match="no fault among these is called no_such_fault"):
        command.main()


def test_an_unknown_name_is_told_what_is_near(say: Any) -> None:
    for words in (["show", "expnd"], ["verify", "--ops", "log", "expnd"]):
        with pytest.raises(SystemExit, match="no entry is called 'expnd'; near it: .*Tensor.expand"):
            say(*words)


def test_no_command_prints_help(say: Any) -> None:
    assert "usage: python -m spec" in say()


def test_without_torch_verify_says_how_to_get_it_and_the_rest_works() -> None:
    without = "import sys; sys.modules['torch'] = None; import runpy; runpy.run_module('spec', run_name='__main__')"
    for words, code, part in (
        (["verify"], 1, 'pip install -e ".[test]"'),
        (["show", "log"], 0, "torch is not installed here"),
        (["list"], 0, "functional.layer_norm"),
    ):
        ran = subprocess.run([sys.executable, "-c", without, *words], cwd=ROOT, capture_output=True, text=True)
        assert ran.returncode == code, ran.stderr
        assert part in ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr


def test_verify_counts_what_was_compared() -> None:
    words = ["verify", "--ops", "log", "--examples", "25", "--seed", "1", "-n", "0"]
    ran = subprocess.run([sys.executable, "-m", "spec", *words], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    properties = sum(spec.name == "log" for specs in catalogue.properties().values() for spec in specs)
    assert re.search(rf"^log +{properties} +\d", ran.stdout, re.MULTILINE)
    assert re.search(r"^verified: (\d+) of \1 tests passed, [\d,]+ comparisons", ran.stdout, re.MULTILINE)


def test_verify_asks_for_the_expression_of_an_elementwise_op(monkeypatch: Any, capsys: Any) -> None:
    assert not any(map(catalogue.unvoted, SPECS))
    monkeypatch.delitem(scalar.EXPRESSIONS, "neg")
    monkeypatch.setattr(command, "_run_suite", lambda *_: command.Run(1, {}, [], 0, "", 0.0))
    for op, code in (("neg", 1), ("exp", 0), ("sum", 0)):
        monkeypatch.setattr(sys, "argv", ["spec", "verify", "--ops", op])
        assert command.main() == code
        assert (f"{op} has no row in EXPRESSIONS" in capsys.readouterr().out) == bool(code)


def test_verify_of_another_engine_fails_where_that_is_not_ours() -> None:
    words = ["verify", "--ops", "neg", "--examples", "25", "--seed", "1", "--engine"]
    for engine, told in (("torch", "wrong_calls_are_refused"), ("none", "invalid choice: 'none'")):
        ran = subprocess.run([sys.executable, "-m", "spec", *words, engine], cwd=ROOT, capture_output=True, text=True)
        assert ran.returncode == 1, ran.stdout
        assert f"engine {engine}, seed 1" in ran.stdout
        assert told in ran.stdout


def test_verify_fails_where_nothing_was_compared() -> None:
    # The first example is the least: one number, whose value and gradient are 0. Nothing is compared, says the ledger.
    words = ["verify", "--ops", "functional.log_softmax", "--examples", "1", "--seed", "1", "-n", "0"]
    ran = subprocess.run([sys.executable, "-m", "spec", *words], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 1, ran.stdout
    assert "compared nothing for functional.log_softmax" in ran.stdout
    assert "not verified" in ran.stdout


def _rows(width: int) -> list[str]:
    """What verify's table shows of all ops, each with its worst error in the property of the longest name."""
    worst = max(catalogue.properties(), key=len)
    lines = [(spec.name, worst, {"comparisons": 1_000_000, "worst": 0.0123}) for spec in SPECS]
    shown = io.StringIO()
    table = command._table(lines, {f"test_vjp[{spec.name}]": "passed" for spec in SPECS})
    Console(file=shown, width=width).print(table)
    return shown.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 200])
def test_the_table_of_verify_cuts_nothing(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.console, "width", width)
    rows = _rows(width)
    assert max(map(len, rows)) <= width
    assert "…" not in "".join(rows)
    assert (len(rows) == 1 + len(SPECS)) == (width == 200)  # in a narrow window some go on in the next line


def test_without_a_terminal_no_line_is_wrapped() -> None:
    shown = "import spec.__main__ as command; command.console.print('word ' * 35)"
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    ran = subprocess.run([sys.executable, "-c", shown], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["word " * 35]


@pytest.mark.parametrize("terminal", [False, True])
def test_how_far_a_run_is_goes_to_lines_where_there_is_no_terminal(terminal: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(command, "EVERY", 0)
    monkeypatch.setenv("TERM", "xterm")
    shown = io.StringIO()
    printer = Console(file=shown, width=80, force_terminal=terminal, highlight=False)
    monkeypatch.setattr(command, "console", printer)
    monkeypatch.setattr(sys, "argv", ["spec", "verify", "--ops", "neg", "--examples", "25", "--seed", "1"])
    assert command.main() == 0
    printed = shown.getvalue()
    told = [tuple(map(int, found)) for found in re.findall(r"^seed 1: checking: (\d+) of (\d+), 0 failed, \d+ s$",
                                                           printed, re.MULTILINE)]  # fmt: skip
    (tests,) = map(int, re.findall(r"(\d+) tests passed", printed))
    assert bool(told) == (not terminal)
    assert told == sorted(told)
    assert all(total == tests for _, total in told)


def test_coverage_counts_rare_conditions_and_fails_where_one_is_missing() -> None:
    words = ["coverage", "--ops", "getitem", "--seed", "1", "-n", "0"]
    for examples, code in (("25", 0), ("1", 1)):
        ran = subprocess.run(
            [sys.executable, "-m", "spec", *words, "--examples", examples], cwd=ROOT, capture_output=True, text=True
        )
        assert ran.returncode == code, ran.stdout
        assert re.search(r"^getitem +\d+ +\d+ +\d+ +· +· +·$", ran.stdout, re.MULTILINE)
        assert max(map(len, ran.stdout.splitlines())) <= 100
        assert re.search(
            r"^\d+ cells met, 0 empty, 0 " if code == 0 else r"cells met, [1-9]\d* empty", ran.stdout, re.MULTILINE
        )


@pytest.mark.parametrize(
    ("code", "never", "blind"),
    [(0, [], []), (1, [], []), (0, [("neg", "values: zeros")], []), (0, [], ["neg compared nothing"])],
    ids=["none", "a test failed", "a condition was never met", "a property compared nothing"],
)
@pytest.mark.parametrize(
    "words", [["verify", "--ops", "neg"], ["coverage", "--ops", "neg"]], ids=lambda words: words[0]
)
def test_each_reason_alone_fails_the_command(
    words: list[str], code: int, never: list[Any], blind: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["spec", *words])
    monkeypatch.setattr(command, "_run_suite", lambda *_: command.Run(1, {}, [], code, "", 0.0))
    monkeypatch.setattr(command.Run, "blind", lambda _: blind)
    monkeypatch.setattr(rare, "missed", lambda *_: never)
    assert command.main() == int(bool(code or blind or (never and words[0] == "coverage")))


def test_alarms_runs_each_seed_and_counts_what_fails(tmp_path: Path) -> None:
    (tmp_path / "wrong_engine.py").write_text(
        "from smolgrad.primitives import elementwise\n"
        "from spec.faults.generic import FAULTS, planted\n"
        "wrong = planted(FAULTS['doubled'], elementwise.neg.primitive)\n"
        "wrong.__enter__()\n"
    )
    words = [sys.executable, "-m", "spec", "alarms", "--ops", "neg", "--examples", "5", "--seed", "7", "--seeds", "2"]
    wrong = {"PYTHONPATH": str(tmp_path), "PYTEST_PLUGINS": "wrong_engine"}
    for environment, code, verdict in (({}, 0, r"^no alarms in 2 runs"), (wrong, 1, r"^[1-9]\d* alarms in 2 runs")):
        ran = subprocess.run(words, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
        assert ran.returncode == code, ran.stdout + ran.stderr
        assert re.search(verdict, ran.stdout, re.MULTILINE)
        assert re.search(r"^seed 7: ", ran.stdout, re.MULTILINE)
        assert re.search(r"^seed 8: ", ran.stdout, re.MULTILINE)
        assert ("neg: vjp_matches_finite_differences" in ran.stdout) == bool(code)


def test_failures_are_cut_out_of_pytests_output() -> None:
    output = "..F   [ 50%]\n\n=== FAILURES ===\n___ test ___\nE  wrong\n=== short test summary info ===\n"
    assert command._failures(output).startswith("=== FAILURES ===\n___ test ___\nE  wrong")
    assert command._failures("..F   [ 50%]\nERROR: no such option") == "ERROR: no such option"
