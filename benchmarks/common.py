"""What the benchmarks share: taking turns, medians with their spread, texts, peak memory."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from dmin.data import load_corpus


@dataclass(frozen=True)
class Result:
    """What a benchmark found: lines of Markdown, and the same as figures."""

    lines: list[str]
    figures: dict[str, Any] = field(default_factory=dict)


def take_turns(
    forms: Mapping[str, Callable[[int], object]], repetitions: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each form, one after the other in every round, so that a slow moment of the machine hits all.

    A form gets the number of the round, to take fresh inputs by; round 0 warms up and is not counted. With
    `time.process_time` as clock, processor time is taken, on which other work of the machine has little influence.
    """
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    for turn in range(repetitions + 1):
        for name, form in forms.items():
            start = clock()
            form(turn)
            if turn:
                seconds[name].append(clock() - start)
    return seconds


def middle(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios ours / theirs of the same rounds: what happens to both in a round cancels."""
    return statistics.median(one / two for one, two in zip(ours, theirs, strict=True))


def spread(values: Sequence[float], unit: float = 1.0, digits: int = 1) -> str:
    """Median (min to max), in a unit."""
    low, high = min(values) * unit, max(values) * unit
    return f"{middle(values) * unit:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


@cache
def starter_texts() -> tuple[str, ...]:
    """The built-in texts, read once, so that no timing holds the reading."""
    return load_corpus("starter").texts


def short_texts(count: int, turn: int = 0) -> list[str]:
    """Texts of about 12 tokens; those of another turn are others."""
    found = starter_texts()
    return [f"{found[number % len(found)]} {turn * count + number}" for number in range(count)]


def mixed_texts(count: int, turn: int = 0, longest: int = 256) -> list[str]:
    """Texts of 5 to about 250 tokens, evenly."""
    found = starter_texts()
    texts = []
    for number in range(count):
        wanted, words = 4 + (number * 37 + turn * 11) % (longest - 30), []
        while len(words) < wanted:
            words += found[(number * 7 + turn + len(words)) % len(found)].split()
        texts.append(" ".join(words[:wanted]))
    return texts


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let torch compute on so many threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def resident() -> float:
    """Megabytes that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def peak_above(work: Callable[[], object]) -> float:
    """Megabytes that the process held at most during `work`, above what it held before; looked at every 0.2 ms."""
    done, seen = threading.Event(), [0.0]

    def watch() -> None:
        while not done.is_set():
            seen[0] = max(seen[0], resident())
            time.sleep(0.0002)

    before = resident()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return seen[0] - before
