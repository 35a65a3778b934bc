"""Long texts: windows without overlap, of about the same size, bounded; or cut."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmin.encoder import Encoder, open_encoder
from dmin.encoder.windows import MOST_WINDOWS, TokenLimit, average_windows


def limit(max_length: int) -> TokenLimit:
    from tokenizers import Tokenizer

    from dmin.encoder.carriers import carried_folder

    return TokenLimit(Tokenizer.from_file(str(carried_folder("bge-small") / "tokenizer.json")), max_length)


@settings(max_examples=30, deadline=None)
@given(words=st.integers(1, 200), max_length=st.integers(3, 40))
def test_windows_are_the_text_in_parts(words: int, max_length: int) -> None:
    """Joined without special tokens they are the text's own ids, as far as eight windows go."""
    tokens = limit(max_length)
    text = " ".join(str(number % 10) for number in range(words))
    whole = tokens.tokenizer.encode(text, add_special_tokens=False).ids
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tokens.windows([text])[0]
    assert all(window[0] == 101 and window[-1] == 102 and len(window) <= max_length for window in found)
    read = [index for window in found for index in window[1:-1]]
    assert read == whole[: MOST_WINDOWS * (max_length - 2)]
    assert len(found) == min(MOST_WINDOWS, -(-len(whole) // (max_length - 2)))
    sizes = [len(window) for window in found]
    assert max(sizes) - min(sizes) <= len(found)  # the last one is not a scrap


def test_average_of_windows() -> None:
    vectors = np.array([[3, 0], [0, 1], [0, 4], [5, 0]], np.float32)
    found = average_windows(vectors, [1, 2, 1])
    assert np.array_equal(found[[0, 2]], vectors[[0, 3]])
    assert np.allclose(found[1], [0, 2.5])  # the direction of the mean of unit vectors, the mean of the norms
    assert average_windows(vectors, [1, 1, 1, 1]) is vectors


def test_what_stands_late_in_a_text_counts_in_windows_only() -> None:
    start = "the quick brown fox jumps over the lazy dog " * 8
    texts = [start + "I want my money back for this order", start + "the weather in the mountains is fine today"]
    cut = open_encoder("bge-small", max_length=64, long_texts="cut")
    windows = open_encoder("bge-small", max_length=64)
    with pytest.warns(UserWarning, match="2 of 2 texts are longer than 64 tokens"):
        one, other = cut.encode(texts)
    assert np.array_equal(one, other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is cut
        one, other = windows.encode(texts)
    assert one @ other < 0.99 and np.allclose(np.linalg.norm([one, other], axis=1), 1, atol=1e-5)


def test_the_number_of_windows_is_bounded_and_said_once() -> None:
    encoder = open_encoder("bge-small", max_length=16)
    most = " ".join(["word"] * 14 * MOST_WINDOWS)
    with pytest.warns(UserWarning, match="1 of 2 texts are longer than 114 tokens"):
        found = encoder.encode([most, most + " and something else"])
    assert np.array_equal(found[0], found[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode([most + " again"])


def test_short_texts_are_the_same_either_way(tiny_encoder_folder: Path) -> None:
    texts = ["hello there", "ok then"]
    for one, other in (
        [open_encoder("bge-small", long_texts=reading) for reading in ("cut", "windows")],
        [Encoder(str(tiny_encoder_folder), device="cpu", long_texts=reading) for reading in ("cut", "windows")],
    ):
        assert np.array_equal(one.encode(texts), other.encode(texts))
        assert one.key != other.key and one.fingerprint == other.fingerprint


def test_torch_encoders_cut_unless_asked(tiny_encoder_folder: Path) -> None:
    long = "one two three four five six seven eight nine ten eleven twelve"
    cutting = Encoder(str(tiny_encoder_folder), max_length=8, device="cpu")
    assert cutting.long_texts == "cut"
    reading = Encoder(str(tiny_encoder_folder), max_length=8, device="cpu", long_texts="windows")
    parts = reading.encode(["one two three four five six", "seven eight nine ten eleven twelve"])
    expected = np.linalg.norm(parts, axis=1).mean() * (parts / np.linalg.norm(parts, axis=1, keepdims=True)).mean(
        axis=0
    )
    direction = expected / np.linalg.norm(expected) * np.linalg.norm(parts, axis=1).mean()
    assert np.allclose(reading.encode([long])[0], direction, atol=1e-5)
    with pytest.warns(UserWarning, match="were cut"):
        assert np.allclose(cutting.encode([long])[0], parts[0], atol=1e-5)
