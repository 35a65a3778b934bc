"""The benchmarks' driver and their tools."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as driver
from benchmarks.common import Result, mixed_texts, ratio, short_texts, spread, take_turns


def test_parts_are_stored_one_by_one_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "FOLDER", tmp_path)
    made = {"n": 0}

    def part(name: str) -> SimpleNamespace:
        made["n"] += 1
        return SimpleNamespace(__doc__=f"About {name}.", main=lambda: Result([f"| {made['n']} |"], {"n": made["n"]}))

    monkeypatch.setattr(importlib, "import_module", part)
    driver.main(["routing", "encoder"])
    driver.main(["routing"])
    stored = json.loads((tmp_path / "results.json").read_text())
    assert stored["routing"]["figures"] == {"n": 3} and stored["encoder"]["figures"] == {"n": 2}
    text = (tmp_path / "RESULTS.md").read_text()
    assert text.index("## Routing") < text.index("| 3 |") < text.index("## Encoder") < text.index("| 2 |")
    with pytest.raises(SystemExit, match="unknown: rooting; there are: routing"):
        driver.main(["rooting"])


def test_every_part_is_there() -> None:
    for name in driver.TITLES:
        part = importlib.import_module(f"benchmarks.{name}")
        assert callable(part.main) and part.__doc__


def test_turns_ratios_and_spread() -> None:
    seen: list[tuple[str, int]] = []
    seconds = take_turns({"a": lambda turn: seen.append(("a", turn)), "b": lambda turn: seen.append(("b", turn))}, 2)
    assert seen == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert [len(values) for values in seconds.values()] == [2, 2]
    assert ratio([2.0, 9.0, 4.0], [1.0, 3.0, 2.0]) == 2.0
    assert spread([0.001, 0.003, 0.002], 1000) == "2.0 (1.0 to 3.0)"


def test_texts_are_fresh_in_every_turn() -> None:
    assert not set(short_texts(64, 1)) & set(short_texts(64, 2))
    words = [len(text.split()) for text in mixed_texts(64)]
    assert min(words) < 10 and max(words) > 150


def test_peak_memory_sees_what_is_held_for_a_moment() -> None:
    """In a process of its own: one that held much before may find the room without growing."""
    program = """
import time
from benchmarks.common import peak_above

def work():
    held = bytearray(80_000_000)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(0.05)

print(peak_above(work))
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert 60 < float(done.stdout) < 120
