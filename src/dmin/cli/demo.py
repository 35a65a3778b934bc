"""`dmin demo`: training, evaluation and classification on built-in data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmin.cli.common import echo, plain_warnings, print_cells, warn

if TYPE_CHECKING:
    from dmin.classifier import Explanation
    from dmin.evaluation import Cell

# Texts that stand in no file of the starter set, each meant for one of its novel classes.
NEW_TEXTS = (
    "the bars on my phone vanish the moment I step into the kitchen",
    "do you still carry the green backpack in the small size",
    "I booked the window but would rather sit by the aisle",
    "we will be six on Saturday evening, can you keep a spot for us",
    "the code from your newsletter takes nothing off at checkout",
)
EXAMPLES_PER_CLASS = 5


def demo(
    out: Annotated[Path, typer.Option(help="The run folder; an earlier demo there is replaced.")] = Path("runs/demo"),
    episodes: Annotated[int, typer.Option(min=1, help="Training episodes of stage 2.")] = 600,
) -> None:
    """Train, evaluate and classify on built-in data, in a minute.

    Trains both stages on the starter set, measures the model on novel classes beside the nearest prototype, and classifies
    five new texts with the examples that decided. Works offline, on a CPU, with the embedded encoder. Writes a run folder
    with model/, summary.json and report.html, a page to look at.

    \b
    Examples:
      dmin demo
      dmin demo --out runs/first --episodes 200
    """
    from dmin.evaluation import EvaluationPlan, evaluate_model
    from dmin.training import Trainer, load_config

    config = load_config(overrides={"data": "starter", "way": 5, "shot": 5, "stage2.episodes": episodes})
    with plain_warnings():
        trainer = Trainer(config, out, overwrite=True, show=True, warn=warn)
        task = trainer.task
        echo(
            f"starter: {len(task.corpus.texts)} texts in {len(task.corpus.classes)} classes: {len(task.split.train)} for "
            f"training, {len(task.split.valid)} for validation, {len(task.split.test)} for test"
        )
        model = trainer.run()
        plan = EvaluationPlan(task.corpus, task.split_name, task.split, (5, 10), (1, 5))
        cells = evaluate_model(model, plan, out, show=True, warn=warn)
    print_cells(cells, "starter, classes never trained on")
    every = task.corpus.examples
    explanations = _classify(out, {label: every[label][:EXAMPLES_PER_CLASS] for label in task.split.test})
    _write_report(out, cells, explanations)
    echo(f"\nreport: {out / 'report.html'}   model: {out / 'model'}   next: dmin train --help")


def _classify(run: Path, novel: dict[str, list[str]]) -> list[Explanation]:
    """Classify the new texts from a few examples of each novel class, and print the answers."""
    from dmin.classifier import FewShotClassifier

    classifier = FewShotClassifier(run, use_names=False).fit(novel)
    explanations = [classifier.explain(text) for text in NEW_TEXTS]
    echo(f"\nFive new texts, {len(novel)} novel classes with {EXAMPLES_PER_CLASS} examples each:")
    for found in explanations:
        echo(f"  {found.text}\n    -> {found.label} (cosine {found.score:.2f}), decided by:")
        for example in found.examples[:2]:
            echo(f"       {example.share:+.2f}  {example.text}")
    return explanations


def _write_report(out: Path, cells: list[Cell], explanations: list[Explanation]) -> None:
    from dmin.evaluation.figures import bars_figure, curves_figure
    from dmin.evaluation.report import Report
    from dmin.methods import method_class
    from dmin.training.metrics import read_metrics

    settings = list(dict.fromkeys((cell.way, cell.shot) for cell in cells))
    groups = [f"{way}-way {shot}-shot" for way, shot in settings]
    intervals = {
        method_class(name).title: [
            next(c.results.interval for c in cells if c.method == name and (c.way, c.shot) == setting)
            for setting in settings
        ]
        for name in dict.fromkeys(cell.method for cell in cells)
    }
    report = Report("dmin demo: classes never trained on")
    report.paragraph(
        "A DMIN-plus head on the embedded encoder: trained on 40 classes of requests, tested on 14 others."
    )
    report.heading("Accuracy")
    rows = [[name, *(interval.percent() for interval in values)] for name, values in intervals.items()]
    best = frozenset(
        (max(range(len(rows)), key=lambda row: list(intervals.values())[row][column].mean), column + 1)
        for column in range(len(settings))
    )
    report.table(["method", *groups], rows, bold=best)
    report.paragraph(
        "In %, with 95 % confidence intervals over 300 episodes. The nearest prototype is not trained.", note=True
    )
    report.figure(bars_figure(groups, {n: [(i.mean, i.half_width) for i in v] for n, v in intervals.items()}))
    report.heading("Learning curves")
    report.figure(curves_figure(read_metrics(out / "metrics.jsonl")))
    report.heading("Five new texts and the examples that decided")
    for found in explanations:
        report.paragraph(f"“{found.text}” → {found.label} (runner-up: {found.runner_up})")
        report.items([f"{example.share:+.2f}  {example.text}" for example in found.examples[:3]])
    report.paragraph("Each number is the example's exact share of the winning score.", note=True)
    report.write(out / "report.html")
