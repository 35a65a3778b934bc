"""The number of threads is lent, not taken."""

from __future__ import annotations

import pytest
import torch

from dmin.threads import one_thread


def test_threads_come_back() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with one_thread(wanted=False):
            assert torch.get_num_threads() == 2
        with pytest.raises(RuntimeError, match="inside"), one_thread():
            raise RuntimeError("inside")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
