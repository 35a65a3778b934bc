"""Run the benchmarks and write benchmarks/results.json and benchmarks/RESULTS.md.

`python -m benchmarks` runs all; `python -m benchmarks routing encoder` runs some and keeps what the others found before.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from dmin.cli.app import calm_threads

TITLES = {
    "routing": "Routing",
    "predict": "Prediction",
    "encoder": "Encoder",
    "encoders": "Encoders by name",
    "throughput": "Throughput of a classifier by encoder",
    "latency": "One text at a time",
    "backends": "Accuracy of the backends",
    "training": "Full fine-tuning",
    "episodes": "Stage 2 on cached vectors",
    "startup": "Start-up",
    "cold_start": "Cold start",
    "costs": "What a text costs",
    "many_classes": "Many thousands of classes",
    "threads": "Waiting policy of idle threads",
    "bulk": "Classifying files",
    "serving": "Serving",
    "peers": "Peers",
}
FOLDER = Path(__file__).parent


def main(names: list[str]) -> None:
    """Run these benchmarks, or all, one after the other; each is stored as soon as it is done."""
    calm_threads()  # as the commands do, before torch is imported
    unknown = [name for name in names if name not in TITLES]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are: {', '.join(TITLES)}")
    stored = FOLDER / "results.json"
    results: dict[str, Any] = json.loads(stored.read_text(encoding="utf-8")) if stored.is_file() else {}
    for name in names or TITLES:
        print(f"## {TITLES[name]} ...", flush=True)
        start, part = time.perf_counter(), importlib.import_module(f"benchmarks.{name}")
        found = part.main()
        results[name] = {
            "about": (part.__doc__ or "").strip(), "lines": found.lines, "figures": found.figures, "made": _versions(),
            "seconds": round(time.perf_counter() - start),
        }  # fmt: skip
        print("\n".join(found.lines), flush=True)
        stored.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        (FOLDER / "RESULTS.md").write_text(_markdown(results), encoding="utf-8")


def _versions() -> str:
    import torch

    return f"{os.cpu_count()} cores, torch {torch.__version__}, Python {platform.python_version()}"


def _markdown(results: dict[str, Any]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Made by `make bench`; one part by `make bench BENCH=routing`. Figures of one table were taken",
    ]
    lines += [
        "in turns in one run: medians, with the least and the most. A ratio is the median of the ratios of the rounds."
    ]
    for name, title in TITLES.items():
        if name in results:
            part = results[name]
            lines += ["", f"## {title}", "", part["about"], "", f"`python -m benchmarks {name}`: {part['made']}."]
            lines += ["", *part["lines"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
