"""`dmin classify`: texts, files or a stream, from a file of examples."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dmin.bulk.on_error import OnError
from dmin.cli import options
from dmin.cli.common import echo, open_classifier, plain_warnings
from dmin.errors import ConfigError

if TYPE_CHECKING:
    from dmin.bulk.inputs import InputRow
    from dmin.classifier import FewShotClassifier
    from dmin.data.columns import Source

INPUT_HELP = (
    "A CSV, TSV, JSONL, Parquet or text file; - is standard input. With --engine ray: a folder, a quoted pattern "
    "('folder/*.parquet') or a file, here or on s3://, gs://, ..."
)
OUTPUT_HELP = (
    "A .jsonl, .csv, .tsv or .parquet file; without one, standard output as JSONL. With --engine ray: a folder."
)
WORKERS_HELP = (
    "With --engine ray: workers, each with one loaded model and one thread. Default: as many as the cluster has cores "
    "(on cuda: GPUs), at most one per file."
)


COLUMN_HELP = "Column of the texts in --input (and in --examples, if it is there). For one file: FILE:text=COLUMN."
ON_ERROR_HELP = (
    "A row that cannot be used (not text, not JSON): stop, skip (leave it out), or keep (its place, with the reason)."
)
LEARN_HELP = (
    "First learn from the texts of --input, without labels (a sample of 20,000 of a larger file); default model."
)
RAW_HELP = "Write CSV and TSV cells that begin like a formula (= + - @) as they are, without an apostrophe before them."


class Engine(StrEnum):
    """What runs the classifier over files."""

    local = "local"
    ray = "ray"


def classify(
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT...", help="Texts to classify.")] = None,
    examples: options.Examples = None,
    model: options.ModelName = "default",
    source: Annotated[str | None, typer.Option("--input", help=INPUT_HELP)] = None,
    output: Annotated[str | None, typer.Option(help=OUTPUT_HELP)] = None,
    engine: Annotated[Engine, typer.Option(help="local, or ray: many files on many cores or machines.")] = Engine.local,
    workers: Annotated[int | None, typer.Option(help=WORKERS_HELP)] = None,
    text_column: Annotated[str, typer.Option(help=COLUMN_HELP)] = "text",
    label_column: Annotated[str, typer.Option(help="Column of the labels in --examples.")] = "label",
    encoding: options.Encoding = "utf-8",
    on_error: Annotated[OnError, typer.Option(help=ON_ERROR_HELP)] = OnError.stop,
    raw_cells: Annotated[bool, typer.Option("--raw-cells", help=RAW_HELP)] = False,
    top_k: Annotated[int, typer.Option(help="Also give the k most similar classes.")] = 1,
    explain: Annotated[bool, typer.Option(help="Also give the examples that decided.")] = False,
    reject: options.Reject = None,
    unknown: Annotated[str, typer.Option(help="The label of a refused text.")] = "unknown",
    names: options.UseNames = None,
    learn: Annotated[bool, typer.Option("--learn-from-input", help=LEARN_HELP)] = False,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted --output (--engine ray always does).")] = False,
    device: options.Device = None,
    backend: options.Backend = "auto",
    encoder: options.ClassifierEncoder = None,
) -> None:
    """Classify texts from a few examples per class.

    Texts on the command line print label, score and text. Files get the columns label, score and probability (where
    asked for, also top_k and because) beside their own; rows keep their order.

    \b
    Examples:
      dmin classify --examples intents.yaml "where is my parcel?"
      dmin classify --examples intents.yaml --reject auto \\
        --input mails.csv --output answers.csv
      cat texts.txt | dmin classify --examples intents.yaml --input -
      dmin classify --examples intents.yaml --engine ray \\
        --input 'mails/*.parquet' --output answers
    """
    _check(texts or [], source, output, resume, top_k)
    _check_engine(engine, source, output, workers)
    if learn and (source in (None, "-") or engine is Engine.ray):
        raise ConfigError("--learn-from-input needs --input with one file, which is read twice, and --engine local")
    from dmin.data.columns import Source

    with plain_warnings():
        here = None if engine is Engine.ray else device  # with ray, the device is that of the workers
        classifier = open_classifier(
            examples, model, text_column=text_column, label_column=label_column, encoding=encoding, fallback=True,
            names=names, reject=reject, unknown=unknown, device=here, backend=backend, encoder=encoder,
        )  # fmt: skip
        given = Source.parse(source, text_column, encoding=encoding) if source else None
        if given is not None and engine is Engine.ray:
            _distributed(
                classifier, given.name, str(output), column=given.text, encoding=given.encoding, on_error=on_error,
                top_k=top_k, explain=explain, raw=raw_cells, workers=workers, device=device,
            )  # fmt: skip
        elif given is not None:
            work = BulkWork(classifier, given, on_error, top_k, explain, raw_cells, learn)
            _bulk(work, output, resume=resume)
        _print_answers(classifier, texts or (), top_k, explain=explain)


def _check(texts: Sequence[str], source: str | None, output: str | None, resume: bool, top_k: int) -> None:
    if bool(texts) == bool(source):
        raise ConfigError("give either texts or --input FILE")
    if resume and not output:
        raise ConfigError("--resume needs --output")
    if top_k < 1:
        raise ConfigError(f"--top-k {top_k}: at least 1 is needed")


@dataclass(frozen=True)
class BulkWork:
    """One file or the standard input, and how its rows are answered."""

    classifier: FewShotClassifier
    source: Source
    on_error: OnError
    top_k: int
    explain: bool
    raw: bool
    learned: bool = False  # from the texts of the file

    def sample(self, most: int) -> list[str]:
        """Texts of the file, each with the same chance, always the same ones; all where there are no more than `most`."""
        random, found = Random(0), []  # noqa: S311 (a sample, not a secret)
        texts = (row.text for row in self.rows() if row.text is not None)
        for number, text in enumerate(texts):
            if number < most:
                found.append(text)
            elif (place := random.randrange(number + 1)) < most:
                found[place] = text
        return found

    def rows(self) -> Iterator[InputRow]:
        """The rows of the file."""
        from dmin.bulk.inputs import read_texts, standard_input

        source = self.source
        file = standard_input(source.encoding) if source.name == "-" else source
        return read_texts(file, source.text, on_error=self.on_error)

    def answer(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """The fields that go beside each text."""
        from dmin.bulk.fields import answer_fields

        return answer_fields(self.classifier, texts, self.top_k, self.explain)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of these fields."""
        from dmin.bulk.fields import field_names

        return field_names(self.top_k, self.explain, self.on_error is OnError.keep)


