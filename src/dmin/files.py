"""Atomic files and folders: written under a temporary name, synced, then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmin.errors import DataError, ModelError, StorageError, one_line

if TYPE_CHECKING:
    import torch

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DIGEST = "sha256"


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write `content` to `path` so that a reader, or a crash, sees the old file or the new one, never a part.

    Raises:
        StorageError: when it cannot be written; nothing half-written stays behind.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
        sync(path.parent)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        if error.errno in _NO_ROOM:
            raise StorageError(
                f"no room left to write {path} ({len(data) / 1e6:.1f} MB): free some space, or choose another --out"
            ) from error
        raise StorageError(f"cannot write {path}: {one_line(error)}") from error


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Fill a temporary folder beside `folder`; if the block ends without an error, it takes the place of `folder`.

    A reader sees the whole old folder or the whole new one. A full disk and other failures of writing are a `StorageError`,
    and what was half-written is removed.
    """
    part: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
        part.chmod(0o777 & ~_umask())
        yield part
        old = part.with_suffix(".old")
        if folder.exists():
            folder.rename(old)
        part.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {one_line(error)}") from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON, atomically."""
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file; a missing or broken one is a `DataError` that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"no such file: {path}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not valid JSON: {one_line(error)}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {one_line(error)}") from error


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors as safetensors, atomically, with a digest of their bytes in the header."""
    from safetensors.torch import save

    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = save(ready, metadata={**(metadata or {}), _DIGEST: _digest(ready)})
    write_atomic(path, content)


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Read what `write_tensors` wrote: (tensors, metadata). A damaged file is a `ModelError` that names it."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ModelError(f"no such file: {path}")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(
            f"{path} is not a readable safetensors file (damaged or cut short?): {one_line(error)}"
        ) from error
    digest = metadata.pop(_DIGEST, None)
    if digest is not None and digest != _digest(tensors):
        raise ModelError(f"{path} is damaged: its content does not match the digest in its header")
    return tensors, metadata


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, as hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(tensors: Mapping[str, torch.Tensor]) -> str:
    summary = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        summary.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        if tensor.numel():
            import torch

            summary.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return summary.hexdigest()


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk, so that a power cut cannot undo it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
