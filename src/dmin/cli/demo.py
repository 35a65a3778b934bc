"""`dmin demo`: the main job on built-in data, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dmin.cli.common import plain_warnings, print_cells, warn

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
EXAMPLES_A_CLASS = 5


def demo(
    out: Path = typer.Option(Path("runs/demo"), help="The run folder; an earlier demo there is replaced."),
    episodes: int = typer.Option(600, help="Training episodes of stage 2."),
) -> None:
    """Run the whole road on built-in data: train both stages, measure on novel classes, classify new texts.

    Everything is offline, on the CPU, with the embedded encoder. It ends with a page to look at: report.html.
    """
    from dmin.classifier import FewShotClassifier
    from dmin.evaluation import EvaluationPlan, evaluate_model
    from dmin.training import Trainer, load_config

    config = load_config(overrides={"data": "starter", "way": 5, "shot": 5, "stage2.episodes": episodes})
    with plain_warnings():
        trainer = Trainer(config, out, overwrite=True, show=True, warn=warn)
        task = trainer.task
        typer.echo(
            f"starter: {len(task.corpus.texts)} texts in {len(task.corpus.classes)} classes; the model learns from "
            f"{len(task.split.train)}, is chosen by {len(task.split.valid)} and tested on {len(task.split.test)} others"
        )
        model = trainer.run()
        plan = EvaluationPlan(task.corpus, task.split_name, task.split, (5, 10), (1, 5))
        cells = evaluate_model(model, plan, out, show=True, warn=warn)
    print_cells(cells, "starter, classes never trained on")
    classifier = FewShotClassifier(out, use_names=False)
    novel = {label: task.corpus.by_class[label][:EXAMPLES_A_CLASS] for label in task.split.test}
    classifier.fit({label: [task.corpus.texts[row] for row in rows] for label, rows in novel.items()})
    explanations = [classifier.explain(text) for text in NEW_TEXTS]
    typer.echo(f"\nFive new texts, {len(novel)} novel classes with {EXAMPLES_A_CLASS} examples each:")
    for found in explanations:
        typer.echo(f"  {found.text}\n    -> {found.label} (cosine {found.score:.2f}), decided by:")
        for example in found.examples[:2]:
            typer.echo(f"       {example.share:+.2f}  {example.text}")
    _write_report(out, cells, explanations)
    typer.echo(f"\nreport: {out / 'report.html'}   model: {out / 'model'}   next: dmin train --help")


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
        "In %, with 95 % intervals over 300 episodes. The nearest prototype is trained on nothing.", note=True
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
