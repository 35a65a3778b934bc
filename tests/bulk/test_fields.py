"""The columns that answers add to a file of texts."""

from __future__ import annotations

from dmin import FewShotClassifier
from dmin.bulk.fields import answer_fields
from tests.classifier.common import EXAMPLES, Interrupting, quick


def test_fields_are_those_that_were_asked_for() -> None:
    classifier = quick().fit(EXAMPLES)
    (line,) = answer_fields(classifier, ["my money"], 1)
    assert list(line) == ["label", "score", "probability"] and line["label"] == classifier.predict(["my money"])[0]
    (line,) = answer_fields(classifier, ["my money"], 2, explain=True)
    assert [found["label"] for found in line["top_k"]] == [
        label for label, _ in classifier.predict_top_k(["my money"], 2)[0]
    ]
    assert {found["text"] for found in line["because"]} <= set(EXAMPLES[line["label"]])


def test_answers_and_reasons_are_of_one_state_although_another_thread_fits_meanwhile() -> None:
    encoder = Interrupting()
    classifier = FewShotClassifier(encoder=encoder, use_names=False).fit(EXAMPLES)
    expected = answer_fields(classifier, ["my money"], 2, explain=True)
    encoder.then = lambda: classifier.fit({"new": ["qqq", "qqz"], "newer": ["xxx"]})
    assert answer_fields(classifier, ["my money"], 2, explain=True) == expected
