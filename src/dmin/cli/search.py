"""`dmin search`: the settings of each method, chosen on validation classes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dmin.cli import options
from dmin.cli.common import echo, names, numbers, parse_settings, plain_warnings, print_table, warn
from dmin.errors import ConfigError, TrainingInterruptedError

if TYPE_CHECKING:
    from dmin.evaluation.search import SearchPlan

LEDGER, CHOSEN = "trials.json", "settings.yaml"


def search(
    data: Annotated[str, typer.Option(help="Data sets, separated by commas: one choice for all, and one for each.")],
    split: options.Split = None,
    methods: Annotated[str, typer.Option(help="Methods, separated by commas; see above.")] = "all",
    way: options.Ways = "5",
    shot: options.Shots = "1,5",
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials per method, at most. Default: as each declares, mostly 12.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=2, help="Validation episodes that judge a trial, per cell.")] = 150,
    train_episodes: Annotated[int, typer.Option(min=1, help="Training episodes of a trial, at most.")] = 1000,
    sweep: Annotated[
        int, typer.Option(min=0, help="Then vary one setting at a time around the choice, at most so many rounds.")
    ] = 0,
    tune: options.Tune = None,
    encoder: Annotated[str | None, typer.Option(help=options.ENCODER_HELP)] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the trials and the trainings.")] = 0,
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    out: Annotated[Path | None, typer.Option(help="Where results go. Default: runs/search-DATA.")] = None,
) -> None:
    """Choose each method's settings on validation classes.

    Every method has the same number of trials (slow ones fewer) on a small space that it declares: learning rates,
    initialisation, normalisation, its own free choices. The first trial is the default. No test class is read. With
    --sweep 3, one setting at a time is then varied around the choice; a gain beyond its 95 % confidence interval is taken
    over, and the next round begins there. Writes
    settings.yaml for dmin compare --settings, and trials.json; finished trials are kept, so an interrupted search continues
    with the same command. Needs optuna: pip install 'dmin[search]'.

    Methods: {methods}.

    \b
    Examples:
      dmin search --data banking77 --methods dmin,lwof
      dmin compare --data banking77 --methods dmin,lwof \\
        --settings runs/search-banking77/settings.yaml
    """
    from dmin.data.columns import data_stem, split_names
    from dmin.evaluation.search import SearchPlan
    from dmin.files import safe_name
    from dmin.methods import METHODS, method_class
    from dmin.training import load_config

    shared = parse_settings(settings)
    for key in shared:
        if key.partition(".")[0] in ("options", "method", "data", "split", "way", "shot", "seed"):
            raise ConfigError(f"--set {key}: the search chooses it, or it has an option of its own")
    given: dict[str, Any] = {"tune": tune, "encoder": encoder, "stage2.episodes": train_episodes}
    base = load_config(overrides={key: value for key, value in given.items() if value is not None} | shared)
    sets = tuple(split_names(data))
    chosen = list(METHODS) if methods == "all" else [method_class(name).name for name in names(methods)]
    if not chosen or not sets:
        raise ConfigError("--methods and --data name at least one each, separated by commas")
    plan = SearchPlan(
        base, sets, split, tuple(chosen), tuple(numbers(way, "--way")), tuple(numbers(shot, "--shot")), trials, episodes,
        seed,
    )  # fmt: skip
    run_search(plan, out or Path("runs") / safe_name("search-" + "-".join(map(data_stem, sets))), sweep)


def run_search(plan: SearchPlan, folder: Path, rounds: int = 0) -> None:
    """Run a search and rounds of sweeps around what it chose, write that, print it."""
    from dmin.evaluation.chosen_settings import write_settings
    from dmin.evaluation.search import Search, report
    from dmin.evaluation.sweep import sweep

    command = "dmin " + shlex.join(sys.argv[1:]) if sys.argv[1:] else "dmin search"
    with plain_warnings():
        run = Search(plan, folder / LEDGER, warn=warn, show=True)
        run.check()
        try:
            trials = run.run()
            sweeps = {method: sweep(run, method, done, rounds) for method, done in trials.items()} if rounds else {}
        except KeyboardInterrupt as error:
            raise TrainingInterruptedError(f"stopped; finished trials are kept. Continue with: {command}") from error
    found = report(trials, plan.data, {method: done.chosen for method, done in sweeps.items()})
    for row in found.values():
        row["data"] = list(plan.data)
    for method, done in sweeps.items():
        found[method]["sweep"] = done.document()
    write_settings(folder / CHOSEN, plan.about(), found)
    _print(found)
    echo(f"written: {folder / CHOSEN}, {folder / LEDGER}")


def _print(found: dict[str, dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(title="Chosen on validation classes", title_justify="left", title_style="bold")
    for name in ("method", "default", "chosen", "gain", "settings that differ from the default"):
        table.add_column(name, justify="left" if name in ("method",) or name.startswith("settings") else "right")
    for method, row in found.items():
        changed = ", ".join(f"{key}={value}" for key, value in row["changed"].items()) or "none"
        gain = f"{100 * row['gain']:+.1f} ± {100 * row['gain_ci95']:.1f}"
        table.add_row(
            method, f"{100 * row['default_accuracy']:.1f}", f"{100 * row['validation_accuracy']:.1f}", gain, changed
        )
    print_table(table, note="accuracy in %, mean over cells; the gain with its 95 % confidence interval over episodes")
    unsettled = [method for method, row in found.items() if not row.get("sweep", {}).get("settled", True)]
    if unsettled:
        echo(f"another round of --sweep may gain for: {', '.join(unsettled)}")
