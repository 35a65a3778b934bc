"""Classify many files on many cores or machines with Ray Data: one classifier per actor, one file per task.

A file is the unit because it can be written whole or not at all: one input becomes one output of the same name, by the
code that classifies a single file (`dmin.bulk.files`), and a second run answers the files that have no receipt
(`dmin.bulk.ledger`). The largest files go first, so that at the end no actor works alone on a large one.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dmin.bulk.fields import answer_fields, field_names
from dmin.bulk.files import classify_file
from dmin.bulk.identity import pack
from dmin.bulk.inputs import read_texts
from dmin.bulk.ledger import Ledger, output_name, stamp
from dmin.bulk.on_error import OnError
from dmin.bulk.remote import Found, Place, find_files, open_place
from dmin.classifier.few_shot import FewShotClassifier
from dmin.data.columns import ENCODING
from dmin.data.readers import check_encoding
from dmin.errors import ConfigError, DataError, DminError, StorageError, one_line

KINDS = (".parquet", ".csv", ".tsv", ".jsonl", ".txt")
_PASSES = 16  # encoder batches per batch of rows: enough rows to find texts of like length
_ENCODER_BATCH = 64  # where the encoder is the user's own


@dataclass(frozen=True)
class Work:
    """The options for each file.

    Args:
        root: the folder that the names of the inputs begin at.
        output: the folder of the answers.
        column: the column of the texts.
        top_k: also the k most similar classes, if more than one.
        explain: also the examples that decided.
        encoding: of text files.
        on_error: what to do with rows that cannot be used.
        raw: write cells of tables as they are, formulas too.
    """

    root: Place
    output: Place
    column: str = "text"
    top_k: int = 1
    explain: bool = False
    encoding: str = ENCODING
    on_error: OnError = OnError.stop
    raw: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the columns that answers add."""
        return field_names(self.top_k, self.explain, self.on_error is OnError.keep)

    def settings(self, classifier: str) -> dict[str, Any]:
        """What decides the answers, for the ledger; options that came later are named where they are not the default."""
        found = {
            "classifier": classifier, "input": str(self.root), "text_column": self.column, "top_k": self.top_k,
            "explain": self.explain,
        }  # fmt: skip
        later = {"encoding": self.encoding, "on_error": str(self.on_error), "raw": self.raw}
        usual = {"encoding": ENCODING, "on_error": "stop", "raw": False}
        return found | {name: value for name, value in later.items() if value != usual[name]}


@dataclass(frozen=True)
class Outcome:
    """Files and rows answered by this run, and files that were answered before."""

    files: int
    rows: int
    before: int


class Scorer:
    """A Ray actor: loads the classifier once, then answers files.

    Args:
        archive: a saved classifier, packed by `pack`.
        encoder: the encoder's function, where the classifier was given one.
        work: the options for each file.
        device: where to compute.
        counter: called with the number of rows of each batch.
    """

    def __init__(self, archive: bytes, encoder: Any, work: Work, device: str, counter: Callable[[int], object]) -> None:
        with suppress(ModuleNotFoundError):  # the default classifier does without it
            import torch

            torch.set_num_threads(1)  # there is one actor per core
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        self.work, self.counter = work, counter
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(fileobj=io.BytesIO(archive)) as content:
                content.extractall(folder, filter="data")
            self.classifier = FewShotClassifier.load(folder, encoder=encoder, device=device)
        own = self.classifier.encoder_
        self.batch = _PASSES * int(getattr(own, "batch_size", _ENCODER_BATCH))

    def __call__(self, files: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
        """Answer files one by one; a failure is reported for its file and does not stop the others."""
        report: dict[str, list[Any]] = {"name": [], "rows": [], "error": [], "note": []}
        for name, input_stamp in zip(files["name"], files["stamp"], strict=True):
            rows, error = 0, ""
            with warnings.catch_warnings(record=True) as notes:
                warnings.simplefilter("always", UserWarning)
                try:
                    rows = self.answer_file(str(name), str(input_stamp))
                except Exception as failure:  # noqa: BLE001 (reported to the driver, as one line)
                    error = _one_line(failure, self.work.root / str(name))
            said = [str(note.message) for note in notes if note.category is UserWarning]
            for key, value in zip(report, (str(name), rows, error, " ".join(said[:1])), strict=True):
                report[key].append(value)
        return report

    def answer_file(self, name: str, input_stamp: str) -> int:
        """Write the answers of one input and its receipt; return the number of rows."""
        work, ledger = self.work, Ledger(self.work.output)
        target = work.output / output_name(name)
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_disk(ledger.scratch))))
            source = (work.root / name).fetch(scratch)
            answers = scratch / "answers" / Path(output_name(name)).name
            answers.parent.mkdir()
            try:
                rows = classify_file(
                    read_texts(source, work.column, encoding=work.encoding, on_error=work.on_error),
                    answers,
                    lambda texts: answer_fields(self.classifier, texts, work.top_k, work.explain),
                    fields=work.fields,
                    raw=work.raw,
                    batch=self.batch,
                    after_batch=self.counter,
                )
            except StorageError as error:  # it names a temporary file
                raise StorageError(f"cannot write {target}: {error.__cause__ or error}") from error
            size = answers.stat().st_size
            target.store(answers, ledger.scratch / f"{uuid.uuid4().hex}.part")
        ledger.sign(name, input_stamp, rows, size)
        return rows


