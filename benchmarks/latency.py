"""One short text at a time, warm: p50 and p99 of `predict` by the clock, and processor time of one text.

66 classes of 5 examples with names, fresh texts of about 12 tokens, default settings of each encoder, in turns. The last
two columns are processor time: a text with the default settings (as many threads as cores, if the library takes them)
against the same text where OMP_NUM_THREADS=1, each setting in a process of its own, medians of five processes in turns. A
ratio above 1 is what waiting threads burn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np

from benchmarks.common import Result, middle, ratio

NAMES, PROCESSES = ("bge-small", "minilm", "static", "cascade"), 5
PROGRAM = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from benchmarks.common import short_texts
from dmin import FewShotClassifier
from dmin.data import load_corpus
examples = {label: list(texts[:5]) for label, texts in load_corpus("starter").examples.items()}
classifier = FewShotClassifier(encoder=sys.argv[1]).fit(examples)
texts = short_texts(150, turn=int(sys.argv[2]))
for text in texts[:30]:
    classifier.predict([text])
wall, work = [], []
for text in texts[30:]:
    start, used = time.perf_counter(), time.process_time()
    classifier.predict([text])
    wall.append(time.perf_counter() - start)
    work.append(time.process_time() - used)
print(json.dumps([wall, sum(work) / len(work)]))
"""


def main() -> Result:
    """One row for each encoder."""
    lines = ["| encoder | p50, ms | p99, ms | processor ms of a text | against one thread |", "|---|---|---|---|---|"]
    figures = {}
    for name in NAMES:
        wall, work = list[float](), {"default": list[float](), "one": list[float]()}
        for turn in range(PROCESSES):
            for kind, threads in (("default", None), ("one", "1")):
                found, seconds = _run(name, turn, threads)
                work[kind].append(seconds)
                wall += found if kind == "default" else []
        p50, p99 = (1000 * float(np.quantile(wall, part)) for part in (0.5, 0.99))
        burnt = ratio(work["default"], work["one"])
        lines.append(f"| {name} | {p50:.1f} | {p99:.1f} | {1000 * middle(work['default']):.1f} | {burnt:.2f}x |")
        figures[name] = {"p50_ms": p50, "p99_ms": p99, "processor_against_one_thread": burnt}
    return Result(lines, figures)


def _run(name: str, turn: int, threads: str | None) -> tuple[list[float], float]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    given = clean if threads is None else {**clean, "OMP_NUM_THREADS": threads}
    command = [sys.executable, "-c", PROGRAM, name, str(turn)]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)  # noqa: S603 (our own text)
    wall, work = json.loads(done.stdout)
    return wall, work


if __name__ == "__main__":
    print("\n".join(main().lines))
