"""What the tests share: a tiny random BERT where weights do not matter, the embedded encoder where they do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dmin.data import Corpus
from dmin.encoder import Encoder
from dmin.encoder.pretrained import embedded_folder


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Two test processes share two cores."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's cache of vectors."""
    monkeypatch.setenv("DMIN_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def tiny_encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer and width 24 with random weights, and the real tokenizer."""
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny-bert")
    shape = BertConfig(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=64,
        initializer_range=0.3,  # texts must differ: with the usual 0.02 all vectors are nearly the same
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(shape).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(embedded_folder() / name, folder)
    return folder


@pytest.fixture(scope="session")
def embedded_encoder() -> Encoder:
    """The embedded encoder, loaded once."""
    return Encoder(max_length=64, device="cpu")


@pytest.fixture
def tiny_encoder(tiny_encoder_folder: Path) -> Encoder:
    """A fresh tiny encoder."""
    return Encoder(str(tiny_encoder_folder), device="cpu")


WORDS = {
    "apple": "apple pear plum cherry grape melon fig",
    "car": "car engine wheel brake motor tyre road",
    "music": "song tune melody rhythm guitar drum choir",
    "sea": "wave shore sand tide boat harbour sail",
    "sky": "cloud rain wind storm thunder snow fog",
    "home": "roof door window wall kitchen stair attic",
    "school": "lesson teacher pupil exam class book pencil",
    "health": "doctor nurse pill fever cough clinic bandage",
    "money": "coin bank loan cheque salary debt purse",
}


def word_corpus(texts: int = 16, classes: int = 9) -> Corpus:
    """Nine classes of word salads that even a random encoder can tell apart."""
    examples = {}
    for label in list(WORDS)[:classes]:
        words = WORDS[label].split()
        examples[label] = [
            " ".join(words[(first + step * (1 + first // 7)) % 7] for step in range(3)) + f" {first}"
            for first in range(texts)
        ]
    return Corpus.from_mapping(examples, "words")


@pytest.fixture
def words() -> Corpus:
    """See `word_corpus`."""
    return word_corpus()


@pytest.fixture
def words_file(tmp_path: Path) -> Path:
    """The word corpus as a CSV file."""
    corpus = word_corpus()
    path = tmp_path / "words.csv"
    rows = [f"{text},{label}" for text, label in zip(corpus.texts, corpus.labels, strict=True)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hub cannot exist here: stand in for one that cannot be reached, so that tests do not wait for the network."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    yield
