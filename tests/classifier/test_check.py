"""Diagnosis of the support set."""

from __future__ import annotations

import warnings

import pytest

from dmin import FewShotClassifier
from dmin.classifier.check import SupportReport

EXAMPLES = {
    "refund": ["I want my money back", "please return my money", "give me a refund", "Give  me a refund"],
    "weather": ["will it rain tomorrow", "is it sunny today", "I want a refund of my money", "any storms coming"],
    "forecast": ["will it rain on Sunday", "is it sunny this week", "is a storm coming"],
    "music": ["play a song"],
}


@pytest.fixture(scope="module")
def report() -> SupportReport:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        examples = {**EXAMPLES, "money": ["please return my money", "pay me"]}
        return FewShotClassifier(device="cpu", use_names=False).fit(examples).check()


def test_repeated_and_contradictory_texts_are_found(report: SupportReport) -> None:
    assert report.repeated == (("give me a refund", "refund", 2),)
    assert report.contradictory == (("please return my money", ("refund", "money")),)


def test_a_mislabelled_example_is_doubted_first(report: SupportReport) -> None:
    first = next(doubt for doubt in report.doubtful if doubt.label == "weather")
    assert first.text == "I want a refund of my money" and first.nearer in ("refund", "money")
    assert first.other > first.own


def test_overlap_thin_classes_and_advice(report: SupportReport) -> None:
    assert any({one, two} == {"weather", "forecast"} for one, two, _ in report.overlapping)
    assert dict(report.thin) == {"music": 1, "money": 2}
    assert "music" in [item.label for item in report.advice]
    urgencies = [item.urgency for item in report.advice]
    assert urgencies == sorted(urgencies, reverse=True) and urgencies[-1] > 0


def test_it_can_be_read_and_kept(report: SupportReport) -> None:
    text = str(report)
    for part in ("given twice", "under two classes", "mislabelled?", "overlap", "fewer than 3", "add examples next to"):
        assert part in text
    assert report.as_dict()["thin"] == (("music", 1), ("money", 2))


def test_a_sound_set_has_no_findings() -> None:
    examples = {
        "refund": ["I want my money back", "please return my money", "give me my money back"],
        "weather": ["will it rain tomorrow", "will it rain today", "is rain coming tomorrow"],
    }
    found = FewShotClassifier(device="cpu", use_names=False).fit(examples).check()
    assert found.problems == 0 and found.advice == () and "no findings" in str(found)
