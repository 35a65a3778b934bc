"""Pages that are made of the tables of version 0.1."""

from __future__ import annotations

import pytest

from dmin.evaluation.statistics import split_test
from reproduce import first_tables
from reproduce.against_best import FOLDER, corrected, page


def test_a_stored_p_value_is_corrected_as_the_raw_means_would_be() -> None:
    first, second = [0.85, 0.83, 0.88, 0.86, 0.9], [0.80, 0.82, 0.85, 0.86, 0.85]
    assert corrected(split_test(first, second, 0.0), 0.9) == pytest.approx(split_test(first, second, 0.9))


def test_the_committed_page_is_what_the_tables_give() -> None:
    assert (FOLDER / "against-best.md").read_text(encoding="utf-8") == page()


def test_the_committed_claims_are_what_the_tables_give() -> None:
    made = first_tables.page()
    assert (FOLDER / "first-claims.md").read_text(encoding="utf-8") == made
    assert "| DMIN above LwoF | 2 of 12 | -2.8 | banking77 +0.2 -0.7 +0.7 -1.5; hwu64" in made
