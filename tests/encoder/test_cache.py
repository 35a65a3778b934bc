"""The cache of vectors: right, private, bounded, and safe with two writers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dmin.encoder import Encoder, VectorCache

TEXTS = ["alpha secret", "beta", "gamma delta"]


class Counting(Encoder):
    """Counts the texts it is asked to encode."""

    encoded = 0

    def encode(self, texts, *, show_progress=False):  # type: ignore[no-untyped-def]
        self.encoded += len(texts)
        return super().encode(texts, show_progress=show_progress)


@pytest.fixture
def encoder(tiny_encoder_folder: Path) -> Counting:
    return Counting(str(tiny_encoder_folder), device="cpu")


@pytest.fixture
def cache(tmp_path: Path) -> VectorCache:
    return VectorCache(tmp_path / "cache")


def shards(cache: VectorCache) -> list[Path]:
    return sorted(cache.folder.glob("*/*.safetensors"))


def test_each_text_is_encoded_once(encoder: Counting, cache: VectorCache) -> None:
    expected = Encoder.encode(encoder, TEXTS)
    first = cache.encode(encoder, [*TEXTS, TEXTS[0]])
    assert encoder.encoded == 3
    again = VectorCache(cache.folder).encode(encoder, [TEXTS[2], TEXTS[0], "new"])
    assert encoder.encoded == 4
    assert np.array_equal(first, expected[[0, 1, 2, 0]])
    assert np.array_equal(again[:2], expected[[2, 0]])


def test_the_text_itself_is_never_stored(encoder: Counting, cache: VectorCache) -> None:
    cache.encode(encoder, TEXTS)
    assert shards(cache)
    for path in shards(cache):
        assert b"secret" not in path.read_bytes() and "secret" not in str(path)


def test_another_encoder_pooling_or_length_has_its_own_vectors(tiny_encoder_folder: Path, cache: VectorCache) -> None:
    kinds = [{}, {"pooling": "mean"}, {"max_length": 5}]
    for number, options in enumerate(kinds, 1):
        encoder = Counting(str(tiny_encoder_folder), device="cpu", **options)  # type: ignore[arg-type]
        assert np.array_equal(cache.encode(encoder, TEXTS), Encoder.encode(encoder, TEXTS))
        assert encoder.encoded == 3
        assert len(list(cache.folder.iterdir())) == number


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_shard_is_rebuilt_not_trusted(encoder: Counting, cache: VectorCache, damage: str) -> None:
    expected = cache.encode(encoder, TEXTS)
    (path,) = shards(cache)
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-3] ^= 0x40
    path.write_bytes({"cut": content[: len(content) // 2], "flip": content, "empty": b""}[damage])
    assert np.array_equal(cache.encode(encoder, TEXTS), expected)
    assert encoder.encoded == 6
    assert np.array_equal(cache.encode(encoder, TEXTS), expected)
    assert encoder.encoded == 6


def test_oldest_shards_go_when_the_limit_is_reached(encoder: Counting, tmp_path: Path) -> None:
    import os

    roomy = VectorCache(tmp_path / "cache")
    for age, text in enumerate(TEXTS):
        roomy.encode(encoder, [text])
        newest = max(shards(roomy), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (1000 + age, 1000 + age))
    one = shards(roomy)[0].stat().st_size
    VectorCache(tmp_path / "cache", limit=int(2.5 * one)).encode(encoder, ["another"])
    assert len(shards(roomy)) == 2
    before = encoder.encoded
    roomy.encode(encoder, [TEXTS[2], "another"])
    assert encoder.encoded == before  # the two newest stayed
    assert roomy.size() <= 2.5 * one


def test_clear_frees_everything(encoder: Counting, cache: VectorCache) -> None:
    cache.encode(encoder, TEXTS)
    size = cache.size()
    assert size > 0 and cache.clear() == size and cache.size() == 0


@pytest.mark.slow
def test_two_writers_at_once(tiny_encoder_folder: Path, tmp_path: Path) -> None:
    """Two real processes write the same texts many times; what they leave is whole and right."""
    program = (
        "import sys; from pathlib import Path; from dmin.encoder import *\n"
        "encoder = Encoder(sys.argv[1], device='cpu'); cache = VectorCache(Path(sys.argv[2]))\n"
        "for turn in range(30): cache.encode(encoder, [f'text {turn} {n}' for n in range(4)])"
    )
    command = [sys.executable, "-c", program, str(tiny_encoder_folder), str(tmp_path / "cache")]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    cache = VectorCache(tmp_path / "cache")
    encoder = Counting(str(tiny_encoder_folder), device="cpu")
    texts = [f"text {turn} {n}" for turn in range(30) for n in range(4)]
    found = cache.encode(encoder, texts)
    assert encoder.encoded == 0
    assert np.allclose(found, Encoder.encode(encoder, texts), atol=1e-6)
    assert not list(cache.folder.glob("*/*.part"))
