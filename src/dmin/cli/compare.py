"""`dmin compare`: every row of the paper's tables, on any data."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dmin.cli.common import numbers, plain_warnings, print_tables, warn
from dmin.cli.train import ENCODER_HELP, parse_settings
from dmin.errors import ConfigError, TrainingInterruptedError, unknown_name

if TYPE_CHECKING:
    from dmin.evaluation.comparison import Comparison
    from dmin.evaluation.comparison_plan import ComparisonPlan

DEFAULT_TEST_EPISODES = 300


def compare(
    data: str | None = typer.Option(None, help="Data sets, divided by commas. Default: starter."),
    split: str | None = typer.Option(None, help="Class splits, divided by commas. Default: each set's own."),
    methods: str = typer.Option("all", help="Methods, divided by commas; see below."),
    way: str = typer.Option("5,10", help="Numbers of classes in an episode."),
    shot: str = typer.Option("1,5", help="Numbers of support texts a class."),
    seeds: int = typer.Option(1, help="Trainings of each cell with different seeds."),
    episodes: int | None = typer.Option(None, help="Test episodes of each cell. Default: 300, or the preset's."),
    train_episodes: int | None = typer.Option(None, help="Training episodes of each cell, at most. Default: 1000."),
    tune: str | None = typer.Option(None, help="What of the encoder learns: full, lora, none. Default: none."),
    start: str = typer.Option("stage1", help="Where meta-learning starts: stage1 or raw (the encoder as it came)."),
    encoder: str | None = typer.Option(None, help=f"{ENCODER_HELP} Or bilstm: learned from scratch (tune full)."),
    reference: str = typer.Option("dmin", help="The row that is tested against the others."),
    names: bool = typer.Option(False, "--names", help="Give every row the classes' names, each as one more example."),
    preset: str | None = typer.Option(None, help="paper-odic or paper-rcv1: the paper's own settings."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Any setting of dmin train."),
    out: Path | None = typer.Option(None, help="Where results go. Default: runs/compare-DATA."),
) -> None:
    """Compare methods on the same encoder, start, budget and stored test episodes, with intervals and tests.

    Methods: finetune ataml relation induction hatt lwof dmin dmin-plus prototypical matching nearest logistic. Each
    finished cell is kept, so an interrupted comparison goes on with the same command. Writes table.md, table.tex,
    table.csv and report.html.

    \b
    dmin compare --data banking77 --split protaugment-01 --methods all --tune none
    dmin compare --data banking77,hwu64 --methods dmin,lwof,nearest --way 5 --shot 1
    """
    if start not in ("stage1", "raw"):
        raise ConfigError(f"--start {start!r}: use stage1 or raw")
    if seeds < 1 or (episodes is not None and episodes < 2):
        raise ConfigError("--seeds must be at least 1 and --episodes at least 2")

    from dmin.evaluation.comparison_plan import ComparisonPlan, standard_rows
    from dmin.training import load_config

    given = {"tune": tune, "encoder": encoder, "stage2.episodes": train_episodes}
    overrides = {key: value for key, value in given.items() if value is not None} | parse_settings(settings)
    _refuse_fixed(overrides)
    base = load_config(None, overrides, preset)
    sets = _list(data) or [base.data]
    rows = standard_rows(_list(methods))
    if reference != "dmin" and reference not in {row.name for row in rows}:
        raise unknown_name("--reference", reference, [row.name for row in rows])
    chosen: tuple[str | None, ...] = tuple(_list(split)) or (None,)
    count = episodes or (base.test_episodes if preset else DEFAULT_TEST_EPISODES)
    plan = ComparisonPlan(
        base, tuple(sets), chosen, rows, tuple(numbers(way, "--way")), tuple(numbers(shot, "--shot")),
        seeds, count, "raw" if start == "raw" else "stage1", reference, names,
    )  # fmt: skip
    folder = out or Path("runs") / ("compare-" + "-".join(Path(name).stem for name in sets))
    run_plan(plan, folder, "Comparison")


def _refuse_fixed(overrides: dict[str, Any]) -> None:
    """What differs from row to row or cell to cell cannot be set for all of them."""
    options = {
        "data": "--data",
        "split": "--split",
        "way": "--way",
        "shot": "--shot",
        "method": "--methods",
        "seed": "--seeds",
    }
    for key in overrides:
        if key.startswith("options"):
            raise ConfigError(f"--set {key}: options belong to one method; use dmin train, or dmin ablate for DMIN's")
        if key in options:
            raise ConfigError(f"--set {key}: use {options[key]}")


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
    typer.echo(f"written: {folder}/table.md, table.tex, table.csv, report.html")


def _work(comparison: Comparison, write: Callable[[], Any], command: str) -> None:
    try:
        comparison.run(after_setting=write)
    except KeyboardInterrupt as error:
        write()
        left = len(comparison.missing())
        raise TrainingInterruptedError(
            f"stopped; {left} cells are left, finished ones are kept. Go on with: {command}"
        ) from error


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []
