"""Mutation testing of a project of a few lines: what is noticed, what survives, what hangs; and where it is written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mutation import running
from mutation.running import Mutant, Verdict

SOURCE = """\
STEP = 1


def count(n):
    found = 0
    while found < n:
        found += STEP
    return found


def unused(n):
    return n
"""

TEST = """\
import pytest

from project import counting


@pytest.mark.parametrize("n", [0, 3])
def test_count(n):
    assert counting.count(n) == n


def test_nothing():
    assert counting.unused(0) == 0
"""

CONFTEST = """\
from hypothesis import settings

settings.register_profile("coverage")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with a package and its tests."""
    files = {"project/__init__.py": "", "project/counting.py": SOURCE, "tests/test_counting.py": TEST}
    for name, text in {**files, "conftest.py": CONFTEST, ".gitignore": "ignored\n", "ignored": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def _mutant(before: str, after: str) -> Mutant:
    line = next(i for i, text in enumerate(SOURCE.splitlines(), 1) if text.strip() == before)
    return Mutant("project/counting.py", "Any", line, before, after, SOURCE.replace(before, after))


def _verdicts(project: Path, *mutants: Mutant) -> list[Verdict]:
    return list(running.verdicts(project, list(mutants), ["project/counting.py"], ["tests"], 0, 4, 1))


def test_a_mutant_is_noticed_by_a_test_that_reaches_it(project: Path) -> None:
    (wrong,) = _verdicts(project, _mutant("return found", "return found + 1"))
    assert wrong.killer is not None
    assert "test_count" in wrong.killer


def test_a_mutant_that_only_slow_tests_reach_is_noticed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "FEW", -1.0)  # seconds of those that are tried first: none is so fast
    (wrong,) = _verdicts(project, _mutant("return found", "return found + 1"))
    assert wrong.killer is not None


def test_a_mutant_that_nothing_notices_survives(project: Path) -> None:
    (survivor,) = _verdicts(project, _mutant("return n", "return n * 2"))
    assert survivor.killer is None


def test_what_is_run_at_import_alone_is_noticed(project: Path) -> None:
    assert all(v.killer for v in _verdicts(project, _mutant("STEP = 1", "STEP = 2"), _mutant("STEP = 1", "STEP = x")))


def test_a_mutant_that_goes_on_for_ever_is_stopped(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE", 1.0)
    (endless,) = _verdicts(project, _mutant("found += STEP", "found -= STEP"))
    assert endless.killer == "the process ended, or took too long"


def test_the_checkout_is_never_written(project: Path) -> None:
    def contents() -> dict[Path, bytes]:
        return {file: file.read_bytes() for file in project.rglob("*") if file.is_file()}

    before = contents()
    with running.copied(project) as copy:
        assert not (copy / "ignored").exists()
        assert (copy / "project/counting.py").read_text() == SOURCE
    _verdicts(project, _mutant("return found", "return found + 1"))
    assert contents() == before
    assert not copy.exists()


def test_a_suite_that_fails_by_itself_proves_nothing(project: Path) -> None:
    (project / "tests/test_counting.py").write_text(TEST.replace("== 0", "== 1"))
    with pytest.raises(RuntimeError, match=r"without any mutant: .*test_nothing"):
        _verdicts(project, _mutant("return n", "return n * 2"))


def test_one_of_many_that_fails_by_itself_is_no_judge(project: Path) -> None:
    (project / "tests/test_others.py").write_text(
        'import pytest\n\n\n@pytest.mark.parametrize("n", range(120))\ndef test_other(n):\n    assert n != 7\n'
    )
    told: list[list[str]] = []
    (wrong,) = running.verdicts(
        project, [_mutant("return n", "return n * 2")], ["project/counting.py"], ["tests"], 0, 4, 1, unfit=told.append
    )
    assert wrong.killer is None
    assert told == [["tests/test_others.py::test_other[7]"]]


def test_tests_are_tried_for_so_many_seconds() -> None:
    reach = running.Reach({"a": 0.2, "b": 0.1, "c": 0.4}, {})
    assert reach.within(["b", "a", "c"], 0.5) == ["b", "a"]
    assert reach.within(["b", "a", "c"], 1.0) == ["b", "a", "c"]


def test_the_least_statement_around_a_line_comes_first() -> None:
    reach = running.Reach({"a": 0.1, "b": 0.1, "c": 0.1}, {"f.py": {3: ["a"], 5: ["b"]}})
    source = "def f():\n    x = [\n        1,\n        2,\n    ]; y = 1\n"
    assert reach.tests("f.py", 3, source) == ["a"]
    assert reach.tests("f.py", 4, source) == ["a", "b"]
    assert reach.tests("g.py", 1, source) == ["a", "b", "c"]


def test_what_importing_runs_in_a_function_may_matter_anywhere() -> None:
    source = "def f():\n    return 1\n\n\nX = f(), lambda: f()\n"
    reach = running.Reach({"a": 0.2, "b": 0.1}, {"f.py": {2: ["", "a"], 5: ["", "a"]}})
    assert reach.tests("f.py", 2, source) == ["a", "b"]
    assert reach.tests("f.py", 5, source) == ["a"]
