"""The number of threads: one is faster than two on small arrays, and where several threads compute side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

_LOCK = threading.Lock()
_BLAS = threading.Lock()  # held by the block that set the number of threads of products
_KNOWN = threading.local()  # threads whose own number torch has fixed
_ALONE = threading.local()  # threads that compute by themselves
_inside = 0  # blocks that are open, in all threads
_outside = 0  # the number of threads before the first of them


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Let torch compute on one thread inside the block (if `wanted`), then restore the number of threads.

    A head on encoded texts computes thousands of small products, where sharing work between threads costs more than it
    gives: a cell of fine-tune (head) took 18 s on one thread and 50 s on two. One short text costs a tenth of the processor
    time, because threads that wait for work spin. The encoder keeps all threads for its large products.

    Safe in several threads at once: torch keeps the number for each thread. Only a thread that asks torch for the first
    time takes the number that was set last, which may be the one of this block; then it is given the number from before.
    """
    global _inside, _outside
    import torch

    if not wanted:
        yield
        return
    with _LOCK:
        before = torch.get_num_threads()
        if _inside and not hasattr(_KNOWN, "seen"):
            before = _outside
        if not _inside:
            _outside = before
        _KNOWN.seen = True
        _inside += 1
        if before != 1:
            torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if before != 1 or torch.get_num_threads() != before:
                torch.set_num_threads(before)


@cache
def _blas_libraries() -> Any:
    """The libraries that compute numpy's products, with the means to limit their threads."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread(wanted: bool = True) -> Iterator[None]:
    """Let numpy's products run on one thread inside the block (if `wanted`), then restore the number of threads.

    After a product that they shared, OpenBLAS's threads spin for milliseconds in the hope of another one, on cores that the
    encoder needs: batches of 32 texts against 66 classes were answered 1.6 times as fast without (two cores).

    The number belongs to the process: of blocks that overlap in several threads the first sets and restores it, so that the
    others may end with more threads, never the process with fewer. A process of ours sets it for good instead.
    """
    if not wanted or not _BLAS.acquire(blocking=False):
        yield
        return
    try:
        with _blas_libraries().limit(limits=1):
            yield
    finally:
        _BLAS.release()


def one_blas_thread_for_good() -> None:
    """Let numpy's products run on one thread from now on, in a process whose own threads share the processors."""
    _blas_libraries().limit(limits=1)


def compute_alone() -> None:
    """Let the calling thread compute by itself from now on: it is one of several that share the processors.

    torch, where it is installed, gets one thread here, and encoders start none of their own (`computes_alone`).
    """
    with suppress(ModuleNotFoundError):  # the default classifier does without it
        import torch

        torch.set_num_threads(1)
    _ALONE.chosen = True


def computes_alone() -> bool:
    """Was `compute_alone` called in this thread?"""
    return getattr(_ALONE, "chosen", False)
