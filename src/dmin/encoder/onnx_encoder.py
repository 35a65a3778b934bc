"""An encoder on ONNX Runtime alone: numpy, tokenizers and onnxruntime, no torch and no transformers."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dmin.encoder.onnx_session import ARITHMETIC, open_session
from dmin.encoder.readable import Reader
from dmin.encoder.text_encoder import FloatArray, check_long_texts, check_texts, unit, usable_threads
from dmin.encoder.windows import TokenLimit, average_windows
from dmin.errors import ConfigError, ModelError, one_line
from dmin.files import file_digest, write_json
from dmin.progress import progress

ENCODER_FILE = "encoder.json"
LONGEST = 512  # positions of a BERT
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class OnnxEncoder:
    """Turns texts into vectors of norm 1 with an encoder that was exported to ONNX.

    Each text, or window of a long one, is computed alone, on one thread; threads work on several texts at the same time.
    With dynamically quantised weights the scale of the activations is that of the batch, so that a text's vector would
    depend on the other texts of its batch. Alone, it is the same bit for bit whatever it is encoded with.

    Args:
        name: a name that opens it again.
        weights: the ONNX file, from token ids to states of tokens [1, t, d].
        tokenizer: the `tokenizer.json` of the encoder.
        pooling: "cls", or "mean" over all tokens.
        max_length: tokens of a text or a window, at most `LONGEST`.
        long_texts: "windows" (at most 8, whose vectors are averaged) or "cut".
        description: what `save` records beside name and fingerprint, like the package that the files come from.
    """

    device = "cpu"

    def __init__(
        self,
        name: str,
        weights: Path,
        tokenizer: Path,
        *,
        pooling: str = "cls",
        max_length: int = 256,
        long_texts: str = "windows",
        description: dict[str, Any] | None = None,
    ) -> None:
        check_long_texts(long_texts)
        if pooling not in ("cls", "mean"):
            raise ConfigError(f"pooling {pooling!r}: the encoder {name!r} has 'cls' and 'mean'; 'layers' needs torch")
        self.name, self.pooling, self.long_texts = name, pooling, long_texts
        self.max_length = min(max_length, LONGEST)
        self._weights, self._tokenizer = weights, tokenizer
        self._description = description or {}
        self._lock = threading.Lock()
        self._open()

    def _open(self) -> None:
        self._session, self.width, self._inputs = _open_session(self.name, self._weights)
        self._limit = TokenLimit(open_tokenizer(self.name, self._tokenizer), self.max_length)
        self._reader: Reader | None = None
        self._fingerprint: str | None = None

    @property
    def files(self) -> tuple[Path, Path]:
        """Weights and tokenizer."""
        return self._weights, self._tokenizer

    @property
    def fingerprint(self) -> str:
        """SHA-256 of weights, tokenizer and pooling."""
        if self._fingerprint is None:
            digests = (file_digest(self._weights), file_digest(self._tokenizer))
            self._fingerprint = hashlib.sha256("\n".join((*digests, self.pooling, "unit")).encode()).hexdigest()
        return self._fingerprint

    @property
    def key(self) -> str:
        """Key of the vector cache: all that determines a vector (weights, pooling, reading of long texts, limit)."""
        return f"{cache_key(self.fingerprint, self.long_texts, self.max_length)}-{ARITHMETIC}"

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, cut to `max_length`."""
        check_texts(texts)
        return self._limit.cut(texts)

    def unreadable(self, texts: Sequence[str]) -> list[float]:
        """Part of each text's words that the encoder cannot read, from 0 to 1; see `dmin.encoder.readable`."""
        with self._lock:
            if self._reader is None:
                self._reader = Reader(self._limit.tokenizer, "[UNK]")
        return self._reader.unreadable(texts)

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Return the vectors of `texts`, float32 [n, d] of norm 1, in their order. No cache is read or written."""
        check_texts(texts)
        if self.long_texts == "cut":
            return self.encode_ids(self._limit.cut(texts), show_progress=show_progress)
        windows = self._limit.windows(texts)
        rows = [window for parts in windows for window in parts]
        return average_windows(self.encode_ids(rows, show_progress=show_progress), [len(parts) for parts in windows])

    def encode_ids(self, rows: Sequence[Sequence[int]], *, show_progress: bool = False) -> FloatArray:
        """Like `encode`, for texts given as token ids."""
        vectors = np.empty((len(rows), self.width), dtype=np.float32)
        order = sorted(range(len(rows)), key=lambda index: -len(rows[index]))  # so that threads end together

        def fill(index: int) -> None:
            vectors[index] = self._vector(rows[index])

        with progress("encoding", len(rows), unit="texts", show=show_progress) as advance:
            workers = min(usable_threads(), len(rows))
            if workers < 2:
                for index in order:
                    fill(index)
                    advance()
            else:
                with ThreadPoolExecutor(workers) as pool:
                    for _ in pool.map(fill, order):
                        advance()
        if not np.isfinite(vectors).all():
            index = int(np.argwhere(~np.isfinite(vectors))[0, 0])
            raise ModelError(
                f"the encoder {self.name!r} gave NaN or infinity for text {index}: are its weights damaged?"
            )
        return unit(vectors)

    def _vector(self, row: Sequence[int]) -> FloatArray:
        ids = np.asarray([row], dtype=np.int64)  # [1, t]
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, {name: given[name] for name in self._inputs})[0][0]  # [t, d]
        vector: FloatArray = states[0] if self.pooling == "cls" else states.mean(axis=0)
        return vector

    def refresh(self) -> None:
        """Nothing to drop: the weights of this encoder do not change."""

    def save(self, folder: str) -> None:
        """Record the encoder by name and digest in a model folder; the weights stay where they are."""
        write_json(
            Path(folder) / ENCODER_FILE, {"name": self.name, "fingerprint": self.fingerprint, **self._description}
        )

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies: everything but the session, the tokenizer and the lock, which are opened again."""
        left_out = ("_session", "_limit", "_reader", "_lock")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._open()


def cache_key(fingerprint: str, long_texts: str, max_length: int) -> str:
    """Key of the vector cache for encoders without torch."""
    return f"{hashlib.sha256(f'{fingerprint}-{long_texts}'.encode()).hexdigest()[:24]}-{max_length}"


def _open_session(name: str, path: Path) -> tuple[Any, int, list[str]]:
    """The session, the width of its vectors and its inputs."""
    try:
        session = open_session(path)
        inputs = [given.name for given in session.get_inputs()]
        shape = session.get_outputs()[0].shape
    except ImportError as error:
        raise ConfigError(f"the encoder {name!r} needs onnxruntime: pip install onnxruntime") from error
    except Exception as error:  # (ONNX Runtime raises many kinds and has no base class)
        raise ModelError(f"the encoder {name!r}: {path.name} cannot be read: {one_line(error, 200)}") from error
    if not set(inputs) <= _INPUTS or len(shape) != 3 or not isinstance(shape[2], int):
        raise ModelError(
            f"the encoder {name!r}: {path.name} takes {', '.join(inputs)} and gives {shape}; "
            f"{', '.join(sorted(_INPUTS))} and states [n, t, d] are needed"
        )
    return session, shape[2], inputs


def open_tokenizer(name: str, path: Path) -> Any:
    """The tokenizer of a `tokenizer.json`, without transformers."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except BaseException as error:  # (a damaged file can panic in Rust, which is no Exception)
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelError(f"the encoder {name!r}: {path.name} cannot be read: {one_line(error, 200)}") from error
