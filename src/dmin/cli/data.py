"""`dmin data`: what there is, what is in it, whether it can be used, and the cache of vectors."""

from __future__ import annotations

import typer

from dmin.cli.common import plain_warnings
from dmin.errors import DataError

_SMALL = 2000  # texts that are encoded without being asked
data = typer.Typer(help="Look at data sets, check files, and mind the cache of vectors.", no_args_is_help=True)


@data.command("list")
def list_sets() -> None:
    """List the named data sets and whether they are here."""
    from rich.console import Console
    from rich.table import Table

    from dmin.data.catalog import CATALOG, DATA_VARIABLE, is_here

    table = Table()
    for column in ("name", "here", "what"):
        table.add_column(column)
    for entry in CATALOG.values():
        here = "built in" if entry.name == "starter" else "yes" if is_here(entry.name) else "no"
        table.add_row(entry.name, here, entry.about)
    Console().print(table)
    typer.echo(
        f"Named sets are looked for in ${DATA_VARIABLE}/NAME/texts.jsonl. A path to a file works everywhere too."
    )


@data.command()
def info(
    name: str = typer.Argument(help="A named set, a file, or a Hugging Face id."),
    text_column: str = typer.Option("text", help="Column of the texts."),
    label_column: str = typer.Option("label", help="Column of the labels."),
) -> None:
    """Show counts and class splits of a data set."""
    from dmin.data import load_corpus
    from dmin.data.check import check_corpus

    with plain_warnings():
        corpus = load_corpus(name, text_column=text_column, label_column=label_column)
    report = check_corpus(corpus, 1)
    typer.echo(f"{corpus.name}: {report.texts} texts, {report.classes} classes, {report.mean_words:.1f} words a text")
    typer.echo(f"texts a class: {report.smallest[1]} / {report.median:g} / {report.largest[1]} (min / median / max)")
    for split_name, split in corpus.splits.items():
        chosen = " (default)" if split_name == corpus.default_split else ""
        typer.echo(f"split {split_name}: {len(split.train)}/{len(split.valid)}/{len(split.test)} classes{chosen}")
    if not corpus.splits:
        typer.echo("no class splits of its own: use --split-seed and --split-sizes")


@data.command()
def check(
    file: str = typer.Argument(help="A file, a named set, or a Hugging Face id."),
    shot: int = typer.Option(5, help="Support texts a class that episodes will need."),
    queries: int = typer.Option(10, help="Query texts a class that episodes will need."),
    text_column: str = typer.Option("text", help="Column of the texts."),
    label_column: str = typer.Option("label", help="Column of the labels."),
    meaning: bool | None = typer.Option(
        None, help="Also encode the texts and look for mislabelled ones and classes that overlap. Default: up to 2,000."
    ),
) -> None:
    """Check labelled texts: counts, lengths, duplicates, texts under two labels, classes too small.

    Small files are looked at by meaning too: examples nearer to another class (mislabelled?), classes that overlap, and
    which class to add examples to next.

    \b
    dmin data check intents.yaml
    dmin data check my.csv --label-column intent --meaning
    """
    from dmin.data import load_corpus
    from dmin.data.check import check_corpus

    if min(shot, queries) < 1:
        raise DataError("--shot and --queries must be at least 1")
    corpus = load_corpus(file, text_column=text_column, label_column=label_column)
    report = check_corpus(corpus, shot + queries)
    typer.echo(f"{report.texts} texts, {report.classes} classes; {report.mean_words:.1f} words a text")
    (small, fewest), (large, most) = report.smallest, report.largest
    typer.echo(f"smallest class: {small} ({fewest}), largest: {large} ({most})")
    typer.echo(f"shortest text: {report.shortest[:80]!r}")
    typer.echo(f"longest text ({len(report.longest.split())} words): {report.longest[:80]!r}")
    _findings("duplicates", [f"{times} x {text[:60]!r} in {label}" for text, label, times in report.duplicates])
    _findings(
        "texts under two labels", [f"{text[:60]!r}: {', '.join(labels)}" for text, labels in report.contradictions]
    )
    _findings(
        f"classes with fewer than {shot} + {queries} texts", [f"{label} ({size})" for label, size in report.too_small]
    )
    if report.too_small:
        typer.echo("  to find more texts for them in a pile: dmin suggest --input PILE --examples " + file)
    typer.echo("nothing to mend" if not report.problems else f"{report.problems} findings")
    if len(corpus.classes) > 1 and (meaning or (meaning is None and len(corpus.texts) <= _SMALL)):
        from dmin.classifier import FewShotClassifier

        with plain_warnings():
            classifier = FewShotClassifier().fit(corpus.examples)
            typer.echo(f"\nby meaning: {classifier.check()}")


@data.command()
def cache(clear: bool = typer.Option(False, "--clear", help="Remove all cached vectors.")) -> None:
    """Show the size of the cache of vectors, or clear it."""
    from dmin.encoder import VectorCache

    store = VectorCache()
    if clear:
        typer.echo(f"{store.clear() / 1e6:.1f} MB freed")
        return
    typer.echo(f"{store.folder}: {store.size() / 1e6:.1f} MB of at most {store.limit / 1e6:.0f} MB")


def _findings(what: str, rows: list[str], most: int = 5) -> None:
    typer.echo(f"{what}: {len(rows)}")
    for row in rows[:most]:
        typer.echo(f"  {row}")
    if len(rows) > most:
        typer.echo(f"  and {len(rows) - most} more")
