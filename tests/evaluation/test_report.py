"""The page stands alone and shows text as text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from dmin.evaluation.figures import bars_figure
from dmin.evaluation.report import Report


def test_a_page(tmp_path: Path) -> None:
    report = Report("A <title>")
    report.heading("Section & more")
    report.table(["method", "5-way"], [["dmin", "80.0"], ["nearest", "70.0"]], bold=frozenset({(0, 1)}))
    report.items(["<script>alert(1)</script>"])
    report.paragraph("a note", note=True)
    report.figure(bars_figure(["one"], {"dmin": [(0.8, 0.1)]}))
    report.write(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "<b>80.0</b>" in text and "<b>70.0</b>" not in text
    assert "<script" not in text and "&lt;script&gt;" in text and "Section &amp; more" in text
    assert "http" not in text.split("<svg")[0]  # nothing is fetched
    HTMLParser().feed(text)
