"""`dmin classify`: texts, files or a stream, from a file of examples."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from dmin.cli.common import plain_warnings, reject_value
from dmin.errors import ConfigError


class Engine(StrEnum):
    """What runs the classifier over files."""

    local = "local"
    ray = "ray"


def classify(
    texts: list[str] = typer.Argument(None, metavar="TEXT...", help="Texts to classify."),
    examples: Path | None = typer.Option(
        None, help="Examples: YAML or JSON {label: [texts]}, or CSV, TSV, JSONL, Parquet with text and label."
    ),
    model: str = typer.Option(
        "default",
        help="default, nearest, the folder of a run, a Hugging Face id, or a saved classifier (no --examples).",
    ),
    source: str | None = typer.Option(
        None,
        "--input",
        help="A CSV, TSV, JSONL, Parquet or text file; - is standard input. With --engine ray: a folder, a quoted pattern "
        "('folder/*.parquet') or a file, here or on s3://, gs://, ...",
    ),
    output: str | None = typer.Option(
        None,
        help="A .jsonl, .csv, .tsv or .parquet file; without one, standard output as JSONL. With --engine ray: a folder.",
    ),
    engine: Engine = typer.Option(Engine.local, help="local: this process. ray: many files on many cores or machines."),
    workers: int | None = typer.Option(
        None,
        help="With --engine ray: workers, each with one loaded model and one thread. "
        "Default: as many as the cluster has cores (on cuda: GPUs), at most one a file.",
    ),
    text_column: str = typer.Option("text", help="Column of the texts in --input."),
    label_column: str = typer.Option("label", help="Column of the labels in --examples, whose texts are in: text."),
    top_k: int = typer.Option(1, help="Also the k most similar classes."),
    explain: bool = typer.Option(False, help="Also the examples that decided."),
    reject: str | None = typer.Option(None, help="Refuse texts below this cosine, or: auto."),
    unknown: str = typer.Option("unknown", help="The label of a refused text."),
    names: bool | None = typer.Option(None, help="Let class names take part. Default: where labels are words."),
    resume: bool = typer.Option(False, help="Go on with an interrupted --output (--engine ray always does)."),
    device: str | None = typer.Option(None, help="cpu, cuda, ... Default: the best there is."),
    backend: str = typer.Option("torch", help="What encodes: torch, onnx or onnx-int8 (faster on a CPU)."),
) -> None:
    """Classify texts from a handful of examples of each class, without training.

    \b
    dmin classify --examples intents.yaml "where is my parcel?"
    dmin classify --examples intents.yaml --input mails.csv --output answers.csv --reject auto
    cat texts.txt | dmin classify --examples intents.yaml --input - > answers.jsonl
    dmin classify --examples intents.yaml --engine ray --input 'mails/*.parquet' --output answers
    """
    if bool(texts) == bool(source):
        raise ConfigError("give either texts or --input FILE")
    if resume and not output:
        raise ConfigError("--resume needs --output")
    if top_k < 1:
        raise ConfigError(f"--top-k {top_k}: at least 1 is needed")
    _check_engine(engine, source, output, workers)
    from dmin.bulk.fields import answer_fields

    with plain_warnings():
        here = None if engine is Engine.ray else device  # the device of --engine ray is the workers'
        classifier = _classifier(examples, model, label_column, names, reject, unknown, here, backend)
        if texts:
            for text in texts:
                typer.echo(
                    str(classifier.explain(text))
                    if explain
                    else _line(answer_fields(classifier, [text], top_k)[0], text)
                )
            return
        if engine is Engine.ray:
            _distributed(classifier, str(source), str(output), text_column, top_k, explain, workers, device)
            return
        _bulk(lambda batch: answer_fields(classifier, batch, top_k, explain), source, output, text_column, resume)


def _classifier(
    examples: Path | None, model: str, label_column: str, names: bool | None, reject: str | None, unknown: str,
    device: str | None, backend: str,
) -> Any:  # fmt: skip
    """A classifier of these examples, or one that was saved."""
    from dmin.classifier import FewShotClassifier
    from dmin.data.readers import read_corpus

    if (Path(model) / "classifier.json").is_file():
        if examples is not None:
            raise ConfigError(f"{model} is a saved classifier with examples of its own: leave out --examples")
        loaded = FewShotClassifier.load(model, device=device)
        if reject is not None:
            loaded.set_params(reject=reject_value(reject), unknown_label=unknown)
        return loaded
    if examples is None:
        raise ConfigError("--examples is needed: a file of examples for each class")
    corpus = read_corpus(examples, label_column=label_column)
    classifier = FewShotClassifier(
        model,
        use_names="auto" if names is None else names,
        reject=reject_value(reject),
        unknown_label=unknown,
        device=device,
        backend=backend,
    )
    if reject is not None and unknown in corpus.by_class:
        raise ConfigError(f"a class is called {unknown!r} like refused texts: give refused ones another --unknown")
    return classifier.fit(corpus.examples)


def _bulk(
    answer: Callable[[Sequence[str]], list[dict[str, Any]]],
    source: str | None,
    output: str | None,
    column: str,
    resume: bool,
) -> None:
    from dmin.bulk.files import answer_batches, classify_file, json_line, read_texts
    from dmin.progress import progress

    records = read_texts(sys.stdin if source == "-" else Path(str(source)), column)
    if output is None:
        for lines in answer_batches(records, answer, column):
            for line in lines:
                typer.echo(json_line(line))
        return
    with progress("classifying", None, unit="rows") as advance:
        rows = classify_file(records, Path(output), answer, column=column, resume=resume, after_batch=advance)
    typer.echo(f"{rows} rows written: {output}", err=True)


def _check_engine(engine: Engine, source: str | None, output: str | None, workers: int | None) -> None:
    """Say what does not go together before anything is loaded."""
    if engine is Engine.ray:
        if source in (None, "-") or output is None:
            raise ConfigError("--engine ray needs --input with a folder, pattern or file, and --output with a folder")
    elif workers is not None:
        raise ConfigError("--workers needs --engine ray")


def _distributed(
    classifier: Any, source: str, output: str, column: str, top_k: int, explain: bool, workers: int | None,
    device: str | None,
) -> None:  # fmt: skip
    from dmin.bulk.ray import classify_files
    from dmin.progress import progress

    start = time.perf_counter()
    with progress("classifying", None, unit="rows") as advance:
        done = classify_files(
            classifier, source, output, column=column, top_k=top_k, explain=explain, workers=workers, device=device,
            after_batch=advance,
        )  # fmt: skip
    speed = f", {done.rows / (time.perf_counter() - start):.0f} rows/s" if done.rows else ""
    before = f" ({done.before} were there already)" if done.before else ""
    typer.echo(f"{done.rows} rows in {done.files} files written{speed}{before}: {output}", err=True)


def _line(fields: dict[str, Any], text: str) -> str:
    line = f"{fields['label']}\t{fields['score']:.3f}\t{text}"
    return line + "".join(f"\n  {found['label']}\t{found['score']:.3f}" for found in fields.get("top_k", []))
