"""The HTML page of an assessment: its figures, the hardest classes, the confusion matrix, the wrong texts with reasons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dmin.classifier.explanation import Explanation, Share
from dmin.evaluation.figures import precision_figure, refusal_figure, reliability_figure, svg_text
from dmin.methods import method_class
from dmin.report import Bar, BarGroup, Cell, Report, TextRow, percent

if TYPE_CHECKING:
    from dmin.evaluation.answers import AnsweredText
    from dmin.evaluation.assess import Assessment

SHOWN_EXAMPLES = 3
TEXT_COLUMNS = ("text", "true class", "answer", "cosine", "probability")


def assessment_page(found: Assessment) -> Report:
    """A page with the figures of an assessment and each wrong text with the examples that decided."""
    report = Report("Assessment", _summary(found), facts=_facts(found))
    report.heading("Beside simple methods on the same vectors")
    report.bars([BarGroup("", method_bars(found))])
    report.paragraph("Accuracy if nothing is refused, all classes at once.", note=True)
    add_classes(report, found)
    add_texts(report, found)
    report.heading("Precision against coverage")
    if found.target is not None:
        report.paragraph(
            f"Refused below {found.target.threshold:g}: precision {percent(found.target.precision)}, "
            f"{percent(found.target.coverage)} of all texts answered. Found on these texts; on others it may be lower."
        )
    report.picture(svg_text(precision_figure(found.curve, found.target)), "Precision by the part of texts answered")
    if found.outside_scores is not None:
        report.heading("Texts of the classes and out-of-scope texts")
        picture = refusal_figure(found.scores, found.outside_scores, found.threshold)
        report.picture(svg_text(picture), "Histograms of the highest cosines")
    report.heading("Probabilities against the part that is right")
    picture = reliability_figure(found.uncalibrated, found.reliability)
    report.picture(svg_text(picture), "Accuracy by probability, before and after calibration")
    return report


def method_bars(found: Assessment) -> list[Bar]:
    """The classifier and simple methods on the same vectors."""
    bars = [Bar("this classifier", found.unrefused, percent(found.unrefused))]
    return bars + [
        Bar(method_class(name).title, value, percent(value), strong=False) for name, value in found.beside.items()
    ]


def add_classes(report: Report, found: Assessment) -> None:
    """Add each class, hardest first, and the confusion matrix."""
    report.heading("Classes, hardest first")
    rows: list[list[Cell | str]] = [
        [name, str(row.texts), *(Cell(percent(v), bar=Bar("", v, "")) for v in (row.f1, row.recall, row.precision))]
        for name, row in found.quality.classes.items()
    ]
    report.table(["class", "texts", "F1", "recall", "precision"], rows)
    report.heading("Confusion matrix")
    report.matrix(found.quality.confusion)


def add_texts(report: Report, found: Assessment) -> None:
    """Add the wrong texts with the examples that decided, and the right ones that were nearly wrong."""
    wrong = sum(not answer.right for answer in found.answers)
    report.heading(f"Wrong answers: {wrong} of {len(found.answers)}")
    outside = sum(not answer.in_scope for answer in found.answers)
    if outside and not found.refusing:
        report.paragraph(
            f"{outside} of the texts belong to no class; without --reject every one of them is answered, and so wrong.",
            note=True,
        )
    if wrong > len(found.faults):
        report.paragraph(f"The {len(found.faults)} with the highest cosine; predictions.jsonl has all.", note=True)
    if wrong:
        rows = [_text_row(answer, explanation, answer.fault) for answer, explanation in found.faults]
        report.texts(TEXT_COLUMNS, rows, words=(1, 2))
        report.paragraph("Each bar is the exact share of an example in the score of the nearest class.", note=True)
    else:
        report.paragraph("Every answer is right.")
    if found.unsure:
        report.heading("Right, with the lowest probability")
        rows = [_text_row(answer, explanation, _margin(explanation)) for answer, explanation in found.unsure]
        report.texts(TEXT_COLUMNS, rows, words=(1, 2))


def _summary(found: Assessment) -> str:
    refusal = " A refused text of a class counts as wrong." if found.refusing else ""
    said = (
        f"{found.classes} classes from {found.examples} examples: {percent(found.quality.accuracy)} of {found.texts} texts "
        f"of these classes are answered right.{refusal}"
    )
    hardest = next(iter(found.quality.classes.items()), None)
    if hardest is not None and hardest[1].f1 < 1:
        said += f" The hardest class is {hardest[0]} (F1 {percent(hardest[1].f1, 0)})."
    return said


def _facts(found: Assessment) -> list[tuple[str, str]]:
    facts = [("accuracy", percent(found.quality.accuracy)), ("macro-F1", percent(found.quality.macro_f1))]
    if found.separation is not None:
        facts += [("AUROC, out of scope", f"{found.separation.auroc:.3f}")]
        facts += [("FPR at 95 % TPR", percent(found.separation.fpr95))]
    if found.refused is not None and found.threshold is not None:
        facts += [("false rejections", percent(found.refused[0])), ("out of scope refused", percent(found.refused[1]))]
    return [*facts, ("calibration error", percent(found.reliability.error))]


def _cells(answer: AnsweredText) -> list[str]:
    return [answer.label or "(none)", answer.answer, f"{answer.score:.3f}", percent(answer.probability)]


def _margin(found: Explanation) -> str:
    """In words: how near the runner-up is."""
    if found.runner_up is None or found.runner_up_score is None:
        return f"score {found.score:.3f}"
    return f"score {found.score:.3f}; runner-up: {found.runner_up} with {found.runner_up_score:.3f}"


def _text_row(answer: AnsweredText, explanation: Explanation, reason: str) -> TextRow:
    shares = list(_shares(explanation.examples[:SHOWN_EXAMPLES]))
    return TextRow(answer.text, _cells(answer), reason, shares, explanation.notes)


def _shares(examples: Sequence[Share]) -> Iterable[Bar]:
    full = max(
        [1.0, *(abs(share.share) for share in examples if not math.isnan(share.share))]
    )  # shares of logits exceed 1
    for share in examples:
        text = "" if math.isnan(share.share) else f"{share.share:+.3f}"
        yield Bar(f"{'name' if share.is_name else 'example'}: {share.text}", share.share / full, text)
