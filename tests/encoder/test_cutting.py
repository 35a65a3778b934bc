"""Texts of megabytes: cut by characters before they are tokenised, to the same tokens."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from dmin.encoder import Encoder
from dmin.encoder.cutting import MOST_CHARACTERS, beginning

MEMORY = """
import resource, sys, warnings
warnings.simplefilter("ignore")
from dmin.encoder import Encoder
encoder = Encoder(sys.argv[1], device="cpu")
encoder.tokenize(["warm up"] * 3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
text = sys.argv[2] * (10_000_000 // len(sys.argv[2]))
assert len(encoder.tokenize([text, "short"])[0]) == encoder.max_length or sys.argv[3] == "few"
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("characters", [10, 11, 12, 13])
def test_the_cut_is_between_words(characters: int) -> None:
    text = "some words here and there"
    assert text.startswith(beginning(text, characters)) and beginning(text, characters) == "some words"
    assert text.endswith(beginning(text, characters, from_left=True))
    assert beginning(text, characters, from_left=True) == "and there"
    assert beginning("x" * 100, 10) == "x" * 10 and beginning("short", 10) == "short"


def test_the_tokens_are_those_of_the_whole_text(tiny_encoder: Encoder) -> None:
    plain = tiny_encoder.tokenizer.backend_tokenizer
    texts = [
        "where is my parcel? " * 2000, "unbelievably,antidisestablishmentarianism;" * 500, "包裹在哪里" * 3000,
        " " * 9000 + "late words " * 100, "\n\n".join(["line"] * 5000), "x" * 20_000 + " end",
        " ".join(["y" * 300] * 400), "few" + " " * 30_000 + "words",
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tiny_encoder.tokenize(texts)
    most = tiny_encoder.max_length
    for text, row in zip(texts, found, strict=True):
        whole = plain.encode(text).ids
        assert row == (whole if len(whole) <= most else [*whole[: most - 1], whole[-1]]), text[:40]
        assert row == tiny_encoder.tokenize([text])[0]


def test_only_texts_that_lost_tokens_are_said_to_be_cut(tiny_encoder: Encoder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_encoder.tokenize(["few" + " " * 30_000 + "words"])
    with pytest.warns(UserWarning, match="1 of 2 texts are longer than 64 tokens"):
        tiny_encoder.tokenize(["many words " * 5000, "few" + " " * 30_000 + "words"])


@pytest.mark.slow
@pytest.mark.parametrize(("piece", "kind"), [("word, ", "many"), ("x", "few"), (" ", "few"), ("é" * 50 + "\n", "many")])
def test_ten_megabytes_take_little_memory(tiny_encoder_folder: Path, piece: str, kind: str) -> None:
    """Before, 10 MB of words took 1.3 GB."""
    text = "a" + piece
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tiny_encoder_folder), text, kind], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 250
    assert MOST_CHARACTERS < 10_000_000
