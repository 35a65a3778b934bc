"""Small training runs in processes of their own, for the tests that kill, interrupt and starve them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SETTINGS = """
--method dmin --split-seed 1 --split-sizes 5/2/2 --way 3 --shot 2 --queries 4 --base-classes 4 --device cpu
--set stage1.epochs=3 --set stage1.batch=8 --set stage2.validate_every=20 --set stage2.validation_episodes=10
--set test_episodes=0 --set stage2.patience=100 --set stage2.learning_rate=0.001 --set precision=float32
"""


def command(data: Path, encoder: Path, out: Path, *more: str) -> list[str]:
    return ["train", "--data", str(data), "--encoder", str(encoder), "--out", str(out), *SETTINGS.split(), *more]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def start(arguments: list[str], prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*(prefix or (sys.executable,)), "-m", "dmin", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip


def run(arguments: list[str], prefix: tuple[str, ...] = ()) -> tuple[int, str, str]:
    process = start(arguments, prefix)
    output, errors = process.communicate(timeout=600)
    return process.returncode, output, errors
