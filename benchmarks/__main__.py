"""Run every benchmark and write benchmarks/RESULTS.md."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from benchmarks import bulk, episodes, routing, threads

PARTS = {
    "Waiting policy of idle threads": threads,
    "Routing": routing,
    "Stage 2 on cached vectors, DMIN": episodes,
    "Classifying files": bulk,
}


def main() -> None:
    """Print and store the tables."""
    versions = f"{torch.get_num_threads()} threads, torch {torch.__version__}, Python {platform.python_version()}"
    turns = "Medians; figures of one table were taken in turns in one run."
    lines = ["# Benchmarks", "", f"Made by `make bench`: {versions}. {turns}"]
    for title, part in PARTS.items():
        lines += ["", f"## {title}", "", (part.__doc__ or "").strip(), "", *part.main()]
        print("\n".join(lines[-8:]), flush=True)
    Path(__file__).with_name("RESULTS.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
