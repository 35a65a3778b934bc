"""Labels as text, and which of them are words."""

from __future__ import annotations

import pytest

from dmin.data.labels import is_wordy, mostly_words, name_text, near_misses


@pytest.mark.parametrize(
    ("label", "text"),
    [("card_arrival", "card arrival"), ("alarm/query", "alarm query"), ("lostCard", "lost Card"), ("plain", "plain")],
)
def test_names_become_words(label: str, text: str) -> None:
    assert name_text(label) == text and is_wordy(label)


@pytest.mark.parametrize("label", [3, 2.5, "C17", "42", "x", "ab", ("a", "b"), "Q4_revenue2"])
def test_codes_and_numbers_are_not_words(label: object) -> None:
    assert not is_wordy(label)  # type: ignore[arg-type]


def test_a_few_odd_labels_among_words_do_not_matter() -> None:
    assert mostly_words(["balance", "card_lost", "yes", "no", "transfer", "rewards"])
    assert not mostly_words(["C1", "C2", "other"]) and not mostly_words([])


@pytest.mark.parametrize(
    ("label", "near"),
    [
        ("refnd", "refund"), ("refunds", "refund"), ("refumd", "refund"), ("erfund", "refund"), ("Refund", "refund"),
        ("late-parcel", "late_parcel"), ("late parcl", "late_parcel"), ("fund", None), ("C12", None), ("code12", None),
        ("chess", None), ("card", None),
    ],
)  # fmt: skip
def test_labels_one_letter_off_a_class(label: str, near: str | None) -> None:
    classes = ["refund", "late_parcel", "C11", "code11", "car"]
    assert near_misses([*classes, label], classes) == ({label: near} if near else {})
