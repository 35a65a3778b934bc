"""What DMM costs new classes: nearest prototypes before and after it, and DMIN on trained and on new classes.

DMIN as written (no map, no centring), and the same without DMM, trained as in the paper's table (split `fair-01`, 5-way
1-shot, encoder frozen), but for a quarter of the texts of each training class, which neither stage learns from. On 300
episodes of the test classes, with DMM as training leaves it:

- *raw*: nearest prototype on the encoder's vectors;
- *examples*: the examples pass DMM, the queries do not, as in DMIN;
- *both*: examples and queries pass DMM.

If the loss came only from comparing examples that passed DMM with queries that did not, *both* would be as good as *raw*.
Besides, both networks on as many episodes of the training classes: of the texts that they learned from, and of those held
back, on which neither stage took a step (stage 1 chose its epoch by them). What DMM gives the latter, it gives classes that
it knows; what the former gain beyond that is fitted to the texts. *Rows hidden*: the held-back texts again, and in each
episode DMM does not see the memory's rows of the episode's own classes, which no new class has. One training per set. It is
here to explain the table and chooses nothing.

    DMIN_DATA=... python -m reproduce.memory_cost run     # half an hour; goes on where it stopped
    python -m reproduce.memory_cost table                 # the pages from memory-cost.jsonl alone
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy import stats
from torch import Tensor

from dmin.data import Corpus, Episode
from dmin.evaluation.bench import Bench
from dmin.evaluation.comparison_plan import PreparedJob
from dmin.evaluation.figures import save_png
from dmin.evaluation.protocol import MethodScorer, Scorer, draw_episodes, run_episodes
from dmin.evaluation.raw import pack, unpack
from dmin.evaluation.statistics import Interval, mean_interval
from dmin.files import write_atomic
from dmin.methods import DMIN
from dmin.methods.vectors import unit
from dmin.training import open_corpus, prepare_task
from dmin.training.sources import EncodedTexts
from dmin.training.train import TRAINING_PARTS
from reproduce.kinds_lines import markdown, put_table
from reproduce.paper_plan import EPISODES, SETS, cells, plan_of, splits_of
from reproduce.paper_rows import WRITTEN

FOLDER = Path(__file__).parent
RAW = FOLDER / "memory-cost.jsonl"
WHOLE, WITHOUT = WRITTEN, f"{WRITTEN}-without-dmm"
SPLIT, WAY, SHOT, QUERIES = "fair-01", 5, 1, 10
HELD_OUT = 0.25
COLUMNS = {
    "raw": "raw", "examples": "examples", "both": "both", "new": "DMIN", "new-without": "w/o DMM",
    "held": "DMIN, training classes, other texts", "held-hidden": "the same, rows hidden",
    "held-without": "w/o DMM, the same",
    "trained": "DMIN, training texts", "trained-without": "w/o DMM, the same",
}  # fmt: skip
Counts = dict[str, list[int]]  # column -> right answers of each episode


class PrototypeScorer:
    """Cosine [L, C] of the queries with the sum of the unit examples of each class.

    Args:
        examples, queries: vectors by row of the corpus, each as it enters the comparison.
    """

    def __init__(self, examples: Mapping[int, Tensor], queries: Mapping[int, Tensor]) -> None:
        self.examples, self.queries = examples, queries

    def __call__(self, episode: Episode) -> Tensor:
        prototypes = torch.stack(
            [unit(torch.stack([self.examples[row] for row in rows])).sum(dim=0) for rows in episode.support]
        )  # [C, d]
        asked = torch.stack([self.queries[row] for row in episode.query_rows])  # [L, d]
        return unit(asked) @ unit(prototypes).T


class HiddenRowsScorer:
    """Scores by DMIN without the rows of W_base that are an episode's own classes'.

    Args:
        method: DMIN.
        texts: the encoded texts.
        base_rows: each training class's row in W_base.
    """

    def __init__(self, method: DMIN, texts: EncodedTexts, base_rows: Mapping[str, int]) -> None:
        self.method, self.texts, self.base_rows = method, texts, base_rows

    @torch.no_grad()
    def __call__(self, episode: Episode) -> Tensor:
        own = torch.tensor([self.base_rows[label] for label in episode.classes])  # [C]
        support, query = (self.texts.at(torch.tensor(rows)) for rows in (episode.support, episode.query_rows))
        hides, self.method.mask_own_rows = self.method.mask_own_rows, True
        self.method.train()  # only then are rows hidden; DMIN does nothing else that differs
        scores: Tensor = self.method(support, query, base_rows=own)
        self.method.eval()
        self.method.mask_own_rows = hides
        return scores


def measure(data: str, jobs: Mapping[str, PreparedJob]) -> Counts:
    """All columns of one set."""
    first, second = (holding_back(jobs[row]) for row in (WHOLE, WITHOUT))
    corpus = open_corpus(first.config)
    bench = Bench(plan_of(data, SPLIT, (first.job.row,), "plain"), first, corpus, warnings.warn)
    found: Counts = {}
    for prepared, ending in ((first, ""), (second, "-without")):
        task = prepare_task(prepared.config, warnings.warn, corpus)
        method, _ = bench.trainer.train(prepared.config, task)
        source = bench.trainer.source(prepared.config, task, "vectors", (*TRAINING_PARTS, "test"))
        held, learned = (
            corpus.hiding(row for row, _ in rows) for rows in (task.base_texts.train, task.base_texts.held_out)
        )
        for name, part, texts in (("new", "test", corpus), ("held", "train", held), ("trained", "train", learned)):
            scorer = MethodScorer(method, source.snapshot(task.text_indices(part)))
            found[name + ending] = right_answers(scorer, texts, task.split.part(part))
        if not ending:
            if not isinstance(method, DMIN):
                raise TypeError(f"{type(method).__name__} has no DMM")
            hidden = HiddenRowsScorer(method, source.snapshot(task.text_indices("train")), task.base_rows)
            found["held-hidden"] = right_answers(hidden, held, task.split.train)
            rows = task.text_indices("test")
            found |= spaces(method, rows, source.vectors(torch.tensor(rows)), corpus, task.split.test)
    return found


def holding_back(prepared: PreparedJob) -> PreparedJob:
    """The job with a part of each training class's texts that neither stage learns from."""
    config = prepared.config
    stage1 = config.stage1.model_copy(update={"held_out": HELD_OUT})
    stage2 = config.stage2.model_copy(update={"hold_out": True})
    return replace(prepared, config=config.model_copy(update={"stage1": stage1, "stage2": stage2}))


