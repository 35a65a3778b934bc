"""The comparison with other libraries, without them: jobs, results, what is kept, tables."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import peer_worker, peers
from benchmarks.peer_environments import ENVIRONMENTS, PeerError, last_line, work
from benchmarks.peer_table import COLUMNS, duration, line, percent, table

RESULT = {
    "seconds_ready": 0.5, "seconds_ready_with_loading": 1.5, "processor_seconds_ready_with_loading": 1.2,
    "seconds_add_class": 0.0123, "texts_per_second": 200.4, "texts_per_processor_second": 250.4,
    "milliseconds_one_text": 12.3, "peak_megabytes": 700.2, "accuracy": 0.8, "tests": 1600,
}  # fmt: skip


class LastWord(peer_worker.Peer):
    """Knows a text by its last word."""

    distribution = "pytest"

    def prepare(self) -> None:
        self.known: dict[str, str] = {}

    def load(self) -> None:
        pass

    def fit(self, examples: peer_worker.Labelled) -> None:
        self.known |= {text.split()[-1]: label for text, label in examples}

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [self.known.get(text.split()[-1], "?") for text in texts]

    def add(self, extra: peer_worker.Labelled) -> None:
        self.fit(extra)


class TrainedLastWord(LastWord):
    """The same, if it had to train, and could not tell loading apart."""

    trains = True
    loads_apart = False
    add = peer_worker.Peer.add


JOB = {
    "peer": "last word", "options": {}, "encoder": "", "single": 1,
    "examples": [["a dog", "animal"], ["a car", "thing"]],
    "extra": [[["an apple", "fruit"]], [["a rose", "flower"]]],
    "test": [["the dog", "animal"], ["the car", "thing"], ["no car", "animal"], ["the cat", "animal"]],
}  # fmt: skip


@pytest.fixture
def leaderboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three sets of twelve classes, five examples each, and a folder for what is kept."""
    for name in peers.SETS:
        folder = tmp_path / "data" / name / "leaderboard"
        folder.mkdir(parents=True)
        for file, count in (("train_5", 5), ("test", 3)):
            rows = [
                {"text": f"{name} {file} {label} {row}", "label": f"{name}_{label}"}
                for label, row in itertools.product(range(12), range(count))
            ]
            (folder / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv("DMIN_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(peers, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(peers, "TARGET", tmp_path / "peers.json")
    return tmp_path


def test_the_worker_measures_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peer_worker.PEERS, "last word", LastWord)
    result = peer_worker.measure(JOB)
    assert result["accuracy"] == 0.5 and result["tests"] == 4 and result["examples"] == 2
    assert result["new_examples_found"] == 1
    assert 0 <= result["seconds_ready"] <= result["seconds_ready_with_loading"]
    assert set(RESULT) <= set(result) and json.loads(json.dumps(result)) == result
    assert line({"title": "last word", "result": result}).startswith("| last word | 0.0")


def test_who_trains_adds_a_class_by_training_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peer_worker.PEERS, "last word", TrainedLastWord)
    result = peer_worker.measure(JOB)
    assert result["seconds_ready"] is None
    assert result["seconds_add_class"] == result["seconds_ready_with_loading"]
    assert line({"title": "x", "result": result}).count("|") == COLUMNS + 2


def test_dmin_is_measured_by_the_same_worker() -> None:
    result = peer_worker.measure({**JOB, "peer": "dmin", "options": {"encoder": "static", "names": False}})
    assert set(RESULT) <= set(result)
    assert result["new_examples_found"] == 1


def test_a_worker_that_fails_gives_a_line() -> None:
    with pytest.raises(PeerError, match="^KeyError: 'nothing'$"):
        work(None, {"peer": "nothing"}, 1)


def test_a_reason_names_no_folder() -> None:
    text = "Traceback\nImportError: cannot import name 'x' from 'y' (/home/someone/y/__init__.py)\n\n"
    assert last_line(text) == "ImportError: cannot import name 'x' from 'y'"
    assert last_line("OSError: '/home/someone/model' is missing") == "OSError: '' is missing"
    assert last_line("") == ""


def test_requirements_are_exact() -> None:
    for environment in ENVIRONMENTS.values():
        lines = [line for line in environment.versions.splitlines() if not line.startswith("#")]
        assert lines and all(len(line.split("==")) == 2 for line in lines)
        assert environment.folder.endswith("fastembed") or "torch==2.13.0" in lines  # fastembed does without torch


