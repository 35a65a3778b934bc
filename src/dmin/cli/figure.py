"""`dmin figure`: the paper's t-SNE picture, learning curves, confusion."""

from __future__ import annotations

from pathlib import Path

import typer

from dmin.cli.common import plain_warnings
from dmin.errors import ConfigError

figure = typer.Typer(help="Pictures of a trained run.", no_args_is_help=True)
RUN = typer.Argument(help="The folder of a run.")


@figure.command()
def tsne(
    run: Path = RUN,
    data: str | None = typer.Option(None, help="Other data than the run was trained on."),
    split: str | None = typer.Option(None, help="A class split of the data, by name."),
    way: int = typer.Option(10, help="Number of classes."),
    shot: int = typer.Option(5, help="Support texts a class."),
    seed: int = typer.Option(0, help="Which support set is drawn."),
    out: Path | None = typer.Option(None, help="The picture. Default: RUN/tsne.png."),
) -> None:
    """Draw support vectors of novel classes before and after the memory module, with their separation.

    The paper shows one support set; so does this. The silhouette under each half is computed on the vectors themselves, not
    on the picture, and printed also as the mean over 100 support sets.

    \b
    dmin figure tsne runs/banking77-protaugment-01-dmin-5way1shot
    """
    from dmin.evaluation.figures import save_png
    from dmin.evaluation.tsne import memory_effect

    with plain_warnings():
        effect = memory_effect(run, data, split, way, shot, seed)
    path = out or run / "tsne.png"
    save_png(effect.figure, path)
    typer.echo(f"silhouette of this support set: before DMM {effect.before:.3f}, after {effect.after:.3f}")
    typer.echo(
        f"mean over {effect.sets} support sets: before {effect.mean_before:.3f}, after {effect.mean_after:.3f}; "
        f"after is higher in {effect.wins} of them"
    )
    typer.echo(f"written: {path}")


@figure.command()
def curves(
    run: Path = RUN, out: Path | None = typer.Option(None, help="The picture. Default: RUN/curves.png.")
) -> None:
    """Draw loss and accuracy of both stages."""
    from dmin.evaluation.figures import curves_figure, save_png
    from dmin.training.metrics import read_metrics

    metrics = read_metrics(run / "metrics.jsonl")
    if not metrics:
        raise ConfigError(f"{run} holds no metrics.jsonl: is it the folder of a run?")
    path = out or run / "curves.png"
    save_png(curves_figure(metrics), path)
    typer.echo(f"written: {path}")


@figure.command()
def confusion(
    run: Path = RUN,
    way: int = typer.Option(5, help="Number of classes in an episode."),
    shot: int = typer.Option(1, help="Support texts a class."),
    episodes: int = typer.Option(300, help="Test episodes."),
    out: Path | None = typer.Option(None, help="The picture. Default: RUN/confusion-CwayKshot.png."),
) -> None:
    """Draw which novel class is taken for which, over the test episodes of the run's own data."""
    from dmin.evaluation.figures import confusion_figure, save_png
    from dmin.evaluation.runs import run_results

    with plain_warnings():
        results, title = run_results(run, way, shot, episodes)
    path = out or run / f"confusion-{way}way-{shot}shot.png"
    save_png(confusion_figure(results.confusion, title), path)
    typer.echo(f"accuracy {results.interval.percent()} %\nwritten: {path}")
