"""A classifier measured on a user's own test file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmin import FewShotClassifier
from dmin.data import Corpus
from dmin.errors import DataError
from dmin.evaluation.assess import assess
from tests.classifier.common import EXAMPLES

TEST = Corpus.from_mapping(
    {
        "refund": ["give my money back", "return my payment please", "I was promised a refund"],
        "parcel": ["the package is late", "where did my order go"],
        "weather": ["is rain expected", "will the sun shine"],
        "chess": ["who won the chess game", "how does a knight move"],
    },
    "test",
)


def test_what_is_measured(tmp_path: Path) -> None:
    classifier = FewShotClassifier(device="cpu", reject=0.4, unknown_label="?").fit(EXAMPLES)
    found = assess(classifier, TEST, ["the capital of France"])
    inside = [(t, n) for t, n in zip(TEST.texts, TEST.labels, strict=True) if n != "chess"]
    answers = classifier.predict([text for text, _ in inside]).tolist()
    right = sum(answer == label for answer, (_, label) in zip(answers, inside, strict=True))
    assert found.texts == 7 and found.quality.accuracy == pytest.approx(right / 7)
    assert found.separation is not None and found.separation.out_of_scope == 3 and found.separation.auroc > 0.9
    assert found.refused is not None and found.refused[1] == 1.0 and found.threshold == 0.4
    assert set(found.beside) == {"nearest", "logistic"} and all(0 <= value <= 1 for value in found.beside.values())
    found.write(tmp_path)
    stored = json.loads((tmp_path / "assessment.json").read_text())
    assert stored["accuracy"] == found.quality.accuracy and stored["per_class"]["refund"]["texts"] == 3
    for name in ("reliability.png", "confusion.png", "refusal.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"


def test_without_refusal_it_is_the_score() -> None:
    known = Corpus("known", TEST.texts[:7], TEST.labels[:7])
    classifier = FewShotClassifier(device="cpu").fit(EXAMPLES)
    found = assess(classifier, known)
    assert found.quality.accuracy == found.unrefused == classifier.score(list(known.texts), known.labels)
    assert found.separation is None and found.refused is None


def test_other_labels_altogether_are_said() -> None:
    with pytest.raises(DataError, match="no text of test has a label of the examples: x against"):
        assess(FewShotClassifier(device="cpu").fit(EXAMPLES), Corpus("test", ("hello",), ("x",)))
