"""`dmin ablate`: the paper's ablation and our readings of it."""

from __future__ import annotations

from pathlib import Path

import typer

from dmin.cli.common import numbers
from dmin.cli.compare import run_plan
from dmin.cli.train import parse_settings
from dmin.errors import unknown_name


def ablate(
    data: str = typer.Option("starter", help="A data set."),
    split: str | None = typer.Option(None, help="Class splits of the data, by name, with commas between."),
    way: str = typer.Option("5", help="Numbers of classes in an episode."),
    shot: str = typer.Option("1,5", help="Numbers of support texts a class."),
    episodes: int = typer.Option(300, help="Test episodes of each cell."),
    train_episodes: int = typer.Option(1000, help="Training episodes of each cell, at most."),
    tune: str = typer.Option("none", help="What of the encoder learns: full, lora, none."),
    method: str = typer.Option("dmin", help="What is taken apart: dmin or dmin-plus."),
    readings: bool = typer.Option(True, help="Also the rows on how the paper can be read (of dmin)."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Any setting of dmin train."),
    out: Path | None = typer.Option(None, help="Where results go. Default: runs/ablate-DATA."),
) -> None:
    """Take DMIN apart: without DMM, without QIM, 1 to 3 iterations, static memory; and each reading of the paper.

    \b
    dmin ablate --data banking77 --split protaugment-01
    dmin ablate --data banking77 --split protaugment-01 --method dmin-plus
    """
    if method not in ("dmin", "dmin-plus"):
        raise unknown_name("--method", method, ("dmin", "dmin-plus"))
    from dmin.evaluation.ablation import PAPER_ROWS, PLUS_ROWS, READING_ROWS
    from dmin.evaluation.comparison_plan import ComparisonPlan
    from dmin.training import load_config

    base = load_config(overrides={"tune": tune, "stage2.episodes": train_episodes, **parse_settings(settings)})
    rows = PLUS_ROWS if method == "dmin-plus" else PAPER_ROWS + (READING_ROWS if readings else ())
    splits: tuple[str | None, ...] = tuple(split.split(",")) if split else (None,)
    plan = ComparisonPlan(
        base, (data,), splits, rows, tuple(numbers(way, "--way")), tuple(numbers(shot, "--shot")), 1, episodes,
        reference=method,
    )  # fmt: skip
    named = f"ablate-{Path(data).stem}" + ("-plus" if method == "dmin-plus" else "")
    run_plan(plan, out or Path("runs") / named, "Ablation")
