"""The ONNX encoder: no torch, no carrier imported, and a vector that never depends on its neighbours."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dmin.encoder import JoinedEncoder, OnnxEncoder, StaticEncoder, TextEncoder, VectorCache, open_encoder
from dmin.encoder.carriers import CARRIED, carried_folder
from dmin.encoder.opening import encoder_beside
from dmin.encoder.text_encoder import is_text_encoder
from dmin.errors import ConfigError, DataError, ModelError
from dmin.files import read_json

TEXTS = ["where is my parcel", "I want my money back right now, this is the third time I ask", "hello", "will it rain?"]
FROZEN = ("bge-small", "static")


@pytest.fixture(scope="module")
def bge() -> OnnxEncoder:
    encoder = open_encoder("bge-small")
    assert isinstance(encoder, OnnxEncoder)
    return encoder


@pytest.fixture(scope="module", params=FROZEN)
def frozen(request: pytest.FixtureRequest) -> TextEncoder:
    return open_encoder(request.param)


def test_shape_type_and_norm(frozen: TextEncoder) -> None:
    vectors = frozen.encode(TEXTS)
    assert vectors.shape == (4, frozen.width) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert frozen.encode([]).shape == (0, frozen.width)
    assert is_text_encoder(frozen) and not is_text_encoder(lambda texts: texts)


def test_meaning_is_there(frozen: TextEncoder) -> None:
    parcel, order, weather = frozen.encode(["where is my parcel", "my parcel has not come", "will it rain tomorrow"])
    assert parcel @ order > parcel @ weather


def test_a_vector_never_depends_on_its_neighbours(frozen: TextEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, alone, in any order, beside long texts, and by several threads."""
    texts = [*TEXTS, "a long text " * 60, *(f"text number {number}" for number in range(20))]
    alone = np.concatenate([frozen.encode([text]) for text in texts])
    assert np.array_equal(frozen.encode(texts), alone)
    assert np.array_equal(frozen.encode(texts[::-1])[::-1], alone)
    monkeypatch.setattr("dmin.encoder.onnx_encoder.usable_threads", lambda: 4)
    assert np.array_equal(frozen.encode(texts), alone)


def test_batches_would_change_the_vectors(bge: OnnxEncoder) -> None:
    """Why each text is computed alone: in a batch, the weights' activations are quantised with a common scale."""
    ids = bge.tokenize(["hello there", "hello again"])
    assert len(ids[0]) == len(ids[1])
    rows = np.array(ids)
    given = {"input_ids": rows, "attention_mask": np.ones_like(rows), "token_type_ids": np.zeros_like(rows)}
    together = bge._session.run(None, given)[0][:, 0]
    alone = np.stack([bge._vector(row) for row in ids])
    assert not np.array_equal(together, alone)


def test_pooling_by_hand(bge: OnnxEncoder) -> None:
    row = bge.tokenize(["where is my parcel"])[0]
    ids = np.array([row])
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    states = bge._session.run(None, given)[0][0]
    mean = open_encoder("bge-small", pooling="mean")
    for encoder, expected in ((bge, states[0]), (mean, states.mean(axis=0))):
        found = encoder.encode(["where is my parcel"])[0]
        assert np.allclose(found, expected / np.linalg.norm(expected), atol=1e-6)
    assert mean.fingerprint != bge.fingerprint and mean.pooling == "mean" and bge.pooling == "cls"


def test_default_is_bge_small_and_says_so(bge: OnnxEncoder) -> None:
    assert open_encoder().name == open_encoder("default").name == "bge-small"
    assert open_encoder().fingerprint == bge.fingerprint


def test_static_is_the_mean_of_the_tokens(bge: OnnxEncoder) -> None:
    encoder = open_encoder("static")
    assert isinstance(encoder, StaticEncoder)
    one, other = encoder.encode(["parcel where is my"]), encoder.encode(["where is my parcel"])
    assert np.allclose(one, other, atol=1e-6)  # the order of the words has no meaning
    table = encoder._table[encoder.tokenize(["where is my parcel"])[0]].mean(axis=0)
    assert np.allclose(other[0], table / np.linalg.norm(table), atol=1e-6)
    assert not encoder.encode(["\U0001f600"]).any()  # unknown tokens alone


