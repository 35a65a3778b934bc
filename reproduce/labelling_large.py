"""The `large` step of `labelling.py`: time and memory of `dmin.suggest` on 100,000 texts whose vectors are known.

Each measurement is a process of its own; memory is its highest resident size. The texts are the pools' own, each repeated
with a number, and their vectors with a little noise, so that no two are equal and none is a near-duplicate of many.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from labelling_worlds import World, Worlds, append

TEXTS = 100_000


def run_large(worlds: Worlds, out: Path) -> None:
    """Suggest 20 texts without labels, and with 200 labelled."""
    out.mkdir(parents=True, exist_ok=True)
    world = World(worlds.names[0])
    generator = np.random.default_rng(0)
    rows = generator.integers(len(world.texts), size=TEXTS)
    noise = 0.02 * generator.normal(size=(TEXTS, world.vectors.shape[1])).astype(np.float32)
    np.save(out / "large.npy", world.vectors[rows] + noise)
    (out / "large.json").write_text(
        json.dumps([[f"{world.texts[row]} {n}", world.labels[row]] for n, row in enumerate(rows)])
    )
    for labelled in (0, 200):
        command = [sys.executable, __file__, str(out), str(labelled)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (our own words)
        append(out / "large.jsonl", {"set": world.name, **json.loads(done.stdout.splitlines()[-1])})
    print(*(out / "large.jsonl").read_text().splitlines(), sep="\n")


def measure(folder: Path, labelled: int) -> dict[str, float]:
    """Seconds and bytes of one call; what importing and reading need is told apart."""
    import dmin
    from dmin import FewShotClassifier

    pairs = json.loads((folder / "large.json").read_text())
    texts, vectors = [text for text, _ in pairs], np.load(folder / "large.npy")
    classifier = None
    if labelled:
        examples: dict[str, list[str]] = {}
        for text, label in pairs[:labelled]:
            examples.setdefault(f"class {label}", []).append(text)
        classifier = FewShotClassifier().fit(examples)
    before = highest_memory()
    start = time.perf_counter()
    found = dmin.suggest(texts, classifier, n=20, vectors=vectors)
    seconds = time.perf_counter() - start
    highest = highest_memory()
    return {
        "texts": len(texts), "labelled": labelled, "suggested": len(found), "seconds": seconds,
        "bytes_before": before, "bytes": highest,
    }  # fmt: skip


def highest_memory() -> int:
    """The highest resident size of this process in bytes; ru_maxrss would begin with that of its parent."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]))))
