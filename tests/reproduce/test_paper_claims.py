"""The paper's claims: counted by cells, tested over sets, in families that are fixed, whatever is measured."""

from __future__ import annotations

import pytest

from dmin.evaluation.raw import RowDocument
from reproduce.kinds_lines import points
from reproduce.paper_claims import answer, claims_page, results, summary, verdicts
from reproduce.paper_plan import SETS
from reproduce.paper_questions import GROUPS, OF_PLUS, Claim
from tests.reproduce.test_paper_table import line, made_up


def test_claims_are_counted_and_tested_over_sets() -> None:
    found = results(made_up())
    claim, reverse = Claim("dmin", "lwof", "one"), Claim("lwof", "dmin", "other")
    said = verdicts(found, [claim])[claim]
    assert said.gains["hwu64", (5, 1)] == pytest.approx(0.04) and len(said.gains) == len(SETS) and not said.shown
    assert (said.holds, said.sets) == (9, 9) and said.p_value == pytest.approx(2 / 512)
    both = verdicts(found, [claim, reverse])
    assert both[claim].p_value == pytest.approx(4 / 512)  # Holm over the claims of the family
    assert both[reverse].holds == 0 and both[reverse].gain == pytest.approx(-said.gain)
    assert answer(said) == "holds (p = 0.004, 9 sets)"
    assert answer(both[reverse]) == "the opposite holds (p = 0.008, 9 sets)"
    page = claims_page(made_up())
    # A family of eight, measured or not
    held = "in 9 of 9 cells, mean difference of the sets +3.9 points; holds (p = 0.031, 9 sets)."
    assert f"**DMIN above LwoF**: {held}" in page and "**DMIN above HATT**: no cell has both rows yet." in page
    assert "| DMIN above LwoF | 9 of 9 cells | +3.9 | holds (p = 0.031, 9 sets) |" in summary(made_up())
    few = verdicts({place: values for place, values in found.items() if place[0] in SETS[:4]}, [claim])[claim]
    assert answer(few) == "too few sets for a test (4)" and answer(None) == "not measured yet"


def test_claims_leave_out_splits_whose_test_classes_the_search_may_have_seen() -> None:
    """Published splits count for rows that stand on no other; with few sets the episodes of a cell are tested."""
    high, low = [40 + episode % 3 for episode in range(40)], [20 + episode % 5 for episode in range(40)]
    shown = [line("hwu64", "fair-01", "dmin", low), line("hwu64", "fair-01", "lwof", high)]
    shown += [line("hwu64", "protaugment-01", "dmin", high), line("hwu64", "protaugment-01", "lwof", low)]
    shown += [line("hwu64", "protaugment-01", "ataml", low), line("hwu64", "protaugment-01", "relation", high)]
    shown += [line("liu54", "protaugment-01", "ataml", low), line("liu54", "protaugment-01", "relation", low)]
    order, other = Claim("dmin", "lwof", ""), Claim("relation", "ataml", "")
    said = verdicts(results(shown), [order, other])
    assert said[order].gains == {("hwu64", (5, 1)): pytest.approx(-0.3795)}
    assert said[other].shown == {("hwu64", (5, 1)): True, ("liu54", (5, 1)): False}
    assert (
        answer(said[other]) == "too few sets for a test (2); over their episodes 1 cells significantly above, 0 below"
    )
    assert "* |" in claims_page(shown).split("**Rel. Net above ATAML**")[1].split("\n\n")[1]


def test_too_few_sets_for_a_family_are_said_to_be_too_few() -> None:
    """Seven sets that agree have p = 0.016: enough for one claim, not for a family of four that shows nothing else."""
    found = {place: seeds for place, seeds in results(made_up()).items() if place[0] in SETS[:7]}
    claim = Claim("dmin", "lwof", "one")
    others = [Claim("dmin", row, row) for row in ("hatt", "induction", "relation")]  # not measured
    alone, among = (verdicts(found, claims)[claim] for claims in ([claim], [claim, *others]))
    assert alone.significant and answer(alone) == "holds (p = 0.016, 7 sets)"
    assert not among.significant and among.p_value == pytest.approx(4 / 64)
    assert answer(among) == "too few sets to decide (p = 0.062, 7 sets)"


def test_what_a_stricter_reading_leaves_is_said() -> None:
    said = " ".join(summary(made_up()).split("\n\n")[-1].split())
    assert said.startswith("1 of 1 tested claims show a difference")
    # eight sets: 8 * 0.0078
    assert (
        "Without liu54, which shares texts with hwu64, 0 are left; of the other 1, 1 could not show any with a set fewer."
        in said
    )
    assert said.endswith("no p below 0.004, so that one correction over all 1 tests would leave 1.")


def test_cells_without_a_difference_are_counted_apart_and_each_set_weighs_the_same() -> None:
    lines = [line("hwu64", "fair-01", row, [30, 20]) for row in ("dmin", "lwof")]
    # The same right answers in another order: the last bit of the means may differ
    lines += [line("liu54", "fair-01", "dmin", [31, 17, 42]), line("liu54", "fair-01", "lwof", [42, 31, 17])]
    lines += [
        line("debian", "fair-01", row, [right, right], way=way, shot=shot)
        for row, right in (("dmin", 40), ("lwof", 30))
        for way, shot in ((5, 1), (5, 5))
    ]
    claim = Claim("dmin", "lwof", "one")
    said = verdicts(results(lines), [claim])[claim]
    assert said.held == "2 of 4 cells, 2 equal"
    assert said.gain == pytest.approx(0.2 / 3)  # 0, 0 and 0.2 of the sets, not 0.1 of the cells


def test_some_families_stand_alone() -> None:
    shown = summary([*made_up(), *(cell.model_copy(update={"row": _plus(cell.row)}) for cell in made_up())], OF_PLUS)
    assert "| *DMIN-plus, ours, beside every other row* | | | |" in shown and "The order of the rows" not in shown
    assert "tested claims" not in shown and set(OF_PLUS) <= {title for title, _ in GROUPS}


def _plus(row: RowDocument) -> RowDocument:
    return row.model_copy(update={"name": "dmin-plus"}) if row.name == "dmin" else row


def test_a_difference_that_rounds_to_nothing_has_no_sign() -> None:
    assert [points(gain) for gain in (0.0123, -0.0123, 0.0004, -0.0004, 0.0)] == ["+1.2", "-1.2", "0.0", "0.0", "0.0"]
