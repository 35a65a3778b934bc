"""`dmin suggest`: which texts of a pile to label next."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dmin.cli import options
from dmin.cli.common import echo, open_classifier, plain_warnings, warn
from dmin.errors import printable

if TYPE_CHECKING:
    from dmin.classifier import FewShotClassifier
    from dmin.labelling import Pile


def suggest(
    source: options.PileFile,
    examples: Annotated[
        Path | None, typer.Option(help="What is labelled already; without it, the pile is covered.")
    ] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many texts.")] = 20,
    model: options.ModelName = "default",
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
    seed: options.PileSeed = 0,
    most: options.PileMost = 200_000,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Suggest the texts whose label is worth most now.

    Each comes with the reason.

    Without --examples the suggestions cover the pile; with it, they are texts that the classes are unsure of, do not cover,
    or that look like a new class.

    \b
    Examples:
      dmin suggest --input mails.csv
      dmin suggest --input mails.csv --examples intents.yaml -n 50 --json
    """
    from dmin.labelling import read_pile
    from dmin.labelling import suggest as suggestions

    with plain_warnings():
        pile = read_pile(source, column=text_column, encoding=encoding, most=most, seed=seed)
        classifier = known_classifier(examples, model, text_column, label_column, encoding)
        tell_notes(pile)
        found = suggestions(pile.texts, classifier, n=count, seed=seed)
    if len(found) < count:
        warn(f"{len(found)} texts that differ from each other and from what is labelled: fewer than -n {count}")
    for suggestion in found:
        row = pile.rows[suggestion.index]
        if as_json:
            fields = {
                "row": row,
                "text": suggestion.text,
                "reason": suggestion.reason,
                "stands_for": suggestion.stands_for,
            }
            echo(json.dumps({**fields, "likely": list(suggestion.likely[:3])}, ensure_ascii=False))
        else:
            echo(f"{row}\t{shown(suggestion.text)}\t({shown(suggestion.reason)})")
    if not as_json and sys.stdout.isatty():
        echo(f"label them one by one, learning at once: dmin label --input {source}", err=True)


def known_classifier(
    examples: Path | None, model: str, text_column: str, label_column: str, encoding: str, reject: str | None = None
) -> FewShotClassifier | None:
    """A classifier of labelled examples, a saved one, a trained one, or None where nothing is labelled."""
    from dmin.classifier import FewShotClassifier
    from dmin.data.labelled import read_corpus

    saved = (Path(model) / "classifier.json").is_file()
    if examples is None and not saved:
        return None if model == "default" else FewShotClassifier(model)
    if examples is not None and not saved and reject is None:
        columns = {"text_column": text_column, "label_column": label_column, "encoding": encoding}
        if len(read_corpus(examples, fallback=True, **columns).classes) < 2:
            reject = "-1"  # one class alone is enough to say what is covered: refuse nothing, but allow it
    return open_classifier(
        examples, model, text_column=text_column, label_column=label_column, encoding=encoding, fallback=True,
        reject=reject,
    )  # fmt: skip


def tell_notes(pile: Pile) -> None:
    """Say on standard error what was left out of a pile."""
    for note in pile.notes:
        warn(note)


def shown(text: str, most: int = 500) -> str:
    """A text for a terminal, on one line; control characters are written as escapes."""
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= most else flat[:most] + "..."
