"""Simulated labelling on nine data sets: accuracy and found classes against labels bought, for `dmin.suggest` and others.

DMIN_DATA=... python reproduce/labelling.py encode                  # vectors into the cache; slow once
DMIN_DATA=... python reproduce/labelling.py tune --out runs/labelling     # every candidate of ours, on seeds of its own
DMIN_DATA=... python reproduce/labelling.py simulate --out runs/labelling
DMIN_DATA=... python reproduce/labelling.py discover --out runs/labelling
DMIN_DATA=... python reproduce/labelling.py forecast --out runs/labelling
python reproduce/labelling_report.py runs/labelling                 # reproduce/LABELLING.md and the picture

Pools are uneven: of each class a share is kept that is drawn between 10 % and 100 % on a logarithmic scale (at least 3
texts). Test texts are even: 30 per class, at most half of it. A label is bought by looking it up. The constants of
ours that are used on a set are those that were best on the eight others. Results are lines of JSON; what was done is not
done again.

--vectors FOLDER takes vectors that were made beforehand: NAME.index.json lists the texts, NAME.KIND.npy holds their vectors
(--kind); texts without one are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from labelling_strategies import BASELINES, GRID, State, Strategy, fitted

from dmin.data.readers import read_corpus
from dmin.labelling.vectors import centred, encode_pile, mean_direction

SETS = ("banking77", "clinc150", "hwu64", "liu54", "stackoverflow", "debian", "goemotions", "fortunes", "news20")
PER_CLASS, TEST, MOST = 80, 30, 6000  # pool texts per class, test texts per class, pool texts that are encoded
ROUNDS = 8  # batches of half as many labels as there are classes
SEEDS, TUNING_SEEDS = range(10), range(100, 103)


def generator_of(*key: object) -> np.random.Generator:
    """A generator that depends on its names alone."""
    return np.random.default_rng(int(hashlib.sha256("|".join(map(str, key)).encode()).hexdigest()[:15], 16))


class World:
    """A data set: the pool and test rows of each class, and the vectors of both."""

    def __init__(self, name: str, vectors: Path | None = None, kind: str = "bge") -> None:
        corpus = read_corpus(Path(os.environ["DMIN_DATA"]) / name / "texts.jsonl", name=name)
        made = json.loads((vectors / f"{name}.index.json").read_text()) if vectors else None
        wanted = set(made) if made else set(corpus.texts)
        self.name, self.classes = name, sorted(corpus.by_class)
        per_class = min(PER_CLASS, MOST // len(self.classes))
        self.texts: list[str] = []
        self.labels: list[int] = []
        self.pool: list[Any] = []
        self.test: list[Any] = []
        seen: set[str] = set()
        for number, label in enumerate(self.classes):
            texts = dict.fromkeys(corpus.texts[row] for row in corpus.by_class[label])
            texts = [text for text in texts if text in wanted and text not in seen]
            seen.update(texts)
            order = generator_of(name, label, "order").permutation(len(texts))[: TEST + per_class]
            tests = min(TEST, len(order) // 2)
            rows = np.arange(len(self.texts), len(self.texts) + len(order))
            self.texts += [texts[place] for place in order]
            self.labels += [number] * len(order)
            self.test.append(rows[:tests])
            self.pool.append(rows[tests:])
        if vectors and made:
            place = {text: row for row, text in enumerate(made)}
            self.vectors = np.load(vectors / f"{name}.{kind}.npy")[[place[text] for text in self.texts]]  # [n, d]
        else:
            self.vectors = encode_pile(self.texts)  # [n, d]

    def draw(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """Vectors and labels of an uneven pool and of the test texts, centred with the pool's mean."""
        generator = generator_of(self.name, "pool", seed)
        rows = []
        for pool in self.pool:
            kept = max(3, round(len(pool) * 10 ** -generator.random()))
            rows.append(generator.permutation(pool)[:kept])
        chosen, test = generator.permutation(np.concatenate(rows)), np.concatenate(self.test)
        mean, labels = mean_direction(self.vectors[chosen]), np.array(self.labels)
        return centred(self.vectors[chosen], mean), labels[chosen], centred(self.vectors[test], mean), labels[test]


@dataclass
class Worlds:
    """The data sets, opened one at a time."""

    names: tuple[str, ...]
    vectors: Path | None
    kind: str
    opened: World | None = None

    def open(self, name: str) -> World:
        """The data set of this name; the last one stays open."""
        if self.opened is None or self.opened.name != name:
            self.opened = World(name, self.vectors, self.kind)
        return self.opened


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
            jobs = [(key, seed) for key in (*BASELINES, *sorted(chosen)) for seed in SEEDS]
        jobs = [(key, seed) for key, seed in jobs if (name, key, seed) not in done]
        for key, seed in jobs:
            curve = simulate(worlds.open(name), {**BASELINES, **GRID}[key], seed)
            append(path, {"set": name, "strategy": key, "seed": seed, **curve})
        print(name, "tuned" if tuning else "simulated", flush=True)


def choose_candidate(rows: list[dict[str, Any]], without: str | None = None) -> str:
    """The candidate of ours with the highest area under its curves on the seeds for choosing, over all sets but one."""
    areas: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["strategy"] in GRID and row["seed"] in TUNING_SEEDS and row["set"] != without:
            areas.setdefault(row["strategy"], {}).setdefault(row["set"], []).append(float(np.mean(row["accuracy"])))
    return max(areas, key=lambda key: float(np.mean([np.mean(values) for values in areas[key].values()])))


