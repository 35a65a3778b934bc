"""How many threads work: small tensors are worked on faster by one than by two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Let torch compute on one thread inside, and give the former number back.

    A head on encoded texts is thousands of small products; handing them between two threads costs more than the second
    thread gives: a cell of fine-tune (head) took 18 s on one thread and 50 s on two. The encoder, whose products are large,
    keeps all threads.
    """
    import torch

    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
