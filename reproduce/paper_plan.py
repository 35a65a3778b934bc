"""The cells of the paper's table: which rows on which class splits of which sets, and which of them are possible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dmin.data.splits import STORED_SPLITS, read_splits
from dmin.evaluation.chosen_settings import ChosenSettings, read_settings
from dmin.evaluation.comparison_plan import ComparisonPlan, PreparedJob, TableRow
from dmin.training import load_config
from reproduce.paper_rows import ROWS, Row
from reproduce.paper_unlabelled import with_graph

FOLDER = Path(__file__).parent
CHOSEN = FOLDER / "search" / "paper" / "settings.yaml"  # what `dmin search` chose on validation classes
EPISODES = 300
SETTINGS = ((5, 1), (5, 5), (10, 1), (10, 5))  # way, shot
INTENTS, OTHERS = (
    ("banking77", "clinc150", "hwu64", "liu54"),
    ("stackoverflow", "debian", "goemotions", "fortunes", "news20"),
)
SETS = (*INTENTS, *OTHERS)
# Train, valid and test classes of the splits that come with the data, so that the plan needs no data.
PUBLISHED: dict[str, dict[str, tuple[int, int, int]]] = {
    "banking77": {"protaugment-01": (25, 25, 27), "protaugment-02": (25, 25, 27)},
    "clinc150": {"protaugment-01": (50, 50, 50), "protaugment-02": (50, 50, 50)},
    "hwu64": {"protaugment-01": (16, 23, 25), "protaugment-02": (30, 15, 19)},
    "liu54": {"protaugment-01": (18, 18, 18), "protaugment-02": (18, 18, 18)},
    "stackoverflow": {"own-01": (9, 4, 7), "own-02": (9, 4, 7)},
    "debian": {"own-01": (22, 8, 13), "own-02": (22, 8, 13)},
    "goemotions": {"own-01": (14, 6, 8), "own-02": (14, 6, 8)},
    "fortunes": {"own-01": (19, 6, 14), "own-02": (19, 6, 14)},
    "news20": {"own-01": (8, 5, 7), "own-02": (8, 5, 7)},
}
FAIR_FIRST = 2  # fair splits that are filled before the first published one
# Two that stand on no other split, and the one that the paper puts above them
ON_PUBLISHED = ("finetune", "ataml", "relation")
# What the comparison needs, in the order of filling; the places are those of `_tier`. More splits sharpen it.
NEEDED = (
    "all rows, two fair splits, 5-way",
    "DMIN without its parts (searched settings, and as written), one fair split, 5-way",
    "all rows, two fair splits, 10-way",
    "ATAML, fine-tuning and Rel. Net, one published split",
    "rows with names or unlabelled queries, two fair splits, 5-way",
    "second and third training of cheap rows, one fair split, 5-way",
    "encoder tuned in both stages, one published split, 5-way",
    "two layers for all rows, DMIN-plus without its parts, one fair split, 5-way",
    "the other rows, one published split, 5-way",
    "other readings of the paper, one fair split, 5-way",
    "ATAML, fine-tuning and Rel. Net, a second published split, 5-way",
)
SEEDS = 3
SEEDED = ("dmin", "lwof", "dmin-plus", "prototypical", "matching")  # cheap enough for three trainings of a cell
MAX_LENGTH = {"news20": 256, "fortunes": 128}  # tokens; the texts of the other sets have fewer than 64
# The paper's protocol, with as many training episodes as two cores allow.
TUNED_BASE = {"tune": "full", "pooling": "cls", "stage1": {"epochs": 2}, "stage2": {"episodes": 200}}
TUNED_SPLITS = {  # with their numbers of classes
    "banking77": ("protaugment-01", (25, 25, 27)),
    "hwu64": ("protaugment-01", (16, 23, 25)),
    "clinc150": ("base100", (100, 20, 30)),
}


@dataclass(frozen=True)
class CellPlan:
    """One cell to fill, with its settings and key; `rank` is its place in the order of filling."""

    prepared: PreparedJob
    row: Row
    rank: tuple[int, int, int, int]

    @property
    def needed(self) -> bool:
        """Is it one of those that the comparison needs?"""
        return self.rank[0] < len(NEEDED)

    @property
    def identity(self) -> tuple[str, str, str, int, int, int]:
        """What the cell is, whatever code and settings fill it."""
        job = self.prepared.job
        return job.data, str(job.split), job.row.name, job.way, job.shot, job.seed


def splits_of(data: str) -> dict[str, tuple[int, int, int]]:
    """Every split of a set that the table uses, with its numbers of classes, the ones to fill first in front."""
    fair = {
        name: (len(split.train), len(split.valid), len(split.test))
        for name, split in read_splits(STORED_SPLITS / f"{data}.json").items()
    }
    (first, sizes), *later = PUBLISHED[data].items()
    names = list(fair)
    return {
        **{name: fair[name] for name in names[:FAIR_FIRST]},
        first: sizes,
        **{name: fair[name] for name in names[FAIR_FIRST:]},
        **dict(later),
    }


def is_published(split: str) -> bool:
    """Does the split come with the data?"""
    return not split.startswith("fair")


def possible(row: Row, sizes: tuple[int, int, int], way: int) -> bool:
    """Are there enough classes to train, validate (ATAML has a slot per class) and test at this way?"""
    train, valid, test = sizes
    return test >= way and train > way and (row.table_row.method != "ataml" or valid >= way)


def chosen_settings(path: Path = CHOSEN) -> ChosenSettings:
    """What the search chose for each method; nothing before there was a search."""
    return read_settings(path) if path.is_file() else ChosenSettings("none", {})


def plan_of(data: str, split: str, rows: tuple[TableRow, ...], setup: str, seeds: int = 1) -> ComparisonPlan:
    """The comparison that a group of cells belongs to: one encoder and the same vectors for all rows."""
    base: dict[str, Any] = {
        "data": data,
        "encoder": "minilm",
        "pooling": "mean",
        "max_length": MAX_LENGTH.get(data, 64),
        "tune": "none",
    }
    if setup == "tuned":
        base |= TUNED_BASE
    if setup == "layers":
        base["pooling"] = "layers"
    ways, shots = (tuple(sorted(set(values))) for values in zip(*SETTINGS, strict=True))
    return ComparisonPlan(
        load_config(overrides=base),
        (data,),
        (split,),
        rows,
        ways,
        shots,
        seeds,
        EPISODES,
        reference="dmin",
        names=setup == "names",
        chosen=ChosenSettings("none", {}),  # each row brings its own
    )


def cells() -> list[CellPlan]:
    """All cells that can be filled, in the order of filling."""
    chosen = chosen_settings()
    found = [cell for data in SETS for split in splits_of(data) for cell in _cells(data, split, chosen)]
    found += [cell for data in TUNED_SPLITS for cell in _tuned_cells(data, chosen)]
    return sorted(found, key=lambda cell: cell.rank)


def _cells(data: str, split: str, chosen: ChosenSettings) -> Iterator[CellPlan]:
    sizes = splits_of(data)
    place = list(sizes).index(split)
    published = list(PUBLISHED[data]).index(split) if is_published(split) else None
    for setup in ("plain", "names", "unlabelled", "layers"):
        mine = {
            name: row
            for name, row in ROWS.items()
            if row.setup == setup and (is_published(split) or not row.published_only)
        }
        searched = tuple(_with_settings(row.table_row, chosen) for row in mine.values())
        seeds = SEEDS if setup == "plain" and place == 0 else 1
        for prepared in plan_of(data, split, searched, setup, seeds).prepare():
            job = prepared.job
            row = mine[job.row.name]
            tier = _tier(row, job.way, job.seed, place, published)
            planned = not job.seed or (row.name in SEEDED and job.way == 5)
            if tier is not None and planned and possible(row, sizes[split], job.way):
                rank = (tier, place, SETS.index(data), row.cost)
                yield CellPlan(with_graph(prepared) if setup == "unlabelled" else prepared, row, rank)


def _tuned_cells(data: str, chosen: ChosenSettings) -> Iterator[CellPlan]:
    """5-way cells with the encoder tuned; settings as searched with the frozen one, because no search is affordable."""
    split, _ = TUNED_SPLITS[data]
    mine = [row for row in ROWS.values() if row.part == "tuned"]
    searched = tuple(_with_settings(row.table_row, chosen) for row in mine)
    for prepared in plan_of(data, split, searched, "tuned").prepare():
        job = prepared.job
        row = ROWS[job.row.name]
        tier = _tier(row, job.way)
        if job.way == 5 and tier is not None:
            rank = (tier, list(TUNED_SPLITS).index(data), job.shot, mine.index(row))  # a set shares its long stage 1
            yield CellPlan(prepared, row, rank)


def _tier(row: Row, way: int, seed: int = 0, place: int = 0, published: int | None = None) -> int | None:
    """The place in `NEEDED`, and after it what sharpens the table; in a tier set by set, which share stage 1.

    Args:
        row: of the table.
        way: classes of an episode.
        seed: of the training.
        place: of the split among those of its set.
        published: its place among the set's published splits, if it is one.

    Returns:
        None: not planned.
    """
    main, first = row.part == "main" and not seed, way == 5 and place == 0
    fair, on_published = place < FAIR_FIRST, row.name in ON_PUBLISHED
    order = (
        main and way == 5 and fair,
        row.part in ("ablation", "written") and first,
        main and fair,
        on_published and published == 0,
        row.part in ("names", "unlabelled") and way == 5 and fair,
        seed > 0,
        row.part == "tuned",
        row.part in ("layers", "plus") and first,
        main and way == 5 and published == 0,
        row.part == "readings" and first,
        on_published and way == 5 and published == 1,
        main and way == 5 and published == 1,  # the first that is not in NEEDED
        main and published == 0,
        row.part in ("ablation", "written") and way == 5 and fair,
        main,
    )
    return order.index(True) if any(order) else None


def _with_settings(row: TableRow, chosen: ChosenSettings) -> TableRow:
    settings = chosen.overall.get(row.method, {})  # one choice for all sets, made on four of them
    # What an ablation row changes stays as it says, and all rows keep the same vectors.
    own = {"pooling", *(f"options.{name}" for name in row.options)}
    return replace(row, settings={key: value for key, value in settings.items() if key not in own})