@torch.no_grad()
def spaces(method: DMIN, rows: list[int], vectors: Tensor, corpus: Corpus, classes: tuple[str, ...]) -> Counts:
    """Nearest prototypes of texts [n, d] before DMM and after it."""
    raw = dict(zip(rows, vectors, strict=True))
    adapted = dict(zip(rows, torch.cat([method.adapt(part) for part in torch.split(vectors, 500)]), strict=True))
    pairs = {"raw": (raw, raw), "examples": (adapted, raw), "both": (adapted, adapted)}
    return {name: right_answers(PrototypeScorer(*pair), corpus, classes) for name, pair in pairs.items()}


def right_answers(scorer: Scorer, corpus: Corpus, classes: tuple[str, ...]) -> list[int]:
    """Of each episode; those of the test classes are the ones of the paper's table."""
    episodes = draw_episodes(corpus, classes, WAY, SHOT, QUERIES, EPISODES)
    return [round(accuracy * WAY * QUERIES) for accuracy in run_episodes(scorer, episodes).accuracies]


def read() -> dict[str, Counts]:
    """What was measured, by set."""
    lines = RAW.read_text(encoding="utf-8").splitlines() if RAW.is_file() else []
    found = {line["data"]: line["right"] for line in map(json.loads, lines)}
    return {data: {name: unpack(text) for name, text in found[data].items()} for data in SETS if data in found}


def run() -> None:
    """Measure the sets that are missing."""
    there = read()
    planned = {plan.identity: plan.prepared for plan in cells()}
    for data in SETS:
        if data not in there:
            there[data] = measure(data, {row: planned[data, SPLIT, row, WAY, SHOT, 0] for row in (WHOLE, WITHOUT)})
            lines = [
                json.dumps({"data": name, "right": {column: pack(counts) for column, counts in right.items()}})
                for name, right in there.items()
            ]
            write_atomic(RAW, "\n".join(lines) + "\n")
            print(data, flush=True)


def accuracies() -> dict[str, dict[str, list[float]]]:
    """Of each episode, by set and column."""
    return {
        data: {name: [count / (WAY * QUERIES) for count in counts] for name, counts in columns.items()}
        for data, columns in read().items()
    }


def means() -> dict[str, str]:
    """The mean of each column over the sets, in %."""
    there = accuracies()
    return {name: f"{100 * np.mean([np.mean(columns[name]) for columns in there.values()]):.1f}" for name in COLUMNS}


def summary() -> str:
    """The means, for the front page, and how the loss goes with the number of training classes."""
    mean = means()
    header = [f"mean of {len(read())} sets", "with DMM", "without"]
    rows = [
        ["DMIN as written, the texts that it was trained on", mean["trained"], mean["trained-without"]],
        ["DMIN as written, other texts of the same classes", mean["held"], mean["held-without"]],
        ["the same, the memory's rows of the episode's own classes hidden from DMM", mean["held-hidden"], ""],
        ["DMIN as written, new classes", mean["new"], mean["new-without"]],
        ["nearest prototype, new classes: examples after DMM, queries not, as in DMIN", mean["examples"], mean["raw"]],
        ["nearest prototype, new classes: both after DMM", mean["both"], mean["raw"]],
    ]
    new = gains()["new"]
    correlation, p = rank_correlation(
        [training_classes(data) for data in new], [round(gain.mean, 9) for gain in new.values()]
    )
    said = (
        f"Over these {len(new)} sets, which differ in more than that, what DMM gives new classes goes with the number of "
        f"training classes: rank correlation {correlation:.2f} (Spearman; p = {p:.1g} over all orders)."
    )
    return f"{markdown(header, rows)}\n\n{said}"


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Spearman's, and its two-tailed p over all orders of the second."""
    first, second = (stats.zscore(stats.rankdata(values)) for values in (one, other))
    orders = np.array(list(itertools.permutations(range(len(second)))), dtype=np.int8)
    every = second[orders] @ first / len(first)  # [orders]
    there = float(first @ second / len(first))
    return there, float(np.mean(np.abs(every) >= abs(there) - 1e-9))


