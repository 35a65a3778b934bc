"""`dmin demo`: the default classifier on built-in classes, then what training on episodes gives on the same data."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmin.cli.common import echo, plain_warnings, print_cells, warn

if TYPE_CHECKING:
    from dmin.classifier import FewShotClassifier
    from dmin.data import Corpus
    from dmin.evaluation import Cell
    from dmin.evaluation.assess import Assessment
    from dmin.report import Report
    from dmin.training import Trainer

# Texts that stand in no file of the starter set, each meant for one of its test classes.
NEW_TEXTS = (
    "the bars on my phone vanish the moment I step into the kitchen",
    "do you still carry the green backpack in the small size",
    "I booked the window but would rather sit by the aisle",
    "we will be six on Saturday evening, can you keep a spot for us",
    "the code from your newsletter takes nothing off at checkout",
)
NEW_CLASS = "gift_wrapping"
NEW_EXAMPLES = (
    "can you wrap it as a present",
    "please put it in a gift box with a bow",
    "I would like gift paper and a greeting card",
)
NEW_CLASS_TEXT = "could you tie a ribbon around it, it is a surprise for my niece"
OUTSIDE_TEXTS = ("tell me a joke about penguins", "what is the capital of Mongolia")
UNKNOWN = "none of these"
EXAMPLES_PER_CLASS = 5
FEWER_EXAMPLES = (1, 2, 5)  # that unlabelled texts are shown with
WAYS, SHOTS = (5, 10), (1, 5)


@dataclass
class Chapter:
    """One part of the demo, printed at once and repeated in the report."""

    title: str
    lines: list[str] = field(default_factory=list)
    found: Assessment | None = None  # drawn in the report in place of the lines

    def __post_init__(self) -> None:
        typer.secho(f"\n{self.title}", bold=True)

    def say(self, line: str) -> None:
        """Print a line and keep it."""
        typer.echo(f"  {line}")
        self.lines.append(line)


def demo(
    out: Annotated[Path, typer.Option(help="The run folder; an earlier demo there is replaced.")] = Path("runs/demo"),
    episodes: Annotated[int, typer.Option(min=1, help="Training episodes of stage 2.")] = 600,
) -> None:
    """Show on built-in data what dmin does, in a minute.

    First the default classifier, which is not trained: classes from five examples each, their accuracy beside simple
    methods, a class added, a refusal, the reason for an answer. Then what training on episodes gives on classes never
    trained on. Works offline, on a CPU. Writes a run folder with model/, summary.json and report.html, a page to look at.

    \b
    Examples:
      dmin demo
      dmin demo --out runs/first --episodes 200
    """
    from dmin.training import Trainer, load_config

    overrides = {"data": "starter", "way": 5, "shot": 5, "stage2.episodes": episodes}
    with plain_warnings():
        trainer = Trainer(load_config(overrides=overrides), out, overwrite=True, show=True, warn=warn)
        task = trainer.task
        chapters = tell(task.corpus, task.split.test)
        typer.secho(f"\nTraining on episodes of {len(task.split.train)} other classes", bold=True)
        cells = _train(trainer, out)
    print_cells(cells, "starter, classes never trained on")
    echo(verdict(cells))
    _write_report(out, chapters, cells)
    echo(f"\nreport: {out / 'report.html'}   model: {out / 'model'}   next: dmin classify --help")


def tell(corpus: Corpus, classes: tuple[str, ...]) -> list[Chapter]:
    """What the default classifier does with some classes of a corpus."""
    from dmin.classifier import FewShotClassifier
    from dmin.data import Corpus

    every = corpus.examples
    examples = {label: every[label][:EXAMPLES_PER_CLASS] for label in classes}
    rest = Corpus.from_mapping({label: every[label][EXAMPLES_PER_CLASS:] for label in classes}, corpus.name)
    others = [every[label][0] for label in corpus.classes if label not in classes]
    classifier = FewShotClassifier(unknown_label=UNKNOWN).open()
    answered = _answer(classifier, examples)
    measured = [_measure(classifier, rest), _adapt(classifier, rest)]  # before a class is added
    return [answered, _add(classifier), _refuse(classifier, rest, others), _explain(classifier), *measured]


def _answer(classifier: FewShotClassifier, examples: dict[str, list[str]]) -> Chapter:
    chapter = Chapter(f"{len(examples)} new classes, {EXAMPLES_PER_CLASS} examples each, nothing trained")
    started = time.perf_counter()
    classifier.fit(examples)
    chapter.say(f"ready after {time.perf_counter() - started:.1f} s")
    for text, found in zip(NEW_TEXTS, classifier.answer(NEW_TEXTS), strict=True):
        chapter.say(f"“{text}” -> {found.label} ({100 * found.probability:.0f} %)")
    return chapter


def _measure(classifier: FewShotClassifier, rest: Corpus) -> Chapter:
    from dmin.evaluation.assess import assess
    from dmin.methods import method_class

    chapter = Chapter(f"How often it is right: the other {len(rest.texts)} texts of these classes, all classes at once")
    found = chapter.found = assess(classifier, rest)
    chapter.say(f"default classifier: {100 * found.quality.accuracy:.1f} %")
    for name, accuracy in found.beside.items():
        chapter.say(f"{method_class(name).title} on the same vectors: {100 * accuracy:.1f} %")
    own = found.quality.accuracy
    interval = 100 * 1.96 * (own * (1 - own) / found.texts) ** 0.5
    chapter.say(
        f"(± {interval:.1f} points, and one draw of examples: smaller differences say little; nine sets, ten draws: "
        "reproduce/KINDS.md)"
    )
    return chapter


def _adapt(classifier: FewShotClassifier, rest: Corpus) -> Chapter:
    """Accuracy with the help of unlabelled texts, by number of examples."""
    chapter = Chapter("With the same texts as unlabelled texts")
    texts, labels = list(rest.texts), list(rest.labels)
    for count in FEWER_EXAMPLES:
        fewer = copy.deepcopy(classifier).fit({label: own[:count] for label, own in classifier.examples_.items()})
        without = fewer.score(texts, labels)
        learned = fewer.adapt(texts).score(texts, labels)
        examples = f"{count} example{'s' if count > 1 else ''} per class"
        chapter.say(f"{examples}: {100 * without:.1f} % without them, {100 * learned:.1f} % with them")
    return chapter


def _add(classifier: FewShotClassifier) -> Chapter:
    chapter = Chapter("A class added; the others stay as they are")
    before = classifier.answer([NEW_CLASS_TEXT])[0]
    chapter.say(f"“{NEW_CLASS_TEXT}” -> {before.label} ({100 * before.probability:.0f} %)")
    started = time.perf_counter()
    classifier.add_class(NEW_CLASS, NEW_EXAMPLES)
    chapter.say(
        f"{NEW_CLASS} added from {len(NEW_EXAMPLES)} examples in {1000 * (time.perf_counter() - started):.0f} ms"
    )
    after = classifier.answer([NEW_CLASS_TEXT])[0]
    chapter.say(f"now -> {after.label} ({100 * after.probability:.0f} %)")
    return chapter


def _refuse(classifier: FewShotClassifier, rest: Corpus, outside: list[str]) -> Chapter:
    chapter = Chapter('Out-of-scope texts are refused (reject="auto", a threshold learned from the examples)')
    classifier.set_params(reject="auto")
    for text, found in zip(OUTSIDE_TEXTS, classifier.answer(OUTSIDE_TEXTS), strict=True):
        chapter.say(f"“{text}” -> {found.label} (highest cosine {found.score:.2f})")
    refused = [sum(found.refused for found in classifier.answer(texts)) for texts in (outside, list(rest.texts))]
    chapter.say(
        f"refused: {refused[0]} of {len(outside)} texts of other classes, {refused[1]} of {len(rest.texts)} of these "
        "(related requests: harder than the two above)"
    )
    return chapter


def _explain(classifier: FewShotClassifier) -> Chapter:
    found = classifier.explain(NEW_TEXTS[2])
    chapter = Chapter("The reason: each example's exact share of the winning score")
    chapter.say(f"“{found.text}” -> {found.label}; runner-up: {found.runner_up}")
    for example in found.examples[:4]:
        chapter.say(f"{example.share:+.2f}  {'name: ' if example.is_name else ''}{example.text}")
    return chapter


def _train(trainer: Trainer, out: Path) -> list[Cell]:
    """Both stages, and the evaluation of the trained head on the test classes."""
    from dmin.evaluation import EvaluationPlan, evaluate_model

    model = trainer.run()
    task = trainer.task
    plan = EvaluationPlan(task.corpus, task.split_name, task.split, WAYS, SHOTS)
    return evaluate_model(model, plan, out, show=True, warn=warn)


def verdict(cells: list[Cell]) -> str:
    """A sentence that says in how many settings the trained head is better or worse than the nearest prototype."""
    from dmin.evaluation.statistics import ALPHA, paired_test

    better = worse = total = 0
    trained = [cell for cell in cells if cell.method != "nearest"]
    for cell in trained:
        other = next(c for c in cells if c.method == "nearest" and (c.way, c.shot) == (cell.way, cell.shot))
        one, two = cell.results.accuracies, other.results.accuracies
        better += paired_test(one, two).t_p < ALPHA / 2
        worse += paired_test(two, one).t_p < ALPHA / 2
        total += 1
    return (
        f"Beside the nearest prototype, which is not trained, the head that was trained on episodes is significantly "
        f"better in {better} and significantly worse in {worse} of {total} settings."
    )


def _write_report(out: Path, chapters: list[Chapter], cells: list[Cell]) -> None:
    from dmin.evaluation.assessment_page import add_classes, add_texts, method_bars
    from dmin.report import BarGroup, Report, percent

    measured = next(chapter.found for chapter in chapters if chapter.found is not None)
    summary = (
        f"{measured.classes} classes from {EXAMPLES_PER_CLASS} examples each, nothing trained: "
        f"{percent(measured.quality.accuracy)} of {measured.texts} other texts are answered right. {verdict(cells)}"
    )
    report = Report("dmin demo", summary)
    for chapter in chapters:
        report.heading(chapter.title)
        if chapter.found is None:
            report.items(chapter.lines)
        else:
            report.bars([BarGroup("", method_bars(chapter.found))])
    add_classes(report, measured)
    add_texts(report, measured)
    _report_training(report, out, cells)
    report.write(out / "report.html")


def _report_training(report: Report, out: Path, cells: list[Cell]) -> None:
    """The table of the trained head, with its learning curves."""
    from dmin.evaluation.evaluation_page import add_accuracies
    from dmin.evaluation.figures import curves_figure, svg_text
    from dmin.training.metrics import read_metrics

    report.heading("What training on episodes gives: classes never trained on")
    report.paragraph(verdict(cells))
    add_accuracies(report, cells)
    report.paragraph("Accuracy in %, with 95 % confidence intervals over 300 episodes; encoder frozen.", note=True)
    report.heading("Learning curves")
    report.picture(svg_text(curves_figure(read_metrics(out / "metrics.jsonl"))), "Loss and accuracy over the updates")
