"""`dmin figure`: the paper's t-SNE picture, learning curves, confusion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dmin.cli import options
from dmin.cli.common import echo, plain_warnings
from dmin.errors import ConfigError

figure = typer.Typer(help="Draw pictures of a trained run: tsne, curves, confusion.", no_args_is_help=True)


@figure.command()
def tsne(
    run: options.RunFolder,
    data: options.Data = None,
    split: options.Split = None,
    way: Annotated[int, typer.Option(min=2, help="Number of classes.")] = 10,
    shot: Annotated[int, typer.Option(min=1, help="Support texts per class.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Which support set is drawn.")] = 0,
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
    out: Annotated[Path | None, typer.Option(help="The picture. Default: RUN/tsne.png.")] = None,
) -> None:
    """Draw support vectors before and after the memory (t-SNE).

    Like the figure of the paper, it shows one support set of novel classes. Prints the silhouette before and after,
    computed on the vectors themselves (not on the picture), for this support set and as the mean over 100 of them.

    \b
    Examples:
      dmin figure tsne runs/mine
      dmin figure tsne runs/mine --data hwu64 --way 5 --out tsne.png
    """
    from dmin.data.columns import with_columns
    from dmin.evaluation.figures import save_png
    from dmin.evaluation.tsne import memory_effect

    with plain_warnings():
        given = with_columns(data, text_column, label_column, encoding) if data else None
        effect = memory_effect(run, given, split, way, shot, seed)
    path = out or run / "tsne.png"
    save_png(effect.figure, path)
    echo(f"silhouette of this support set: before DMM {effect.before:.3f}, after {effect.after:.3f}")
    echo(
        f"mean over {effect.sets} support sets: before {effect.mean_before:.3f}, after {effect.mean_after:.3f}; "
        f"after is higher in {effect.wins} of them"
    )
    echo(f"written: {path}")


@figure.command()
def curves(
    run: options.RunFolder,
    out: Annotated[Path | None, typer.Option(help="The picture. Default: RUN/curves.png.")] = None,
) -> None:
    """Draw loss and accuracy of both training stages.

    Writes one picture with the figures of metrics.jsonl.

    \b
    Examples:
      dmin figure curves runs/mine
    """
    from dmin.evaluation.figures import curves_figure, save_png
    from dmin.training.metrics import read_metrics

    metrics = read_metrics(run / "metrics.jsonl")
    if not metrics:
        raise ConfigError(f"{run} holds no metrics.jsonl: is it the folder of a run?")
    path = out or run / "curves.png"
    save_png(curves_figure(metrics), path)
    echo(f"written: {path}")


@figure.command()
def confusion(
    run: options.RunFolder,
    way: Annotated[int, typer.Option(min=2, help="Number of classes per episode.")] = 5,
    shot: Annotated[int, typer.Option(min=1, help="Support texts per class.")] = 1,
    episodes: Annotated[int, typer.Option(min=1, help="Test episodes.")] = 300,
    out: Annotated[Path | None, typer.Option(help="The picture. Default: RUN/confusion-Cway-Kshot.png.")] = None,
) -> None:
    """Draw which novel classes are confused, over test episodes.

    Uses the run's own data; prints the accuracy with its 95 % confidence interval.

    \b
    Examples:
      dmin figure confusion runs/mine --way 5 --shot 1
    """
    from dmin.evaluation.figures import confusion_figure, save_png
    from dmin.evaluation.runs import run_results

    with plain_warnings():
        results, title = run_results(run, way, shot, episodes)
    path = out or run / f"confusion-{way}way-{shot}shot.png"
    save_png(confusion_figure(results.confusion, title), path)
    echo(f"accuracy {results.interval.percent()} %\nwritten: {path}")
