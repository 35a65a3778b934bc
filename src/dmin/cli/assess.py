"""`dmin assess`: a classifier measured on labelled files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmin.cli import options
from dmin.cli.common import echo, open_classifier, plain_warnings
from dmin.errors import ConfigError, printable

if TYPE_CHECKING:
    from dmin.evaluation.assess import Assessment

REFUSED = "(refused)"  # the answer to a refused text in assessment.json
LISTED = 5  # classes and confusions printed
TARGET_HELP = "Find the threshold that gives this precision (like 0.95) with the most answers."


@dataclass(frozen=True, kw_only=True)
class AssessmentOptions:
    """What `dmin assess` was asked to do; `dmin evaluate --examples` asks for the same."""

    test: Path
    examples: Path | None = None
    model: str = "default"
    outside: Path | None = None
    reject: str | None = None
    names: bool | None = None
    keep_base: bool = False
    text_column: str = "text"
    label_column: str = "label"
    encoding: str = "utf-8"
    device: str | None = None
    backend: str = "auto"
    target_precision: float | None = None
    out: Path | None = None


def assess(
    test: Annotated[
        Path, typer.Option(help="Labelled texts to answer; those whose label has no examples count as out-of-scope.")
    ],
    examples: options.Examples = None,
    model: options.ModelName = "default",
    outside: Annotated[Path | None, typer.Option(help="A file of more out-of-scope texts (no labels needed).")] = None,
    reject: options.Reject = None,
    names: options.UseNames = None,
    keep_base: Annotated[bool, typer.Option(help="Also predict the model's base classes.")] = False,
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
    device: options.Device = None,
    backend: options.Backend = "auto",
    target_precision: Annotated[float | None, typer.Option(help=TARGET_HELP)] = None,
    out: Annotated[Path | None, typer.Option(help="Where results go. Default: runs/EXAMPLES-TEST.")] = None,
) -> None:
    """Measure a classifier on your own labelled files.

    Fits a classifier on the examples, answers the test texts with all classes at once, and prints accuracy and macro-F1,
    beside nearest prototype and logistic regression on the same vectors; calibration, refusal of out-of-scope texts, the
    hardest classes and the most frequent confusions. Writes report.html (the wrong texts and the examples that decided),
    predictions.jsonl (every text), assessment.json, precision.png, reliability.png, confusion.png and, with out-of-scope
    texts, refusal.png.

    \b
    Examples:
      dmin assess --examples train.jsonl --test test.jsonl
      dmin assess --examples intents.yaml --test mails.csv --reject auto
      dmin assess --examples train.csv --test test.csv --model runs/mine
      dmin assess --examples train.csv --test test.csv --target-precision 0.95
      dmin assess --model saved --test test.csv
    """
    assess_files(
        AssessmentOptions(
            test=test, examples=examples, model=model, outside=outside, reject=reject, names=names, keep_base=keep_base,
            text_column=text_column, label_column=label_column, encoding=encoding, device=device, backend=backend,
            target_precision=target_precision, out=out,
        )
    )  # fmt: skip


def assess_files(given: AssessmentOptions) -> None:
    """Fit or load the classifier, measure it, write the results and print them."""
    from dmin.data.labelled import read_corpus
    from dmin.evaluation.assess import assess as measure
    from dmin.files import safe_name

    if given.target_precision is not None:
        if given.reject is not None:
            raise ConfigError("--target-precision finds the threshold: leave out --reject")
        if not 0 < given.target_precision <= 1:
            raise ConfigError(f"--target-precision {given.target_precision}: above 0 and at most 1, like 0.95")
    with plain_warnings():
        classifier = open_classifier(
            given.examples, given.model, text_column=given.text_column, label_column=given.label_column,
            encoding=given.encoding,
            names=given.names, keep_base=given.keep_base, reject=given.reject, unknown=REFUSED, device=given.device,
            backend=given.backend,
        )  # fmt: skip
        test = read_corpus(
            given.test, text_column=given.text_column, label_column=given.label_column, encoding=given.encoding
        )
        outside = _texts(given.outside, given.text_column, given.encoding)
        found = measure(classifier, test, outside, target_precision=given.target_precision)
    source = given.examples.stem if given.examples else Path(given.model).name
    folder = given.out or Path("runs") / safe_name(f"{source}-{given.test.stem}")
    found.write(folder)
    _print_accuracy(found)
    _print_target(found)
    _print_refusal(found)
    _print_classes(found)
    echo(f"written: {folder / 'report.html'}, predictions.jsonl, assessment.json, pictures")


def _texts(path: Path | None, column: str, encoding: str) -> list[str]:
    """The non-empty texts of a file without labels."""
    from dmin.bulk.inputs import read_texts

    return [row.text for row in read_texts(path, column, encoding=encoding) if row.text] if path else []


def _print_accuracy(found: Assessment) -> None:
    from dmin.evaluation.quality import harmonic_mean
    from dmin.methods import method_class

    echo(f"{found.classes} classes, {found.examples} examples, {found.texts} texts answered in {found.seconds:.1f} s")
    said = " with refusal (a refused text of a class counts as wrong)" if found.refusing else ""
    echo(f"accuracy {100 * found.quality.accuracy:.1f} %, macro-F1 {100 * found.quality.macro_f1:.1f} %{said}")
    if found.refusing:
        echo(f"accuracy {100 * found.unrefused:.1f} % if nothing is refused, as below")
    for name, accuracy in found.beside.items():
        echo(f"  for comparison, {method_class(name).title}: {100 * accuracy:.1f} %")
    echo(
        f"probabilities: expected calibration error {100 * found.reliability.error:.1f} % "
        f"(before calibration {100 * found.uncalibrated.error:.1f} %)"
    )
    if found.base_and_novel:
        base, novel = found.base_and_novel
        echo(
            f"texts of base classes {100 * base:.1f} %, of your own {100 * novel:.1f} %, harmonic mean "
            f"{100 * harmonic_mean(base, novel):.1f} %"
        )


def _print_target(found: Assessment) -> None:
    if found.target is None:
        return
    point = found.target
    echo(
        f"precision {100 * point.precision:.1f} % with --reject {point.threshold:g}, which answers {point.answered} of "
        f"{len(found.answers)} texts (coverage {100 * point.coverage:.1f} %); found on these, on others it may be lower"
    )


def _print_refusal(found: Assessment) -> None:
    if found.separation:
        apart = found.separation
        echo(
            f"{apart.out_of_scope} out-of-scope texts: AUROC {apart.auroc:.3f}, FPR at 95 % TPR {100 * apart.fpr95:.1f} %"
        )
    if found.refused and found.threshold is not None:
        known, unknown = found.refused
        echo(
            f"  refused below {found.threshold:.2f}: {100 * unknown:.1f} % of them; false rejections: "
            f"{100 * known:.1f} % of the others"
        )


def _print_classes(found: Assessment) -> None:
    echo("hardest classes:")
    for label, row in list(found.quality.classes.items())[:LISTED]:
        echo(f"  {printable(label)}: F1 {100 * row.f1:.0f} %, {100 * row.recall:.0f} % of its {row.texts} texts found")
    confused = [(true, answer, n) for (true, answer), n in found.quality.confusion.most_common() if true != answer]
    if confused:
        echo("most frequent confusions:")
        for true, answer, count in confused[:LISTED]:
            echo(f"  {printable(true)} answered as {printable(answer)}: {count}")
