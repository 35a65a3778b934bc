"""`dmin evaluate`: a trained model measured on episodes of novel classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmin.cli import options
from dmin.cli.assess import AssessmentOptions, assess_files
from dmin.cli.common import echo, numbers, plain_warnings, print_cells, print_table, rates, sizes, warn
from dmin.errors import ConfigError

if TYPE_CHECKING:
    from dmin.evaluation import EvaluationPlan
    from dmin.model import TrainedModel

HiddenFile = Annotated[Path | None, typer.Option(hidden=True)]  # options of `dmin assess`, accepted for one release
HiddenText = Annotated[str | None, typer.Option(hidden=True)]
HiddenFlag = Annotated[bool | None, typer.Option(hidden=True)]


@dataclass(frozen=True, kw_only=True)
class EpisodeOptions:
    """What `dmin evaluate RUN` was asked to do."""

    data: str | None
    split: str | None
    split_seed: int | None
    split_sizes: str | None
    way: str | None
    shot: str | None
    episodes: int
    queries: int
    part: str
    unknown_rate: str | None
    text_column: str
    label_column: str
    encoding: str
    device: str | None
    out: Path | None


def evaluate(
    run: Annotated[str | None, typer.Argument(help=options.RUN_HELP)] = None,
    data: options.Data = None,
    split: options.Split = None,
    split_seed: options.SplitSeed = None,
    split_sizes: options.SplitSizes = None,
    way: Annotated[str | None, typer.Option(help="Numbers of classes per episode. Default: 5,10.")] = None,
    shot: Annotated[str | None, typer.Option(help="Numbers of support texts per class. Default: 1,5.")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Test episodes per setting.")] = 300,
    queries: Annotated[int, typer.Option(min=1, help="Query texts per class.")] = 10,
    part: Annotated[str, typer.Option(help="Which classes of the split: test, valid or train.")] = "test",
    unknown_rate: Annotated[
        str | None, typer.Option(help="Shares of out-of-scope queries, like 0,0.15,0.5: measures refusal.")
    ] = None,
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
    device: options.Device = None,
    out: Annotated[Path | None, typer.Option(help="Default: the run's folder; RUN/DATA for other data.")] = None,
    examples: HiddenFile = None,
    test: HiddenFile = None,
    outside: HiddenFile = None,
    reject: HiddenText = None,
    names: HiddenFlag = None,
    keep_base: HiddenFlag = None,
) -> None:
    """Measure a trained model on novel classes, in episodes.

    Prints the accuracy with its 95 % confidence interval over episodes, beside the nearest prototype on the same vectors.
    Writes report.html (the hardest classes and texts), summary.json, per_class.json, a confusion picture per setting and
    the episodes; with --unknown-rate, unknown.json. To measure a classifier on your own files: dmin assess.

    \b
    Examples:
      dmin evaluate runs/mine --way 5,10 --shot 1,5
      dmin evaluate runs/mine --data other.csv --split-seed 1
      dmin evaluate runs/mine --unknown-rate 0,0.15,0.5
    """
    given = EpisodeOptions(
        data=data, split=split, split_seed=split_seed, split_sizes=split_sizes, way=way, shot=shot, episodes=episodes,
        queries=queries, part=part, unknown_rate=unknown_rate, text_column=text_column, label_column=label_column,
        encoding=encoding, device=device, out=out,
    )  # fmt: skip
    if examples is None and test is None:
        _check_episodes(run, {"--outside": outside, "--reject": reject, "--names": names, "--keep-base": keep_base})
        _measure(str(run), given)
        return
    _refer_to_assess(examples, test, given)
    assess_files(
        AssessmentOptions(
            test=Path(str(test)), examples=examples, model=run or "default", outside=outside, reject=reject, names=names,
            keep_base=bool(keep_base), text_column=text_column, label_column=label_column, encoding=encoding,
            device=device, out=out,
        )
    )  # fmt: skip


def _check_episodes(run: str | None, of_assess: dict[str, object]) -> None:
    if run is None:
        raise ConfigError("give the folder of a run (a classifier on your own files is measured by: dmin assess)")
    stray = [name for name, value in of_assess.items() if value is not None]
    if stray:
        raise ConfigError(f"{', '.join(stray)}: only dmin assess has this; leave it out, or use dmin assess")


def _refer_to_assess(examples: Path | None, test: Path | None, given: EpisodeOptions) -> None:
    """Say where measuring on files went, and refuse options that only episodes have."""
    if examples is None or test is None:
        raise ConfigError("--examples and --test belong together; use dmin assess")
    names = ("data", "split", "split_seed", "split_sizes", "way", "shot", "unknown_rate")
    stray = ["--" + name.replace("_", "-") for name in names if getattr(given, name) is not None]
    if stray:
        raise ConfigError(f"{', '.join(stray)}: only episodes have this; leave it out, or leave out --examples")
    warn("use dmin assess --examples ... --test ...; dmin evaluate --examples will be removed in a later release")


def _measure(name: str, given: EpisodeOptions) -> None:
    """Measure on episodes, write the results and print them."""
    rates_given = rates(given.unknown_rate, "--unknown-rate") if given.unknown_rate else []
    for text, option in ((given.way, "--way"), (given.shot, "--shot")):
        if text is not None:
            numbers(text, option)  # a mistake shows before anything is loaded

    from dmin.evaluation import evaluate_model
    from dmin.evaluation.unknown import evaluate_unknown

    with plain_warnings():
        model, plan, folder = _open(name, given)
        if rates_given:
            _print_unknown(evaluate_unknown(model, plan, rates_given, folder, show=True), folder)
            return
        cells = evaluate_model(model, plan, folder, show=True, warn=warn)
    print_cells(cells, f"{plan.corpus.name}, {plan.split_name}", f"{given.part} classes")
    echo(f"written: {folder / 'report.html'}, summary.json, per_class.json, confusion-*.png")


def _open(name: str, given: EpisodeOptions) -> tuple[TrainedModel, EvaluationPlan, Path]:
    """The model, what it is measured on, and where the results go."""
    from dmin.data.columns import with_columns
    from dmin.evaluation import EvaluationPlan
    from dmin.evaluation.runs import open_run
    from dmin.files import safe_name

    data = with_columns(given.data, encoding=given.encoding) if given.data else None
    opened = open_run(
        name, data=data, split=given.split, split_seed=given.split_seed, split_sizes=sizes(given.split_sizes),
        text_column=given.text_column, label_column=given.label_column, device=given.device,
    )  # fmt: skip
    model, corpus = opened.model, opened.corpus
    tied = model.method.traits.tied_to  # ATAML has one C, HATT one K
    ways = numbers(given.way, "--way") if given.way else [model.info.way] if tied == "way" else [5, 10]
    shots = numbers(given.shot, "--shot") if given.shot else [model.info.shot] if tied == "shot" else [1, 5]
    plan = EvaluationPlan(
        corpus, opened.split_name, opened.split, ways, shots, given.episodes, given.queries, given.part
    )
    return model, plan, given.out or (opened.folder if opened.own_data else opened.folder / safe_name(corpus.name))


def _print_unknown(rows: list[dict[str, float]], folder: Path) -> None:
    from rich.table import Table

    table = Table(title="out-of-scope queries", title_justify="left", title_style="bold")
    for column in ("way", "shot", "unknown", "right in all", "of known", "known refused", "unknown refused", "AUROC"):
        table.add_column(column, justify="right")
    for row in rows:
        cells = [f"{100 * row[key]:.1f} %" for key in ("right", "known_right", "known_refused", "unknown_refused")]
        area = f"{row['auroc']:.3f}" if row["auroc"] == row["auroc"] else ""
        table.add_row(f"{row['way']:.0f}", f"{row['shot']:.0f}", f"{100 * row['rate']:.0f} %", *cells, area)
    print_table(table)
    echo(f"written: {folder / 'unknown.json'}")
