"""The HTML page of an assessment: its figures, and each wrong text with the examples that decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmin.evaluation.figures import precision_figure, refusal_figure
from dmin.evaluation.report import Report

if TYPE_CHECKING:
    from dmin.evaluation.assess import Assessment

SHOWN_EXAMPLES = 3


def assessment_page(found: Assessment) -> Report:
    """A page with the figures of an assessment and each wrong text with the examples that decided."""
    report = Report("Assessment")
    refusal = " with refusal: a refused text of a class counts as wrong" if found.refusing else ""
    report.paragraph(
        f"{found.classes} classes, {found.examples} examples, {found.texts} texts of these classes. "
        f"Accuracy {_percent(found.quality.accuracy)}, macro-F1 {_percent(found.quality.macro_f1)}{refusal}."
    )
    rows = [["this classifier, nothing refused", _percent(found.unrefused)]]
    rows += [[name, _percent(accuracy)] for name, accuracy in found.beside.items()]
    report.table(["accuracy on the same vectors", ""], rows, bold=frozenset())
    if found.target is not None:
        report.paragraph(
            f"Refused below {found.target.threshold:g}: precision {_percent(found.target.precision)}, "
            f"{_percent(found.target.coverage)} of all texts answered. Found on these texts; on others it may be lower."
        )
    report.heading("Precision against coverage")
    report.figure(precision_figure(found.curve, found.target))
    if found.outside_scores is not None:
        report.figure(refusal_figure(found.scores, found.outside_scores, found.threshold))
    wrong = sum(not answer.right for answer in found.answers)
    report.heading(f"Wrong answers: {wrong} of {len(found.answers)}")
    if wrong > len(found.faults):
        report.paragraph(f"The {len(found.faults)} with the highest cosine; predictions.jsonl has all.", note=True)
    for answer, explanation in found.faults:
        report.paragraph(f"“{answer.text}”")
        report.items(
            [
                f"{answer.fault}; label: {answer.label or 'none'}",
                *(
                    f"{share.share:+.3f}  {'name' if share.is_name else 'example'}: {share.text}"
                    for share in explanation.examples[:SHOWN_EXAMPLES]
                ),
                *explanation.notes,
            ]
        )
    if wrong:
        report.paragraph("Each number is the exact share of an example in the score of the nearest class.", note=True)
    return report


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
