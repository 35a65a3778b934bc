"""`dmin label`: a labelling session in the terminal, one key for an answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dmin.cli.common import plain_warnings
from dmin.cli.suggest import printable, tell_notes
from dmin.errors import ConfigError, DataError, nearest_name

if TYPE_CHECKING:
    from dmin.labelling import Question, Session

CHOICES = 9  # keys 1 to 9
HELP = "1-9 that class, n another or new class, s skip, u undo, c classes, q save and quit"


def label(
    source: Path = typer.Option(..., "--input", help="The pile: a CSV, TSV, JSONL, JSON, YAML, Parquet or text file."),
    examples: Path | None = typer.Option(None, help="What is labelled already; it is read, never written."),
    out: Path = typer.Option(
        Path("runs/label"), help="Folder of the session: session.jsonl, examples.yaml, classifier/."
    ),
    model: str = typer.Option("default", help="As for dmin classify."),
    text_column: str = typer.Option("text", help="Column of the texts in --input."),
    label_column: str = typer.Option("label", help="Column of the labels in --examples, whose texts are in: text."),
    seed: int = typer.Option(0, help="Of the suggestions."),
    most: int = typer.Option(200_000, help="Texts that are kept of a larger pile, at random."),
) -> None:
    """Label a pile: it suggests a text, you press a key, it learns at once.

    Each answer is on the disk before the next text is shown; the same command continues an interrupted session. At the end
    examples.yaml and a saved classifier are written.

    \b
    dmin label --input mails.csv --out runs/mails
    dmin classify --model runs/mails/classifier --input mails.csv --output answers.csv
    """
    from dmin.classifier import FewShotClassifier
    from dmin.data.readers import read_corpus
    from dmin.labelling import Session, read_pile

    if (Path(model) / "classifier.json").is_file():
        raise ConfigError(
            f"{model} is a saved classifier: give its examples as --examples, and the model it was made with"
        )
    with plain_warnings():
        known = read_corpus(examples, label_column=label_column).examples if examples else {}
        pile = read_pile(source, column=text_column, most=most, seed=seed)
        tell_notes(pile)
        settings = FewShotClassifier(model)
        with Session(pile, out / "session.jsonl", examples=known, classifier=settings, seed=seed) as session:
            if session.answers:
                typer.echo(f"continued: {len(session.answers)} answers, {len(session.labels)} classes")
            typer.echo(HELP)
            try:
                _loop(session, read_key)
            except (KeyboardInterrupt, EOFError):
                typer.echo()
            _finish(session, out)


def _loop(session: Session, read: Callable[[], str]) -> None:
    """Ask until the pile is through or the person quits."""
    while (question := session.next()) is not None:
        _show(question)
        while True:
            key = read().lower()
            if key == "q":
                return
            if _act(session, question, key):
                break
    typer.echo("nothing is left that differs from what is labelled")


def _act(session: Session, question: Question, key: str) -> bool:
    """Do what a key says; False when the same text waits for another key."""
    choices = [name for name, _ in question.likely[:CHOICES]] or session.labels[:CHOICES]
    if key.isdecimal() and 1 <= int(key) <= len(choices):
        _tell(session, choices[int(key) - 1])
        return True
    if key == "n":
        name = _ask_name(session.labels)
        if name is None:
            return False
        _tell(session, name)
        return True
    if key == "s":
        session.skip()
        typer.echo("  skipped")
        return True
    if key == "u":
        typer.echo("  taken back" if session.undo() else "  nothing to take back")
        return True
    if key == "c":
        for name, texts in session.examples.items():
            typer.echo(f"  {len(texts)}\t{printable(name)}")
        return False
    typer.echo(f"  {HELP}")
    return False


def _show(question: Question) -> None:
    typer.echo(f"\n{printable(question.text, 2000)}")
    typer.echo(f"  ({printable(question.reason)})")
    for number, (name, probability) in enumerate(question.likely[:CHOICES], 1):
        typer.echo(f"  {number} {printable(name)} {100 * probability:.0f} %")


def _tell(session: Session, name: str) -> None:
    from dmin.labelling.session import check_label

    try:
        check_label(name)
    except DataError as error:  # a slip of the keys: the text is asked again
        typer.echo(f"  {error}")
        return
    estimate = session.answer(name)
    typer.echo(f"  -> {printable(name)}")
    if estimate is not None:
        typer.echo(f"[{len(session.answers)} answers] {estimate}")


def _ask_name(known: list[str]) -> str | None:
    """Read the name of a class; the beginning of a known name is enough, a near miss is asked about."""
    typer.echo("  class: ", nl=False)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    name = line.strip()
    if not name:
        return None
    if name in known:
        return name
    beginning = [other for other in known if other.lower().startswith(name.lower())]
    if len(beginning) == 1:
        return beginning[0]
    near = nearest_name(name, known)
    if near is not None and near.lower() == name.lower():
        return near
    return name


def _finish(session: Session, out: Path) -> None:
    """Write examples.yaml and the classifier; without two classes, say what is missing."""
    import yaml

    from dmin.files import write_atomic

    if not session.examples:
        typer.echo("no answers yet", err=True)
        return
    content = yaml.safe_dump(session.examples, allow_unicode=True, sort_keys=False, width=10**6)
    write_atomic(out / "examples.yaml", content)
    typer.echo(
        f"{len(session.answers)} answers, {len(session.labels)} classes saved: {out / 'examples.yaml'}", err=True
    )
    if len(session.labels) < 2:
        typer.echo("a classifier needs at least two classes: go on with the same command", err=True)
        return
    session.save(out / "classifier")
    typer.echo(f"classifier saved: dmin classify --model {out / 'classifier'} TEXT", err=True)


def read_key() -> str:
    """One key, without Enter where standard input is a terminal; else the first character of a line."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.strip()[:1]
    try:
        import termios
        import tty
    except ImportError:  # Windows
        return sys.stdin.readline().strip()[:1]
    handle = sys.stdin.fileno()
    before: Any = termios.tcgetattr(handle)
    try:
        tty.setcbreak(handle, termios.TCSADRAIN)  # Ctrl-C still stops, and keys typed ahead are kept
        key = sys.stdin.read(1)
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
    if not key or key == "\x04":  # Ctrl-D
        raise EOFError
    return key
