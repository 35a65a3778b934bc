"""The number of torch threads: one is faster than two on small tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Let torch compute on one thread inside the block (if `wanted`), then restore the number of threads.

    A head on encoded texts computes thousands of small products, where sharing work between threads costs more than it
    gives: a cell of fine-tune (head) took 18 s on one thread and 50 s on two. The encoder, whose products are large, keeps
    all threads.
    """
    import torch

    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
