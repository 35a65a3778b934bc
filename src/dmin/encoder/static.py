"""A static encoder: a table of one vector per token, whose mean is the vector of a text. numpy only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dmin.encoder.onnx_encoder import ENCODER_FILE, cache_key, open_tokenizer
from dmin.encoder.readable import Reader
from dmin.encoder.text_encoder import FloatArray, check_texts, unit
from dmin.errors import ModelError, one_line
from dmin.files import file_digest, write_json
from dmin.progress import progress

LONGEST = 100_000  # tokens of a text that are read; the mean of many more says nothing new
_BLOCK = 256  # texts that are tokenised at once


class StaticEncoder:
    """Turns texts into vectors of norm 1: the mean of their tokens' vectors, whatever the order of the words.

    Unknown tokens are left out, as in model2vec; a text of nothing else has a zero vector. There is no length limit that
    matters, so that `long_texts` has no meaning here.

    Args:
        name: a name that opens it again.
        weights: a safetensors file with one matrix [tokens, d].
        tokenizer: the `tokenizer.json` of the encoder.
        description: what `save` records beside name and fingerprint.
    """

    device, pooling, max_length = "cpu", "mean", LONGEST

    def __init__(self, name: str, weights: Path, tokenizer: Path, *, description: dict[str, Any] | None = None) -> None:
        self.name = name
        self._weights, self._tokenizer_file = weights, tokenizer
        self._description = description or {}
        self._open()

    def _open(self) -> None:
        self._table = _read_table(self.name, self._weights)  # [tokens, d]
        self._tokenizer = open_tokenizer(self.name, self._tokenizer_file)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._unknown = self._tokenizer.token_to_id("[UNK]")
        self._reader = Reader(self._tokenizer, "[UNK]")

    @property
    def width(self) -> int:
        """The width d of a vector."""
        return int(self._table.shape[1])

    @property
    def files(self) -> tuple[Path, Path]:
        """Weights and tokenizer."""
        return self._weights, self._tokenizer_file

    @property
    def fingerprint(self) -> str:
        """SHA-256 of table and tokenizer."""
        digests = (file_digest(self._weights), file_digest(self._tokenizer_file))
        return hashlib.sha256("\n".join((*digests, "static", "unit")).encode()).hexdigest()

    @property
    def key(self) -> str:
        """Key of the vector cache."""
        return cache_key(self.fingerprint, "static", self.max_length)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special and unknown tokens."""
        check_texts(texts)
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False) if texts else []
        return [[index for index in encoding.ids[:LONGEST] if index != self._unknown] for encoding in encodings]

    def unreadable(self, texts: Sequence[str]) -> list[float]:
        """Part of each text's words that the encoder cannot read, from 0 to 1; see `dmin.encoder.readable`."""
        return self._reader.unreadable(texts)

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Return the vectors of `texts`, float32 [n, d] of norm 1, in their order. No cache is read or written."""
        check_texts(texts)
        found = np.zeros((len(texts), self.width), np.float32)
        with progress("encoding", len(texts), unit="texts", show=show_progress) as advance:
            for start in range(0, len(texts), _BLOCK):
                rows = self.tokenize(texts[start : start + _BLOCK])
                for place, row in enumerate(rows, start):
                    if row:
                        found[place] = self._table[row].mean(axis=0)
                advance(len(rows))
        return unit(found)

    def refresh(self) -> None:
        """Nothing to drop: the table does not change."""

    def save(self, folder: str) -> None:
        """Record the encoder by name and digest in a model folder; the weights stay where they are."""
        write_json(
            Path(folder) / ENCODER_FILE, {"name": self.name, "fingerprint": self.fingerprint, **self._description}
        )

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies: the names of the files, which are opened again."""
        return {name: getattr(self, name) for name in ("name", "_weights", "_tokenizer_file", "_description")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def _read_table(name: str, path: Path) -> FloatArray:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"the encoder {name!r}: {path.name} cannot be read: {one_line(error, 200)}") from error
    tables = [np.asarray(tensor, np.float32) for tensor in tensors.values() if tensor.ndim == 2]
    if len(tables) != 1 or not np.isfinite(tables[0]).all():
        raise ModelError(f"the encoder {name!r}: {path.name} must hold one finite matrix [tokens, d]")
    return tables[0]
