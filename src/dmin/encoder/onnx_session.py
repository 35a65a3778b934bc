"""A session of ONNX Runtime on one thread, whose 8-bit products are exact on every processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Products of 8-bit activations with 8-bit weights are added up in 16 bits on x86 processors without VNNI, where sums
# overflow and are cut, so that vectors and scores are not those of other processors. With this the sums are exact.
EXACT_SUMS = ("session.x64quantprecision", "1")
ARITHMETIC = "exact"  # part of the key of cached vectors: those of before this setting may not be the same


def open_session(path: Path) -> Any:
    """Open an ONNX file. Several threads may call the session at the same time; each call computes on its own."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry(*EXACT_SUMS)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
