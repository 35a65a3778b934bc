"""Simulated labelling on nine data sets: accuracy and found classes against labels bought, for `dmin.suggest` and others.

DMIN_DATA=... python reproduce/labelling.py encode                  # vectors into the cache; slow once
DMIN_DATA=... python reproduce/labelling.py tune --out runs/labelling     # every candidate of ours, on seeds of its own
DMIN_DATA=... python reproduce/labelling.py simulate --out runs/labelling
DMIN_DATA=... python reproduce/labelling.py discover --out runs/labelling
DMIN_DATA=... python reproduce/labelling.py bertopic --out runs/labelling      # in an environment that it makes; see below
DMIN_DATA=... python reproduce/labelling.py records --out runs/labelling       # for the forecast
DMIN_DATA=... python reproduce/labelling.py sessions --out runs/labelling
DMIN_DATA=... python reproduce/labelling.py sessions --out runs/labelling --sets starter
DMIN_DATA=... python reproduce/labelling.py large --out runs/labelling         # 100,000 texts: time and memory
python reproduce/labelling_report.py runs/labelling                 # reproduce/LABELLING.md and the picture

Pools are uneven: of each class a share is kept that is drawn between 10 % and 100 % on a logarithmic scale (at least 3
texts). Test texts are even: 30 per class, at most half of it. A label is bought by looking it up. The constants of
ours that are used on a set are those that were best on the eight others. Results are lines of JSON; what was done is not
done again. BERTopic runs in `.venv-peers-bertopic`, made from benchmarks/peers-bertopic.txt, or in the environment that
$DMIN_PEERS_BERTOPIC names.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from labelling_discovery import run_bertopic, run_discovery
from labelling_large import run_large
from labelling_sessions import run_records, run_sessions
from labelling_strategies import BASELINES, GRID, State, Strategy, fitted
from labelling_worlds import SEEDS, SETS, TUNING_SEEDS, World, Worlds, append, read_lines

from dmin.labelling.selection import EXPONENT, MEASURE, POWER

ROUNDS = 8  # batches of half as many labels as there are classes
DEFAULT = f"ours {POWER:g} {MEASURE} {EXPONENT:g}"
STEPS = {
    "discover": run_discovery, "bertopic": run_bertopic, "records": run_records, "sessions": run_sessions,
    "large": run_large,
}  # fmt: skip


def simulate(world: World, strategy: Strategy, seed: int) -> dict[str, Any]:
    """One curve: after each batch, accuracy on the test texts and the share of classes found."""
    vectors, labels, test, truth = world.draw(seed)
    state = State(vectors, labels, len(world.classes), seed)
    bought, accuracy, found, seconds = [], [], [], 0.0
    for step in range(1, ROUNDS + 1):
        start = time.perf_counter()
        rows = strategy(state, round(len(world.classes) * step / 2) - len(state.bought))
        seconds += time.perf_counter() - start
        state.bought += rows
        if len(set(state.bought)) != len(state.bought):
            raise AssertionError("a row was bought twice")
        known = labels[state.bought]
        guess = (
            fitted(vectors[state.bought], known).predict(test)
            if state.known_classes > 1
            else np.full(len(truth), known[0])
        )
        bought.append(len(state.bought))
        accuracy.append(float((guess == truth).mean()))
        found.append(state.known_classes / len(world.classes))
    return {"labels": bought, "accuracy": accuracy, "found": found, "seconds": seconds, "classes": len(world.classes)}


def run_simulations(worlds: Worlds, out: Path, *, tuning: bool) -> None:
    """Tuning: every candidate of ours on seeds for choosing. Else: baselines and the candidate chosen on other sets."""
    path = out / "curves.jsonl"
    done = {(row["set"], row["strategy"], row["seed"]) for row in read_lines(path)}
    for name in worlds.names:
        if tuning:
            jobs = [(key, seed) for key in GRID for seed in TUNING_SEEDS]
        else:
            chosen = {choose_candidate(read_lines(path), without=name), choose_candidate(read_lines(path))}
            jobs = [(key, seed) for key in (*BASELINES, *sorted(chosen)) for seed in worlds.seeds]
        jobs = [(key, seed) for key, seed in jobs if (name, key, seed) not in done]
        for key, seed in jobs:
            curve = simulate(worlds.open(name), {**BASELINES, **GRID}[key], seed)
            append(path, {"set": name, "strategy": key, "seed": seed, **curve})
        print(name, "tuned" if tuning else "simulated", flush=True)


def choose_candidate(rows: list[dict[str, Any]], without: str | None = None) -> str:
    """The candidate of ours with the highest area under its curves on the seeds for choosing, over all sets but one.

    Where nothing was tuned, the product's own constants.
    """
    areas: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["strategy"] in GRID and row["seed"] in TUNING_SEEDS and row["set"] != without:
            areas.setdefault(row["strategy"], {}).setdefault(row["set"], []).append(float(np.mean(row["accuracy"])))
    if not areas:
        return DEFAULT
    return max(areas, key=lambda key: float(np.mean([np.mean(values) for values in areas[key].values()])))


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("encode", "tune", "simulate", *STEPS))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--out", type=Path, default=Path("runs/labelling"))
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="only so many of the seeds")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    worlds = Worlds(tuple(chosen.sets.split(",")), SEEDS[: chosen.seeds])
    if chosen.what == "encode":
        for name in worlds.names:
            start = time.perf_counter()
            print(name, len(worlds.open(name).texts), f"{time.perf_counter() - start:.0f} s", flush=True)
    elif chosen.what in ("tune", "simulate"):
        run_simulations(worlds, chosen.out, tuning=chosen.what == "tune")
    else:
        STEPS[chosen.what](worlds, chosen.out)


if __name__ == "__main__":
    main()
