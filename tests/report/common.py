"""A report with every kind of part, and a hostile name in every place that takes one."""

from __future__ import annotations

from matplotlib.figure import Figure

from dmin.evaluation.figures import svg_text
from dmin.report import Bar, BarGroup, Cell, Dot, Report, TextRow, Theme

HOSTILE = (
    "\"><script>document.title='bad'</script><img src=x onerror=\"document.title='bad'\"></style>{{ 7*7 }}\x1b[2J'"
)
SHOWN = "\"><script>document.title='bad'</script><img src=x onerror=\"document.title='bad'\"></style>{{ 7*7 }}\\x1b[2J'"


def full_report(name: str = HOSTILE) -> Report:
    """Every kind of part with this name in it."""
    report = Report(name, f"summary {name}", facts=[(name, name)], made_by=name)
    report.heading(name)
    report.paragraph(name)
    report.paragraph(name, note=True)
    report.items([name, "a second line"])
    report.heading("Table")
    rows = [
        [Cell(f"beta {name}"), Cell("9.5 ± 0.3"), "10"],
        ["alpha", Cell("80.0 ± 1.1**", strong=True, bar=Bar("", 0.8, "")), "9"],
        ["gamma", "", "100"],
    ]
    report.table(["method", name, "texts"], rows)
    report.bars([BarGroup(name, [Bar(name, 0.7, "70.0 ± 5.0", 0.05), Bar("other", -0.2, "-20.0", strong=False)])])
    report.heading("Matrix")
    report.matrix({(name, name): 3, (name, "other"): 1, ("other", "(refused)"): 2})
    report.heading("Texts")
    reason = TextRow(f"text {name}", [name, name, "0.5"], f"reason {name}", [Bar(name, 0.4, "+0.400")], [name])
    report.texts(["text", "true class", "answer", "cosine"], [reason], words=(1, 2))
    report.heading("Map")
    report.map(100, [Dot("5", "5", 0, "red", name)], [Theme(name, "1 text", name, [name], 0, "red")], name)
    figure = Figure(figsize=(3, 2))
    figure.add_subplot().set_title("a picture")
    report.heading("Picture")
    report.picture(svg_text(figure), name)
    return report
