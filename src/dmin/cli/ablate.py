"""`dmin ablate`: the paper's ablation, and our readings of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dmin.cli import options
from dmin.cli.common import names, numbers, parse_settings, warn
from dmin.cli.compare import file_settings, refuse_fixed, run_plan
from dmin.errors import unknown_name

ONE_CAPSULE = (
    "with these settings QIM has one capsule, so that with one example per class its routing changes no answer, and 1 "
    "iteration and a static memory are nearly the same row; for several: --set options.query_capsules=4"
)


def ablate(
    data: Annotated[str | None, typer.Option(help="A data set. Default: starter, or the preset's.")] = None,
    split: options.Splits = None,
    way: options.Ways = "5",
    shot: options.Shots = "1,5",
    seeds: Annotated[int, typer.Option(min=1, help="Trainings per cell, with different seeds.")] = 1,
    episodes: Annotated[
        int | None, typer.Option(min=2, help="Test episodes per cell. Default: 300, or the preset's.")
    ] = None,
    train_episodes: Annotated[
        int | None, typer.Option(min=1, help="Training episodes per cell, at most. Default: 1000, or the preset's.")
    ] = None,
    tune: options.Tune = None,
    method: Annotated[str, typer.Option(help="What is ablated: dmin or dmin-plus.")] = "dmin",
    readings: Annotated[bool, typer.Option(help="Also compare readings of the paper (dmin only).")] = True,
    preset: options.Preset = None,
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    out: Annotated[Path | None, typer.Option(help="Where results go. Default: runs/ablate-DATA.")] = None,
) -> None:
    """Measure DMIN without its parts and in other readings.

    Rows: without DMM, without QIM, 1 to 3 iterations, static memory, and each reading of the paper. Every row has the same
    encoder, budget and stored test episodes, and the options that --set options.NAME=VALUE gives, unless it is a row about
    them. Writes table.md, table.tex, table.csv, report.html and raw.jsonl; finished
    cells are kept, so an interrupted ablation continues with the same command. An arrow means significantly better (↑) or
    worse (↓) than the unchanged method.

    \b
    Examples:
      dmin ablate --data banking77 --split protaugment-01
      dmin ablate --data banking77 --method dmin-plus --no-readings
      dmin ablate --preset paper-rcv1 --seeds 3 --no-readings
      dmin ablate --data banking77 --set options.query_capsules=4
    """
    if method not in ("dmin", "dmin-plus"):
        raise unknown_name("--method", method, ("dmin", "dmin-plus"))
    from dmin.data.columns import data_stem
    from dmin.evaluation.ablation import PAPER_ROWS, PLUS_ROWS, READING_ROWS, with_options
    from dmin.evaluation.comparison_plan import ComparisonPlan
    from dmin.files import safe_name
    from dmin.training import load_config

    given: dict[str, Any] = {"data": data, "tune": tune, "stage2.episodes": train_episodes, "test_episodes": episodes}
    given |= file_settings(text_column, label_column, encoding)
    asked = parse_settings(settings)
    refuse_fixed(asked, one_method=True)
    chosen = {key: value for key, value in given.items() if value is not None} | asked
    base = load_config(None, chosen | {"method": method}, preset)
    parts = PLUS_ROWS if method == "dmin-plus" else PAPER_ROWS + (READING_ROWS if readings else ())
    rows = tuple(with_options(row, base.options) for row in parts)
    splits: tuple[str | None, ...] = tuple(names(split)) or (None,)
    plan = ComparisonPlan(
        base, (base.data,), splits, rows, tuple(numbers(way, "--way")), tuple(numbers(shot, "--shot")), seeds,
        base.test_episodes, reference=method,
    )  # fmt: skip
    if any(plan.settings_of(row).get("options.query_capsules") == 1 for row in rows):
        warn(ONE_CAPSULE)
    named = f"ablate-{data_stem(base.data)}" + ("-plus" if method == "dmin-plus" else "")
    run_plan(plan, out or Path("runs") / safe_name(named), "Ablation")
