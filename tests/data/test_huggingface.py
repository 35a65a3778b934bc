"""Joining the parts of a hub data set. The hub itself cannot exist here; its `Dataset` objects are real."""

from __future__ import annotations

import pytest
from datasets import ClassLabel, Dataset, Features, Value

from dmin.data.columns import Source
from dmin.data.huggingface import corpus_from_parts
from dmin.errors import DataError


def test_parts_join_and_numbers_become_names() -> None:
    features = Features({"text": Value("string"), "intent": ClassLabel(names=["refund", "parcel"])})
    parts = {
        "train": Dataset.from_dict({"text": ["a", "b"], "intent": [0, 1]}, features=features),
        "test": Dataset.from_dict({"text": ["c"], "intent": [1]}, features=features),
    }
    corpus = corpus_from_parts(parts, Source("owner/set"))
    assert corpus.name == "set"
    assert corpus.texts == ("a", "b", "c") and corpus.labels == ("refund", "parcel", "parcel")


def test_wrong_columns_are_named() -> None:
    parts = {"train": Dataset.from_dict({"said": ["a"], "by": ["b"], "label": [" x "]})}
    with pytest.raises(DataError, match="no column 'text'; it has said, by, label"):
        corpus_from_parts(parts, Source("owner/set"))
    assert corpus_from_parts(parts, Source("owner/set", "said", "label")).labels == ("x",)
