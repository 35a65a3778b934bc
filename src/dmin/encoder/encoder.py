"""`Encoder`: texts to vectors, in batches of similar length."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dmin.encoder.backends import FILES, check_backend
from dmin.encoder.network import EncoderNetwork, TokenBatch
from dmin.encoder.onnx import OnnxNetwork, export_onnx
from dmin.encoder.onnx_session import ARITHMETIC
from dmin.encoder.pretrained import TUNABLE, cache_folder, choose_pooling, load, quiet_transformers, resolve
from dmin.encoder.readable import Reader
from dmin.encoder.text_encoder import FloatArray, check_long_texts, check_texts
from dmin.encoder.windows import TokenLimit, average_windows
from dmin.errors import ConfigError, ModelError, one_line
from dmin.progress import progress
from dmin.threads import one_thread

# Tokens of one pass, padding counted: by measurement, on a CPU more of them leave its cache (see benchmarks/encoder.py).
CPU_TOKENS, ONNX_TOKENS = 1024, 512
FEW_TOKENS = 256  # of all texts: up to here one thread is as fast as two, for a fraction of the processor time


class Encoder:
    """Turns texts into vectors with any Hugging Face encoder.

    Args:
        name: "minilm" (embedded, offline), a folder, or a Hugging Face id; `open_encoder` knows more names.
        pooling: "cls", "mean", "layers" (the last layer and the one at half depth, twice as wide), or "auto" (mean for the
            embedded encoder, `[CLS]` otherwise).
        max_length: tokens of a text, or of a window of a long one.
        batch_size: texts in one pass, at most; a pass holds texts of similar length, so that little is padding, and fewer
            of them where they are long.
        device: "cpu", "cuda", ...; without one, a GPU where there is one.
        backend: what computes: "torch" (also "auto"), or on a CPU "onnx" or "onnx-int8" (see `dmin.encoder.onnx`). Without
            an exported file beside the encoder's weights it is exported once, into the cache.
        long_texts: "cut" a text beyond the limit, with one warning, or read it in "windows" whose vectors are averaged.

    Example:
        >>> Encoder().encode(["where is my parcel?"]).shape
        (1, 384)
    """

    def __init__(
        self,
        name: str = TUNABLE,
        *,
        pooling: str = "auto",
        max_length: int = 256,
        batch_size: int = 64,
        device: str | None = None,
        backend: str = "torch",
        long_texts: str = "cut",
    ) -> None:
        check_long_texts(long_texts)
        check_backend(backend)
        backend = "torch" if backend == "auto" else backend
        if backend != "torch" and device not in (None, "cpu"):
            raise ConfigError(f"backend {backend!r} computes on the CPU: leave out device={device!r}")
        self.name = name
        self.backend, self.long_texts = backend, long_texts
        tokenizer, backbone = load(name)
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        chosen = choose_pooling(name, pooling)
        try:
            limit = int(getattr(backbone.config, "max_position_embeddings", max_length) or max_length)
            self.max_length = min(max_length, limit, int(tokenizer.model_max_length))
            kinds = ("cls_token_id", "sep_token_id", "bos_token_id", "eos_token_id")
            marks = [int(getattr(tokenizer, kind)) for kind in kinds if getattr(tokenizer, kind, None) is not None]
            self.network = EncoderNetwork(backbone, chosen, int(tokenizer.pad_token_id or 0), marks)
            if self.max_length < 1 or self.network.width < 1:
                raise ValueError(f"max_length {self.max_length}, width {self.network.width}")
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"the encoder {name!r} has a damaged configuration: {one_line(error)}") from error
        self.network.to(choose_device(device if backend == "torch" else "cpu")).eval()
        self._limit = TokenLimit(tokenizer.backend_tokenizer, self.max_length)
        self._reader: Reader | None = None
        self._fingerprint: str | None = None
        self._onnx: OnnxNetwork | None = None

    @property
    def width(self) -> int:
        """The width d of a vector."""
        return self.network.width

    @property
    def pooling(self) -> str:
        """ "cls", "mean" or "layers"."""
        return self.network.pooling

    @property
    def device(self) -> str:
        """Where the network is."""
        return str(self.network.device)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of weights and pooling; call `refresh` after the weights changed."""
        if self._fingerprint is None:
            self._fingerprint = self.network.fingerprint()
        return self._fingerprint

    @property
    def key(self) -> str:
        """Key of the vector cache: all that determines a vector (weights, pooling, length limit, backend)."""
        weights = self.fingerprint
        if self.long_texts != "cut":
            weights = hashlib.sha256(f"{weights}-{self.long_texts}".encode()).hexdigest()
        computed = "" if self.backend == "torch" else f"-{self.backend}-{ARITHMETIC}"
        return f"{weights[:24]}-{self.max_length}{computed}"

    def refresh(self) -> None:
        """Drop the fingerprint and the ONNX session after the weights changed."""
        self._fingerprint = self._onnx = None

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, cut to `max_length`; a warning gives the number of cut texts, once.

        Several threads may call it at the same time.
        """
        check_texts(texts)
        return self._limit.cut(texts, self.tokenizer.truncation_side)

    def unreadable(self, texts: Sequence[str]) -> list[float]:
        """Part of each text's words that the encoder cannot read, from 0 to 1; see `dmin.encoder.readable`."""
        if self._reader is None:
            self._reader = Reader(self.tokenizer.backend_tokenizer, self.tokenizer.unk_token)
        return self._reader.unreadable(texts)

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Return the vectors of `texts`, float32 [n, d], in their order. No cache is read or written."""
        if self.long_texts == "cut":
            return self.encode_ids(self.tokenize(texts), show_progress=show_progress)
        check_texts(texts)
        windows = self._limit.windows(texts)
        rows = [window for parts in windows for window in parts]
        return average_windows(self.encode_ids(rows, show_progress=show_progress), [len(parts) for parts in windows])

    def encode_ids(self, rows: Sequence[Sequence[int]], *, show_progress: bool = False) -> FloatArray:
        """Like `encode`, for texts given as token ids."""
        if self.backend != "torch":
            return self._encode_onnx(rows, show_progress)
        vectors = np.empty((len(rows), self.width), dtype=np.float32)
        with one_thread(self.network.device.type == "cpu" and sum(map(len, rows)) <= FEW_TOKENS):
            for batch in self._batches(rows, show_progress):
                try:
                    vectors[batch] = self.network([rows[index] for index in batch]).float().cpu().numpy()
                except (IndexError, ValueError, RuntimeError) as error:
                    raise ModelError(
                        f"the encoder {self.name!r}: tokenizer and weights do not fit each other: {one_line(error)}"
                    ) from error
        return self._checked(vectors)

    def _encode_onnx(self, rows: Sequence[Sequence[int]], show: bool) -> FloatArray:
        """Encode on ONNX Runtime, one batch per thread: faster than several threads that share one batch."""
        if self._onnx is None:
            self._onnx = OnnxNetwork(exported_file(self), self.network.pad, self.fingerprint)
        network = self._onnx
        vectors = np.empty((len(rows), self.width), dtype=np.float32)

        def fill(batch: list[int]) -> int:
            vectors[batch] = network([rows[index] for index in batch])
            return len(batch)

        batches = batches_by_length(rows, self.batch_size, ONNX_TOKENS)
        workers = ThreadPoolExecutor(max(1, min(torch.get_num_threads(), len(batches))))
        with progress("encoding", len(rows), unit="texts", show=show) as advance, workers:
            for done in workers.map(fill, batches):
                advance(done)
        return self._checked(vectors)

    def _checked(self, vectors: FloatArray) -> FloatArray:
        """The vectors, none of which may hold NaN or infinity: a score made of them would be silently wrong."""
        if not np.isfinite(vectors).all():
            index = int(np.argwhere(~np.isfinite(vectors))[0, 0])
            raise ModelError(
                f"the encoder {self.name!r} gave NaN or infinity for text {index}: are its weights damaged?"
            )
        return vectors

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies: everything but the ONNX session, which is opened again when it is needed."""
        return {**self.__dict__, "_onnx": None}

    def token_states(self, rows: Sequence[Sequence[int]], *, show_progress: bool = False) -> list[Tensor]:
        """The last hidden states of each text's tokens, [t, d] each."""
        found: dict[int, Tensor] = {}
        for indices in self._batches(rows, show_progress):
            batch = TokenBatch([rows[index] for index in indices], self.network.pad).to(self.network.device)
            states = self.network.token_states(batch).float()
            found |= {index: states[place, : len(rows[index])].clone() for place, index in enumerate(indices)}
        return [found[index] for index in range(len(rows))]

    def _batches(self, rows: Sequence[Sequence[int]], show: bool) -> Iterator[list[int]]:
        """Yield batches of similar length, with dropout and gradients off while each is worked on."""
        was_training = self.network.training
        self.network.eval()
        try:
            with progress("encoding", len(rows), unit="texts", show=show) as advance, torch.no_grad():
                tokens = CPU_TOKENS if self.network.device.type == "cpu" else None
                for batch in batches_by_length(rows, self.batch_size, tokens):
                    yield batch
                    advance(len(batch))
        finally:
            self.network.train(was_training)

    def save(self, folder: str) -> None:
        """Write weights and tokenizer as a folder that `AutoModel` and `AutoTokenizer` load."""
        with quiet_transformers():
            self.network.backbone.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)


