"""What DMM gives new classes, by how many classes it was trained on and which of them have a row in the memory.

The sets of the paper's table differ in more than their number of classes. Here a set is compared with itself: DMIN as
written and the same without DMM, trained as in the paper's table (split `fair-01`, 5-way 1-shot, encoder frozen), on some
of the training classes, drawn by the seed, and tested on the same 300 episodes of the same test classes. By default every
training class has a row in W_base, so training never meets a class without one. The last two lines of a set give rows to
half of the classes alone, and draw the training episodes from all classes, or from those without a row
(`episode_classes: without-base`). A gain's interval is over the episodes, of its mean over the training seeds that the last
column counts. It is here to explain the table and chooses nothing.

    DMIN_DATA=... python -m reproduce.memory_classes run     # half an hour per seed; goes on where it stopped
    python -m reproduce.memory_classes table                 # the pages from memory-classes.jsonl alone
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dmin.data import Corpus
from dmin.evaluation.bench import Bench
from dmin.evaluation.comparison_plan import PreparedJob
from dmin.evaluation.figures import save_png
from dmin.evaluation.protocol import MethodScorer
from dmin.evaluation.raw import pack, unpack
from dmin.evaluation.statistics import Interval, mean_interval
from dmin.training import open_corpus, prepare_task
from dmin.training.train import TRAINING_PARTS
from reproduce.kinds_lines import markdown
from reproduce.memory_cost import QUERIES, SHOT, SPLIT, WAY, WHOLE, WITHOUT, Study, right_answers, told
from reproduce.paper_plan import cells, plan_of, splits_of

FOLDER = Path(__file__).parent
RAW = FOLDER / "memory-classes.jsonl"
STUDIED = ("clinc150", "banking77", "hwu64")  # one kind of text, and enough classes to leave some out
SIZES = (10, 20, 40)
SEEDS = 2
EPISODES_OF = {"all": "all of them", "without-base": "those without a row"}


@dataclass(frozen=True)
class Training:
    """What a training is given.

    Args:
        classes: training classes.
        rows: of them have a row in the memory.
        drawn: `episode_classes`.
    """

    classes: int
    rows: int
    drawn: str = "all"

    @property
    def whole(self) -> bool:
        """Does every training class have a row?"""
        return self.rows == self.classes


Place = tuple[str, Training, int]  # set, training, seed


def trainings(data: str) -> list[Training]:
    """Those of a set: fewer classes, all, and rows for half of them."""
    total = splits_of(data)[SPLIT][0]
    fewer = [Training(count, count) for count in SIZES if count < 0.8 * total]
    half = total // 2
    return [*fewer, Training(total, total), Training(total, half), Training(total, half, "without-base")]


def limited(corpus: Corpus, count: int, seed: int) -> Corpus:
    """The corpus with so many training classes in the split."""
    split = corpus.split(SPLIT)
    order = np.random.default_rng([seed, 7]).permutation(len(split.train))[:count]
    chosen = tuple(split.train[index] for index in sorted(order))
    return replace(corpus, splits={**corpus.splits, SPLIT: replace(split, train=chosen)})


def measure(training: Training, jobs: Mapping[str, PreparedJob], seed: int) -> dict[str, list[int]]:
    """Right answers of each episode of the test classes, with DMM and without."""
    changed = {"seed": seed, "episode_classes": training.drawn}
    changed |= {} if training.whole else {"base_classes": training.rows}
    ready = {row: replace(job, config=job.config.model_copy(update=changed)) for row, job in jobs.items()}
    first = ready[WHOLE]
    corpus = limited(open_corpus(first.config), training.classes, seed)
    bench = Bench(plan_of(first.job.data, SPLIT, (first.job.row,), "plain"), first, corpus, warnings.warn)
    found = {}
    for row, prepared in ready.items():
        task = prepare_task(prepared.config, warnings.warn, corpus)
        method, _ = bench.trainer.train(prepared.config, task)
        source = bench.trainer.source(prepared.config, task, "vectors", (*TRAINING_PARTS, "test"))
        scorer = MethodScorer(method, source.snapshot(task.text_indices("test")))
        found[row] = right_answers(scorer, corpus, task.split.test)
    return found


def places() -> list[Place]:
    """All trainings, those of the first seed first."""
    return [(data, training, seed) for seed in range(SEEDS) for data in STUDIED for training in trainings(data)]


def read() -> dict[Place, dict[str, list[int]]]:
    """What was measured."""
    lines = RAW.read_text(encoding="utf-8").splitlines() if RAW.is_file() else []
    found = {
        (line["data"], Training(line["classes"], line["rows"], line["drawn"]), line["seed"]): {
            row: unpack(text) for row, text in line["right"].items()
        }
        for line in map(json.loads, lines)
    }
    return {place: found[place] for place in places() if place in found}


def run() -> None:
    """Measure what is missing."""
    there = read()
    planned = {plan.identity: plan.prepared for plan in cells()}
    for data, training, seed in places():
        if (data, training, seed) in there:
            continue
        jobs = {row: planned[data, SPLIT, row, WAY, SHOT, 0] for row in (WHOLE, WITHOUT)}
        right = {row: pack(counts) for row, counts in measure(training, jobs, seed).items()}
        line = {"data": data, "classes": training.classes, "rows": training.rows, "drawn": training.drawn, "seed": seed}
        with RAW.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**line, "right": right}) + "\n")
        print(line, flush=True)


@dataclass(frozen=True)
class Found:
    """Of one training, over its seeds."""

    with_memory: float  # accuracy in %
    without: float
    gain: Interval  # in points, over the episodes
    seeds: int


def results() -> dict[tuple[str, Training], Found]:
    """By set and training."""
    accuracies: dict[tuple[str, Training], list[np.ndarray]] = {}
    for (data, training, _), right in read().items():
        both = np.array([right[WHOLE], right[WITHOUT]]) * (100 / (WAY * QUERIES))  # [2, episodes]
        accuracies.setdefault((data, training), []).append(both)
    found = {}
    for place, runs in accuracies.items():
        whole, without = np.mean(runs, axis=0)  # [episodes] each
        gain = mean_interval((whole - without).tolist())
        found[place] = Found(float(whole.mean()), float(without.mean()), gain, len(runs))
    return dict(sorted(found.items(), key=lambda item: (STUDIED.index(item[0][0]), places().index((*item[0], 0)))))


def table() -> str:
    """A line per set and training."""
    header = [
        "", "training classes", "rows in the memory", "training episodes draw", "with DMM", "without", "DMM gives", "seeds",
    ]  # fmt: skip
    rows = [
        [
            data, str(training.classes), str(training.rows), EPISODES_OF[training.drawn], f"{found.with_memory:.1f}",
            f"{found.without:.1f}", f"{found.gain.mean:+.1f} ± {found.gain.half_width:.1f}", str(found.seeds),
        ]
        for (data, training), found in results().items()
    ]  # fmt: skip
    return markdown(header, rows)


def picture(path: Path) -> None:
    """What DMM gives new classes, by the number of training classes: a line per set, and the two with fewer rows."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axis = figure.subplots()
    there = results()
    for place, (data, colour) in enumerate(zip(STUDIED, ("#0f6fb8", "#4a9d5b", "#b3541e"), strict=True)):
        mine = {training: found.gain for (name, training), found in there.items() if name == data}
        whole = {training.classes: gain for training, gain in mine.items() if training.whole}
        axis.errorbar(
            [count * (1 + 0.02 * (place - 1)) for count in whole], [gain.mean for gain in whole.values()],
            yerr=[gain.half_width for gain in whole.values()], color=colour, marker="o", markersize=4, linewidth=1,
            label=data,
        )  # fmt: skip
        for drawn, marker in (("all", "s"), ("without-base", "^")):
            for training, gain in mine.items():
                if not training.whole and training.drawn == drawn:
                    said = f"rows for half of them; training draws {EPISODES_OF[drawn]}" if not place else None
                    axis.errorbar(
                        training.classes * (1.08 + 0.04 * place), gain.mean, yerr=gain.half_width, color=colour, fmt=marker,
                        markersize=5, markerfacecolor="none", linewidth=1, label=said,
                    )  # fmt: skip
    axis.axhline(0, color="#444444", linewidth=0.8, linestyle="--", zorder=0)
    axis.set_xscale("log")
    ticks = sorted({training.classes for _, training in there if training.classes != 39})  # 40 stands beside it
    axis.set_xticks(ticks, [str(count) for count in ticks], fontsize=8)
    axis.minorticks_off()
    axis.set_xlabel("training classes")
    axis.set_ylabel("points that DMM gives new classes")
    axis.set_title("The same test episodes of a set; bars: 95 % confidence interval over 300 episodes", fontsize=8)
    axis.legend(fontsize=7)
    axis.grid(linewidth=0.4)
    save_png(figure, path)


def summary() -> str:
    """What DMM gives new classes, for the front page: a column per kind of training."""
    there = results()
    header = [
        "points that DMM gives new classes",
        *map(str, SIZES),
        "all",
        "rows for half",
        "half, training on the others",
    ]
    rows = []
    for data in STUDIED:
        mine = {training: found.gain for (name, training), found in there.items() if name == data}
        total = splits_of(data)[SPLIT][0]
        asked = [Training(count, count) for count in SIZES] + trainings(data)[-3:]
        texts = [f"{gain.mean:+.1f} ± {gain.half_width:.1f}" if (gain := mine.get(one)) else "" for one in asked]
        rows.append([f"{data}, {total} training classes", *texts])
    return markdown(header, rows)


def page() -> str:
    """All trainings as Markdown."""
    lines = ["# What DMM gives new classes, by the training classes", ""]
    lines += ["Made by `python -m reproduce.memory_classes run`.", told(__doc__ or ""), ""]
    lines += ["![Points that DMM gives new classes, by the number of training classes](memory-classes.png)", ""]
    lines += ["Accuracy in %, 95 % confidence interval.", "", table()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Study("memory-classes", "classes", __doc__ or "", run, page, summary, picture).command()
