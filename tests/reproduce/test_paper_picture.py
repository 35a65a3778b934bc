"""The picture of the paper's table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from dmin.evaluation.statistics import mean_interval
from reproduce.paper_picture import COLOURS, DRAWN, METHODS, PARTS, drawn_cells, gains, picture
from tests.reproduce.test_paper_table import line

DMIN, LWOF = [40 + episode % 3 for episode in range(30)], [42 + episode % 3 for episode in range(30)]


def test_rows_are_all_methods_of_the_fair_splits_and_the_parts_of_dmin() -> None:
    assert "lwof" in METHODS and "nearest" in METHODS and "without-dmm" in PARTS
    assert "dmin" not in DRAWN and "ataml" not in DRAWN and len(set(DRAWN)) == len(DRAWN)


def test_a_panel_has_the_first_fair_split_in_5_way() -> None:
    cells = [
        line("hwu64", "fair-01", "dmin", DMIN),
        line("hwu64", "fair-02", "dmin", LWOF),
        line("hwu64", "fair-01", "lwof", LWOF, 10, 1),
        line("banking77", "fair-01", "lwof", LWOF),
    ]
    (only,) = drawn_cells(cells, "hwu64").items()
    assert only == (("dmin", 1), cells[0].result().accuracies)


def test_gains_are_differences_over_shared_episodes() -> None:
    cells = [line("hwu64", "fair-01", row, right) for row, right in (("dmin", DMIN), ("lwof", LWOF))]
    found = drawn_cells(cells, "hwu64")
    gained = gains(found)
    assert set(gained) == {("lwof", 1)}
    # Each episode gains the same, so the interval of the difference has no width, whatever the episodes differ by.
    assert gained["lwof", 1].mean == pytest.approx(4) and gained["lwof", 1].half_width == pytest.approx(0, abs=1e-9)
    assert mean_interval(found["dmin", 1]).half_width > 0.005
    assert gains({("lwof", 1): [0.5, 0.6]}) == {}  # without DMIN there is nothing to compare with


def test_the_picture_is_drawn_also_where_cells_are_missing(tmp_path: Path) -> None:
    picture([], tmp_path / "empty.png")
    picture([line("hwu64", "fair-01", "dmin", DMIN), line("hwu64", "fair-01", "lwof", LWOF)], tmp_path / "some.png")
    empty, some = (imread(tmp_path / name) for name in ("empty.png", "some.png"))
    blue = [(np.abs(image[..., :3] - to_rgb(COLOURS[0])).max(axis=-1) < 0.01).sum() for image in (empty, some)]
    assert 0 < blue[0] < blue[1] - 10  # the legend alone, and a point with its bar
