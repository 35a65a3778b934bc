"""Classifying files: one process on all cores, and two Ray actors of one thread each; 15 classes of 5 examples.

The texts are the built-in set, repeated with a number at the end. Both engines take turns over the same Parquet files. The
speed is that of the work under way; what Ray needs before the first row and after the last stands beside it. The
processor time of the one process tells what a text costs where other programs share the cores.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.common import Result
from dmin import FewShotClassifier
from dmin.bulk.fields import answer_fields, field_names
from dmin.bulk.files import classify_file
from dmin.bulk.inputs import read_texts
from dmin.bulk.ray import classify_files
from dmin.data import load_corpus

CLASSES, EXAMPLES = 15, 5
FILES, TURNS, ACTORS = 6, 3, 2
BATCH = 1024  # what the actors take
TEXTS = (1e6, 1e8, 1e9)
CORES = (1, 16, 256)


@dataclass
class Clock:
    """When rows were done, to leave start-up out of the speed."""

    start: float
    points: list[tuple[float, int]]

    def __call__(self, rows: int) -> None:
        if rows:
            done = self.points[-1][1] if self.points else 0
            self.points.append((time.perf_counter(), done + rows))

    def speed(self) -> float:
        """Rows a second between the first and the last that were counted."""
        (first, some), (last, every) = self.points[0], self.points[-1]
        return (every - some) / (last - first)

    def overhead(self) -> float:
        """Seconds that are not explained by the speed."""
        return time.perf_counter() - self.start - self.points[-1][1] / self.speed()


def clocked(work: Callable[[Clock], object]) -> tuple[float, float, float]:
    """Rows a second, seconds beside them, and this process's own processor time in ms a row."""
    clock, before = Clock(time.perf_counter(), []), time.process_time()
    work(clock)
    return clock.speed(), clock.overhead(), 1000 * (time.process_time() - before) / clock.points[-1][1]


def write_files(folder: Path, texts: list[str]) -> None:
    """Files of the same size, with texts that differ a little."""
    import pyarrow
    from pyarrow import parquet

    folder.mkdir()
    for number in range(FILES):
        table = pyarrow.table({"text": [f"{text} {number}" for text in texts]})
        parquet.write_table(table, folder / f"{number}.parquet")


def one_process(classifier: FewShotClassifier, source: Path, output: Path, clock: Clock) -> None:
    """What `dmin classify` does with one file after the other."""
    output.mkdir()
    for path in sorted(source.iterdir()):
        classify_file(
            read_texts(path, "text"), output / path.name, lambda texts: answer_fields(classifier, texts, 1),
            fields=field_names(1), batch=BATCH, after_batch=clock,
        )  # fmt: skip


def measure() -> dict[str, list[tuple[float, float, float]]]:
    """Both engines in turns over the same files."""
    corpus = load_corpus("starter")
    chosen = list(corpus.by_class.items())[:CLASSES]
    classifier = FewShotClassifier(device="cpu").fit(
        {label: [corpus.texts[row] for row in rows[:EXAMPLES]] for label, rows in chosen}
    )
    found: dict[str, list[tuple[float, float, float]]] = {"one": [], "ray": []}
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "in"
        write_files(source, list(corpus.texts))
        for turn in range(TURNS):
            one, many = Path(scratch) / f"one-{turn}", Path(scratch) / f"ray-{turn}"
            found["one"].append(clocked(lambda clock, to=one: one_process(classifier, source, to, clock)))
            found["ray"].append(
                clocked(
                    lambda clock, to=many: classify_files(
                        classifier, str(source), str(to), workers=ACTORS, after_batch=clock
                    )
                )
            )
    return found


def duration(seconds: float) -> str:
    """A time that one can picture."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} seconds"


def main() -> Result:
    """Return what was measured, and what it comes to if every core goes on like that."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = measure()
    torch.set_num_threads(threads)
    speed = {name: [turn[0] for turn in turns] for name, turns in found.items()}
    middle = {name: statistics.median(values) for name, values in speed.items()}
    names = {"one": "one process, whose encoder takes all cores", "ray": f"Ray, {ACTORS} actors of one thread"}
    lines = [
        "| | texts/s (min to max) | ms per text and core | processor ms | against one process | start and end, s |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, values in speed.items():
        cores = ACTORS if name == "ray" else 1
        beside = f"{statistics.median(turn[1] for turn in found[name]):.0f}" if name == "ray" else ""
        processor = f"{statistics.median(turn[2] for turn in found[name]):.2f}" if name == "one" else ""
        lines.append(
            f"| {names[name]} | {middle[name]:.0f} ({min(values):.0f} to {max(values):.0f}) "
            f"| {1000 * cores / middle[name]:.2f} | {processor} | {middle[name] / middle['one']:.2f}x | {beside} |"
        )
    per_core = middle["ray"] / ACTORS
    lines += ["", f"Extrapolated from {per_core:.0f} texts per second and core:", ""]
    lines += ["| texts | " + " | ".join(f"{cores} cores" if cores > 1 else "1 core" for cores in CORES) + " |"]
    lines += ["|---" * (1 + len(CORES)) + "|"]
    for texts in TEXTS:
        times = " | ".join(duration(texts / (per_core * cores)) for cores in CORES)
        lines.append(f"| {texts:,.0f} | {times} |")
    return Result(lines, {"texts_per_second": middle, "per_core": per_core})


if __name__ == "__main__":
    print("\n".join(main().lines))
