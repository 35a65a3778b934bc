"""A report stands alone, shows text as text, and takes its colours from the service's page and the docs."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dmin.report import LOOK, Bar, Report, confusion_matrix
from tests.report.common import HOSTILE, full_report

ROOT = Path(__file__).parents[2]


class Elements(HTMLParser):
    """The elements of a page and the addresses in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_hostile_names_add_no_element() -> None:
    plain, hostile = full_report("a name").html(), full_report().html()
    assert Elements(hostile).tags == Elements(plain).tags
    assert Elements(hostile).handlers == []
    assert "\x1b" not in hostile and "{{ 7*7 }}" in hostile and HOSTILE not in hostile


def test_nothing_is_fetched_and_no_other_script_runs() -> None:
    text = full_report().html()
    for address in Elements(text).addresses:
        assert address.startswith(("data:", "#")), address
    assert not re.search(r"url\((?!['\"]?#)|@import", text)
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text


def test_strong_cells_and_bars_from_zero() -> None:
    text = full_report("x").html()
    assert "<b>80.0 ± 1.1**</b>" in text and "<b>9.5" not in text
    assert '<rect x="0" y="0" width="70.00"' in text and 'd="M65.00 5H75.00"' in text
    assert Bar("", 1.7, "").width == 100 and Bar("", float("nan"), "").width == 0
    assert Bar("", 0.5, "", float("nan")).interval is None


def test_a_part_without_a_heading_is_refused() -> None:
    with pytest.raises(ValueError, match="heading"):
        Report("x").paragraph("y")


def test_a_small_matrix_has_every_class_and_answer() -> None:
    found = confusion_matrix({("a", "a"): 9, ("a", "b"): 1, ("b", "(refused)"): 4, ("b", "b"): 96})
    assert list(found.columns) == ["a", "b", "(refused)"] and found.note == ""
    shown = {name: [(cell.text, cell.shade) for cell in cells] for name, cells in found.rows}
    assert shown["a"] == [("9", "m3"), ("1", "w1"), ("·", "")]
    assert shown["b"] == [("·", ""), ("96", "m3"), ("4", "w0")]
    assert found.rows[0][1][1].about == "a answered as b: 1 of 10"


def test_of_many_classes_the_most_confused_are_shown_and_no_text_is_lost() -> None:
    confusion = {(f"c{n:02}", f"c{n:02}"): 5 for n in range(40)}
    confusion |= {("c03", "c30"): 4, ("c30", "c03"): 3, ("c03", "c39"): 1, ("c07", "c03"): 1}
    found = confusion_matrix(confusion, most=2)
    assert [name for name, _ in found.rows] == ["c03", "c30"] and list(found.columns) == ["c03", "c30", "(others)"]
    assert [cell.text for cell in found.rows[0][1]] == ["5", "4", "1"]
    assert found.note == "The 2 of 40 classes that were confused most."


def test_the_docs_have_the_colours_of_the_page() -> None:
    look = LOOK.read_text()
    light = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", look.split("@media")[0]))
    dark = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", look.split("@media")[1]))
    docs = (ROOT / "docs/stylesheets/palette.css").read_text()
    first, second = docs.split("slate")
    for part, colours in ((first, light), (second, dark)):
        used = re.findall(r"#[0-9a-f]{6}", part)
        assert set(used) <= set(colours.values()) and colours["accent"] in used
    assert "stylesheets/palette.css" in (ROOT / "mkdocs.yml").read_text()
