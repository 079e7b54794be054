"""The graph as records, as DOT text and as a table of layers; the command that draws it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smolgrad
from smolgrad import graph, nn
from smolgrad.scalar import Value

ROOT = Path(smolgrad.__file__).parents[1]


def tensor(values, **options):
    return smolgrad.tensor(np.array(values, "float64"), **options)


# --- records ----------------------------------------------------------------------------------------------------------


def test_records_of_tensors_say_all_of_each():
    x, c = tensor([[3.0]], requires_grad=True), tensor([[1.0, 2.0]])
    y = (x * x * 2.0 + c)[:, [0, 0, 1]].exp()
    found = graph.records(y)
    assert [r.id for r in found] == list(range(7))
    assert [(r.op, r.inputs, r.shape, r.saved) for r in found] == [
        ("leaf", (), (1, 1), {}),
        ("mul", (0, 0), (1, 1), {"input 0": 8, "input 1": 8}),
        ("mul", (1,), (1, 1), {}),
        ("constant", (), (1, 2), {}),
        ("add", (2, 3), (1, 2), {}),
        ("getitem", (4,), (1, 3), {"index 1": 24}),
        ("exp", (5,), (1, 3), {"output": 24}),
    ]
    assert {r.dtype for r in found} == {"float64"}
    assert found[2].static == {"input 1": 2.0}
    assert found[5].static["index"][0] == slice(None)
    assert found[0].node is x
    assert found[-1].node is y


def test_what_is_saved_depends_on_who_requires_grad():
    x, w = tensor([1.0, 2.0]), tensor([3.0, 4.0], requires_grad=True)
    assert graph.records(x * w)[-1].saved == {"input 0": 16}
    parts = [x, w, w]
    assert graph.records(smolgrad.cat(parts))[-1].saved == {}
    assert graph.records(smolgrad.where(x > 1, w, x))[-1].saved == {"condition": 2}


def test_a_record_tells_the_shape_that_was_found():
    x = smolgrad.zeros(2, 3, requires_grad=True)
    assert graph.records(x.reshape(-1))[-1].static == {"shape": (6,)}


def test_records_of_values():
    x = Value(3.0)
    found = graph.records((x * x).tanh() ** 2)
    assert [(r.op, r.inputs, list(r.saved)) for r in found] == [
        ("leaf", (), []),
        ("*", (0, 0), ["a", "b"]),
        ("tanh", (1,), ["y"]),
        ("**2", (2,), ["slope"]),
    ]
    assert [r.static["data"] for r in found[:2]] == [3, 9]


def test_ids_are_the_same_each_time_and_operands_come_first():
    x, y = tensor(2.0, requires_grad=True), tensor(3.0, requires_grad=True)
    z = smolgrad.tanh(x * y) + y / x
    first, again = graph.records(z), graph.records(z)
    assert first == again
    assert all(i < r.id for r in first for i in r.inputs)
    assert [r.node for r in first[:2]] == [x, y]


def test_a_value_written_in_place_is_shown_as_its_consumers_saw_it():
    x = tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    before = y + 1
    y.mul_(3)
    assert [r.op for r in graph.records(before)] == ["leaf", "mul", "add"]
    assert [r.op for r in graph.records(y)] == ["leaf", "mul", "mul"]


def test_deep_graphs_are_no_problem():
    x = Value(1.0)
    for _ in range(5000):
        x = x * 1.0
    assert len(graph.records(x)) == 10_001
    assert graph.to_dot(x).count("->") == 10_000


def test_what_is_no_graph_is_refused():
    with pytest.raises(TypeError, match=r"records\(\): needs a Tensor or a Value, got float"):
        graph.records(2.0)
    x = tensor(1.0, requires_grad=True)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=r"already swept through mul\(\)"):
        graph.to_dot(y)


# --- DOT --------------------------------------------------------------------------------------------------------------


def labels(text):
    """The labels of nodes as Graphviz reads them, by id."""
    found = re.findall(r'^  n(\d+) \[label="((?:[^"\\\n]|\\.)*)"[^"]*\]$', text, re.MULTILINE)
    return {int(i): re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label) for i, label in found}


def test_dot_has_every_node_and_both_edges_of_a_square():
    x = tensor([3.0], requires_grad=True)
    text = graph.to_dot((x * x)[:, None] / 2.0)
    assert labels(text) == {
        0: "leaf  float64 (1,)",
        1: "mul  float64 (1,)\nkeeps input 0: 8 bytes\nkeeps input 1: 8 bytes",
        2: "getitem  float64 (1, 1)\nindex=(slice(None, None, None), None)",
        3: "div  float64 (1, 1)\ninput 1=2.0",
    }
    assert re.findall(r"n\d+ -> n\d+", text) == ["n0 -> n1", "n0 -> n1", "n1 -> n2", "n2 -> n3"]
    assert text.startswith("digraph {\n")
    assert text.endswith("\n}\n")


@pytest.mark.parametrize("op", ['say "no"', "back\\slash", "two\nlines", "\\N \\", '"];n0->n0;//'])
def test_labels_are_escaped(op):
    text = graph.to_dot(Value(1.0, (), None, op))
    assert labels(text)[0].startswith(f"{op}  float64 ()\n")
    assert text.count("\n") == 5


# --- modules ----------------------------------------------------------------------------------------------------------


def test_a_summary_lists_layers_shapes_parameters_and_bytes():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 2, bias=False)))
    table = [re.split(r"  +", line.strip()) for line in graph.summary(model, smolgrad.randn(16, 4)).splitlines()]
    x, hidden = 16 * 4 * 4, 16 * 8 * 4  # bytes
    assert table == [
        ["layer", "output", "parameters", "bytes saved"],
        ["Sequential", "(16, 2)", "72", f"{x + 3 * hidden:,}"],
        ["0: Linear", "(16, 8)", "40", f"{x:,}"],
        ["1: Tanh", "(16, 8)", "0", f"{hidden:,}"],
        ["2: Sequential", "(16, 2)", "32", f"{3 * hidden:,}"],
        ["0: LayerNorm", "(16, 8)", "16", f"{2 * hidden:,}"],
        ["1: Linear", "(16, 2)", "16", f"{hidden:,}"],
    ]


def test_a_summary_leaves_the_module_as_it_was():
    class Twice(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(2, 2)

        def forward(self, x, fail=False):
            if fail:
                raise ZeroDivisionError
            return self.layer(self.layer(x)), x

    model = Twice()
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    table = graph.summary(model, smolgrad.ones(1, 2))
    with smolgrad.no_grad():
        assert graph.summary(model, smolgrad.ones(1, 2)) == table
    lines = table.splitlines()
    assert [line.split()[0] for line in lines] == ["layer", "Twice", "layer:", "layer:"]
    assert "(1, 2), (1, 2)" in lines[1]
    with pytest.raises(ZeroDivisionError):
        graph.summary(model, smolgrad.ones(1, 2), True)
    assert before == {name: dict(vars(module)) for name, module in model.named_modules()}


# --- the command ------------------------------------------------------------------------------------------------------


def test_without_graphviz_the_command_says_so_and_writes_dot(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert graph.main(["--out", str(tmp_path / "g.svg")]) == 1
    assert f"dot) is not installed, so there is no SVG; wrote {tmp_path / 'g.dot'}" in capsys.readouterr().err
    assert (tmp_path / "g.dot").read_text().startswith("digraph {")
    assert not (tmp_path / "g.svg").exists()


def test_with_graphviz_the_command_draws(tmp_path, monkeypatch, capsys):
    dot = tmp_path / "dot"
    dot.write_text('#!/bin/sh\n[ "$1 $2" = "-Tsvg -o" ] && /bin/cat > "$3"\n')
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert graph.main(["--out", str(tmp_path / "g.svg")]) == 0
    assert capsys.readouterr() == (f"wrote {tmp_path / 'g.svg'}\n", "")
    drawn = (tmp_path / "g.svg").read_text()
    assert "cross_entropy" in drawn
    assert (drawn.count("fillcolor=lightblue"), drawn.count("fillcolor=lightgray")) == (2, 1)  # w and b, x


def test_columns_of_a_summary_are_as_wide_as_their_widest():
    # Each column the narrowest at times, so that no other's width will do.
    model = nn.Sequential(nn.Linear(1000, 1000), nn.Flatten())
    assert graph.summary(model, smolgrad.zeros(1, 1000)).splitlines() == [
        "layer         output     parameters  bytes saved",
        "Sequential    (1, 1000)   1,001,000        4,000",
        "  0: Linear   (1, 1000)   1,001,000        4,000",
        "  1: Flatten  (1, 1000)           0            0",
    ]


def test_where_graphviz_fails_the_command_does_too(tmp_path, monkeypatch):
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\nexit 3\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(subprocess.CalledProcessError):
        graph.main(["--out", str(tmp_path / "g.svg")])


def test_the_command_runs_without_a_warning(tmp_path):
    command = [sys.executable, "-W", "error", "-m", "smolgrad.graph"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert done.stderr == "Graphviz (its command dot) is not installed, so there is no SVG; wrote graph.dot\n"
    assert (done.returncode, done.stdout) == (1, "")


def test_the_package_has_the_module_and_no_other():
    assert smolgrad.graph is graph
    with pytest.raises(AttributeError, match="module 'smolgrad' has no attribute 'graphs'"):
        smolgrad.graphs  # noqa: B018