def test_all_get_the_same_texts(leaderboard: Path) -> None:
    jobs = [peers.make_job(row) for row in peers.common_rows("clinc150")]
    assert all(job["test"] == jobs[0]["test"] for job in jobs)
    assert [len(job["examples"]) for job in jobs] == [60, 60, 60, 60, 60, 72, 60, 60]
    assert [job["options"] for job in jobs[:4]] == [
        {"encoder": encoder, "names": names} for encoder in (None, "minilm") for names in (False, True)
    ]
    assert ["clinc150 0", "clinc150_0"] in jobs[5]["examples"]
    assert [len(extra) for extra in jobs[0]["extra"]] == [5, 5, 5]
    known = {label for _, label in jobs[0]["examples"]}
    assert not known & {label for extra in jobs[0]["extra"] for _, label in extra}


def test_ten_classes_are_ten(leaderboard: Path) -> None:
    job = peers.make_job(peers.setfit("banking77", None, ten=True))
    assert len({label for _, label in job["examples"]}) == len({label for _, label in job["test"]}) == 10
    assert job["options"] == {}


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6))
def test_pairs_are_counted_as_setfit_draws_them(sizes: list[int]) -> None:
    labels = [label for label, size in enumerate(sizes) for _ in range(size)]
    alike = [one == other for one, other in itertools.combinations_with_replacement(labels, 2)]
    assert peers.default_pairs(sizes) == 2 * max(sum(alike), len(alike) - sum(alike))


def test_an_interrupted_run_goes_on(leaderboard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(environment: str | None, job: dict[str, Any], threads: int) -> dict[str, Any]:
        asked.append(job["peer"])
        if job["peer"] == "semantic-router":
            raise PeerError("no such thing")
        return RESULT

    monkeypatch.setattr(peers, "work", answer)
    first = peers.main(threads=1).lines
    count = len(asked)
    assert count == len([row for row in peers.plan(quick=False) if row.reckoned is None])
    asked.clear()
    assert peers.main(threads=1, show=True).lines[2:6] == first[2:6] and not asked
    assert peers.main(threads=1).lines == first
    assert set(asked) == {"semantic-router"}, "what made it fail may have passed"
    asked.clear()
    peers.main(threads=1, again=["dmin"])
    assert set(asked) == {"dmin", "semantic-router"}
    asked.clear()
    peers.main(threads=2)
    assert len(asked) == count, "another number of threads is another measurement"
    rows = json.loads((leaderboard / "peers.json").read_text())["rows"]
    assert {row["title"] for row in rows if "failure" in row} == {"semantic-router", "semantic-router, aggregation=sum"}
    assert str(leaderboard) not in json.dumps(rows)
    ratio = next(row["extrapolated"]["ratio"] for row in rows if row["peer"] == "setfit" and "extrapolated" in row)
    assert ratio == peers.default_pairs([5] * 12) / peers.default_pairs([5] * 10)


def test_without_data_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DMIN_DATA", raising=False)
    assert peers.main().lines == ["Not measured: DMIN_DATA names no folder of the public sets."]


def test_every_kind_of_row() -> None:
    rows: list[dict[str, Any]] = [
        {"title": "measured", "result": RESULT},
        {"title": "failed", "failure": "ImportError: x"},
        {"title": "reckoned", "extrapolated": {"seconds": 7200.0, "processor_seconds": 150.0, "ratio": 65.0}},
        {"title": "missing"},
    ]
    lines = table(rows)
    assert len({text.count("|") for text in lines}) == 1
    assert lines[2] == "| measured | 0.50 (1.50) | 1.20 | 0.012 | 200 | 250 | 12 | 700 | 80.0 ± 2.0 |"
    assert "did not run: ImportError: x" in lines[3]
    assert "≈ 2.0 h (extrapolated) | ≈ 2.5 min (extrapolated) |" in lines[4]
    assert "not measured yet" in lines[5]


def test_numbers_as_one_says_them() -> None:
    assert [duration(value) for value in (59, 150, 7201)] == ["59 s", "2.5 min", "2.0 h"]
    assert percent(0.5, 400) == "50.0 ± 4.9"
