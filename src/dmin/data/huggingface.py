"""Labelled texts from the Hugging Face hub, through `datasets` (extra)."""

from __future__ import annotations

from typing import Any

from dmin.data.columns import Source
from dmin.data.corpus import Corpus
from dmin.data.labelled import cell_text
from dmin.errors import DataError, one_line
from dmin.hub import hub_reachable


def load_from_hub(source: Source, name: str | None = None, variant: str | None = None) -> Corpus:
    """Load every part of a hub data set as one corpus; integer labels become their names.

    Args:
        source: `owner/name` and its columns.
        name: of the corpus; default: the last part of the identifier.
        variant: the configuration of the data set, where it has several.
    """
    identifier = source.name
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise DataError(f"{identifier}: loading from the hub needs an extra: pip install 'dmin[data]'") from error
    if not hub_reachable():
        hint = f"set DMIN_DATA to a folder that holds {name}/texts.jsonl, or give" if name else "give"
        raise DataError(
            f"{name or identifier} is not here and the Hugging Face hub cannot be reached: {hint} the path of a file"
        )
    try:
        parts = load_dataset(identifier, variant)
    except Exception as error:
        raise DataError(
            f"cannot load {identifier!r} from the Hugging Face hub: {type(error).__name__}: {one_line(error, 200)}"
        ) from error
    return corpus_from_parts(dict(parts), source, name)


def corpus_from_parts(parts: dict[str, Any], source: Source, name: str | None = None) -> Corpus:
    """Join the parts (`datasets.Dataset`) of a data set into a corpus; white space around texts and labels is dropped."""
    texts: list[str] = []
    labels: list[str] = []
    for part_name, part in parts.items():
        columns = list(part.column_names)
        text_column = source.text_column(columns, source.name)
        label_column = source.label_column(columns, source.name)
        to_name = getattr(part.features[label_column], "int2str", None)
        for row, (text, label) in enumerate(zip(part[text_column], part[label_column], strict=True)):
            where = f"{source.name}, {part_name}, row {row + 1}"
            if to_name is not None:
                if not isinstance(label, int) or label < 0:
                    raise DataError(f"{where}: {label_column} is {label!r}, which has no name")
                label = to_name(label)
            texts.append(cell_text(text, text_column, where))
            labels.append(cell_text(label, label_column, where))
    return Corpus(name or source.name.split("/")[-1], tuple(texts), tuple(labels))
