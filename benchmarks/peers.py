"""Other libraries beside dmin: same five examples per class, same test texts; peers and "dmin, minilm" on the same weights.

The first rows are `FewShotClassifier()` as it comes, on its own encoder bge-small (8 bits); those of "dmin, minilm" have
the peers' all-MiniLM-L6-v2. The shipped spread of the default head was estimated on seven sets, these three among them;
with one that never saw the set the accuracies are those of reproduce/leaderboard.md.

Every figure comes from a fresh process of the library's own environment, offline. "Ready" is from examples in memory to a
classifier that answers, in brackets with loading the encoder. "One class more" is five examples more for a ready
classifier: dmin and semantic-router add them, logistic regression is fitted again on kept vectors, SetFit and FastFit
train again. Texts a second are test texts given at once, each for the first time. Processor seconds (loading included) are
what the work costs where nothing else runs; the clock's grow beside other jobs. Accuracy stands with the half width of its
95 % interval.

    python -m benchmarks.peers [--quick] [--again [PEER ...]] [--show] [--threads N]

`--quick` takes ten classes and little training; `--show` measures nothing. What was measured is kept in runs/peers while
library, worker and texts stay the same, so that an interrupted run goes on; `--again` measures anew, all or those named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.common import Result
from benchmarks.peer_environments import ENVIRONMENTS, ROOT, WORKER, PeerError, work
from benchmarks.peer_table import table
from benchmarks.peer_worker import PEERS
from dmin.data.labels import name_text
from dmin.encoder.pretrained import embedded_folder
from dmin.files import file_digest, write_json

SETS = {"banking77": "hwu64", "clinc150": "banking77", "hwu64": "banking77"}  # the set, and where its new class is from
KEPT = ROOT / "runs" / "peers"
TARGET = Path(__file__).with_name("peers.json")
TEN, SINGLE, ADDED = 10, 50, 3
README_OF_FASTFIT = {
    "num_train_epochs": 40, "num_repeats": 4, "per_device_train_batch_size": 32, "optim": "adafactor",
    "max_text_length": 128,
}  # fmt: skip

Labelled = list[list[str]]


@dataclass(frozen=True)
class Row:
    """One line of a table: a library with its settings on a set."""

    title: str
    peer: str
    data: str
    environment: str | None = "peers"
    options: dict[str, Any] = field(default_factory=dict)
    names: bool = False  # the class's name counts as one more example
    ten: bool = False  # ten classes alone
    reckoned: str | None = None  # not measured: from the row of ten classes with this title

    @property
    def part(self) -> str:
        """The title of its table."""
        return f"{self.data}, ten classes" if self.ten else f"{self.data}, all classes"


def common_rows(data: str, ten: bool = False) -> list[Row]:
    """What takes seconds."""
    own = [
        Row("dmin" + title, "dmin", data, None, {"encoder": encoder, "names": names}, ten=ten)
        for title, encoder, names in (
            (" (default)", None, False),
            (" (default), with names", None, True),
            (", minilm", "minilm", False),
            (", minilm, with names", "minilm", True),
        )
    ]
    return [
        *own,
        Row("sentence-transformers + logistic regression", "logistic", data, ten=ten),
        Row("sentence-transformers + logistic regression, with names", "logistic", data, names=True, ten=ten),
        Row("semantic-router", "semantic-router", data, ten=ten),
        Row("semantic-router, aggregation=sum", "semantic-router", data, options={"aggregation": "sum"}, ten=ten),
    ]


def setfit(data: str, iterations: int | None, ten: bool = False) -> Row:
    """SetFit with a number of iterations, or with its defaults."""
    title = "SetFit, defaults" if iterations is None else f"SetFit, num_iterations={iterations}"
    return Row(title, "setfit", data, options={"num_iterations": iterations} if iterations else {}, ten=ten)


def fastfit(data: str, **changed: int) -> Row:
    """FastFit as its own page advises, but for what is changed."""
    title = ", ".join(["FastFit", *(f"{name}={value}" for name, value in changed.items()), "with names"])
    return Row(title, "fastfit", data, "fastfit", {**README_OF_FASTFIT, **changed}, ten=True)


def plan(quick: bool) -> list[Row]:
    """All rows, the cheap ones first."""
    if quick:
        return [
            *common_rows("banking77", ten=True),
            setfit("banking77", 1, ten=True),
            fastfit("banking77", num_train_epochs=1, num_repeats=1),
        ]
    rows = [row for data in SETS for row in common_rows(data)]
    rows += [setfit(data, 5) for data in ("hwu64", "banking77", "clinc150")]
    rows += common_rows("banking77", ten=True)
    slow = [setfit("banking77", None, ten=True), fastfit("banking77")]
    rows += [setfit("banking77", 5, ten=True), *slow, setfit("banking77", 20)]
    return rows + [Row(row.title, row.peer, data, reckoned=row.title) for row in slow for data in SETS]


# What a worker is given


def read(data: str, name: str) -> Labelled:
    """A leaderboard file as [text, label]."""
    path = Path(os.environ["DMIN_DATA"]) / data / "leaderboard" / f"{name}.jsonl"
    found = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [[row["text"], row["label"]] for row in found]


def make_job(row: Row) -> dict[str, Any]:
    """The worker's job; the test texts in an order of their own, for the first ones are asked one by one."""
    examples, test = read(row.data, "train_5"), read(row.data, "test")
    if row.ten:
        kept = set(list(dict.fromkeys(label for _, label in examples))[:TEN])
        examples, test = ([pair for pair in pairs if pair[1] in kept] for pairs in (examples, test))
    random.Random(0).shuffle(test)  # noqa: S311 (an order, no secret)
    other = read(SETS[row.data], "train_5")
    added = list(dict.fromkeys(label for _, label in other))[:ADDED]
    extra = [[pair for pair in other if pair[1] == label] for label in added]
    if row.names:
        examples, extra = with_names(examples), [with_names(pairs) for pairs in extra]
    return {
        "peer": row.peer, "options": row.options, "encoder": str(embedded_folder()), "examples": examples,
        "extra": extra, "test": test, "single": SINGLE,
    }  # fmt: skip


