"""`dmin suggest`: which texts of a pile to label next."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dmin.cli.common import plain_warnings, warn

if TYPE_CHECKING:
    from dmin.labelling import Pile


def suggest(
    source: Path = typer.Option(..., "--input", help="The pile: a CSV, TSV, JSONL, JSON, YAML, Parquet or text file."),
    examples: Path | None = typer.Option(None, help="What is labelled already; without it, the pile is covered."),
    count: int = typer.Option(20, "-n", "--count", help="How many texts."),
    model: str = typer.Option("default", help="As for dmin classify; also a saved classifier (no --examples)."),
    text_column: str = typer.Option("text", help="Column of the texts in --input."),
    label_column: str = typer.Option("label", help="Column of the labels in --examples, whose texts are in: text."),
    seed: int = typer.Option(0, help="Of the sample that a large pile is searched in."),
    most: int = typer.Option(200_000, help="Texts that are kept of a larger pile, at random."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object a line."),
) -> None:
    """Suggest the texts whose label is worth most now, each with the reason.

    \b
    dmin suggest --input mails.csv
    dmin suggest --input mails.csv --examples intents.yaml -n 50 --json > to-label.jsonl
    """
    from dmin.labelling import read_pile
    from dmin.labelling import suggest as suggestions

    with plain_warnings():
        pile = read_pile(source, column=text_column, most=most, seed=seed)
        classifier = open_classifier(examples, model, label_column)
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
            typer.echo(json.dumps({**fields, "likely": list(suggestion.likely[:3])}, ensure_ascii=False))
        else:
            typer.echo(f"{row}\t{printable(suggestion.text)}\t({printable(suggestion.reason)})")
    if not as_json and sys.stdout.isatty():
        typer.echo(f"label them one by one, learning at once: dmin label --input {source}", err=True)


def open_classifier(examples: Path | None, model: str, label_column: str, reject: Any = None) -> Any:
    """A classifier of labelled examples, a saved one, or None where nothing is labelled."""
    from dmin.classifier import FewShotClassifier
    from dmin.data.readers import read_corpus
    from dmin.errors import ConfigError

    if (Path(model) / "classifier.json").is_file():
        if examples is not None:
            raise ConfigError(f"{model} is a saved classifier with examples of its own: leave out --examples")
        loaded = FewShotClassifier.load(model)
        return loaded.set_params(reject=reject) if reject is not None and loaded.reject is None else loaded
    if examples is None:
        return None if model == "default" else FewShotClassifier(model)
    known = read_corpus(examples, label_column=label_column).examples
    if len(known) < 2 and reject is None:
        reject = -1.0  # one class alone is enough to say what is covered: refuse nothing, but allow it
    return FewShotClassifier(model, reject=reject).fit(known)


def tell_notes(pile: Pile) -> None:
    """Say on standard error what was left out of a pile."""
    for note in pile.notes:
        warn(note)


def printable(text: str, most: int = 500) -> str:
    """A text for a terminal, on one line: control characters cannot move the cursor or change colours."""
    flat = " ".join(text.split())
    shown = "".join(character if character.isprintable() else "�" for character in flat[:most])
    return shown + ("..." if len(flat) > most else "")
