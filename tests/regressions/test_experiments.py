"""What the experiments promise beside their numbers: wrong data is refused, and a run goes on where it stopped."""

import gzip
import hashlib
import http.server
import json
import os
import signal
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from experiments import data, run

ROOT = Path(__file__).parents[2]
IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
TEXT = bytes(range(256)) * 1000


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def sha256(contents):
    return hashlib.sha256(contents).hexdigest()


# --- parsing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 3, 4), (24,), (0, 3), (1, 1), ()])
def test_idx_gives_the_array_that_it_holds(shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=np.uint8).reshape(shape)
    found = data.parse_idx(idx(array), "made")
    assert found.shape == shape
    assert np.array_equal(found, array)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "made is no IDX file of bytes: it begins with nothing"),
        (b"\0\0", "made is no IDX file of bytes: it begins with 00 00"),
        (b"\0\0\x08", "made is no IDX file"),
        (b"\x1f\x8b\x08" + idx(IMAGES), "it begins with 1f 8b 08, not 00 00 08"),  # packed
        (b"\0\0\x0d" + idx(IMAGES)[3:], "it begins with 00 00 0d, not 00 00 08"),  # of floats
        (idx(IMAGES)[:10], "made is truncated: it has 10 bytes of a header of 16"),
        (idx(IMAGES)[:-1], r"made needs 24 bytes for its shape \(2, 3, 4\), and has 23"),
        (idx(IMAGES) + b"\0", r"made needs 24 bytes for its shape \(2, 3, 4\), and has 25"),
    ],
)
def test_idx_refuses_what_is_not_whole_by_name(contents, message):
    with pytest.raises(data.DataError, match=message):
        data.parse_idx(contents, "made")


def test_text_is_places_in_its_alphabet():
    alphabet, codes = data.parse_text("babé\n".encode(), "made")
    assert alphabet == "\nabé"
    assert codes.dtype == np.int64
    assert "".join(alphabet[code] for code in codes) == "babé\n"


@pytest.mark.parametrize(("contents", "message"), [(b"", "made is empty"), (b"a\xff", "made is no text in UTF-8")])
def test_text_refuses_what_is_none_by_name(contents, message):
    with pytest.raises(data.DataError, match=message):
        data.parse_text(contents, "made")


def test_an_alphabet_does_not_depend_on_the_process():
    # A set's order does: it follows the hashes, which each process draws anew. 80 characters are in order by no chance.
    text = "".join(map(chr, range(40, 120)))
    alphabet, codes = data.parse_text("".join(np.random.default_rng(0).permutation(list(text))).encode(), "made")
    assert alphabet == text
    assert sorted(codes) == list(range(80))


# --- finding and checking ---------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A data directory of its own, and nothing but what a test puts there."""
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    return tmp_path


def source(path="made.txt", contents=TEXT, addresses=()):
    return data.Source(path, sha256(contents), addresses)


@pytest.mark.parametrize("name", ["made.idx.gz", "made.idx"])
def test_a_file_is_found_packed_or_not(place, name):
    (place / name).write_bytes(gzip.compress(TEXT) if name.endswith(".gz") else TEXT)
    assert data.contents(source("made.idx.gz")) == TEXT


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (gzip.compress(TEXT)[:-9], "cannot be read"),  # truncated
        (gzip.compress(TEXT)[:40] + b"\0" + gzip.compress(TEXT)[41:], "cannot be read|not the file"),  # corrupt
        (TEXT, "cannot be read"),  # not packed
        (b"", "not the file it should be"),
        (gzip.compress(TEXT[:-1]), "not the file it should be: its contents have SHA-256 [0-9a-f]{64}, not"),  # another
    ],
)
def test_a_wrong_file_is_refused_by_name_and_kept(place, packed, message):
    path = place / "made.idx.gz"
    path.write_bytes(packed)
    with pytest.raises(data.DataError, match=f"{path} .*({message})"):
        data.contents(source("made.idx.gz"))
    assert path.read_bytes() == packed


# --- fetching ---------------------------------------------------------------------------------------------------------


