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
    examples: Path = typer.Option(..., help="Examples: YAML or JSON {label: [texts]}, or CSV, TSV, JSONL, Parquet."),
    model: str = typer.Option("default", help="default, nearest, the folder of a run, or a Hugging Face id."),
    input_file: Path | None = typer.Option(
        None, "--input", help="A CSV, TSV, JSONL, Parquet or text file; - is standard input."
    ),
    output: Path | None = typer.Option(
        None, help="A .jsonl, .csv, .tsv or .parquet file; without one, standard output as JSONL."
    ),
    text_column: str = typer.Option("text", help="Column of the texts in --input."),
    top_k: int = typer.Option(1, help="Also the k most similar classes."),
    explain: bool = typer.Option(False, help="Also the examples that decided."),
    reject: str | None = typer.Option(None, help="Refuse texts below this cosine, or: auto."),
    unknown: str = typer.Option("unknown", help="The label of a refused text."),
    names: bool | None = typer.Option(None, help="Let class names take part. Default: where labels are words."),
    resume: bool = typer.Option(False, help="Go on with an interrupted --output."),
    device: str | None = typer.Option(None, help="cpu, cuda, ... Default: the best there is."),
) -> None:
    """Classify texts from a handful of examples of each class, without training.

    \b
    dmin classify --examples intents.yaml "where is my parcel?"
    dmin classify --examples intents.yaml --input mails.csv --output answers.csv --reject auto
    cat texts.txt | dmin classify --examples intents.yaml --input - > answers.jsonl
    """
    from dmin.classifier import FewShotClassifier
    from dmin.data.readers import read_corpus

    if bool(texts) == bool(input_file):
        raise ConfigError("give either texts or --input FILE")
    if resume and not output:
        raise ConfigError("--resume needs --output")
    with plain_warnings():
        corpus = read_corpus(examples)
        classifier = FewShotClassifier(
            model,
            use_names="auto" if names is None else names,
            reject=reject_value(reject),
            unknown_label=unknown,
            device=device,
        )
        classifier.fit({label: [corpus.texts[row] for row in rows] for label, rows in corpus.by_class.items()})
        if texts:
            for text in texts:
                typer.echo(
                    str(classifier.explain(text))
                    if explain
                    else _line(answer_fields(classifier, [text], top_k)[0], text)
                )
            return
        _bulk(lambda batch: answer_fields(classifier, batch, top_k, explain), input_file, output, text_column, resume)


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
            line["because"] = [{"share": round(share.share, 4), "text": share.text} for share in shares]
        fields.append(line)
    return fields


def _bulk(
    answer: Callable[[Sequence[str]], list[dict[str, Any]]],
    source: Path | None,
    output: Path | None,
    column: str,
    resume: bool,
) -> None:
    import json

    from dmin.classifier.bulk import BATCH, beside, classify_file, read_texts
    from dmin.progress import progress

    records = read_texts(sys.stdin if str(source) == "-" else source, column)  # type: ignore[arg-type]
    if output is None:
        from itertools import islice

        while batch := list(islice(records, BATCH)):
            for (_, record), fields in zip(batch, answer([record[column] for _, record in batch]), strict=True):
                typer.echo(json.dumps(beside(record, fields), ensure_ascii=False))
        return
    with progress("classifying", None, unit="rows") as advance:
        rows = classify_file(records, output, answer, column=column, resume=resume, after_batch=advance)
    typer.echo(f"{rows} rows written: {output}", err=True)


def _line(fields: dict[str, Any], text: str) -> str:
    line = f"{fields['label']}\t{fields['score']:.3f}\t{text}"
    return line + "".join(f"\n  {found['label']}\t{found['score']:.3f}" for found in fields.get("top_k", []))
