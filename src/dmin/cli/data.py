"""`dmin data`: named data sets, their content, checks of labelled files, the cache of vectors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dmin.cli import options
from dmin.cli.common import echo, plain_warnings
from dmin.errors import counted, printable

if TYPE_CHECKING:
    from dmin.data.check import CorpusReport

_SMALL = 2000  # texts that are encoded without --meaning
THIN = 3  # examples below which a class is thin
data = typer.Typer(help="List data sets, check labelled files, show the cache of vectors.", no_args_is_help=True)


@data.command("list")
def list_sets() -> None:
    """List the named data sets and whether they are on this machine.

    \b
    Examples:
      dmin data list
    """
    from rich.console import Console
    from rich.table import Table

    from dmin.data.catalog import CATALOG, DATA_VARIABLE, is_here

    table = Table()
    for column in ("name", "here", "what"):
        table.add_column(column)
    for entry in CATALOG.values():
        here = "built in" if entry.name == "starter" else "yes" if is_here(entry.name) else "no"
        table.add_row(entry.name, here, entry.about)
    Console(file=sys.stdout).print(table)  # the last column is prose, whose lines may break
    echo(f"Named sets are looked for in ${DATA_VARIABLE}/NAME/texts.jsonl.\nA path to a file works everywhere too.")


@data.command()
def info(
    name: Annotated[str, typer.Argument(help="A named set, a file, or a Hugging Face id.")],
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
) -> None:
    """Show counts and class splits of a data set.

    \b
    Examples:
      dmin data info banking77
      dmin data info my.csv --label-column intent
    """
    from dmin.data import load_corpus
    from dmin.data.check import check_corpus

    with plain_warnings():
        corpus = load_corpus(name, text_column=text_column, label_column=label_column, encoding=encoding)
    report = check_corpus(corpus, 1)
    echo(f"{corpus.name}: {report.texts} texts, {report.classes} classes, {report.mean_words:.1f} words per text")
    echo(f"texts per class: {report.smallest[1]} / {report.median:g} / {report.largest[1]} (min / median / max)")
    for split_name, split in corpus.splits.items():
        chosen = " (default)" if split_name == corpus.default_split else ""
        echo(f"split {split_name}: {len(split.train)}/{len(split.valid)}/{len(split.test)} classes{chosen}")
    if not corpus.splits:
        echo("no class splits of its own: use --split-seed and --split-sizes")


@data.command()
def check(
    file: Annotated[str, typer.Argument(help="A file, a named set, or a Hugging Face id.")],
    shot: Annotated[
        int | None, typer.Option(min=1, help="Support texts per class that episodes will need. Default: 5.")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(min=1, help="Query texts per class that episodes will need. Default: 10.")
    ] = None,
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
    meaning: Annotated[
        bool | None,
        typer.Option(help="Also encode the texts and find likely wrong labels. Default: up to 2,000 texts."),
    ] = None,
) -> None:
    """Check labelled texts: duplicates, contradictions, small classes.

    Prints counts, lengths and what was found; with --shot or --queries, or where most classes have enough texts, also
    the classes that are too small for episodes. Small files are also checked by meaning: examples nearer to another class
    (wrong label?), classes that overlap, and the class that needs examples most.

    \b
    Examples:
      dmin data check intents.yaml
      dmin data check my.csv --label-column intent --meaning
    """
    from dmin.data import load_corpus
    from dmin.data.check import check_corpus

    asked = shot is not None or queries is not None
    shot, queries = shot or 5, queries or 10
    with plain_warnings():
        corpus = load_corpus(file, text_column=text_column, label_column=label_column, encoding=encoding)
    report = check_corpus(corpus, shot + queries)
    if not asked and report.median < shot + queries:  # a file of examples, not data for episodes
        report = check_corpus(corpus, 1)
    _print_report(report, f"{shot} + {queries}" if asked or report.too_small else None)
    if report.too_small or report.smallest[1] < THIN:
        echo(f"to find more texts for small classes in a pile: dmin suggest --input PILE --examples {file}")
    if len(corpus.classes) > 1 and (meaning or (meaning is None and len(corpus.texts) <= _SMALL)):
        from dmin.classifier import FewShotClassifier

        with plain_warnings():
            classifier = FewShotClassifier().fit(corpus.examples)
            echo(f"\nby meaning: {classifier.check()}")


def _print_report(report: CorpusReport, needed: str | None) -> None:
    echo(f"{report.texts} texts, {report.classes} classes; {report.mean_words:.1f} words per text")
    (small, fewest), (large, most) = report.smallest, report.largest
    echo(f"smallest class: {printable(small)} ({fewest}), largest: {printable(large)} ({most})")
    echo(f"shortest text: {report.shortest[:80]!r}")
    echo(f"longest text ({len(report.longest.split())} words): {report.longest[:80]!r}")
    _findings("duplicates", [f"{times} x {text[:60]!r} in {label}" for text, label, times in report.duplicates])
    _findings(
        "texts under two labels", [f"{text[:60]!r}: {', '.join(labels)}" for text, labels in report.contradictions]
    )
    if needed:
        small_classes = [f"{label} ({size})" for label, size in report.too_small]
        _findings(f"classes with fewer than {needed} texts, too few for episodes", small_classes)
    echo("the file: no problems found" if not report.problems else f"the file: {counted(report.problems, 'finding')}")


@data.command()
def cache(clear: Annotated[bool, typer.Option("--clear", help="Remove all cached vectors.")] = False) -> None:
    """Show the size of the cache of vectors, or clear it.

    \b
    Examples:
      dmin data cache
      dmin data cache --clear
    """
    from dmin.encoder import VectorCache

    store = VectorCache()
    if clear:
        echo(f"{store.clear() / 1e6:.1f} MB freed")
        return
    echo(f"{store.folder}: {store.size() / 1e6:.1f} MB of at most {store.limit / 1e6:.0f} MB")


def _findings(what: str, rows: list[str], most: int = 5) -> None:
    echo(f"{what}: {len(rows)}")
    for row in rows[:most]:
        echo(f"  {printable(row)}")
    if len(rows) > most:
        echo(f"  and {len(rows) - most} more")
