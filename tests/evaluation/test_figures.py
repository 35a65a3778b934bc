"""Pictures that are really drawn."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from dmin.evaluation.figures import (
    ACCENT,
    confusion_figure,
    curves_figure,
    embedding_figure,
    precision_figure,
    save_png,
    svg_text,
)
from dmin.evaluation.precision import precision_curve

METRICS = [
    {"stage": stage, "step": step, **({"loss": 1 / (step + 1), "accuracy": 0.5} if step % 2 else {"validation": 0.6})}
    for stage in (1, 2)
    for step in range(6)
]


def test_confusion_is_a_picture_with_every_class(tmp_path: Path) -> None:
    figure = confusion_figure({("a", "a"): 9, ("a", "b"): 1, ("b", "b"): 10}, "title")
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["a", "b"]
    values = figure.axes[0].images[0].get_array()
    assert values is not None and values.tolist() == [[90.0, 10.0], [0.0, 100.0]]
    save_png(figure, tmp_path / "x.png")
    assert imread(tmp_path / "x.png").std() > 0.05


def test_curves_have_a_panel_for_each_stage() -> None:
    figure = curves_figure(METRICS)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["stage 1: base classes", "stage 2: episodes"]
    assert curves_figure([]) is not None


def test_a_figure_in_a_page_takes_the_colours_of_the_page() -> None:
    text = svg_text(precision_figure(precision_curve([0.9, 0.5], [True, False]), None))
    assert text.startswith("<svg") and "</svg>" in text
    assert "var(--accent)" in text and "var(--ink)" in text and "#000000" not in text and ACCENT not in text
    assert "texts answered, %" in text  # letters stay letters


def test_no_global_figure_is_left() -> None:
    import matplotlib.pyplot as plt

    curves_figure(METRICS)
    assert plt.get_fignums() == [] and matplotlib.get_backend()


@pytest.mark.parametrize("name", ["$", "$x_1^{", "$$", r"\$a$", "_hidden", "a\x1b[2J", "<b>&", "日本"])
def test_any_label_can_be_drawn(name: str, tmp_path: Path) -> None:
    """`$` begins a formula in matplotlib, and a name that begins with `_` is left out of a legend."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a font without this sign draws a box
        figure = confusion_figure({(name, name): 1, (name, "other"): 2}, f"title {name}")
        save_png(figure, tmp_path / "confusion.png")
        assert (tmp_path / "confusion.png").read_bytes()[:4] == b"\x89PNG"
        points = np.zeros((2, 2))
        text = svg_text(confusion_figure({(name, "other"): 1}, name))
        drawn = embedding_figure([("before", points, 0.5)], [name, "other"], [0, 1])
        save_png(drawn, tmp_path / "points.png")
    assert len(drawn.legends[0].get_texts()) == 2
    assert text.startswith("<svg") and "\x1b" not in text
