"""The labelling loop: what is answered is on disk, what is undone is not, and a session of another pile is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.errors import DataError, StorageError
from dmin.labelling import Session, pile_of
from dmin.labelling.journal import Journal
from dmin.labelling.session import check_label
from tests.conftest import word_corpus
from tests.files.killing import run_until_killed
from tests.labelling.hashed import encode

CORPUS = word_corpus(texts=10, classes=5)
TEXTS = [f"{label} {text}" for label, text in zip(CORPUS.labels, CORPUS.texts, strict=True)]
TRUTH = dict(zip(TEXTS, CORPUS.labels, strict=True))


def session(path: Path, texts: list[str] = TEXTS, **options: Any) -> Session:
    return Session(texts, path, classifier=FewShotClassifier(encoder=encode), **options)


def answer(loop: Session, count: int) -> list[Any]:
    """Answer truly; what `answer` returned each time."""
    found = []
    for _ in range(count):
        question = loop.next()
        assert question is not None
        found.append(loop.answer(TRUTH[question.text]))
    return found


def test_it_learns_at_once_and_ends_when_nothing_is_left(tmp_path: Path) -> None:
    with session(tmp_path / "s.jsonl") as loop:
        first = loop.next()
        assert first is not None and first.likely == () and loop.next() == first and loop.classifier is None
        loop.answer("first")
        second = loop.next()
        assert second is not None and second.text != first.text
        loop.answer("second")
        third = loop.next()
        assert third is not None and {name for name, _ in third.likely} == {"first", "second"}
        loop.answer("a new one")
        assert loop.labels == ["first", "second", "a new one"]
        assert loop.classifier.predict([third.text])[0] == "a new one"
        asked = {first.text, second.text, third.text}
        while (question := loop.next()) is not None:
            assert question.text not in asked
            asked.add(question.text)
            loop.answer(TRUTH[question.text])
        assert len(asked) >= 45 and len(loop.unlabelled) == len(TEXTS) - len(asked)
        with pytest.raises(DataError, match="nothing is left"):
            loop.answer("x")


def test_a_session_is_continued_where_it_stopped(tmp_path: Path) -> None:
    with session(tmp_path / "s.jsonl") as loop:
        answer(loop, 7)
        loop.next()
        loop.skip()
        examples, skipped = loop.examples, {entry["row"] for entry in loop.journal.entries if entry["do"] == "skip"}
    with session(tmp_path / "s.jsonl") as again:
        assert again.examples == examples and len(again.answers) == 7
        rows = {again.pile.rows[question.index] for question in _rest(again)}
        assert not rows & skipped and not rows & {entry["row"] for entry in again.answers[:7]}


def _rest(loop: Session) -> list[Any]:
    found = []
    while (question := loop.next()) is not None:
        found.append(question)
        loop.answer(TRUTH[question.text])
    return found


def test_undo_takes_back_answers_and_skips_one_by_one(tmp_path: Path) -> None:
    with session(tmp_path / "s.jsonl") as loop:
        answer(loop, 5)
        before, current = loop.examples, loop.next()
        assert current is not None
        loop.answer("a slip")
        assert "a slip" in loop.classifier.classes_
        back = loop.undo()
        assert back is not None and back.text == current.text and loop.next() == back
        assert loop.examples == before and "a slip" not in loop.classifier.classes_
        loop.skip()
        assert loop.undo() is not None and loop.next().text == current.text  # type: ignore[union-attr]
        for _ in range(5):
            assert loop.undo() is not None
        assert loop.undo() is None and loop.examples == {} and loop.classifier is None
    with session(tmp_path / "s.jsonl") as again:
        assert again.examples == {} and again.answers == []


def test_every_ten_answers_there_is_an_estimate(tmp_path: Path) -> None:
    with session(tmp_path / "s.jsonl") as loop:
        found = answer(loop, 30)
        assert [place for place, estimate in enumerate(found, 1) if estimate is not None] == [20, 30]
        last = found[-1]
        assert last == loop.estimate and last.now.labels == 30 and last.now.accuracy > 0.6
        assert last.answers == sum(entry["predicted"] is not None for entry in loop.answers) == 28


def test_known_examples_are_taught_and_not_asked(tmp_path: Path) -> None:
    known = {"apple": TEXTS[:4], "car": [TEXTS[10].upper()]}
    with session(tmp_path / "s.jsonl", examples=known) as loop:
        asked = [question.text for question in _rest(loop)]
        assert not set(asked) & {*TEXTS[:4], TEXTS[10]}
        assert loop.examples["apple"][:4] == TEXTS[:4]
        assert loop.answers[0]["predicted"] in known  # two classes were known from the start
    assert known == {"apple": TEXTS[:4], "car": [TEXTS[10].upper()]}


def test_the_classifier_is_saved(tmp_path: Path) -> None:
    with session(tmp_path / "s.jsonl") as loop:
        answer(loop, 1)
        with pytest.raises(DataError, match="at least two"):
            loop.save(tmp_path / "c")
        answer(loop, 24)
        saved = loop.save(tmp_path / "c")
    loaded = FewShotClassifier.load(tmp_path / "c", encoder=encode)
    assert loaded.predict(TEXTS).tolist() == saved.predict(TEXTS).tolist()
    assert sum(a == b for a, b in zip(loaded.predict(TEXTS), TRUTH.values(), strict=True)) > 40


@pytest.mark.parametrize(
    ("texts", "difference"),
    [
        (TEXTS[:-1], "begun on 50 texts, this pile has 49"),
        (["another", *TEXTS[1:]], "begins with 'apple apple pear plum 0', this one with 'another'"),
        ([*TEXTS[:-1], "another"], "the same first one, but others differ"),
    ],
)
def test_a_session_of_another_pile_is_refused_with_what_differs(
    tmp_path: Path, texts: list[str], difference: str
) -> None:
    path = tmp_path / "s.jsonl"
    with session(path) as loop:
        answer(loop, 3)
    before = path.read_bytes()
    with pytest.raises(DataError, match="a session of another pile") as caught:
        session(path, texts)
    assert difference in str(caught.value) and "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_a_torn_last_line_is_dropped_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with session(path) as loop:
        answer(loop, 6)
        examples = loop.examples
    whole = path.read_bytes()
    for cut in (1, 5, 40):
        path.write_bytes(whole + whole.splitlines()[-1][:-cut])
        with session(path) as again:
            assert again.examples == examples
            answer(again, 1)
        with session(path) as more:
            assert len(more.answers) == 7
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{broken", "line 3: not valid JSON"),
        ('{"do": "dance"}', "none of answer, skip, undo"),
        ('{"do": "answer", "row": 1, "text": "x"}', "label is None"),
        ("[]", "none of answer"),
        ('{"do": "answer", "row": 1, "text": "x", "label": "y", "confidence": "high"}', "confidence is 'high'"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "s.jsonl"
    with session(path) as loop:
        answer(loop, 3)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    with pytest.raises(DataError, match=message):
        session(path)


def test_a_file_that_is_no_session_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    for content in (b"my notes\n", b'{"format": "else"}\n', b"\xff\xfe\n"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is no labelling session"):
            session(path)
        assert path.read_bytes() == content
    path.write_text(json.dumps({"format": "dmin-labelling-session", "version": 9}) + "\n")
    with pytest.raises(DataError, match="version 9"):
        session(path)


def test_two_sessions_cannot_share_a_file(tmp_path: Path) -> None:
    with session(tmp_path / "s.jsonl"), pytest.raises(StorageError, match="open in another session"):
        session(tmp_path / "s.jsonl")


@pytest.mark.parametrize("label", ["", "   ", "two\nlines", "bell\a", "\x1b[31mred", "\ud800", "x" * 201, 3, None])
def test_a_label_that_cannot_be_carried_is_refused_and_nothing_is_lost(tmp_path: Path, label: Any) -> None:
    with session(tmp_path / "s.jsonl") as loop:
        question = loop.next()
        with pytest.raises(DataError, match="the label"):
            loop.answer(label)
        assert loop.next() == question and loop.answers == []


@pytest.mark.parametrize(
    "label", ["no", "1", "a: b", "- x", "Größe ✓", "日本語", "'quoted' \"twice\"", "#tag", "e\u0301"]
)
def test_odd_labels_come_back_as_they_were(tmp_path: Path, label: str) -> None:
    with session(tmp_path / "s.jsonl") as loop:
        loop.answer(label)
        answer(loop, 3)
        kept = loop.labels[0]
        loop.save(tmp_path / "c")
    assert kept == check_label(label)
    with session(tmp_path / "s.jsonl") as again:
        assert again.labels[0] == kept
    assert kept in FewShotClassifier.load(tmp_path / "c", encoder=encode).classes_


def test_the_same_answers_lead_to_the_same_questions(tmp_path: Path) -> None:
    asked = []
    for name in ("a", "b"):
        with session(tmp_path / name) as loop:
            asked.append([question.text for question in _rest(loop)])
    assert asked[0] == asked[1]


KILLED = """
import sys
from pathlib import Path
from tests.labelling.test_session import TRUTH, session
with session(Path(sys.argv[1])) as loop:
    while (question := loop.next()) is not None:
        loop.answer(TRUTH[question.text])
        print(question.text, flush=True)
