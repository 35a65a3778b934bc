"""Labelled texts from the Hugging Face hub, through `datasets` (extra)."""

from __future__ import annotations

from typing import Any

from dmin.data.corpus import Corpus
from dmin.errors import DataError, nearest_name, one_line
from dmin.hub import hub_reachable

_LABEL_NAMES = ("label", "intent", "category", "class")


def load_from_hub(
    identifier: str,
    text_column: str,
    label_column: str | None,
    name: str | None = None,
    variant: str | None = None,
) -> Corpus:
    """Load every part of a hub data set as one corpus; integer labels become their names.

    Args:
        identifier: `owner/name`.
        text_column: the column of texts.
        label_column: the column of labels; None takes the first usual name there is.
        name: of the corpus; default: the last part of the identifier.
        variant: the configuration of the data set, where it has several.
    """
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
    return corpus_from_parts(dict(parts), identifier, text_column, label_column, name)


def corpus_from_parts(
    parts: dict[str, Any], identifier: str, text_column: str, label_column: str | None, name: str | None = None
) -> Corpus:
    """Join the parts (`datasets.Dataset`) of a data set into a corpus."""
    texts: list[str] = []
    labels: list[str] = []
    for part in parts.values():
        label = label_column or next((c for c in _LABEL_NAMES if c in part.column_names), _LABEL_NAMES[0])
        for column in (text_column, label):
            if column not in part.column_names:
                near = nearest_name(column, part.column_names)
                hint = f" (did you mean {near!r}?)" if near else ""
                raise DataError(f"{identifier}: no column {column!r}{hint}; it has {', '.join(part.column_names)}")
        feature = part.features[label]
        to_name = getattr(feature, "int2str", str)
        texts += [str(text) for text in part[text_column]]
        labels += [to_name(value) for value in part[label]]
    return Corpus(name or identifier.split("/")[-1], tuple(texts), tuple(labels))