def classify_files(
    classifier: FewShotClassifier,
    source: str,
    output: str,
    *,
    column: str = "text",
    top_k: int = 1,
    explain: bool = False,
    encoding: str = ENCODING,
    on_error: OnError = OnError.stop,
    raw: bool = False,
    workers: int | None = None,
    device: str | None = None,
    after_batch: Callable[[int], object] = int,
    after_resume: Callable[[int], object] = int,
) -> Outcome:
    """Classify every file of a folder or pattern, each into a file of the same name below `output`.

    Run again, it answers what is missing. A Ray cluster is used where there is one, else one is started meanwhile.
    Options that are not named below are those of `Work`.

    Args:
        classifier: a fitted classifier; each worker gets a copy.
        source: a folder, a pattern with * ? [] and **, or a file; a local path or an address like s3://bucket/folder.
        output: a folder for the answers, likewise.
        workers: actors; without it, one per core of the cluster (per GPU on "cuda").
        device: of the workers; without one, "cuda" where the cluster has GPUs, else "cpu".
        after_batch: called with the number of rows done since the last call.
        after_resume: called with the number of rows that an earlier run answered, where there was one.

    Raises:
        DataError: when some files could not be answered (the others are), or the folder was begun otherwise.
    """
    from dmin.bulk import ray_cluster

    ray_cluster.import_ray()  # or say what to install, before anything else
    if workers is not None and workers < 1:
        raise ConfigError(f"--workers {workers}: at least 1 is needed")
    found, place = find_files(source, KINDS), open_place(output)
    _check_places(found, place)
    work = Work(found.root, place, column, top_k, explain, check_encoding(encoding), OnError(on_error), raw)
    _peek(found.root / next(iter(found.files)), work)
    state = classifier.state_.check_ready()
    archive, digest = pack(state)
    ledger = Ledger(place)
    ledger.begin(work.settings(digest))
    before = ledger.done(found.files)
    if before:
        after_resume(sum(before.values()))
    missing = {name: info for name, info in found.files.items() if name not in before}
    rows = 0
    if missing:
        if state.settings.backend not in ("auto", "torch"):
            device = device or "cpu"  # the only one that ONNX computes on, also where the cluster has GPUs
        run = partial(ray_cluster.run, workers=workers, device=device, after_batch=after_batch)
        encoder = state.settings.encoder  # not in the archive: a function, or a name that load does not follow
        rows = _collect(run(Scorer, (archive, encoder, work), _items(missing)), len(missing))
    ledger.clean()
    return Outcome(len(missing), rows, len(before))


def _items(missing: Mapping[str, Any]) -> list[dict[str, str]]:
    largest_first = sorted(missing, key=lambda name: -(missing[name].size or 0))
    return [{"name": name, "stamp": stamp(missing[name])} for name in largest_first]


def _collect(reports: Iterable[Mapping[str, Any]], files: int) -> int:
    """Add up the rows that the workers report; pass on the first note; failures become one line.

    Raises:
        DataError: with the first of the files that failed, after all others are answered.
    """
    rows, errors, notes = 0, list[str](), list[str]()
    for report in reports:
        rows += report["rows"]
        errors += [report["error"]] if report["error"] else []
        notes += [report["note"]] if report["note"] else []
    for note in notes[:1]:
        warnings.warn(note, stacklevel=3)
    if errors:
        others = f"; the other {files - len(errors)} are answered" if len(errors) < files else ""
        raise DataError(f"{min(errors)} ({len(errors)} of {files} files failed{others})")
    return rows


def _peek(place: Place, work: Work) -> None:
    """Raise the error of a wrong column before anything is started."""
    if place.is_local:
        next(read_texts(Path(place.path), work.column, encoding=work.encoding, on_error=work.on_error), None)


def _check_places(found: Found, output: Place) -> None:
    inside = found.root.contains(output) and (found.deep or output.contains(found.root))
    if inside:
        raise ConfigError(f"--output {output} lies among the inputs ({found.root}): choose a folder elsewhere")
    names: dict[str, str] = {}
    for name in found.files:
        other = names.setdefault(output_name(name), name)
        if other != name:
            raise DataError(f"{other} and {name} would both become {output_name(name)}: rename one")


def _disk(scratch: Place) -> Path | None:
    """Where a worker writes: on the disk of the answers, to rename the file there, or on its own, to upload it."""
    if not scratch.is_local:
        return None
    Path(scratch.path).mkdir(parents=True, exist_ok=True)
    return Path(scratch.path)


def _one_line(error: Exception, place: Place) -> str:
    """An error in one line that names the file."""
    text = one_line(error)
    text = text if isinstance(error, DminError) else f"{type(error).__name__}: {text}"
    return text if str(place) in text else f"{place}: {text}"
