"""`dmin compare`: all methods of the paper's tables, on any data."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dmin.cli import options
from dmin.cli.common import echo, numbers, parse_settings, plain_warnings, print_tables, warn
from dmin.cli.common import names as listed
from dmin.errors import ConfigError, DataError, TrainingInterruptedError, unknown_name

if TYPE_CHECKING:
    from dmin.evaluation.chosen_settings import ChosenSettings
    from dmin.evaluation.comparison import Comparison
    from dmin.evaluation.comparison_plan import ComparisonPlan
    from dmin.training import TrainConfig

DEFAULT_TEST_EPISODES = 300

# Options of this command, so that its signature has a line for each
DataSets = Annotated[str | None, typer.Option(help="Data sets, separated by commas. Default: starter.")]
Methods = Annotated[str, typer.Option(help="Methods, separated by commas; see above.")]
Episodes = Annotated[int | None, typer.Option(help="Test episodes per cell. Default: 300, or the preset's.")]
TrainEpisodes = Annotated[int | None, typer.Option(help="Training episodes per cell, at most. Default: 1000.")]
Start = Annotated[str, typer.Option(help="Where meta-learning starts: stage1, or raw (encoder as it came).")]
EncoderName = Annotated[
    str | None, typer.Option(help=f"{options.ENCODER_HELP} Or bilstm: learned from scratch (tune full).")
]
Reference = Annotated[
    str | None, typer.Option(help="The row that all others are tested against. Default: nearest, else the first.")
]
Names = Annotated[bool, typer.Option("--names", help="Give every row the class names, as one more example.")]
Chosen = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="What dmin search chose for each method. plain: the methods' own defaults, not what our search chose.",
    ),
]
FineTuneEpisodes = Annotated[
    str, typer.Option(help="Test episodes of fine-tuning with --tune full, at most, or: all. It is slow.")
]
FromRaw = Annotated[
    Path | None, typer.Option(help="Make the tables again from raw.jsonl of a comparison; nothing is trained.")
]
Out = Annotated[Path | None, typer.Option(help="Where results go. Default: runs/compare-DATA.")]


def compare(
    data: DataSets = None,
    split: options.Splits = None,
    methods: Methods = "all",
    way: options.Ways = "5,10",
    shot: options.Shots = "1,5",
    seeds: Annotated[int, typer.Option(help="Trainings per cell, with different seeds.")] = 1,
    episodes: Episodes = None,
    train_episodes: TrainEpisodes = None,
    tune: options.Tune = None,
    start: Start = "stage1",
    encoder: EncoderName = None,
    reference: Reference = None,
    names: Names = False,
    chosen: Chosen = None,
    fine_tune_episodes: FineTuneEpisodes = "50",
    preset: options.Preset = None,
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    from_raw: FromRaw = None,
    out: Out = None,
) -> None:
    """Compare methods on the same stored test episodes.

    All have the same encoder, start and budget. Prints accuracies with 95 % confidence intervals and paired tests; writes
    table.md, table.tex, table.csv, report.html and raw.jsonl (the right answers of each episode). Finished cells are kept,
    so an interrupted comparison continues with the same command. An arrow in a table means significantly better (↑) or
    worse (↓) than the reference row, which is the nearest prototype unless --reference names another.

    Methods: {methods}. NAME:raw is a method on the encoder as it came, without stage 1, beside the others.

    \b
    Examples:
      dmin compare --data banking77 --split protaugment-01
      dmin compare --data banking77,hwu64 --methods dmin,nearest --way 5
      dmin compare --from-raw runs/compare-banking77/raw.jsonl --out runs/again
    """
    if from_raw is not None:
        tables_from_raw(from_raw, out)
        return
    _check(start, seeds, episodes)
    from dmin.data.columns import data_stem, split_names
    from dmin.evaluation.comparison_plan import ComparisonPlan, standard_rows
    from dmin.files import safe_name

    given = {"tune": tune, "encoder": encoder, "stage2.episodes": train_episodes}
    base = _settings(given | file_settings(text_column, label_column, encoding), settings, preset)
    sets = split_names(data) if data else [base.data]
    rows = standard_rows(listed(methods))
    against = _reference_row(reference, [row.name for row in rows])
    count = episodes or (base.test_episodes if preset else DEFAULT_TEST_EPISODES)
    plan = ComparisonPlan(
        base, tuple(sets), tuple(listed(split)) or (None,), rows, tuple(numbers(way, "--way")),
        tuple(numbers(shot, "--shot")), seeds, count, "raw" if start == "raw" else "stage1", against, names,
        _chosen_settings(chosen), _most_fine_tuned(fine_tune_episodes),
    )  # fmt: skip
    run_plan(plan, out or Path("runs") / safe_name("compare-" + "-".join(map(data_stem, sets))), "Comparison")


def _chosen_settings(given: Path | None) -> ChosenSettings | None:
    """What --settings names; "plain" is a choice of nothing."""
    from dmin.evaluation.chosen_settings import PLAIN, ChosenSettings, read_settings

    if given is None:
        return None
    return ChosenSettings(PLAIN, {}) if str(given) == PLAIN and not given.is_file() else read_settings(given)


def _check(start: str, seeds: int, episodes: int | None) -> None:
    if start not in ("stage1", "raw"):
        raise ConfigError(f"--start {start!r}: use stage1 or raw")
    if seeds < 1 or (episodes is not None and episodes < 2):
        raise ConfigError("--seeds must be at least 1 and --episodes at least 2")


def _reference_row(given: str | None, rows: list[str]) -> str:
    """The row that the others are tested against."""
    if not rows:
        raise ConfigError("--methods names no method: give some, separated by commas, or all")
    found = given or ("nearest" if "nearest" in rows else rows[0])
    if found not in rows:
        raise unknown_name("--reference", found, rows)
    return found


def _most_fine_tuned(given: str) -> int | None:
    """Parse --fine-tune-episodes; None is all."""
    if given == "all":
        return None
    if not given.isdigit() or int(given) < 2:
        raise ConfigError(f"--fine-tune-episodes {given!r}: a number from 2 up, or all")
    return int(given)


def file_settings(text_column: str, label_column: str, encoding: str) -> dict[str, Any]:
    """The settings of how files are read, those that are not the defaults."""
    given = {
        "text_column": (text_column, "text"),
        "label_column": (label_column, "label"),
        "encoding": (encoding, "utf-8"),
    }
    return {key: value for key, (value, default) in given.items() if value != default}


def _settings(given: dict[str, Any], settings: list[str], preset: str | None) -> TrainConfig:
    """The settings that all cells share."""
    from dmin.training import load_config

    overrides = {key: value for key, value in given.items() if value is not None} | parse_settings(settings)
    refuse_fixed(overrides)
    base = load_config(None, overrides, preset)
    if base.encoder == "bilstm" and base.tune != "full":
        raise ConfigError("--encoder bilstm starts with random weights: use --tune full")
    return base


def refuse_fixed(overrides: dict[str, Any], *, one_method: bool = False) -> None:
    """Refuse settings that differ between rows or cells; options are shared where all rows are of one method."""
    own_options = {
        "data": "--data",
        "split": "--split",
        "way": "--way",
        "shot": "--shot",
        "method": "--methods",
        "seed": "--seeds",
    }
    for key in overrides:
        if key.startswith("options") and not one_method:
            raise ConfigError(f"--set {key}: options belong to one method; use dmin train, or dmin ablate for DMIN's")
        if key in own_options:
            raise ConfigError(f"--set {key}: use {own_options[key]}")


def run_plan(plan: ComparisonPlan, folder: Path, title: str) -> None:
    """Run a plan, writing its outputs after every setting; shared with `dmin ablate`."""
    from dmin.evaluation.comparison import Comparison
    from dmin.evaluation.report import write_outputs

    command = "dmin " + shlex.join(sys.argv[1:]) if sys.argv[1:] else "dmin"
    with plain_warnings():
        comparison = Comparison(plan, folder, warn=warn, show=True)
        comparison.check()
        write: Callable[[], Any] = lambda: write_outputs(comparison, folder, title, command)  # noqa: E731
        _work(comparison, write, command)
        tables = write()
    print_tables(tables)
    echo(f"written: {folder}/table.md, table.tex, table.csv, report.html, raw.jsonl")


def tables_from_raw(path: Path, out: Path | None) -> None:
    """Make the tables of a comparison from its raw results."""
    from dmin.evaluation.raw import read_raw
    from dmin.evaluation.report import write_tables

    plan, cells = read_raw(path)
    if plan is None or not cells:
        raise DataError(f"{path} holds no raw results of dmin compare: give the raw.jsonl that it wrote")
    folder = out or path.parent
    with plain_warnings():
        tables = write_tables(plan.plan(), [cell.result() for cell in cells], folder, plan.title, plan.command)
    print_tables(tables)
    echo(f"written: {folder}/table.md, table.tex, table.csv, report.html")


def _work(comparison: Comparison, write: Callable[[], Any], command: str) -> None:
    try:
        comparison.run(after_setting=write)
    except KeyboardInterrupt as error:
        write()
        left = len(comparison.missing())
        raise TrainingInterruptedError(
            f"stopped; {left} cells are left, finished ones are kept. Continue with: {command}"
        ) from error
