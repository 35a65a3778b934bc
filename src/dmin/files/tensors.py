"""Tensors as safetensors files with a digest of everything in them; never pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmin.errors import ModelError
from dmin.files.atomic import write_atomic

if TYPE_CHECKING:
    import torch

_DIGEST = "digest"  # of tensors and metadata
_TENSOR_DIGEST = "sha256"  # of the tensors alone, as files of version 0.1 have it


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors as safetensors, atomically, with a digest of tensors and metadata in the header.

    Names that share memory, like weights that stand for two modules, get a copy each: the format knows no sharing.
    """
    from safetensors.torch import save

    ready: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        whole = tensor.detach().cpu().contiguous()
        place = whole.untyped_storage().data_ptr()
        ready[name] = whole.clone() if place in seen else whole
        seen.add(place)
    kept = dict(metadata or {})
    write_atomic(path, _in_order(save(ready, metadata={**kept, _DIGEST: _digest(ready, kept)})))


def _in_order(content: bytes) -> bytes:
    """The same file with its metadata sorted: safetensors writes them in random order; equal content gets equal bytes."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    written += b" " * (-len(written) % 8)  # as the format wants it: tensors begin at a multiple of 8
    return len(written).to_bytes(8, "little") + written + content[8 + size :]


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
        raise ModelError(f"{path} is not a readable safetensors file (damaged or cut short?): {error}") from error
    digest, older = metadata.pop(_DIGEST, None), metadata.pop(_TENSOR_DIGEST, None)
    if digest is None and older is None:
        raise ModelError(f"{path} carries no digest: it was not written by dmin, or its header is damaged")
    if digest != _digest(tensors, metadata) if digest is not None else older != _digest(tensors, {}):
        raise ModelError(f"{path} is damaged: its content does not match the digest in its header")
    return tensors, metadata


def tensor_digest(path: Path) -> str | None:
    """The digest in the header of a file that `write_tensors` wrote; None for one of version 0.1, or a damaged one.

    A file of version 0.1 has a digest of its tensors alone: nothing protects its metadata.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            digest = (file.metadata() or {}).get(_DIGEST)
    except (SafetensorError, OSError, ValueError):
        return None
    return str(digest) if digest is not None else None


def check_finite(tensors: Mapping[str, Any], source: Path | str) -> None:
    """Raise a `ModelError` that names a tensor, or an array of numpy, which holds NaN or infinity."""
    for name, tensor in tensors.items():
        if isinstance(tensor, np.ndarray):
            finite = tensor.dtype.kind != "f" or bool(np.isfinite(tensor).all())
        else:
            finite = not tensor.is_floating_point() or bool(tensor.isfinite().all())
        if not finite:
            raise ModelError(f"{source}: the tensor {name!r} holds NaN or infinity")


def _digest(tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> str:
    summary = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        summary.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        if tensor.numel():
            import torch

            summary.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    for name in sorted(metadata):
        summary.update(f"{len(name)}:{name}{len(metadata[name])}:{metadata[name]}".encode())
    return summary.hexdigest()
