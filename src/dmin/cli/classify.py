"""`dmin classify`: texts, files or a stream, from a file of examples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from dmin.cli.common import plain_warnings, reject_value
from dmin.errors import ConfigError


def classify(
    texts: list[str] = typer.Argument(None, metavar="TEXT...", help="Texts to classify."),
    examples: Path | None = typer.Option(
        None, help="Examples: YAML or JSON {label: [texts]}, or CSV, TSV, JSONL, Parquet with text and label."
    ),
    model: str = typer.Option(
        "default",
        help="default, nearest, the folder of a run, a Hugging Face id, or a saved classifier (no --examples).",
    ),
    input_file: Path | None = typer.Option(
        None, "--input", help="A CSV, TSV, JSONL, Parquet or text file; - is standard input."
    ),
    output: Path | None = typer.Option(
        None, help="A .jsonl, .csv, .tsv or .parquet file; without one, standard output as JSONL."
    ),
    text_column: str = typer.Option("text", help="Column of the texts in --input."),
    label_column: str = typer.Option("label", help="Column of the labels in --examples, whose texts are in: text."),
    top_k: int = typer.Option(1, help="Also the k most similar classes."),
    explain: bool = typer.Option(False, help="Also the examples that decided."),
    reject: str | None = typer.Option(None, help="Refuse texts below this cosine, or: auto."),
    unknown: str = typer.Option("unknown", help="The label of a refused text."),
    names: bool | None = typer.Option(None, help="Let class names take part. Default: where labels are words."),
    resume: bool = typer.Option(False, help="Go on with an interrupted --output."),
    device: str | None = typer.Option(None, help="cpu, cuda, ... Default: the best there is."),
    backend: str = typer.Option("torch", help="What encodes: torch, onnx or onnx-int8 (faster on a CPU)."),
) -> None:
    """Classify texts from a handful of examples of each class, without training.

    \b
    dmin classify --examples intents.yaml "where is my parcel?"
    dmin classify --examples intents.yaml --input mails.csv --output answers.csv --reject auto
    cat texts.txt | dmin classify --examples intents.yaml --input - > answers.jsonl
    """
    if bool(texts) == bool(input_file):
        raise ConfigError("give either texts or --input FILE")
    if resume and not output:
        raise ConfigError("--resume needs --output")
    if top_k < 1:
        raise ConfigError(f"--top-k {top_k}: at least 1 is needed")
    with plain_warnings():
        classifier = _classifier(examples, model, label_column, names, reject, unknown, device, backend)
        if texts:
            for text in texts:
                typer.echo(
                    str(classifier.explain(text))
                    if explain
                    else _line(answer_fields(classifier, [text], top_k)[0], text)
                )
            return
        _bulk(lambda batch: answer_fields(classifier, batch, top_k, explain), input_file, output, text_column, resume)


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
    return classifier.fit({label: [corpus.texts[row] for row in rows] for label, rows in corpus.by_class.items()})


def answer_fields(classifier: Any, texts: Sequence[str], top_k: int, explain: bool = False) -> list[dict[str, Any]]:
    """The fields that go beside each text: label, score, probability, and what else was asked for."""
    fields = []
    for text, found in zip(texts, classifier.answer(texts, max(1, top_k)), strict=True):
        line: dict[str, Any] = {
            "label": found.label,
            "score": round(found.score, 4),
            "probability": round(found.probability, 4),
        }
        if top_k > 1:
            line["top_k"] = [{"label": str(name), "score": round(score, 4)} for name, score in found.top]
        if explain:
            shares = classifier.explain(text).examples[:3]
            line["because"] = [{"share": _rounded(share.share), "text": share.text} for share in shares]
        fields.append(line)
    return fields


def _bulk(
    answer: Callable[[Sequence[str]], list[dict[str, Any]]],
    source: Path | None,
    output: Path | None,
    column: str,
    resume: bool,
) -> None:
    from dmin.classifier.bulk import answer_batches, classify_file, json_line, read_texts
    from dmin.progress import progress

    records = read_texts(sys.stdin if str(source) == "-" else source, column)  # type: ignore[arg-type]
    if output is None:
        for lines in answer_batches(records, answer, column):
            for line in lines:
                typer.echo(json_line(line))
        return
    with progress("classifying", None, unit="rows") as advance:
        rows = classify_file(records, output, answer, column=column, resume=resume, after_batch=advance)
    typer.echo(f"{rows} rows written: {output}", err=True)


def _line(fields: dict[str, Any], text: str) -> str:
    line = f"{fields['label']}\t{fields['score']:.3f}\t{text}"
    return line + "".join(f"\n  {found['label']}\t{found['score']:.3f}" for found in fields.get("top_k", []))


def _rounded(share: float) -> float | None:
    return None if share != share else round(share, 4)
