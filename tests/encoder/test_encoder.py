"""Texts to vectors."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from dmin.encoder import Encoder
from dmin.encoder.encoder import batches_by_length
from dmin.encoder.pretrained import embedded_folder
from dmin.errors import DataError

TEXTS = ["where is my parcel", "I want my money back right now, this is the third time I ask", "hello", "ok then"]


def test_shape_order_and_type(embedded_encoder: Encoder) -> None:
    vectors = embedded_encoder.encode(TEXTS)
    assert vectors.shape == (4, 384) and vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.allclose(embedded_encoder.encode([text])[0], vector, atol=1e-5)
    assert embedded_encoder.encode([]).shape == (0, 384)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_equals_transformers_by_hand(pooling: str) -> None:
    """Against the plain use of AutoModel: no pooler, no normalisation."""
    folder = embedded_folder()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    tokens = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1)
    expected = states[:, 0] if pooling == "cls" else (states * mask).sum(1) / mask.sum(1)
    assert np.allclose(Encoder(pooling=pooling, device="cpu").encode(TEXTS), expected.numpy(), atol=1e-5)


def test_layers_equals_transformers_by_hand() -> None:
    """Means over the words, of the last layer and of the one at half depth, the latter with half the former's norm."""
    folder = embedded_folder()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    encoder = Encoder(pooling="layers", device="cpu")
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (4, 768) and encoder.width == 768
    for text, vector in zip(TEXTS, vectors, strict=True):
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        last, half = (states[layer][0, 1:-1].mean(dim=0).numpy() for layer in (6, 3))  # without [CLS] and [SEP]
        half = half / np.linalg.norm(half) * np.linalg.norm(last) / 2
        assert np.allclose(vector, np.concatenate([last, half]), atol=1e-5)


def test_layers_of_a_text_without_words() -> None:
    """Where nothing but marks is left, they are the text."""
    encoder = Encoder(pooling="layers", device="cpu")
    marks = [encoder.tokenizer.cls_token_id, encoder.tokenizer.sep_token_id]
    assert np.isfinite(encoder.encode_ids([marks, [*marks[:1], 7592, *marks[1:]]])).all()


def test_auto_pooling(tiny_encoder: Encoder, embedded_encoder: Encoder) -> None:
    assert embedded_encoder.pooling == "mean"
    assert tiny_encoder.pooling == "cls"


def test_meaning_is_there(embedded_encoder: Encoder) -> None:
    parcel, order, weather = embedded_encoder.encode(
        ["where is my parcel", "my order has not arrived", "will it rain tomorrow"]
    )
    assert parcel @ order > parcel @ weather


def test_batches_hold_texts_of_similar_length() -> None:
    rows = [[0] * length for length in (3, 9, 1, 7, 5)]
    batches = batches_by_length(rows, 2)
    assert [len(batch) for batch in batches_by_length([[1] * 100, [1] * 60, [1] * 10, [1] * 10, [1] * 9], 2, 64)] == [
        1,
        1,
        2,
        1,
    ]
    assert [[len(rows[index]) for index in batch] for batch in batches] == [[9, 7], [5, 3], [1]]


def test_truncation_is_said_once_with_the_number(tiny_encoder_folder: Path) -> None:
    encoder = Encoder(str(tiny_encoder_folder), max_length=8, device="cpu")
    long = " ".join(["word"] * 50)
    with pytest.warns(UserWarning, match="1 of 2 texts are longer than 8 tokens"):
        encoder.encode([long, "short"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode([long])
    assert all(len(row) <= 8 for row in encoder.tokenize([long]))
    assert encoder.tokenize([long])[0][-1] == encoder.tokenizer.sep_token_id


MIXED = [
    "short",
    " ".join(["parcel"] * 300),
    "unbelievably tokenised: antidisestablishmentarianism " * 9,
    "[SEP] in the text [SEP]",
    "word " * 5 + "[SEP] [CLS] " * 30,
    "ünïcode 你好 " * 20,
    "exactly six tokens here",
]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("max_length", [2, 3, 6, 64])
def test_cut_ids_equal_those_of_transformers(tiny_encoder_folder: Path, max_length: int, side: str) -> None:
    encoder = Encoder(str(tiny_encoder_folder), max_length=max_length, device="cpu")
    reference = AutoTokenizer.from_pretrained(tiny_encoder_folder, truncation_side=side)
    encoder.tokenizer.truncation_side = side
    expected = reference(MIXED, truncation=True, max_length=max_length, verbose=False)["input_ids"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert encoder.tokenize(MIXED) == expected


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Threads take turns every microsecond, so that a race shows within a second."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_share_an_encoder(tiny_encoder_folder: Path, frequent_switches: None) -> None:
    """Eight threads with short and long texts at once get the ids and vectors that one thread gets."""
    encoder = Encoder(str(tiny_encoder_folder), max_length=16, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = [[MIXED[(start + step) % len(MIXED)] for step in range(4)] for start in range(len(MIXED))]
        expected = [encoder.tokenize(batch) for batch in batches]
        vectors = [encoder.encode(batch) for batch in batches]
        jobs = list(range(len(batches))) * 60
        encodings = 5_000 if os.environ.get("DMIN_STRESS") else 28  # of four texts: 20,000 predictions
        with ThreadPoolExecutor(8) as workers:
            found = list(workers.map(lambda job: encoder.tokenize(batches[job]), jobs))
            encoded = list(workers.map(lambda job: encoder.encode(batches[job]), (jobs * 100)[:encodings]))
    assert all(rows == expected[job] for job, rows in zip(jobs, found, strict=True))
    assert all(np.array_equal(rows, vectors[job]) for job, rows in zip((jobs * 100)[:encodings], encoded, strict=True))


def test_length_never_exceeds_what_the_model_has(tiny_encoder_folder: Path) -> None:
    assert Encoder(str(tiny_encoder_folder), max_length=500, device="cpu").max_length == 64


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (["fine", "  "], DataError, "text 1 is empty"),
        (["fine", None], TypeError, "text 1 is None"),
        ([b"bytes"], TypeError, "text 0 is b'bytes'"),
        ("one text", TypeError, "not one str"),
    ],
)
def test_bad_texts_are_named(tiny_encoder: Encoder, texts: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tiny_encoder.encode(texts)


def test_fingerprint_follows_the_weights(tiny_encoder: Encoder, tiny_encoder_folder: Path) -> None:
    before = tiny_encoder.fingerprint
    assert before == Encoder(str(tiny_encoder_folder), device="cpu").fingerprint
    assert before != Encoder(str(tiny_encoder_folder), pooling="mean", device="cpu").fingerprint
    with torch.no_grad():
        next(tiny_encoder.network.parameters()).add_(1)
    tiny_encoder.refresh()
    assert tiny_encoder.fingerprint != before


def test_encode_leaves_training_mode_as_it_was(tiny_encoder: Encoder) -> None:
    tiny_encoder.network.train()
    first, second = tiny_encoder.encode(["hello there"]), tiny_encoder.encode(["hello there"])
    assert np.array_equal(first, second)  # dropout was off
    assert tiny_encoder.network.training


def test_saved_folder_loads_with_transformers(tiny_encoder: Encoder, tmp_path: Path) -> None:
    tiny_encoder.save(str(tmp_path / "saved"))
    AutoModel.from_pretrained(tmp_path / "saved")
    again = Encoder(str(tmp_path / "saved"), device="cpu")
    assert np.array_equal(again.encode(TEXTS), tiny_encoder.encode(TEXTS))