def run_discovery(worlds: Worlds, out: Path) -> None:
    """Adjusted Rand index and normalised mutual information of `discover` at its grains, k-means, Ward and HDBSCAN."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    path = out / "discovery.jsonl"
    done = {(row["set"], row["seed"], row["method"]) for row in read_lines(path)}
    for name in worlds.names:
        for seed, family in [(seed, family) for seed in SEEDS for family in CLUSTERINGS]:
            if any((name, seed, method) in done for method in CLUSTERINGS[family]):
                continue
            world = worlds.open(name)
            vectors, labels, _, _ = world.draw(seed)
            found = clusterings(family, vectors, len(world.classes), seed)
            for method, clusters in zip(CLUSTERINGS[family], found, strict=True):
                append(path, {
                    "set": name, "seed": seed, "method": method, "classes": len(world.classes),
                    "clusters": int(clusters.max()) + 1, "nowhere": float((clusters < 0).mean()),
                    "ari": float(adjusted_rand_score(labels, clusters)),
                    "nmi": float(normalized_mutual_info_score(labels, clusters)),
                })  # fmt: skip
        print(name, "discovered", flush=True)


CLUSTERINGS = {
    "discover": ("discover, coarse", "discover, medium", "discover, fine"),
    "k-means": ("k-means, true number",),
    "ward": ("Ward, true number",),
    "hdbscan": ("HDBSCAN, 5",),
    "hdbscan 15": ("HDBSCAN, 5, 15 components",),
}


def clusterings(family: str, vectors: Any, classes: int, seed: int) -> list[Any]:
    """The cluster of each row, once for each method of a family; -1 where it fits nowhere."""
    from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
    from sklearn.decomposition import PCA

    from dmin.labelling.clusters import cluster

    if family == "discover":
        return [part.assigned for part in cluster(vectors, seed=seed)]
    if family == "k-means":
        return [KMeans(classes, n_init=1, random_state=seed).fit_predict(vectors)]
    if family == "ward":
        return [AgglomerativeClustering(classes, linkage="ward").fit_predict(vectors)]
    if family == "hdbscan 15":
        vectors = PCA(15, random_state=seed).fit_transform(vectors)
    return [HDBSCAN(min_cluster_size=5, copy=True).fit_predict(vectors)]


def run_forecasts(worlds: Worlds, out: Path, step: int = 10) -> None:
    """The record of a session in batches of ten: each prediction before its answer, and the true accuracy on the rest."""
    path = out / "records.jsonl"
    done = {(row["set"], row["seed"]) for row in read_lines(path)}
    for name in worlds.names:
        for seed in [seed for seed in list(SEEDS)[:5] if (name, seed) not in done]:
            append(path, {"set": name, "seed": seed, **record(worlds.open(name), seed, step)})
        print(name, "recorded", flush=True)


def record(world: World, seed: int, step: int) -> dict[str, Any]:
    """Outcomes (labels, right, stands for, confidence) and truths (labels, accuracy, confidences of the rest)."""
    from dmin.labelling.selection import choose_rows, confidence, uncertainty

    vectors, labels, _, _ = world.draw(seed)
    state, outcomes, truth, model = State(vectors, labels, len(world.classes), seed), [], [], None
    while len(state.bought) < min(4 * len(world.classes), len(vectors) // 2):
        known, names = vectors[state.bought], list(labels[state.bought])
        weights = uncertainty(vectors, known, names) if state.bought else None
        chosen = choose_rows(vectors, step, known=known, weights=weights, taken=state.bought)
        if not chosen.rows:
            break
        rows = list(chosen.rows)
        if model is not None:
            right, sure = model.predict(vectors[rows]) == labels[rows], confidence(vectors[rows], known, names)
            outcomes += [
                (len(state.bought), bool(right[place]), chosen.stands_for[place], round(float(sure[place]), 4))
                for place in range(len(rows))
            ]
        state.bought += rows
        if state.known_classes > 1:
            model = fitted(vectors[state.bought], labels[state.bought])
            rest = state.free
            sure = confidence(vectors[rest], vectors[state.bought], list(labels[state.bought]))
            spread = np.quantile(sure, np.linspace(0.01, 0.99, 50)).round(4).tolist()
            truth.append((len(state.bought), float((model.predict(vectors[rest]) == labels[rest]).mean()), spread))
    return {"classes": len(world.classes), "outcomes": outcomes, "truth": truth}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The results so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def append(path: Path, row: dict[str, Any]) -> None:
    """Add one result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("encode", "tune", "simulate", "discover", "forecast"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--out", type=Path, default=Path("runs/labelling"))
    parser.add_argument("--vectors", type=Path, help="folder of vectors made beforehand")
    parser.add_argument("--kind", default="bge", help="which of them")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    worlds = Worlds(tuple(chosen.sets.split(",")), chosen.vectors, chosen.kind)
    if chosen.what == "encode":
        for name in worlds.names:
            start = time.perf_counter()
            print(name, len(worlds.open(name).texts), f"{time.perf_counter() - start:.0f} s", flush=True)
    elif chosen.what in ("tune", "simulate"):
        run_simulations(worlds, chosen.out, tuning=chosen.what == "tune")
    elif chosen.what == "discover":
        run_discovery(worlds, chosen.out)
    else:
        run_forecasts(worlds, chosen.out)


if __name__ == "__main__":
    main()