"""


def adaptive() -> FewShotClassifier:
    return FewShotClassifier("adaptive", encoder=encode)


def test_texts_without_an_answer_serve_the_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each batch at most so many of them, with the vectors at hand; at the end all of them."""
    learned: list[tuple[list[str], Any]] = []
    adapt = FewShotClassifier.adapt

    def watched(self: FewShotClassifier, texts: list[str], *, vectors: Any) -> FewShotClassifier:
        learned.append((texts, vectors))
        return adapt(self, texts, vectors=vectors)

    monkeypatch.setattr(FewShotClassifier, "adapt", watched)
    monkeypatch.setattr("dmin.labelling.session.HELPERS", 7)
    with Session(TEXTS, tmp_path / "s.jsonl", classifier=adaptive(), batch=5) as loop:
        answer(loop, 12)
        assert 2 <= len(learned) <= 4  # at the first two classes, and then once per batch
        for texts, vectors in learned:
            assert len(texts) == 7 and np.array_equal(vectors, encode(texts))
        assert not {entry["text"] for entry in loop.answers[:10]} & set(learned[-1][0])
        loop.undo()
        assert len(learned[-1][0]) == 7
        saved = loop.save(tmp_path / "c")
        assert learned[-1][0] == loop.unlabelled
        expected = adaptive().fit(loop.examples, unlabelled=loop.unlabelled)
        plain = adaptive().fit(loop.examples)
        scores = saved.decision_function(TEXTS)
        np.testing.assert_allclose(scores, expected.decision_function(TEXTS), atol=1e-5)
        assert np.abs(scores - plain.decision_function(TEXTS)).max() > 1e-3
        again = FewShotClassifier.load(tmp_path / "c", encoder=encode)
        np.testing.assert_allclose(again.decision_function(TEXTS), scores, atol=1e-5)