def training_classes(data: str) -> int:
    """Of the split."""
    return splits_of(data)[SPLIT][0]


def gains() -> dict[str, dict[str, Interval]]:
    """What DMM gives in points, with its interval over the episodes: kind of classes -> set."""
    there = accuracies()
    return {
        kind: {
            data: mean_interval([100 * (a - b) for a, b in zip(columns[kind], columns[f"{kind}-without"], strict=True)])
            for data, columns in there.items()
        }
        for kind in ("trained", "held", "new")
    }


def picture(path: Path) -> None:
    """What DMM gives on trained and on new classes, by the number of training classes of the set."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axis = figure.subplots()
    said = {
        "trained": ("the texts that it was trained on", "#0f6fb8", "s"),
        "held": ("other texts of the same classes", "#4a9d5b", "^"),
        "new": ("new classes", "#b3541e", "o"),
    }
    counts = {data: training_classes(data) for data in read()}
    twins = {data for data in counts if list(counts.values()).count(counts[data]) > 1}
    for kind, points in gains().items():
        label, colour, marker = said[kind]
        beside = {"trained": 1.015, "held": 1.0, "new": 0.985}[kind]  # the kinds of a set side by side
        seen: set[int] = set()
        for data, gain in points.items():
            left = data in twins and counts[data] not in seen  # two sets of one count, side by side too
            place = counts[data] * beside * (1 if data not in twins else 0.95 if left else 1.05)
            axis.errorbar(
                place, gain.mean, yerr=gain.half_width, fmt=marker, markersize=4, linewidth=1, color=colour,
                label=None if seen else label,
            )  # fmt: skip
            seen.add(counts[data])
            if kind == "new":
                offset, side = ((-5, -9), "right") if left else ((5, -9), "left")
                axis.annotate(
                    data, (place, gain.mean), offset, textcoords="offset points", ha=side, fontsize=7, color="#555555"
                )
    axis.axhline(0, color="#444444", linewidth=0.8, linestyle="--", zorder=0)
    axis.set_xscale("log")
    axis.set_xlim(5.5, 135)
    ticks = sorted(set(counts.values()))
    axis.set_xticks(ticks, [str(count) for count in ticks], fontsize=8)
    axis.minorticks_off()
    axis.set_xlabel("training classes of the set")
    axis.set_ylabel("points that DMM gives (above 0) or costs")
    axis.set_title(
        "DMIN as written less DMIN without DMM, 5-way 1-shot; bars: 95 % confidence interval over 300 episodes",
        fontsize=8,
    )
    axis.legend(fontsize=8)
    axis.grid(linewidth=0.4)
    save_png(figure, path)


def page() -> str:
    """All sets as Markdown."""
    rows = [
        [data, str(training_classes(data)), *(mean_interval(columns[name]).percent() for name in COLUMNS)]
        for data, columns in accuracies().items()
    ]
    rows.append([f"mean of {len(rows)}", "", *means().values()])
    lines = [
        "# What DMM costs new classes",
        "",
        "Made by `python -m reproduce.memory_cost run`.",
        told(__doc__ or ""),
        "",
    ]
    lines += [
        "![Points that DMM gives, by the number of training classes](memory-cost.png)",
        "",
        "Accuracy in % ± 95 % confidence interval over the episodes.",
        "",
        markdown(["", "training classes", *COLUMNS.values()], rows),
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Study:
    """A study of its own page: what it measures, and what is made of that.

    Args:
        name: of its page, its picture and its raw answers.
        block: its place on the front page.
        about: the docstring of its module, whose first line says what it is and whose last are its commands.
    """

    name: str
    block: str
    about: str
    run: Callable[[], None]
    page: Callable[[], str]
    summary: Callable[[], str]
    picture: Callable[[Path], None]

    def command(self) -> None:
        """`run` measures what is missing; then, and with `table` alone, the page, the picture and the front page."""
        parser = argparse.ArgumentParser(description=self.about.split("\n")[0])
        parser.add_argument("action", choices=("run", "table"))
        if parser.parse_args().action == "run":
            self.run()
        write_atomic(FOLDER / f"{self.name}.md", self.page())
        put_table(FOLDER / "README.md", self.block, self.summary())
        self.picture(FOLDER / f"{self.name}.png")


def told(about: str) -> str:
    """What a module's docstring says between its first line and its commands."""
    return "\n".join(about.split("\n")[2:-4])


if __name__ == "__main__":
    Study("memory-cost", "memory", __doc__ or "", run, page, summary, picture).command()