def _print_answers(classifier: FewShotClassifier, texts: Sequence[str], top_k: int, *, explain: bool) -> None:
    """Print the answer to each text of the command line."""
    from dmin.bulk.fields import answer_fields

    for text in texts:
        echo(str(classifier.explain(text)) if explain else _line(answer_fields(classifier, [text], top_k)[0], text))


def _bulk(work: BulkWork, output: str | None, *, resume: bool) -> None:
    """Classify one file or the standard input, batch by batch."""
    from dmin.adaptive.unlabelled import MOST_TEXTS
    from dmin.bulk.files import answer_batches, classify_file
    from dmin.bulk.identity import classifier_digest
    from dmin.bulk.inputs import count_rows
    from dmin.bulk.outputs import json_line
    from dmin.progress import progress

    if work.learned:
        work.classifier.adapt(work.sample(MOST_TEXTS))
    if output is None:
        for lines in answer_batches(work.rows(), work.answer, work.fields):
            for line in lines:
                echo(json_line(line))
        return
    made_with = {"classifier": classifier_digest(work.classifier.state_), "text_column": work.source.text}
    if work.learned:
        made_with["learned_from"] = "input"
    total = count_rows(work.source.path) if sys.stderr.isatty() and work.source.name != "-" else None
    with progress("classifying", total, unit="rows") as advance:
        rows = classify_file(
            work.rows(), Path(output), work.answer, fields=work.fields, made_with=made_with, resume=resume,
            raw=work.raw, after_resume=advance, after_batch=advance,
        )  # fmt: skip
    echo(f"{rows} rows written: {output}", err=True)


def _check_engine(engine: Engine, source: str | None, output: str | None, workers: int | None) -> None:
    """Refuse options that do not go together before anything is loaded."""
    if engine is Engine.ray:
        if source in (None, "-") or output is None:
            raise ConfigError("--engine ray needs --input with a folder, pattern or file, and --output with a folder")
    elif workers is not None:
        raise ConfigError("--workers needs --engine ray")


def _distributed(classifier: FewShotClassifier, source: str, output: str, **settings: Any) -> None:
    """Classify many files on Ray; the settings are those of `dmin.bulk.ray.classify_files`."""
    from dmin.bulk.ray import KINDS, classify_files
    from dmin.bulk.remote import find_files
    from dmin.bulk.totals import estimate_rows
    from dmin.progress import progress

    start = time.perf_counter()
    total = estimate_rows(find_files(source, KINDS)) if sys.stderr.isatty() else None
    with progress("classifying", total, unit="rows") as advance:
        done = classify_files(classifier, source, output, after_batch=advance, after_resume=advance, **settings)
    speed = f", {done.rows / (time.perf_counter() - start):.0f} rows/s" if done.rows else ""
    before = f" ({done.before} were there already)" if done.before else ""
    echo(f"{done.rows} rows in {done.files} files written{speed}{before}: {output}", err=True)


def _line(fields: dict[str, Any], text: str) -> str:
    line = f"{fields['label']}\t{fields['score']:.3f}\t{text}"
    return line + "".join(f"\n  {found['label']}\t{found['score']:.3f}" for found in fields.get("top_k", []))
