"""Arrays of numpy or torch by one name: the classifier computes on either, and imports torch for the latter alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dmin.adaptive.namespace import array_namespace, device

Array = Any  # an array of numpy, or a tensor of torch
# Queries times classes up to which one thread computes; more on numpy, because OpenBLAS's idle threads spin.
FEW_ON_TORCH, FEW_ON_NUMPY = 4096, 200_000


def as_numpy(array: Array) -> np.ndarray[Any, Any]:
    """The array as one of numpy, without a copy where it lies in this machine's memory."""
    found: np.ndarray[Any, Any] = array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()
    return found


def as_torch(array: Array, where: str = "cpu") -> Array:
    """The array as a tensor on a device."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(where) if isinstance(array, np.ndarray) else array.to(where)


def like(values: Any, kind: Array) -> Array:
    """Values of numpy, or a list, as an array of the same library and on the same device as `kind`."""
    return array_namespace(kind).asarray(np.asarray(values), device=device(kind))


def take(array: Array, places: Sequence[int], axis: int = 0) -> Array:
    """Some rows (or columns) of an array."""
    return array_namespace(array).take(array, like(np.asarray(places, np.int64), array), axis=axis)


def padded(parts: Sequence[Array]) -> Array:
    """Arrays [K_i, ...] of several lengths as one [C, K, ...], zeros behind the shorter ones."""
    first = parts[0]
    shape = (len(parts), max(len(part) for part in parts), *first.shape[1:])
    found = array_namespace(first).zeros(shape, dtype=first.dtype, device=device(first))
    for number, part in enumerate(parts):
        found[number, : len(part)] = part
    return found


def all_finite(array: Array) -> bool:
    """True where no value is NaN or infinite."""
    xp = array_namespace(array)
    return bool(xp.all(xp.isfinite(array)))


@contextmanager
def computing(array: Array, scores: int = 0) -> Iterator[None]:
    """Compute so many scores on such arrays: few of them on one thread, with torch without gradients."""
    from dmin.threads import one_blas_thread, one_thread

    if isinstance(array, np.ndarray):
        with one_blas_thread(scores <= FEW_ON_NUMPY):
            yield
        return
    import torch

    with torch.no_grad(), one_thread(scores <= FEW_ON_TORCH and array.device.type == "cpu"):
        yield
