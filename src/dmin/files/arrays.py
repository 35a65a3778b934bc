"""Arrays as safetensors files with a digest, in the format of `dmin.files.tensors`, without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dmin.errors import ModelError
from dmin.files.atomic import write_atomic

_DIGEST = "digest"
_ARRAY_DIGEST = "sha256"  # of the arrays alone, as files of version 0.1 have it
Array = np.ndarray[Any, np.dtype[Any]]


def write_arrays(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays as safetensors, atomically; `read_tensors` reads the file as well."""
    from safetensors.numpy import save

    ready = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    kept = dict(metadata or {})
    write_atomic(path, save(ready, metadata={**kept, _DIGEST: _digest(ready, kept)}))


def read_arrays(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Read what `write_arrays` or `write_tensors` wrote: (arrays, metadata). A damaged file is a `ModelError`."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ModelError(f"no such file: {path}")
    try:
        with safe_open(str(path), framework="np") as file:
            metadata = dict(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, ValueError, TypeError) as error:  # (TypeError: a type that numpy lacks)
        raise ModelError(f"{path} is not a readable safetensors file (damaged or cut short?): {error}") from error
    digest, older = metadata.pop(_DIGEST, None), metadata.pop(_ARRAY_DIGEST, None)
    if digest is None and older is None:
        raise ModelError(f"{path} carries no digest: it was not written by dmin, or its header is damaged")
    if digest != _digest(arrays, metadata) if digest is not None else older != _digest(arrays, {}):
        raise ModelError(f"{path} is damaged: its content does not match the digest in its header")
    return arrays, metadata


def _digest(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    """The digest of `dmin.files.tensors`, which names types as torch does."""
    summary = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        summary.update(f"{name}{array.shape}torch.{array.dtype.name}".encode())
        summary.update(array.tobytes())
    for name in sorted(metadata):
        summary.update(f"{len(name)}:{name}{len(metadata[name])}:{metadata[name]}".encode())
    return summary.hexdigest()
