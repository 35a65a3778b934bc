"""`dmin discover`: which classes are in a pile."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from dmin.cli.common import plain_warnings
from dmin.cli.suggest import open_classifier, printable, tell_notes


class GrainName(StrEnum):
    """How fine the themes are."""

    coarse = "coarse"
    medium = "medium"
    fine = "fine"


def discover(
    source: Path = typer.Option(..., "--input", help="The pile: a CSV, TSV, JSONL, JSON, YAML, Parquet or text file."),
    examples: Path | None = typer.Option(None, help="Known classes: only what they refuse is looked at."),
    out: Path = typer.Option(Path("runs/discover"), help="Folder for the YAML files, the page and the CSV."),
    themes: int | None = typer.Option(None, help="Themes of the medium grain. Default: as many as the texts suggest."),
    grain: GrainName = typer.Option(GrainName.medium, help="The grain that is printed and drawn."),
    model: str = typer.Option("default", help="As for dmin classify; also a saved classifier (no --examples)."),
    text_column: str = typer.Option("text", help="Column of the texts in --input."),
    label_column: str = typer.Option("label", help="Column of the labels in --examples, whose texts are in: text."),
    seed: int = typer.Option(0, help="Of clustering and map."),
    most: int = typer.Option(200_000, help="Texts that are kept of a larger pile, at random."),
) -> None:
    """Propose classes for a pile: themes at three grain sizes with names, words and typical texts.

    Writes coarse.yaml, medium.yaml and fine.yaml (rename, merge, drop; then dmin classify --examples takes them),
    themes.csv (the theme of each text) and map.html.

    \b
    dmin discover --input mails.csv
    dmin discover --input mails.csv --examples intents.yaml      # new themes among what the classes refuse
    """
    from dmin.files import write_atomic
    from dmin.labelling import discover as find_themes
    from dmin.labelling import read_pile
    from dmin.labelling.page import examples_yaml, page, themes_csv

    with plain_warnings():
        pile = read_pile(source, column=text_column, most=most, seed=seed)
        classifier = open_classifier(examples, model, label_column, reject="auto")
        tell_notes(pile)
        found = find_themes(pile.texts, classifier, count=themes, seed=seed)
        for part in found.grains:
            write_atomic(out / f"{part.name}.yaml", examples_yaml(part))
        write_atomic(out / "themes.csv", themes_csv(found, pile.rows))
        write_atomic(out / "map.html", page(found, f"Themes of {source.name}", grain=grain, seed=seed))
    shown = found.grain(grain)
    if classifier is not None:
        typer.echo(f"{len(found.looked_at)} of {len(pile.texts)} texts are refused by the known classes")
    for theme in shown.themes:
        typer.echo(f"{theme.size}\t{theme.name}\t{printable(theme.typical[0], 100)}")
    typer.echo(f"{len(shown.nowhere)}\t(fits nowhere)")
    sizes = ", ".join(f"{len(part.themes)} {part.name}" for part in found.grains)
    typer.echo(
        f"{sizes} themes written: {out} (open {out / 'map.html'}, edit {out / (shown.name + '.yaml')})", err=True
    )