class Server(http.server.BaseHTTPRequestHandler):
    """Gives out ``files`` by path, breaks off each answer after ``most`` bytes of it, and may not know of ranges."""

    files: dict
    most = len(TEXT)
    ranges = True

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Range")))
        if self.path not in self.files:
            self.send_error(404)
            return
        whole = self.files[self.path]
        begin = int((self.headers.get("Range") or "bytes=0-")[6:-1]) if self.ranges else 0
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(whole) - begin))
        self.end_headers()
        self.wfile.write(whole[begin : begin + self.most])

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def serve():
    """Start a server; its address, and what it was asked for."""
    running = []

    def start(files, **options):
        handler = type("Handler", (Server,), {"files": files, **options})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_port}", server.asked

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def left(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def test_what_is_not_there_is_fetched_once(place, serve):
    address, asked = serve({"/made": TEXT})
    wanted = source("some/made.txt", addresses=(f"{address}/made",))
    assert data.contents(wanted) == TEXT
    assert data.contents(wanted) == TEXT
    assert left(place) == ["some/made.txt"]
    assert asked == [("/made", None)]


def test_a_broken_download_goes_on_where_it_broke(place, serve):
    address, asked = serve({"/made": TEXT}, most=len(TEXT) // 2)
    assert data.contents(source(addresses=(f"{address}/made",))) == TEXT
    assert asked == [("/made", None), ("/made", f"bytes={len(TEXT) // 2}-")]
    assert left(place) == ["made.txt"]


def test_a_server_without_ranges_is_asked_for_all_again(place, serve):
    address, asked = serve({"/made": TEXT}, most=len(TEXT) // 2, ranges=False)
    with pytest.raises(data.DataError, match=f"the connection broke after {len(TEXT) // 2} of {len(TEXT)} bytes"):
        data.contents(source(addresses=(f"{address}/made",)))
    assert len(asked) == data.ATTEMPTS
    assert left(place) == []


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({}, {}, "404"),
        ({"/made": TEXT[::-1]}, {}, "not the file it should be"),
        ({"/made": b""}, {}, "not the file it should be"),
        ({"/made": TEXT}, {"most": 10}, "the connection broke after 30 of 256000 bytes"),
    ],
)
def test_a_failed_download_says_which_file_and_leaves_nothing(place, serve, files, options, message):
    address, _ = serve(files, **options)
    with pytest.raises(data.DataError, match=f"(?s){place}/made.txt is not there and cannot be downloaded:.*{message}"):
        data.contents(source(addresses=(f"{address}/made",)))
    assert left(place) == []


def test_the_next_address_is_asked_where_one_fails(place, serve):
    address, _ = serve({"/second": gzip.compress(TEXT)})
    wanted = source("made.idx.gz", addresses=(f"{address}/first", f"{address}/second"))
    assert data.contents(wanted) == TEXT
    assert left(place) == ["made.idx.gz"]


def test_an_interrupted_download_leaves_nothing(place, serve, monkeypatch):
    address, _ = serve({"/made": TEXT})

    def interrupted(_address, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(data, "_fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        data.contents(source(addresses=(f"{address}/made",)))
    assert left(place) == []


# --- batches ----------------------------------------------------------------------------------------------------------


def test_each_epoch_shows_everything_once_in_an_order_of_its_own():
    made = np.arange(50), 3 * np.arange(50)

    def epoch(seed, number):
        parts = [run.batch(made, 8, seed, 7 * number + place) for place in range(7)]
        assert [len(inputs) for inputs, _ in parts] == [8] * 6 + [2]  # the last is smaller, and there
        assert all((targets == 3 * inputs).all() for inputs, targets in parts)
        return tuple(np.concatenate([inputs for inputs, _ in parts]))

    orders = [epoch(seed, number) for seed in range(3) for number in range(3)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len(set(orders)) == 9  # no epoch is like another, of this seed or of the next one
    assert epoch(0, 1) == orders[1]
    assert (made[0] == np.arange(50)).all()


def test_a_mean_over_parts_is_that_of_all():
    # A mean of the parts' means gives each of the last part, which is smaller, too much weight.
    side = run.Side(run.SMOLGRAD, task())
    inputs, targets = task().batch(0)
    wanted = side.loss(inputs, targets).item()
    assert [side.mean_loss(inputs, targets, size) for size in (8, 5, 3, 1)] == pytest.approx([wanted] * 4, rel=1e-12)


# --- runs -------------------------------------------------------------------------------------------------------------

STEPS, STOP = 12, 7


def task(stop=0):
    """A small training; Ctrl-C is pressed while step ``stop`` is made."""

    def batch(step):
        if step == stop - 1:
            os.kill(os.getpid(), signal.SIGINT)
        rng = np.random.default_rng(step)
        return rng.standard_normal((8, 5)), rng.integers(0, 3, 8)

    def model(library):
        nn, kind = library.nn, library.root.float64
        return nn.Sequential(nn.Linear(5, 4, dtype=kind), nn.LayerNorm(4, dtype=kind), nn.Linear(4, 3, dtype=kind))

    return run.Task(
        model=model,
        optimizer=lambda library, parameters: library.root.optim.AdamW(parameters),
        batch=batch,
        rate=lambda step: 0.1 / (step + 1),
        evaluate=lambda side: {
            "measure": -np.abs(side.weights()["0.weight"]).sum()
        },  # they grow: the first is the best
        steps=STEPS,
        every=5,
        best="measure",
    )


def started(out, *more):
    parser = run.parser("experiments.made", "made")
    run.add_twin(parser)
    return run.Run("made", parser.parse_args(["--dtype", "float64", "--out", str(out), *more]))


def outcome(training, sides):
    """All that may not depend on whether a run was interrupted."""
    kept = [{k: v for k, v in row.items() if "seconds" not in k} for row in (*training.rows, *training.evaluations)]
    arrays = [side.arrays() for side in sides]
    return kept, [{name: array.tobytes() for name, array in found.items()} for found in arrays], training.best


@pytest.mark.parametrize("twin", [[], ["--torch-twin"]], ids=["alone", "with its twin"])
def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path, twin):
    whole = started(tmp_path / "whole", *twin)
    wanted = outcome(whole, whole.train(task()))
    stopped = started(tmp_path / "part", *twin)
    with pytest.raises(run.Interrupted, match=f"after step {STOP} of {STEPS}"):
        stopped.train(task(stop=STOP))
    assert stopped.step == STOP
    resumed = started(tmp_path / "part", *twin)
    assert outcome(resumed, resumed.train(task())) == wanted
    assert whole.best == whole.evaluations[0]["smolgrad measure"]
    assert resumed.chosen.keys() == whole.chosen.keys()
    assert all(np.array_equal(resumed.chosen[name], whole.chosen[name]) for name in whole.chosen)


def test_the_second_interrupt_is_not_held_back(tmp_path, request):
    # Where the run is a background job, SIGINT may have been ignored from the start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def twice(_):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)  # a handler runs when Python next looks

    made = task()
    made.rate = twice
    with pytest.raises(KeyboardInterrupt):
        started(tmp_path).train(made)


def test_a_checkpoint_of_other_options_is_refused(tmp_path):
    with pytest.raises(run.Interrupted):
        started(tmp_path).train(task(stop=STOP))
    with pytest.raises(SystemExit, match=r"made.checkpoint.npz is of a run with other options \(seed\): give --fresh"):
        started(tmp_path, "--seed", "1").train(task())
    fresh = started(tmp_path, "--seed", "1", "--fresh")
    fresh.train(task())
    assert [row["step"] for row in fresh.rows] == list(range(1, STEPS + 1))


def test_a_run_writes_its_record_and_keeps_no_checkpoint(tmp_path):
    made = started(tmp_path, "--tag", "T", "--torch-twin", "4")
    made.train(task())
    assert left(tmp_path) == ["made-T.checkpoint.npz"]
    made.check("one", 1.0, at_most=1.0)
    assert made.finish() == 0
    assert left(tmp_path) == ["made-T.csv", "made-T.json"]
    record = json.loads((tmp_path / "made-T.json").read_text())
    assert record["options"]["seed"] == 0
    assert record["environment"].keys() >= {"git commit", "versions", "libraries", "threads of PyTorch", "load average"}
    assert record["results"]["PyTorch, 4 interleaved steps"]["seconds"] > 0
    header, *rows = (tmp_path / "made-T.csv").read_text().splitlines()
    assert header == "step,smolgrad loss,smolgrad seconds,PyTorch loss,PyTorch seconds,weight difference"
    assert len(rows) == STEPS
    assert rows[4].endswith(",nan,nan,nan")  # the twin has left


@pytest.mark.parametrize("options", [[], ["--quick"]], ids=["in full", "quick"])
def test_a_run_leaves_the_results_that_are_quoted(options):
    parser = run.parser("experiments.made", "made")
    folder = run.Run("made", parser.parse_args(options)).file(".json").parent.relative_to(ROOT)
    assert f"{folder.as_posix()}/" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("value", [1.5, float("nan")])
def test_a_missed_bound_makes_the_exit_code_1(tmp_path, value):
    made = started(tmp_path)
    made.check("one", 1.0, at_least=1.0)
    made.check("two", value, at_most=1.0)
    assert made.finish() == 1


def test_without_data_the_command_says_so_and_offers_the_digits(capsys):
    def main(_):
        raise data.DataError("made.gz is not there")

    assert run.command(main) == 2
    printed = capsys.readouterr().out
    assert printed.startswith("no data: made.gz is not there\npython -m experiments.digits needs no download")


def test_twins_start_from_the_same_weights_in_memory_of_their_own():
    ours, other = run.twins(task())
    assert run.largest_difference(ours, other) == 0
    ours.step(*task().batch(0), rate=0.5)
    assert run.largest_difference(ours, other) > 0.1
