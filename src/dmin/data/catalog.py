"""Data sets by name: the built-in one, those under $DMIN_DATA, files, and Hugging Face ids."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import yaml

from dmin.data.columns import ENCODING, LABEL, TEXT, Source, exists, split_names
from dmin.data.corpus import Corpus, join_corpora
from dmin.data.labelled import SUFFIXES, read_corpus
from dmin.data.readers import read_format
from dmin.data.splits import ClassSplit, read_splits, seeded_split, stored_splits
from dmin.errors import DataError, unknown_name
from dmin.files import user_path
from dmin.hub import is_hub_id

DATA_VARIABLE = "DMIN_DATA"
VALID_PART = 0.2  # of ODIC's training classes, where no file names validation classes
_PUBLISHED, _OWN = "protaugment-01", "own-01"


@dataclass(frozen=True)
class Entry:
    """A named data set: a description, and its place on the Hugging Face hub."""

    name: str
    about: str
    hub: str | None = None
    default_split: str | None = None
    variant: str | None = None  # of the hub's data set


CATALOG = {
    entry.name: entry
    for entry in (
        Entry("starter", "everyday requests in 11 domains, written for this package (built in)", None, "novel14"),
        Entry("banking77", "questions to a bank (Casanueva et al., 2020; CC BY 4.0)", "PolyAI/banking77", _PUBLISHED),
        Entry(
            "clinc150", "requests to an assistant (Larson et al., 2019; CC BY 3)", "clinc/clinc_oos", "base100", "plus"
        ),
        Entry("hwu64", "commands to a home robot (Liu et al., 2019; CC BY 4.0)", None, _PUBLISHED),
        Entry("liu54", "the same source as hwu64, another selection (Liu et al., 2019; CC BY 4.0)", None, _PUBLISHED),
        Entry("stackoverflow", "titles of questions by tag (Xu et al., 2015; CC BY-SA 3.0)", None, _OWN),
        Entry("debian", "descriptions of Debian's packages by section (free licences)", None, _OWN),
        Entry("goemotions", "comments by emotion (Demszky et al., 2020; CC BY 4.0)", None, _OWN),
        Entry("fortunes", "sayings by theme, of Debian's package fortunes (BSD)", None, _OWN),
        Entry("news20", "20 Newsgroups, the first 300 words (Lang, 1995; CC BY 4.0)", None, _OWN),
        Entry("rcv1", "miniRCV1 of the paper, from your licensed copy of Reuters RCV1 in $DMIN_DATA/rcv1/"),
        Entry("odic", "the paper's private intents, if you have them: TSV or JSONL files in $DMIN_DATA/odic/"),
    )
}


def load_corpus(name: str, *, text_column: str = TEXT, label_column: str = LABEL, encoding: str = ENCODING) -> Corpus:
    """Load a named data set, a file, or a Hugging Face id (`owner/name`); several, separated by commas, are joined.

    Named sets are looked for in `$DMIN_DATA/<name>/texts.jsonl`, then on the hub. The columns of a file or of a hub id can
    stand behind it: `tickets.csv:text=ticket,label=intent`.
    """
    columns = {"text_column": text_column, "label_column": label_column, "encoding": encoding}
    if len(parts := split_names(name)) > 1:
        return join_corpora([load_corpus(part, **columns) for part in parts])
    source = Source.parse(parts[0] if parts else name, text_column, label_column, encoding)
    if source.name in _SPECIAL:
        return _SPECIAL[source.name]()
    if source.name in CATALOG:
        return _named(CATALOG[source.name])
    path = source.path
    if exists(path / "texts.jsonl"):
        return read_corpus(replace(source, name=str(path / "texts.jsonl")), name=path.resolve().name)
    if path.suffix.lower() in SUFFIXES:
        return read_corpus(source)
    if is_hub_id(source.name) and not exists(path):
        from dmin.data.huggingface import load_from_hub

        return load_from_hub(source)
    if exists(path) or "/" in source.name or "." in source.name:
        if path.suffix and not path.is_dir():
            next(read_format(path), None)  # says what to do about a spreadsheet
        raise DataError(f"{source.name}: not a labelled file; use {', '.join(SUFFIXES)}")
    raise unknown_name("data set", source.name, CATALOG)


def choose_split(
    corpus: Corpus, name: str | None = None, seed: int | None = None, sizes: Sequence[int] | None = None
) -> tuple[str, ClassSplit]:
    """Return (name, split): by name, by seed and sizes, or the one that comes with the data (else seed 0)."""
    if name is not None and (seed is not None or sizes is not None):
        raise DataError("give either a split by name or --split-seed and --split-sizes, not both")
    if name is None and (seed is not None or sizes is not None or corpus.default_split is None):
        seed = seed or 0
        label = f"seed-{seed}" + ("-" + "-".join(map(str, sizes)) if sizes else "")
        return label, seeded_split(corpus.classes, seed, sizes)
    return name or str(corpus.default_split), corpus.split(name)


def _rcv1() -> Corpus:
    """miniRCV1 from the user's licensed copy; a warning counts the documents that were skipped."""
    from dmin.data.rcv1 import Rcv1Reader

    reader = Rcv1Reader(_data_folder("rcv1"))
    corpus = reader.read()
    if reader.skipped:
        warnings.warn(f"rcv1: {len(corpus.texts)} documents kept; skipped: {reader.report()}", stacklevel=3)
    return corpus


