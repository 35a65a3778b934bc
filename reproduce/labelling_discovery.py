"""The `discover` and `bertopic` steps of `labelling.py`: how well clusters agree with the true classes, and the tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from labelling_worlds import SETS, Worlds, append, read_lines, table

HERE = Path(__file__).parent


def run_discovery(worlds: Worlds, out: Path) -> None:
    """Adjusted Rand index and normalised mutual information of `discover` at its grains, k-means, Ward and HDBSCAN."""
    path = out / "discovery.jsonl"
    done = {(row["set"], row["seed"], row["method"]) for row in read_lines(path)}
    for name in worlds.names:
        for seed, family in [(seed, family) for seed in worlds.seeds for family in CLUSTERINGS]:
            if any((name, seed, method) in done for method in CLUSTERINGS[family]):
                continue
            world = worlds.open(name)
            vectors, labels, _, _ = world.draw(seed)
            found = clusterings(family, vectors, len(world.classes), seed)
            for method, clusters in zip(CLUSTERINGS[family], found, strict=True):
                append(path, agreement(name, seed, method, labels, clusters))
        print(name, "discovered", flush=True)


def run_bertopic(worlds: Worlds, out: Path) -> None:
    """The same for BERTopic, on the same vectors, in a process of its own environment for each set."""
    sys.path.insert(0, str(HERE.parent))
    from benchmarks.peer_environments import ENVIRONMENTS

    path = out / "discovery.jsonl"
    done = {(row["set"], row["seed"]) for row in read_lines(path) if row["method"].startswith("BERTopic")}
    for name in worlds.names:
        seeds = [seed for seed in worlds.seeds if (name, seed) not in done]
        if not seeds:
            continue
        world = worlds.open(name)
        with tempfile.TemporaryDirectory() as folder:
            for seed in seeds:
                np.save(Path(folder) / f"{seed}.npy", world.draw(seed)[0])
                texts = [world.texts[row] for row in world.rows(seed)]
                (Path(folder) / f"{seed}.json").write_text(json.dumps(texts))
            python = str(ENVIRONMENTS["bertopic"].python())
            kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            worker = [python, str(HERE / "labelling_bertopic.py"), folder, *map(str, seeds)]
            subprocess.run(worker, check=True, env={**kept, "HF_HUB_OFFLINE": "1"})  # noqa: S603 (our own words)
            for seed in seeds:
                labels = np.array(world.labels)[world.rows(seed)]
                for method, clusters in json.loads((Path(folder) / f"{seed}.out.json").read_text()).items():
                    append(path, agreement(name, seed, method, labels, np.array(clusters)))
        print(name, "BERTopic", flush=True)


def agreement(name: str, seed: int, method: str, labels: Any, clusters: Any) -> dict[str, Any]:
    """One line of results."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    return {
        "set": name, "seed": seed, "method": method, "classes": len(set(labels.tolist())),
        "clusters": int(clusters.max()) + 1, "nowhere": float((clusters < 0).mean()),
        "ari": float(adjusted_rand_score(labels, clusters)), "nmi": float(normalized_mutual_info_score(labels, clusters)),
    }  # fmt: skip


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


# Tables


def discovery_table(rows: list[dict[str, Any]]) -> str:
    """ARI / NMI of each method on each set, with the number of clusters found."""
    if not rows:
        return ""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = []
    for name in [name for name in SETS if any(row["set"] == name for row in rows)]:
        cells = [f"{name} ({next(row['classes'] for row in rows if row['set'] == name)})"]
        for method in methods:
            part = [row for row in rows if (row["set"], row["method"]) == (name, method)]
            ari, nmi, count = (np.mean([row[key] for row in part]) for key in ("ari", "nmi", "clusters"))
            cells.append(f"{ari:.2f} / {nmi:.2f} ({count:.0f})")
        lines.append(cells)
    return table(["ARI / NMI (clusters)", *methods], lines)


def seeds_line(rows: list[dict[str, Any]]) -> str:
    """How many seeds each family of methods had."""
    count = {
        kind: len({row["seed"] for row in rows if row["method"].startswith("BERTopic") == kind})
        for kind in (False, True)
    }
    bertopic = (
        f"for BERTopic over {count[True]}"
        if count[True]
        else "**BERTopic is not measured yet** (`labelling.py bertopic`)"
    )
    return f"Means over {count[False]} seeds; {bertopic}."


def discovery_summary(rows: list[dict[str, Any]]) -> str:
    """Means over sets, and on how many sets the medium grain is ahead of each other method."""
    if not rows:
        return ""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    names = [name for name in SETS if any(row["set"] == name for row in rows)]

    def of(name: str, method: str, key: str) -> float:
        return float(np.mean([row[key] for row in rows if (row["set"], row["method"]) == (name, method)]))

    lines = []
    for method in methods:
        ahead = [
            sum(of(name, "discover, medium", key) > of(name, method, key) for name in names) for key in ("ari", "nmi")
        ]
        means = [f"{np.mean([of(name, method, key) for name in names]):.2f}" for key in ("ari", "nmi")]
        others = ["", ""] if method == "discover, medium" else [f"{number} of {len(names)}" for number in ahead]
        lines.append([method, *means, *others])
    return table(["mean over sets", "ARI", "NMI", "medium grain ahead by ARI", "by NMI"], lines)
