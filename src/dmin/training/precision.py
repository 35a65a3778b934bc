"""Where bfloat16 pays: GPUs that have it, and CPUs with matrix tiles that really work."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import torch

_PROBE = """
import torch
with torch.autocast("cpu", dtype=torch.bfloat16):
    torch.nn.Linear(64, 64)(torch.ones(64, 64)).sum().backward()
"""


def pays_bf16(device: torch.device) -> bool:
    """Does the device compute in bfloat16, and faster than in float32?

    On a CPU only the matrix tiles (AMX) are faster, and some virtual machines announce tiles that they do not allow:
    the first use ends the process. So it is tried in a process of its own.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return device.type == "cpu" and _announces_tiles() and _bf16_works()


def breaks_on_bf16(device: torch.device) -> bool:
    """Would bfloat16 end the process, because the tiles that the CPU announces are not allowed?"""
    return device.type == "cpu" and _announces_tiles() and not _bf16_works()


def _announces_tiles() -> bool:
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", bool)())


@cache
def _bf16_works() -> bool:
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, check=False)  # noqa: S603 (our own text)
    return probe.returncode == 0