def _odic() -> Corpus:
    """Intent files (TSV with a header, or JSONL) in one folder, joined.

    Files whose names begin with train, valid (or dev) and test give the class split "paper"; without a file of validation
    classes, some training classes are drawn for that by a fixed seed, because the paper names none.
    """
    folder = _data_folder("odic")
    files = (
        sorted(path for path in folder.glob("*") if path.suffix.lower() in (".tsv", ".jsonl"))
        if folder.is_dir()
        else []
    )
    if not files:
        raise DataError(
            f"odic is private data: put its intent files (.tsv or .jsonl with text and label) into {folder}"
        )
    parts = [read_corpus(path) for path in files]
    texts, labels = [t for part in parts for t in part.texts], [n for part in parts for n in part.labels]
    split = _split_of_files({path.stem: part.classes for path, part in zip(files, parts, strict=True)})
    if split is None:
        return Corpus("odic", tuple(texts), tuple(labels))
    split.check("paper", labels)
    return Corpus("odic", tuple(texts), tuple(labels), {"paper": split}, "paper")


def _split_of_files(classes: Mapping[str, Sequence[str]]) -> ClassSplit | None:
    """The class split that the names of files tell (stem -> its classes), or None where they tell none."""
    found: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    for stem, names in classes.items():
        kind = next((part for part in (*found, "dev") if stem.lower().startswith(part)), None)
        if kind is None:
            return None
        part = found["valid" if kind == "dev" else kind]
        part += [name for name in names if name not in part]
    if not found["train"] or not found["test"]:
        return None
    train, valid = tuple(found["train"]), tuple(found["valid"])
    if not valid:
        drawn = seeded_split(train, 0, (len(train) - round(len(train) * VALID_PART), round(len(train) * VALID_PART), 0))
        train, valid = drawn.train, drawn.valid
    return ClassSplit(train, valid, tuple(found["test"]))


def _data_folder(name: str) -> Path:
    root = os.environ.get(DATA_VARIABLE)
    if not root:
        raise DataError(f"{name} cannot be shipped: set {DATA_VARIABLE} to the folder that holds your copy as {name}/")
    return user_path(root) / name


def local_folder(name: str) -> Path | None:
    """The folder of a named set under $DMIN_DATA, or None."""
    root = os.environ.get(DATA_VARIABLE)
    folder = user_path(root) / name if root else None
    return folder if folder and (folder / "texts.jsonl").is_file() else None


def is_here(name: str) -> bool:
    """Is a named set under $DMIN_DATA? (rcv1 and odic, which users bring, have a layout of their own.)"""
    root = os.environ.get(DATA_VARIABLE)
    if name in _SPECIAL and root:
        folder = user_path(root) / name
        return folder.is_dir() and any(folder.iterdir())
    return local_folder(name) is not None


def _named(entry: Entry) -> Corpus:
    folder = local_folder(entry.name)
    if folder is not None:
        corpus = read_corpus(folder / "texts.jsonl", name=entry.name)
        preferred = entry.default_split if entry.default_split in corpus.splits else corpus.default_split
        return _with_stored_splits(replace(corpus, default_split=preferred))
    if entry.hub is not None:
        from dmin.data.huggingface import load_from_hub

        return _with_stored_splits(load_from_hub(Source(entry.hub), name=entry.name, variant=entry.variant))
    raise DataError(f"{entry.name} is not here: put its texts.jsonl into ${DATA_VARIABLE}/{entry.name}/")


def _with_stored_splits(corpus: Corpus) -> Corpus:
    """A named set with the class splits that the package has for it, after its own; its default stays."""
    return replace(corpus, splits={**corpus.splits, **stored_splits(corpus.name, corpus.classes)})


def _starter() -> Corpus:
    folder = resources.files("dmin.data") / "starter"
    examples: dict[str, list[str]] = {}
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith(".yaml"):
            examples.update(yaml.safe_load(file.read_text(encoding="utf-8")))
    corpus = Corpus.from_mapping(examples, "starter")
    with resources.as_file(folder / "class_splits.json") as path:
        splits = read_splits(path)
    return Corpus("starter", corpus.texts, corpus.labels, splits, CATALOG["starter"].default_split)


_SPECIAL: dict[str, Callable[[], Corpus]] = {"starter": _starter, "rcv1": _rcv1, "odic": _odic}