@pytest.mark.parametrize("name", FROZEN)
def test_neither_torch_nor_a_carrier_is_imported(name: str, tmp_path: Path) -> None:
    """Opening, encoding and caching need numpy, tokenizers, onnxruntime and safetensors only."""
    absent = ("torch", "transformers", "sklearn", "scipy", *{carried.module for carried in CARRIED.values()})
    program = (
        "import sys; from pathlib import Path; from dmin.encoder import open_encoder, VectorCache\n"
        f"encoder = open_encoder({name!r}); cache = VectorCache(Path({str(tmp_path)!r}))\n"
        "texts = ['hello', 'hello there']\n"
        "assert (cache.encode(encoder, texts) == cache.encode(encoder, texts)).all()\n"
        f"encoder.unreadable(['hello'])\nprint([m for m in {absent!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_vector_cache(frozen: TextEncoder, tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    first = cache.encode(frozen, TEXTS)
    assert np.array_equal(first, frozen.encode(TEXTS)) and np.array_equal(cache.encode(frozen, TEXTS), first)
    assert [path.name for path in tmp_path.iterdir()] == [frozen.key]


def test_cache_keys_differ_where_vectors_do(bge: OnnxEncoder) -> None:
    others = [
        open_encoder("bge-small", long_texts="cut"),
        open_encoder("bge-small", max_length=64),
        open_encoder("static"),
    ]
    assert len({encoder.key for encoder in (bge, *others)}) == 4


def test_copies_encode_alike(frozen: TextEncoder) -> None:
    for other in (copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen))):  # noqa: S301 (our own bytes)
        assert np.array_equal(other.encode(TEXTS), frozen.encode(TEXTS))
        assert other.fingerprint == frozen.fingerprint


def test_side_by_side() -> None:
    encoder = open_encoder("bge-small+minilm", device="cpu")
    assert isinstance(encoder, JoinedEncoder)
    assert encoder.widths == (384, 768) and encoder.width == 1152 and encoder.pooling == "cls+layers"
    vectors = encoder.encode(TEXTS)
    parts = [open_encoder("bge-small"), open_encoder("minilm", pooling="layers", device="cpu")]
    for part, found in zip(parts, np.split(vectors, [384], axis=1), strict=True):
        own = part.encode(TEXTS)
        assert np.allclose(found, own / np.linalg.norm(own, axis=1, keepdims=True), atol=1e-6)
    assert encoder.fingerprint != open_encoder("bge-small+static").fingerprint
    assert open_encoder("bge-small+minilm", pooling="cls+mean", device="cpu").width == 768


def test_saved_by_name_and_digest(frozen: TextEncoder, tmp_path: Path) -> None:
    frozen.save(str(tmp_path))
    stored = read_json(tmp_path / "encoder.json")
    package, version = CARRIED[frozen.name].carrier.split("==")
    assert stored["name"] == frozen.name and stored["fingerprint"] == frozen.fingerprint
    assert (stored["package"], stored["version"]) == (package, version)
    assert encoder_beside(tmp_path) == frozen.name


@pytest.mark.parametrize("content", ['{"name": "owner/model"}', '{"name": "bge-small+./x"}', "{}", '{"name": 3}', "["])
def test_a_model_folder_names_no_other_encoder(tmp_path: Path, content: str) -> None:
    (tmp_path / "encoder.json").write_text(content)
    with pytest.raises(ModelError, match=r"encoder\.json"):
        encoder_beside(tmp_path)


@pytest.mark.parametrize("name", sorted(CARRIED))
def test_every_file_is_checked(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, carried = carried_folder(name), CARRIED[name]
    place = tmp_path / carried.module / carried.folder
    place.mkdir(parents=True)
    for file in carried.checksums:
        shutil.copy(source / file, place)
    monkeypatch.setattr("importlib.util.find_spec", lambda module: _Spec([str(tmp_path / module)]))
    assert carried_folder.__wrapped__(name) == place
    for file in carried.checksums:
        content = (place / file).read_bytes()
        (place / file).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(ModelError, match=f"{file} is not the tested file: pip install"):
            carried_folder.__wrapped__(name)
        (place / file).unlink()
        with pytest.raises(ModelError, match=f"lacks {file}"):
            carried_folder.__wrapped__(name)
        (place / file).write_bytes(content)


class _Spec:
    def __init__(self, places: list[str]) -> None:
        self.submodule_search_locations = places


def test_a_carrier_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    with pytest.raises(ModelError, match=r"'static' is not installed: pip install 'dmin\[static\]'"):
        carried_folder.__wrapped__("static")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "bge-small", "pooling": "layers"}, "'layers' needs torch"),
        ({"name": "static", "pooling": "cls"}, "has 'mean' only"),
        ({"name": "bge-small", "backend": "torch"}, "computes on ONNX Runtime"),
        ({"name": "bge-small", "long_texts": "skip"}, "use 'windows' or 'cut'"),
        ({"name": "static+static"}, "different encoders"),
        ({"name": "bge-small+static", "pooling": "mean"}, "one for each"),
    ],
)
def test_wrong_settings(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_encoder(**given)


def test_a_name_that_is_nearly_right(no_hub: None) -> None:
    with pytest.raises(ModelError, match="did you mean 'bge-small'"):
        open_encoder("bge-smal")


def test_torch_cannot_load_it() -> None:
    from dmin.encoder import Encoder

    with pytest.raises(ConfigError, match="no weights that torch loads"):
        Encoder("bge-small")


def test_empty_texts_are_refused(frozen: TextEncoder) -> None:
    with pytest.raises(DataError, match="text 1 is empty"):
        frozen.encode(["fine", " "])
