"""`dmin train`: both stages, into a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import yaml

from dmin.cli.common import is_main_process, plain_warnings, print_cells, warn
from dmin.errors import ConfigError

if TYPE_CHECKING:
    from dmin.training import TrainConfig

ENCODER_HELP = "default (embedded), a folder, or a Hugging Face id."


def train(
    data: str | None = typer.Option(
        None, help="starter, banking77, ..., a file, or a Hugging Face id; several by commas. Default: starter."
    ),
    exclude: str | None = typer.Option(
        None, help="Labelled files, divided by commas, whose texts are left out of the data (test sets, for example)."
    ),
    split: str | None = typer.Option(None, help="A class split of the data, by name (see: dmin data info NAME)."),
    split_seed: int | None = typer.Option(None, help="Draw a class split by this seed instead."),
    split_sizes: str | None = typer.Option(None, help="Train/valid/test classes of a drawn split, like 40/12/14."),
    method: str | None = typer.Option(None, help="What to train. Default: dmin-plus; the paper's network: dmin."),
    way: int | None = typer.Option(None, help="Classes in an episode. Default: 5."),
    shot: int | None = typer.Option(None, help="Support texts a class. Default: 1."),
    queries: int | None = typer.Option(None, help="Query texts a class. Default: 10."),
    tune: str | None = typer.Option(
        None, help="What of the encoder learns: full (the paper), lora, none. Default: none."
    ),
    encoder: str | None = typer.Option(None, help=ENCODER_HELP),
    pooling: str | None = typer.Option(None, help="cls (the paper), mean, layers, or auto. Default: auto."),
    base_classes: str | None = typer.Option(
        None, help="Classes of the memory: all, a number, or names,by,comma. [all]"
    ),
    episodes: int | None = typer.Option(None, help="Training episodes of stage 2, at most. Default: 1000."),
    batch: int | None = typer.Option(None, help="Episodes in an update. Default: 1."),
    seed: int | None = typer.Option(None, help="Of everything drawn at random. Default: 0."),
    device: str | None = typer.Option(None, help="cpu, cuda, ... Default: the best there is."),
    text_column: str | None = typer.Option(None, help="Column of the texts. Default: text."),
    label_column: str | None = typer.Option(None, help="Column of the labels. Default: label."),
    preset: str | None = typer.Option(None, help="paper-odic or paper-rcv1: the paper's own settings."),
    config: Path | None = typer.Option(None, help="A YAML file of settings; the options above change it."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Any setting, like stage2.patience=5."),
    out: Path | None = typer.Option(None, help="The run folder. Default: runs/DATA-SPLIT-METHOD-CwayKshot."),
    resume: bool = typer.Option(False, help="Go on with the run in --out after an interruption."),
    overwrite: bool = typer.Option(False, help="Begin anew in a folder that holds a run."),
    show_settings: bool = typer.Option(False, help="Print the settings as YAML and stop."),
) -> None:
    """Train a model in two stages, then evaluate it on classes it has never seen.

    Stage 1 learns a vector for each base class (the memory); stage 2 learns to learn, on episodes. With --tune none the
    encoder stays as it is and training takes minutes on a CPU. Everything goes to a run folder; Ctrl-C saves.

    \b
    dmin train --data banking77 --split protaugment-01 --way 5 --shot 1
    dmin train --data my.csv --split-seed 1 --tune full --out runs/mine
    dmin train --resume --out runs/mine
    torchrun --nproc_per_node 2 -m dmin train --data my.csv --tune full
    """
    given = {
        "data": data, "exclude": exclude, "split": split, "split_seed": split_seed, "split_sizes": split_sizes,
        "method": method, "way": way, "shot": shot, "queries": queries, "tune": tune, "encoder": encoder,
        "pooling": pooling, "base_classes": base_classes, "stage2.episodes": episodes, "stage2.batch": batch, "seed": seed,
        "device": device, "text_column": text_column, "label_column": label_column,
    }  # fmt: skip
    overrides = {key: value for key, value in given.items() if value is not None} | parse_settings(settings)
    chosen, folder = _resolve(config, overrides, preset, out, resume)
    if show_settings:
        typer.echo(chosen.to_yaml(), nl=False)
        return
    _run(chosen, folder, resume=resume, overwrite=overwrite)


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """`["stage2.patience=5"]` -> `{"stage2.patience": 5}`; values are read as YAML."""
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting!r}: KEY=VALUE is needed, like stage2.patience=5")
        parsed[key.strip()] = yaml.safe_load(value)
    return parsed


def _resolve(
    config: Path | None, overrides: dict[str, Any], preset: str | None, out: Path | None, resume: bool
) -> tuple[TrainConfig, Path]:
    """Settings and folder; a resumed run brings its own settings, and those given must agree with them."""
    from dmin.training import load_config

    if not resume:
        chosen = load_config(config, overrides, preset)
        return chosen, out or default_folder(chosen)
    if out is None:
        raise ConfigError("--resume needs --out, the folder of the run")
    stored = out / "config.yaml"
    if not stored.is_file():
        raise ConfigError(f"nothing to resume: {out} holds no run (no config.yaml)")
    return load_config(config or stored, overrides, preset if config else None), out


def default_folder(config: TrainConfig) -> Path:
    """runs/DATA-SPLIT-METHOD-CwayKshot."""
    split = config.split or (f"seed{config.split_seed}" if config.split_seed is not None else "")
    parts = [Path(config.data).stem, split, config.method, f"{config.way}way{config.shot}shot"]
    tuned = [] if config.tune == "none" else [config.tune]
    return Path("runs") / "-".join(part for part in [*parts, *tuned] if part)


def _run(config: TrainConfig, folder: Path, *, resume: bool, overwrite: bool) -> None:
    from dmin.evaluation import EvaluationPlan, evaluate_model
    from dmin.training import Trainer

    with plain_warnings():
        trainer = Trainer(config, folder, resume=resume, overwrite=overwrite, show=True, warn=warn)
        model = trainer.run()
        if not is_main_process():
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
    typer.echo(f"model: {folder / 'model'}   next: dmin evaluate {folder}")