@pytest.mark.parametrize("options", [{"use_unlabelled": False}, {"classifier": FewShotClassifier(encoder=encode)}])
def test_examples_alone_where_that_is_wanted_or_all_a_model_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.delattr(FewShotClassifier, "adapt")
    settings = {"classifier": adaptive(), **options}
    with Session(TEXTS, tmp_path / "s.jsonl", **settings) as loop:
        answer(loop, 11)
        assert len(loop.save(tmp_path / "c").classes_) == len(loop.labels)


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 13])
def test_kill_9_loses_no_answer(tmp_path: Path, after: int) -> None:
    path = tmp_path / "s.jsonl"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True, env=environment,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert process.stdout is not None
    answered = [process.stdout.readline().strip() for _ in range(after)]
    process.send_signal(signal.SIGKILL)
    answered += [line.strip() for line in process.stdout.read().splitlines()]
    assert process.wait() == -signal.SIGKILL
    with session(path) as again:
        kept = [entry["text"] for entry in again.answers]
        # An answer may be on the disk that the process had no time to report; never the other way round.
        assert kept[: len(answered)] == answered and len(kept) <= len(answered) + 1
        assert all(entry["label"] == TRUTH[entry["text"]] for entry in again.answers)
        answer(again, 2)


JOURNAL = """
import sys
from pathlib import Path
from dmin.labelling.journal import Journal
from dmin.labelling.pile import pile_of
pile = pile_of(["one", "two", "three", "four"])
said = open(sys.argv[2], "a", buffering=1)
start()
with Journal(Path(sys.argv[1]), pile) as journal:
    for row, text in enumerate(pile.texts):
        journal.add({"do": "answer", "row": row, "text": text, "label": "x"})
        said.write(text + "\\n")
"""


@pytest.mark.slow
def test_a_kill_at_any_call_loses_no_answer_that_was_acknowledged(tmp_path: Path) -> None:
    pile = pile_of(["one", "two", "three", "four"])
    total = run_until_killed(JOURNAL, [str(tmp_path / "all.jsonl"), str(tmp_path / "all.txt")], 0)
    assert total >= 5  # the header and each answer reach the disk by fsync
    for point in range(1, total + 1):
        path, said = tmp_path / f"{point}" / "s.jsonl", tmp_path / f"{point}.txt"
        assert run_until_killed(JOURNAL, [str(path), str(said)], point) == -1
        acknowledged = said.read_text().split()
        with Journal(path, pile) as journal:
            kept = [entry["text"] for entry in journal.entries]
            assert kept[: len(acknowledged)] == acknowledged and len(kept) <= len(acknowledged) + 1
            journal.add({"do": "skip", "row": 3})
        with Journal(path, pile) as again:
            assert len(again.entries) == len(kept) + 1
