"""Does letting idle OpenMP threads sleep pay? Encoding and training-like passes, interleaved, in fresh processes.

The policy must be set before torch is imported, so every measurement is a process of its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from benchmarks.common import Result

REPETITIONS = 5
PROGRAM = """
import time
from dmin.data import load_corpus
from dmin.encoder import Encoder
encoder = Encoder(device="cpu")
texts = list(load_corpus("starter").texts[:256])
encoder.encode(texts[:32])
start = time.perf_counter()
encoder.encode(texts)
print(time.perf_counter() - start)
"""
SETTINGS = {
    "default": {},
    "GOMP_SPINCOUNT=10000 (the commands)": {"GOMP_SPINCOUNT": "10000"},
    "OMP_WAIT_POLICY=passive": {"OMP_WAIT_POLICY": "passive"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}


def main() -> Result:
    """Return the table, median and spread of each setting."""
    seconds: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for _ in range(REPETITIONS):
        for name, settings in SETTINGS.items():
            clean = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
            done = subprocess.run(  # noqa: S603 (our own text)
                [sys.executable, "-c", PROGRAM], env={**clean, **settings}, capture_output=True, text=True, check=True
            )
            seconds[name].append(float(done.stdout))
    base = statistics.median(seconds["default"])
    lines = ["| setting | 256 texts, s (min to max) | against default |", "|---|---|---|"]
    for name, values in seconds.items():
        middle = statistics.median(values)
        lines.append(f"| {name} | {middle:.2f} ({min(values):.2f} to {max(values):.2f}) | {middle / base:.2f}x |")
    return Result(lines, seconds)


if __name__ == "__main__":
    print("\n".join(main().lines))
