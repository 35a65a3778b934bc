"""`dmin evaluate`: a trained model on novel classes, or a classifier on a user's own files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dmin.cli.common import numbers, plain_warnings, print_cells, rates, reject_value, warn
from dmin.errors import ConfigError

if TYPE_CHECKING:
    from dmin.evaluation.assess import Assessment


def evaluate(
    run: str | None = typer.Argument(None, help="The folder of a run or model. With --examples: default if left out."),
    data: str | None = typer.Option(None, help="Evaluate on other data than the run was trained on."),
    split: str | None = typer.Option(None, help="A class split of the data, by name."),
    split_seed: int | None = typer.Option(None, help="Draw a class split by this seed instead."),
    split_sizes: str | None = typer.Option(None, help="Train/valid/test classes of a drawn split, like 40/12/14."),
    way: str | None = typer.Option(None, help="Numbers of classes in an episode. Default: 5,10."),
    shot: str | None = typer.Option(None, help="Numbers of support texts a class. Default: 1,5."),
    episodes: int = typer.Option(300, help="Test episodes of each setting."),
    queries: int = typer.Option(10, help="Query texts a class."),
    part: str = typer.Option("test", help="Which classes of the split: test, valid or train."),
    unknown_rate: str | None = typer.Option(
        None, help="Parts of the queries that belong to no class of the episode, like 0,0.15,0.5: measures refusal."
    ),
    examples: Path | None = typer.Option(
        None, help="Your own examples, all classes at once; with --test, in place of episodes."
    ),
    test: Path | None = typer.Option(
        None, help="Labelled texts to answer; labels not among the examples are strangers."
    ),
    outside: Path | None = typer.Option(None, help="More texts that belong nowhere (a column text)."),
    reject: str | None = typer.Option(None, help="With --examples: refuse texts below this cosine, or: auto."),
    names: bool | None = typer.Option(None, help="With --examples: let class names take part. Default: where words."),
    keep_base: bool = typer.Option(False, help="With --examples: answer the model's base classes too."),
    text_column: str = typer.Option("text", help="Column of the texts."),
    label_column: str = typer.Option("label", help="Column of the labels."),
    device: str | None = typer.Option(None, help="cpu, cuda, ... Default: the best there is."),
    out: Path | None = typer.Option(None, help="Where results go. Default: the run; RUN/DATA for other data."),
) -> None:
    """Measure a model on classes it has never seen, beside the nearest prototype on the same vectors.

    On episodes: writes summary.json (accuracy with its 95 % interval over episodes), per_class.json, a confusion picture
    for each setting, and the episodes themselves. On your own files (--examples, --test): accuracy, macro-F1, each class,
    what is mixed up, calibration and refusal, beside nearest prototype and logistic regression.

    \b
    dmin evaluate runs/banking77-dmin-5way1shot --way 5,10 --shot 1,5
    dmin evaluate runs/mine --data other.csv --split-seed 1
    dmin evaluate runs/mine --unknown-rate 0,0.15,0.5
    dmin evaluate --examples train.jsonl --test test.jsonl --reject auto
    """
    if (examples is None) != (test is None):
        raise ConfigError("--examples and --test belong together")
    with plain_warnings():
        if examples is not None and test is not None:
            given = {
                "--data": data, "--split": split, "--split-seed": split_seed, "--split-sizes": split_sizes, "--way": way,
                "--shot": shot, "--unknown-rate": unknown_rate,
            }  # fmt: skip
            stray = [name for name, value in given.items() if value is not None]
            if stray:
                raise ConfigError(f"{', '.join(stray)} belong to episodes: leave out, or leave out --examples")
            columns = (text_column, label_column)
            _own_files(run or "default", examples, test, outside, columns, reject, names, keep_base, device, out)
            return
        if run is None:
            raise ConfigError("give the folder of a run, or --examples and --test")
        if outside is not None or reject is not None or names is not None or keep_base:
            raise ConfigError("--outside, --reject, --names and --keep-base belong to --examples")
        _episodes(
            run, data, split, split_seed, split_sizes, way, shot, episodes, queries, part,
            unknown_rate, text_column, label_column, device, out,
        )  # fmt: skip


def _episodes(
    name: str,
    data: str | None,
    split: str | None,
    split_seed: int | None,
    split_sizes: str | None,
    way: str | None,
    shot: str | None,
    episodes: int,
    queries: int,
    part: str,
    unknown_rate: str | None,
    text_column: str,
    label_column: str,
    device: str | None,
    out: Path | None,
) -> None:
    ways = numbers(way, "--way") if way else None
    shots = numbers(shot, "--shot") if shot else None
    parts = rates(unknown_rate, "--unknown-rate") if unknown_rate else []

    from dmin.evaluation import EvaluationPlan, evaluate_model
    from dmin.evaluation.runs import open_run
    from dmin.evaluation.unknown import evaluate_unknown

    opened = open_run(
        name, data=data, split=split, split_seed=split_seed, text_column=text_column, label_column=label_column,
        split_sizes=numbers(split_sizes.replace("/", ","), "--split-sizes") if split_sizes else None, device=device,
    )  # fmt: skip
    model, corpus, split_name, classes = opened.model, opened.corpus, opened.split_name, opened.split
    folder = out or (opened.folder if opened.own_data else opened.folder / corpus.name)
    tied = model.method.tied_to  # ATAML knows one C, HATT one K
    ways = ways or ([model.info.way] if tied == "way" else [5, 10])
    shots = shots or ([model.info.shot] if tied == "shot" else [1, 5])
    plan = EvaluationPlan(corpus, split_name, classes, ways, shots, episodes, queries, part)
    if parts:
        _print_unknown(evaluate_unknown(model, plan, parts, folder, show=True), folder)
        return
    cells = evaluate_model(model, plan, folder, show=True, warn=warn)
    print_cells(cells, f"{corpus.name}, {split_name}", f"{part} classes")
    typer.echo(f"written: {folder / 'summary.json'}, per_class.json, confusion-*.png")


def _print_unknown(rows: list[dict[str, float]], folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="queries that belong nowhere", title_justify="left", title_style="bold")
    for column in ("way", "shot", "unknown", "right in all", "of known", "known refused", "unknown refused", "AUROC"):
        table.add_column(column, justify="right")
    for row in rows:
        cells = [f"{100 * row[key]:.1f} %" for key in ("right", "known_right", "known_refused", "unknown_refused")]
        area = f"{row['auroc']:.3f}" if row["auroc"] == row["auroc"] else ""
        table.add_row(f"{row['way']:.0f}", f"{row['shot']:.0f}", f"{100 * row['rate']:.0f} %", *cells, area)
    Console(width=max(100, Console().width)).print(table)
    typer.echo(f"written: {folder / 'unknown.json'}")


def _own_files(
    model: str, examples: Path, test: Path, outside: Path | None, columns: tuple[str, str], reject: str | None,
    names: bool | None, keep_base: bool, device: str | None, out: Path | None,
) -> None:  # fmt: skip
    from dmin.bulk.files import read_texts
    from dmin.classifier import FewShotClassifier
    from dmin.data.readers import read_corpus
    from dmin.evaluation.assess import assess

    text, label = columns
    support = read_corpus(examples, text_column=text, label_column=label)
    asked = read_corpus(test, text_column=text, label_column=label)
    strangers = [record[text] for _, record in read_texts(outside, text)] if outside else []
    strangers = [words for words in strangers if isinstance(words, str) and words.strip()]
    classifier = FewShotClassifier(
        model,
        use_names="auto" if names is None else names,
        keep_base=keep_base,
        reject=reject_value(reject),
        unknown_label="(refused)",
        device=device,
    )
    classifier.fit(support.examples)
    found = assess(classifier, asked, strangers)
    folder = out or Path("runs") / f"{examples.stem}-{test.stem}"
    found.write(folder)
    _print_assessment(found)
    typer.echo(f"written: {folder / 'assessment.json'}, reliability.png, confusion.png")


def _print_assessment(found: Assessment) -> None:
    from dmin.evaluation.quality import harmonic_mean
    from dmin.methods import method_class

    typer.echo(
        f"{found.classes} classes, {found.examples} examples, {found.texts} texts answered in {found.seconds:.1f} s"
    )
    typer.echo(f"accuracy {100 * found.quality.accuracy:.1f} %, macro-F1 {100 * found.quality.macro_f1:.1f} %")
    if found.unrefused != found.quality.accuracy:
        typer.echo(f"  if nothing were refused: {100 * found.unrefused:.1f} %")
    for name, accuracy in found.beside.items():
        typer.echo(f"  beside it, {method_class(name).title}: {100 * accuracy:.1f} %")
    typer.echo(
        f"probabilities: expected calibration error {100 * found.reliability.error:.1f} % "
        f"(before calibration {100 * found.uncalibrated.error:.1f} %)"
    )
    if found.base_and_novel:
        base, novel = found.base_and_novel
        typer.echo(
            f"texts of base classes {100 * base:.1f} %, of your own {100 * novel:.1f} %, harmonic mean "
            f"{100 * harmonic_mean(base, novel):.1f} %"
        )
    if found.separation:
        apart = found.separation
        typer.echo(
            f"{apart.strangers} texts belong nowhere: AUROC {apart.auroc:.3f}, {100 * apart.fpr95:.1f} % of them accepted "
            "when 95 % of the others are"
        )
    if found.refused and found.threshold is not None:
        belongs, strange = found.refused
        typer.echo(
            f"  refused below {found.threshold:.2f}: {100 * strange:.1f} % of them, {100 * belongs:.1f} % of the others"
        )
    typer.echo("hardest classes:")
    for label, row in list(found.quality.classes.items())[:5]:
        typer.echo(f"  {label}: F1 {100 * row.f1:.0f} %, {100 * row.recall:.0f} % of its {row.texts} texts found")
    mixed = [(true, answer, n) for (true, answer), n in found.quality.confusion.most_common() if true != answer][:5]
    if mixed:
        typer.echo("most often mixed up:")
        for true, answer, count in mixed:
            typer.echo(f"  {true} answered as {answer}: {count}")
