"""`dmin discover`: which classes are in a pile."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dmin.cli import options
from dmin.cli.common import echo, plain_warnings
from dmin.cli.suggest import known_classifier, shown, tell_notes


class GrainName(StrEnum):
    """How fine the themes are."""

    coarse = "coarse"
    medium = "medium"
    fine = "fine"


def discover(
    source: options.PileFile,
    examples: Annotated[Path | None, typer.Option(help="Known classes: only what they refuse is looked at.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the YAML files, the page and the CSV.")] = Path("runs/discover"),
    themes: Annotated[
        int | None, typer.Option(min=1, help="Themes of the medium grain. Default: as many as the texts suggest.")
    ] = None,
    grain: Annotated[GrainName, typer.Option(help="The grain that is printed and drawn.")] = GrainName.medium,
    model: options.ModelName = "default",
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
    seed: options.PileSeed = 0,
    most: options.PileMost = 200_000,
) -> None:
    """Propose classes for a pile of texts without labels.

    Finds themes at three grain sizes, with names, words and typical texts. Writes coarse.yaml, medium.yaml and fine.yaml
    (rename, merge, drop; then dmin classify --examples takes them), themes.csv (the theme of each text) and map.html. With
    --examples: new themes among what the known classes refuse.

    \b
    Examples:
      dmin discover --input mails.csv
      dmin discover --input mails.csv --examples intents.yaml
    """
    from dmin.files import write_atomic
    from dmin.labelling import discover as find_themes
    from dmin.labelling import read_pile
    from dmin.labelling.discovery import NothingRefusedError
    from dmin.labelling.page import examples_yaml, page, themes_csv

    with plain_warnings():
        pile = read_pile(source, column=text_column, encoding=encoding, most=most, seed=seed)
        classifier = known_classifier(examples, model, text_column, label_column, encoding, reject="auto")
        tell_notes(pile)
        try:
            found = find_themes(pile.texts, classifier, count=themes, seed=seed)
        except NothingRefusedError as answer:  # good news, not a mistake
            echo(str(answer))
            return
        for part in found.grains:
            write_atomic(out / f"{part.name}.yaml", examples_yaml(part))
        write_atomic(out / "themes.csv", themes_csv(found, pile.rows))
        write_atomic(out / "map.html", page(found, f"Themes of {source.name}", grain=grain, seed=seed))
    chosen = found.grain(grain)
    if classifier is not None:
        echo(f"{len(found.looked_at)} of {len(pile.texts)} texts are refused by the known classes")
    for theme in chosen.themes:
        echo(f"{theme.size}\t{theme.name}\t{shown(theme.typical[0], 100)}")
    echo(f"{len(chosen.nowhere)}\t(fits nowhere)")
    sizes = ", ".join(f"{len(part.themes)} {part.name}" for part in found.grains)
    echo(f"{sizes} themes written: {out} (open {out / 'map.html'}, edit {out / (chosen.name + '.yaml')})", err=True)
