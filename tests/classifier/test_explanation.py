"""The text of an explanation."""

from __future__ import annotations

from dmin.classifier.explanation import Explanation, Share
from tests.classifier.common import quick


def explanation(*shares: Share) -> Explanation:
    return Explanation("the text", "a", "a", 0.4, "b", 0.3, None, shares)


def test_a_row_that_lowers_the_score_in_spite_of_its_share_is_explained() -> None:
    odd, usual = Share("invoice <i>", 0.1, 0.45, is_name=True), Share("an example", 0.3, 0.2)
    found = explanation(usual, odd)
    (note,) = found.notes
    assert note == (
        "the name 'invoice <i>' points towards the text (share +0.100) but less than the other rows of a: without it they "
        "would make up the class alone, and the score would be 0.450"
    )
    assert str(found).splitlines()[-1] == f"  note: {note}"
    assert "note: the name &#x27;invoice &lt;i&gt;&#x27; points" in found._repr_html_()


def test_no_note_where_nothing_is_odd() -> None:
    shares = (Share("x", 0.4, 0.2), Share("y", -0.1, 0.5), Share("z", 0.1, 0.4), Share("only", 0.4, float("nan")))
    assert explanation(*shares).notes == () and "note" not in str(explanation(*shares))


def test_the_note_tells_the_truth() -> None:
    """A class whose second example points elsewhere: without it the score is what the note says."""
    examples = {"a": ["aaaaaaaaaa", "aaaaqqqqqqqq"], "b": ["bbbbbbb"]}
    found = quick().fit(examples).explain("aaaaaaaaab")
    odd = next(share for share in found.examples if share.text == "aaaaqqqqqqqq")
    assert odd.share > 0 and odd.without > found.score and "the example 'aaaaqqqqqqqq'" in found.notes[0]
    rest = quick().fit({"a": ["aaaaaaaaaa"], "b": ["bbbbbbb"]}).explain("aaaaaaaaab")
    assert abs(rest.score - odd.without) < 1e-6
