"""An on-disk cache of vectors, so that a text is encoded once for training and evaluation.

One folder per encoder (its fingerprint and length limit) holds shards that are written once and never changed. Texts are
stored as hashes only. Concurrent writers are safe: each writes shards of its own under a new name and renames them into
place. A damaged shard is deleted and its texts are encoded again.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from dmin.encoder.pretrained import cache_folder
from dmin.encoder.text_encoder import FloatArray, TextEncoder, check_texts
from dmin.errors import ConfigError, ModelError, StorageError
from dmin.files import read_arrays, write_arrays

LIMIT_VARIABLE = "DMIN_CACHE_BYTES"
DEFAULT_LIMIT = 2 * 1024**3
_HASH_BYTES = 16
# The names of what the cache writes. Everything else in its folder is somebody else's.
_EXPORTED = "onnx"
_SHELF = re.compile(r"[0-9a-f]{24}-\d+(-onnx(-int8)?)?")
_EXPORT_SHELF = re.compile(r"[0-9a-f]{24}")
_SHARD = re.compile(r"[0-9a-f]{32}\.safetensors")
_OWN_FILE = re.compile(
    r"[0-9a-f]{32}\.safetensors|\.[0-9a-f]{32}\.safetensors\.\w+\.part"
    r"|encoder(-int8)?\.onnx(\.sha256)?|\.encoder(-int8)?\.onnx\.sha256\.\w+\.part|\.\d+-(encoder(-int8)?|whole)\.onnx"
)


def default_limit() -> int:
    """Largest size of the cache in bytes: $DMIN_CACHE_BYTES, else 2 GiB."""
    chosen = os.environ.get(LIMIT_VARIABLE)
    if chosen is None:
        return DEFAULT_LIMIT
    if not chosen.isdigit():
        raise ConfigError(f"{LIMIT_VARIABLE}={chosen!r}: a number of bytes is needed, like {DEFAULT_LIMIT}")
    return int(chosen)


class VectorCache:
    """A cache of vectors on disk; beyond `limit` bytes the least recently used shards are dropped."""

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        self.folder = folder or cache_folder()
        self.limit = default_limit() if limit is None else limit

    def encode(self, encoder: TextEncoder, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Like `encoder.encode`, but each text is computed once for this encoder, on this machine."""
        check_texts(texts)
        shelf = self.folder / encoder.key
        hashes = [_text_hash(text) for text in texts]
        known = self._read(shelf, encoder.width, set(hashes))
        missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in known}
        if missing:
            vectors = encoder.encode(list(missing.values()), show_progress=show_progress)
            known.update(zip(missing, vectors, strict=True))
            self._write(shelf, list(missing), vectors)
        return np.stack([known[key] for key in hashes]) if hashes else np.empty((0, encoder.width), np.float32)

    def size(self) -> int:
        """Bytes on disk of what the cache wrote: vectors and exported encoders."""
        return sum(_size(path) for path in self._own_files())

    def clear(self) -> int:
        """Remove what the cache wrote, and nothing else; return the bytes that were freed."""
        freed = 0
        for path in self._own_files():
            size = _size(path)
            with suppress(OSError):
                path.unlink()
                freed += size
        for shelf in [*self._shelves(), self.folder / _EXPORTED]:
            with suppress(OSError):  # it holds something else
                shelf.rmdir()
        return freed

    def _shelves(self) -> list[Path]:
        """Folders that the cache made: one per encoder, for vectors and for exports."""
        shelves = [(path, _SHELF) for path in _folders(self.folder)]
        shelves += [(path, _EXPORT_SHELF) for path in _folders(self.folder / _EXPORTED)]
        return [path for path, pattern in shelves if pattern.fullmatch(path.name)]

    def _own_files(self) -> list[Path]:
        """Files that the cache wrote, by their names; half-written ones that a crash left, too."""
        return [
            path
            for shelf in self._shelves()
            for path in shelf.iterdir()
            if _OWN_FILE.fullmatch(path.name) and path.is_file() and not path.is_symlink()
        ]

    def _read(self, shelf: Path, width: int, wanted: set[bytes]) -> dict[bytes, FloatArray]:
        found: dict[bytes, FloatArray] = {}
        try:
            shards = sorted(shelf.glob("*.safetensors")) if shelf.is_dir() else []
        except OSError:  # another user's cache: encode again
            return found
        for path in shards:
            if not _SHARD.fullmatch(path.name):
                continue
            try:
                arrays, _ = read_arrays(path)
                keys, vectors = arrays["hashes"], arrays["vectors"]
                if keys.shape != (len(vectors), _HASH_BYTES) or vectors.shape[1:] != (width,):
                    raise ModelError(f"{path} has the wrong shape")
            except (ModelError, KeyError):
                with suppress(OSError):
                    path.unlink()  # damaged, or removed by another process: encode again
                continue
            used = False
            for key, vector in zip((row.tobytes() for row in keys), vectors, strict=True):
                if key in wanted:
                    found[key], used = vector, True
            if used:
                with suppress(OSError):  # another user's
                    os.utime(path)
        return found

    def _write(self, shelf: Path, keys: list[bytes], vectors: FloatArray) -> None:
        if vectors.nbytes > self.limit:
            return
        rows = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, _HASH_BYTES)
        try:
            write_arrays(shelf / f"{uuid.uuid4().hex}.safetensors", {"hashes": rows, "vectors": vectors})
        except StorageError:
            return  # a cache that cannot be written is only slower, not an error
        self._trim()

    def _trim(self) -> None:
        try:
            shards = sorted(self._shards())  # oldest use first
        except OSError:  # another user's cache
            return
        total = sum(size for _, size, _ in shards)
        for _, size, path in shards:
            if total <= self.limit:
                return
            with suppress(OSError):
                path.unlink()
                total -= size

    def _shards(self) -> list[tuple[float, int, Path]]:
        shards = []
        for path in self._own_files():
            if _SHARD.fullmatch(path.name):
                with suppress(OSError):  # another process removed it meanwhile
                    status = path.stat()
                    shards.append((status.st_mtime, status.st_size, path))
        return shards


def _folders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _text_hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
