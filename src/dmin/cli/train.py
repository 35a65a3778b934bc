"""`dmin train`: both stages, into a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dmin.cli import options
from dmin.cli.common import echo, is_main_process, parse_settings, plain_warnings, print_cells, warn
from dmin.errors import ConfigError

if TYPE_CHECKING:
    from dmin.evaluation import OwnClassesResult
    from dmin.training import TrainConfig

DATA_HELP = "A named set, a file, or a Hugging Face id; several are separated by commas. Default: starter."
PLAIN_HELP = "Begin with the method's own defaults, not with what our search chose for a frozen encoder."
EXCLUDE_HELP = "Labelled files, separated by commas, whose texts are left out of the data (test sets, for example)."

ALL_CLASSES = "all-classes"  # in the name of a folder
BASE_HELP = "Classes of the memory: names, a number, or all (default)."
ALL_CLASSES_HELP = "Hold no class back: the model answers all classes of the data at once, without examples."


def train(
    data: Annotated[str | None, typer.Option(help=DATA_HELP)] = None,
    exclude: Annotated[str | None, typer.Option(help=EXCLUDE_HELP)] = None,
    all_classes: Annotated[bool | None, typer.Option("--all-classes", help=ALL_CLASSES_HELP)] = None,
    split: options.Split = None,
    split_seed: options.SplitSeed = None,
    split_sizes: options.SplitSizes = None,
    method: Annotated[str | None, typer.Option(help="Default: dmin-plus; the network of the paper: dmin.")] = None,
    way: Annotated[int | None, typer.Option(help="Classes per episode. Default: 5.")] = None,
    shot: Annotated[int | None, typer.Option(help="Support texts per class. Default: 1.")] = None,
    queries: Annotated[int | None, typer.Option(help="Query texts per class. Default: 10.")] = None,
    tune: options.Tune = None,
    encoder: Annotated[str | None, typer.Option(help=options.ENCODER_HELP)] = None,
    pooling: Annotated[str | None, typer.Option(help="cls (the paper), mean, layers or auto. Default: auto.")] = None,
    base_classes: Annotated[str | None, typer.Option(help=BASE_HELP)] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Training episodes, at most. Default: 1000.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Episodes per update. Default: 1.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all random draws. Default: 0.")] = None,
    device: options.Device = None,
    text_column: Annotated[str | None, typer.Option(help="Column of the texts. Default: text.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column of the labels. Default: label.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of text files. Default: utf-8.")] = None,
    preset: options.Preset = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file of settings; options change them.")] = None,
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    out: Annotated[Path | None, typer.Option(help="Default: runs/DATA-SPLIT-METHOD-CwayKshot.")] = None,
    resume: Annotated[bool, typer.Option(help="Continue the run in --out after an interruption.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace a run that is in the folder.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help=PLAIN_HELP)] = False,
    show_settings: Annotated[bool, typer.Option(help="Print the settings as YAML and stop.")] = False,
) -> None:
    """Train a model: for classes to come, or (--all-classes) your own.

    Without --all-classes some classes are held back for evaluation: the model is for classes that will come with a few
    examples each. With --all-classes it answers the classes of the data at once.

    Stage 1 learns one vector per base class (the memory); stage 2 trains on episodes. With --tune none the encoder is
    frozen and training takes minutes on a CPU. The run folder gets config.yaml, metrics.jsonl, checkpoints/, model/ and
    summary.json. Ctrl-C saves a checkpoint.

    \b
    Examples:
      dmin train --data banking77 --split protaugment-01 --way 5 --shot 1
      dmin train --data my.csv --split-seed 1 --out runs/mine
      dmin train --data tickets.csv --all-classes --out runs/tickets
      dmin train --resume --out runs/mine
      torchrun --nproc_per_node 2 -m dmin train --data my.csv --tune full
    """
    given = {
        "data": data, "exclude": exclude, "all_classes": all_classes, "split": split, "split_seed": split_seed,
        "split_sizes": split_sizes, "method": method, "way": way, "shot": shot, "queries": queries, "tune": tune,
        "encoder": encoder, "pooling": pooling, "base_classes": base_classes, "stage2.episodes": episodes,
        "stage2.batch": batch, "seed": seed, "device": device, "text_column": text_column, "label_column": label_column,
        "encoding": encoding,
    }  # fmt: skip
    overrides = {key: value for key, value in given.items() if value is not None} | parse_settings(settings)
    chosen, folder = _resolve(config, overrides, preset, out, resume, searched=not plain)
    if show_settings:
        echo(chosen.to_yaml(), nl=False)
        return
    _run(chosen, folder, resume=resume, overwrite=overwrite)


def _resolve(
    config: Path | None,
    overrides: dict[str, Any],
    preset: str | None,
    out: Path | None,
    resume: bool,
    *,
    searched: bool,
) -> tuple[TrainConfig, Path]:
    """Settings and folder; a resumed run has its own settings, and those given must agree with them."""
    from dmin.training import load_config
    from dmin.training.config import differences

    if not resume:
        chosen = load_config(config, overrides, preset, searched=searched)
        return chosen, out or default_folder(chosen)
    if out is None:
        raise ConfigError("--resume needs --out, the folder of the run")
    stored = out / "config.yaml"
    if not stored.is_file():
        raise ConfigError(f"nothing to resume: {out} holds no run (no config.yaml)")
    if config is None:
        return load_config(stored, overrides), out
    # Begun with what a search chose, or without: the one that the run has.
    found = [load_config(config, overrides, preset, searched=yes) for yes in (searched, not searched)]
    return min(found, key=lambda one: len(differences(load_config(stored), one))), out


def default_folder(config: TrainConfig) -> Path:
    """runs/DATA-SPLIT-METHOD-CwayKshot, or runs/DATA-all-classes-METHOD."""
    from dmin.data.columns import data_stem
    from dmin.files import safe_name

    tuned = [] if config.tune == "none" else [config.tune]
    if config.all_classes:
        return Path("runs") / safe_name("-".join([data_stem(config.data), ALL_CLASSES, config.method, *tuned]))
    split = config.split or (f"seed{config.split_seed}" if config.split_seed is not None else "")
    parts = [data_stem(config.data), split, config.method, f"{config.way}way{config.shot}shot"]
    return Path("runs") / safe_name("-".join(part for part in [*parts, *tuned] if part))


def _run(config: TrainConfig, folder: Path, *, resume: bool, overwrite: bool) -> None:
    from dmin.evaluation import EvaluationPlan, evaluate_model, evaluate_own_classes
    from dmin.training import Trainer

    with plain_warnings():
        trainer = Trainer(config, folder, resume=resume, overwrite=overwrite, show=True, warn=warn)
        model = trainer.run()
        if not is_main_process():
            return
        if config.all_classes:
            _print_own_classes(evaluate_own_classes(model, trainer.task, folder, trainer.encode, warn=warn))
            typer.echo(f'model: {folder / "model"}   next: dmin classify --model {folder} "a text"')
            return
        if config.test_episodes:
            task = trainer.task
            plan = EvaluationPlan(
                task.corpus,
                task.split_name,
                task.split,
                [config.way],
                [config.shot],
                config.test_episodes,
                config.queries,
            )
            cells = evaluate_model(model, plan, folder, show=True, warn=warn)
            print_cells(cells, f"{task.corpus.name}, {task.split_name}")
    echo(f"model: {folder / 'model'}   next: dmin evaluate {folder}")


def _print_own_classes(found: OwnClassesResult) -> None:
    """Accuracy on held-out texts, beside logistic regression."""
    echo(f"{found.classes} classes, {found.trained} texts to learn from, {found.texts} held out")
    for title, interval in found.accuracies.items():
        echo(f"  {title}: {interval.percent()} %")
    echo("accuracy on the held-out texts with its 95 % confidence interval; the same texts chose the epoch")
