"""`dmin evaluate`: a trained model on novel classes."""

from __future__ import annotations

from pathlib import Path

import typer

from dmin.cli.common import numbers, plain_warnings, print_cells, warn


def evaluate(
    run: Path = typer.Argument(help="The folder of a run, or of a model."),
    data: str | None = typer.Option(None, help="Evaluate on other data than the run was trained on."),
    split: str | None = typer.Option(None, help="A class split of the data, by name."),
    split_seed: int | None = typer.Option(None, help="Draw a class split by this seed instead."),
    split_sizes: str | None = typer.Option(None, help="Train/valid/test classes of a drawn split, like 40/12/14."),
    way: str = typer.Option("5,10", help="Numbers of classes in an episode."),
    shot: str = typer.Option("1,5", help="Numbers of support texts a class."),
    episodes: int = typer.Option(300, help="Test episodes of each setting."),
    queries: int = typer.Option(10, help="Query texts a class."),
    part: str = typer.Option("test", help="Which classes of the split: test, valid or train."),
    text_column: str = typer.Option("text", help="Column of the texts."),
    label_column: str = typer.Option("label", help="Column of the labels."),
    device: str | None = typer.Option(None, help="cpu, cuda, ... Default: the best there is."),
    out: Path | None = typer.Option(None, help="Where results go. Default: the run; RUN/DATA for other data."),
) -> None:
    """Measure a model on classes it has never seen, beside the nearest prototype on the same vectors.

    Writes summary.json (accuracy with its 95 % interval over episodes), per_class.json, a confusion picture for each
    setting, and the episodes themselves.

    \b
    dmin evaluate runs/banking77-dmin-5way1shot --way 5,10 --shot 1,5
    dmin evaluate runs/mine --data other.csv --split-seed 1
    """
    ways, shots = numbers(way, "--way"), numbers(shot, "--shot")

    from dmin.data import choose_split, load_corpus
    from dmin.evaluation import EvaluationPlan, evaluate_model
    from dmin.training import load_config, load_model

    if run.name == "model" and (run.parent / "config.yaml").is_file():
        run = run.parent
    stored = run / "config.yaml"
    trained = load_config(stored) if stored.is_file() else None
    same_data = data is None or (trained is not None and data == trained.data)
    if trained is not None and same_data:
        text_column, label_column = trained.text_column, trained.label_column
        if split is None and split_seed is None:
            split, split_seed = trained.split, trained.split_seed
    with plain_warnings():
        model = load_model(run, device=device)
        name = data or (trained.data if trained else str(model.info.trained_on.get("data", "starter")))
        corpus = load_corpus(name, text_column=text_column, label_column=label_column)
        sizes = tuple(numbers(split_sizes.replace("/", ","), "--split-sizes")) if split_sizes else None
        if sizes is None and trained is not None and same_data and split is None:
            sizes = trained.split_sizes
        split_name, classes = choose_split(corpus, split, split_seed, sizes)
        folder = out or (run if same_data else run / corpus.name)
        plan = EvaluationPlan(corpus, split_name, classes, ways, shots, episodes, queries, part)
        cells = evaluate_model(model, plan, folder, show=True, warn=warn)
    print_cells(cells, f"{corpus.name}, {split_name}", f"{part} classes")
    typer.echo(f"written: {folder / 'summary.json'}, per_class.json, confusion-*.png")