def batches_by_length(rows: Sequence[Sequence[int]], batch_size: int, tokens: int | None = None) -> list[list[int]]:
    """Group the indices of `rows` into batches of similar length, longest first, of at most `tokens` tokens each."""
    order = sorted(range(len(rows)), key=lambda index: -len(rows[index]))
    batches, start = [], 0
    while start < len(order):
        longest = max(1, len(rows[order[start]]))
        size = batch_size if tokens is None else max(1, min(batch_size, tokens // longest))
        batches.append(order[start : start + size])
        start += size
    return batches


def exported_file(encoder: Encoder) -> Path:
    """Return the ONNX file of an encoder, beside its weights or in the cache; where there is none, export it and warn."""
    for path in _export_places(encoder, encoder.backend):
        if path.is_file():
            return path
    warnings.warn(
        f"exporting the encoder for backend {encoder.backend!r}: once, about half a minute (or: dmin model export)",
        stacklevel=2,
    )
    export_onnx(encoder.network, path, encoder.fingerprint, int8=encoder.backend == "onnx-int8")
    return path


def export_place(encoder: Encoder, backend: str) -> Path:
    """Return where an export is written: beside the weights of the user's own model; in the cache for the embedded one."""
    return _export_places(encoder, backend)[0 if encoder.name != TUNABLE else -1]


def _export_places(encoder: Encoder, backend: str) -> list[Path]:
    source, local = resolve(encoder.name)
    beside = [Path(source) / FILES[backend]] if local else []
    return [*beside, cache_folder() / "onnx" / encoder.fingerprint[:24] / FILES[backend]]


def choose_device(device: str | None) -> torch.device:
    """Return the device asked for, or the best one there is."""
    if device is not None:
        return _device(device)
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))  # one GPU per process under torchrun
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _device(name: str) -> torch.device:
    """The device of a name; a `ConfigError` where it does not exist on this machine."""
    try:
        device = torch.device(name)
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"no such device: {name!r}; use cpu, cuda, cuda:1 or mps") from error
    there = {
        "cpu": 1,
        "meta": 0,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }
    if (device.index or 0) >= there.get(device.type, 1):
        raise ConfigError(f"device {name!r} is not there on this machine; use cpu, or leave it out")
    return device