def with_names(pairs: Labelled) -> Labelled:
    """The examples, and each class's name as one more."""
    return [*pairs, *([name_text(label), label] for label in dict.fromkeys(label for _, label in pairs))]


# Extrapolation


def default_pairs(sizes: Iterable[int]) -> int:
    """How many pairs SetFit's default, oversampling, trains on: twice the more frequent kind, like or unlike.

    An example makes a pair with itself too, so a class of n has n (n + 1) / 2 pairs of one kind.
    """
    counts = list(sizes)
    total = sum(counts)
    alike = sum(count * (count + 1) // 2 for count in counts)
    return 2 * max(alike, total * (total + 1) // 2 - alike)


def work_units(peer: str, examples: Labelled) -> int:
    """What the time to train is proportional to: pairs for SetFit, examples for FastFit."""
    return default_pairs(Counter(label for _, label in examples).values()) if peer == "setfit" else len(examples)


def extrapolate(row: Row, measured: dict[str, Any]) -> dict[str, float]:
    """The time for all classes, in proportion to the work, from the time for ten."""
    few = make_job(Row(row.title, row.peer, "banking77", ten=True))["examples"]
    ratio = work_units(row.peer, read(row.data, "train_5")) / work_units(row.peer, few)
    kinds = ("seconds", "processor_seconds")
    return {"ratio": ratio} | {kind: ratio * measured[f"{kind}_ready_with_loading"] for kind in kinds}


# Measuring


def key(row: Row, job: dict[str, Any], threads: int) -> str:
    """Names a measurement: another job, worker, version or number of threads is another measurement."""
    versions = ENVIRONMENTS[row.environment].versions if row.environment else own_version()
    parts = [json.dumps({**job, "encoder": ""}), WORKER.read_text(encoding="utf-8"), versions, str(threads)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def own_version() -> str:
    """What dmin's own figures depend on: its source and the constants that it ships."""
    files = sorted((ROOT / "src" / "dmin").rglob("*"))
    return "".join(file_digest(path) for path in files if path.suffix in {".py", ".json", ".safetensors"})


def measure(row: Row, threads: int, again: Sequence[str], show: bool) -> dict[str, Any]:
    """{"result"} or {"failure"} of a row; a result is kept, a failure is tried again."""
    job = make_job(row)
    store = KEPT / f"{key(row, job, threads)[:24]}.json"
    if store.is_file() and row.peer not in again:
        return {"result": json.loads(store.read_text(encoding="utf-8"))}
    if show:
        return {}
    try:
        result = work(row.environment, job, threads)
    except PeerError as error:
        return {"failure": str(error)}
    write_json(store, result)
    return {"result": result}


def run(
    rows: Sequence[Row], threads: int, target: Path, again: Sequence[str] = (), show: bool = False
) -> list[dict[str, Any]]:
    """Measure row after row; the JSON file has all that is known after each."""
    found: list[dict[str, Any]] = []
    for row in rows:
        entry: dict[str, Any] = {"part": row.part, "title": row.title, "peer": row.peer, "options": row.options}
        if row.reckoned is None:
            entry |= measure(row, threads, again, show)
        else:
            sources = [one for one in found if one["title"] == row.reckoned and "result" in one]
            entry |= {"extrapolated": extrapolate(row, sources[0]["result"])} if sources else {}
        found.append(entry)
        write_json(target, {"threads": threads, "rows": found})
        if not show:
            print(row.part, "|", row.title, "|", entry.get("result") or entry.get("failure") or "", flush=True)
    return found


def markdown(entries: Sequence[dict[str, Any]], threads: int) -> list[str]:
    """A table for each part, and what one must know to read them."""
    lines = [f"Threads: {threads}. {SETTINGS}"]
    for part in dict.fromkeys(entry["part"] for entry in entries):
        rows = [entry for entry in entries if entry["part"] == part]
        lines += ["", f"### {part}", "", *table(rows)]
    heads = [(one, one["result"]["seconds_add_class_head_only"]) for one in entries if head_only(one)]
    if heads:
        told = "; ".join(f"{one['part']}, {one['title']}: {seconds:.1f} s" for one, seconds in heads)
        lines += ["", f"SetFit's head alone, fitted again on an encoder that was not tuned for the new class: {told}."]
    return lines


def head_only(entry: dict[str, Any]) -> bool:
    """Was adding a class to the head alone measured?"""
    return "seconds_add_class_head_only" in (entry.get("result") or {})


SETTINGS = """\
Five examples per class; the time to add a class is the median of three classes, added one after the other.
Logistic regression: C=10 on L2-normalised vectors. semantic-router: `HuggingFaceEncoder` (mean pooling, L2-normalised),
`LocalIndex`, its defaults (top_k=5, the mean of a class's hits), no threshold; of its three aggregations (mean, max, sum)
the sum was the best on hwu64's test texts, and is shown beside the default for that; its `fit` calibrates confidences,
which needs further labelled texts and changes no answer. SetFit: what is not named is its default; its defaults are
oversampling, one epoch, batches of 16 pairs. FastFit: the settings of its own page (40 epochs, num_repeats=4, batches of
32), in an environment with datasets 2.21 and transformers 4.57, because it imports `load_metric`, which datasets 3 dropped;
it always uses the names.
SetFit and FastFit train for minutes to hours, and their rows are kept from an earlier run with the same versions, worker
and texts; all other rows were measured in one run, after each other.
Extrapolated: the time for ten classes, loading included, times the ratio of the numbers of pairs (SetFit) or of examples
(FastFit).""".replace("\n", " ")


def main(quick: bool = False, again: Sequence[str] = (), show: bool = False, threads: int | None = None) -> Result:
    """Return the tables and write the JSON file (in runs/peers for a quick run)."""
    if not os.environ.get("DMIN_DATA"):
        return Result(["Not measured: DMIN_DATA names no folder of the public sets."])
    count = threads or int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    target = KEPT / "quick.json" if quick else TARGET
    entries = run(plan(quick), count, target, again, show)
    return Result(markdown(entries, count), {"rows": len(entries), "file": target.name})


def command() -> None:
    """`python -m benchmarks.peers`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Other libraries beside dmin.")
    parser.add_argument("--quick", action="store_true", help="ten classes, little training")
    parser.add_argument("--again", nargs="*", choices=sorted(PEERS), help="measure these (else all) even if kept")
    parser.add_argument("--show", action="store_true", help="measure nothing, show what is there")
    parser.add_argument("--threads", type=int, help="threads of each process (else OMP_NUM_THREADS, else all)")
    chosen = parser.parse_args()
    again = PEERS if chosen.again == [] else chosen.again or ()
    print("\n".join(main(chosen.quick, sorted(again), chosen.show, chosen.threads).lines))


if __name__ == "__main__":
    command()
