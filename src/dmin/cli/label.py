"""`dmin label`: a labelling session in the terminal, one key for an answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dmin.cli import options
from dmin.cli.common import echo, plain_warnings
from dmin.cli.suggest import shown, tell_notes
from dmin.errors import ConfigError, DataError, counted, nearest_name

if TYPE_CHECKING:
    from dmin.labelling import Question, Session

CHOICES = 9  # keys 1 to 9
HELP = "1-9 that class, n another or new class, s skip, u undo, c classes, q save and quit"


def label(
    source: options.PileFile,
    examples: Annotated[Path | None, typer.Option(help="What is labelled already; it is read, never written.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the session: session.jsonl, examples.yaml, classifier/.")] = Path(
        "runs/label"
    ),
    model: Annotated[str, typer.Option(help="As for dmin classify.")] = "default",
    text_column: options.TextColumn = "text",
    label_column: options.LabelColumn = "label",
    encoding: options.Encoding = "utf-8",
    seed: options.PileSeed = 0,
    most: options.PileMost = 200_000,
    unlabelled: Annotated[
        bool, typer.Option(help="Learn from the texts without a label as well, after every ten answers and at the end.")
    ] = True,
) -> None:
    """Label a pile of texts, one key for each, learning at once.

    Each answer is on the disk before the next text is shown; the same command continues an interrupted session. At the end
    examples.yaml and a saved classifier are written.

    \b
    Examples:
      dmin label --input mails.csv --out runs/mails
      dmin classify --model runs/mails/classifier --input mails.csv
    """
    from dmin.classifier import FewShotClassifier
    from dmin.labelling import Session, read_pile

    if (Path(model) / "classifier.json").is_file():
        raise ConfigError(
            f"{model} is a saved classifier: give its examples as --examples, and the model it was made with"
        )
    with plain_warnings():
        known = _known(examples, text_column, label_column, encoding)
        pile = read_pile(source, column=text_column, encoding=encoding, most=most, seed=seed)
        tell_notes(pile)
        settings = FewShotClassifier(model)
        journal = out / "session.jsonl"
        with Session(
            pile, journal, examples=known, classifier=settings, seed=seed, use_unlabelled=unlabelled
        ) as session:
            if session.answers:
                echo(f"continued: {len(session.answers)} answers, {len(session.labels)} classes")
            echo(HELP)
            try:
                _loop(session, read_key)
            except (KeyboardInterrupt, EOFError):
                echo("")
            _finish(session, out)


def _known(examples: Path | None, text_column: str, label_column: str, encoding: str) -> dict[str, list[str]]:
    """What is labelled already."""
    from dmin.data.labelled import read_corpus

    if examples is None:
        return {}
    columns = {"text_column": text_column, "label_column": label_column, "encoding": encoding}
    return read_corpus(examples, fallback=True, **columns).examples


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
    echo("nothing is left that differs from what is labelled")


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
        echo("  skipped")
        return True
    if key == "u":
        echo("  taken back" if session.undo() else "  nothing to take back")
        return True
    if key == "c":
        for name, texts in session.examples.items():
            echo(f"  {shown(name)}: {counted(len(texts), 'example')}")
        return False
    if key.isdecimal():
        echo(f"  there is no class {key} here; n takes a name")
    echo(f"  {HELP}")
    return False


def _show(question: Question) -> None:
    echo(f"\n{shown(question.text, 2000)}")
    echo(f"  ({shown(question.reason)})")
    for number, (name, probability) in enumerate(question.likely[:CHOICES], 1):
        echo(f"  {number} {shown(name)} {100 * probability:.0f} %")


def _tell(session: Session, name: str) -> None:
    from dmin.labelling.session import check_label

    try:
        check_label(name)
    except DataError as error:  # a slip of the keys: the text is asked again
        echo(f"  {error}")
        return
    estimate = session.answer(name)
    echo(f"  -> {shown(name)}")
    if estimate is not None:
        echo(f"[{len(session.answers)} answers] {estimate}")


def _ask_name(known: list[str]) -> str | None:
    """Read the name of a class; where it is like known ones, ask which of them is meant, or whether it is a new one."""
    name = _ask("  class: ")
    if not name or name in known:
        return name or None
    same = [other for other in known if other.lower() == name.lower()]
    if same:
        return same[0]
    like = [other for other in known if other.lower().startswith(name.lower())][: CHOICES - 1]
    near = nearest_name(name, known)
    if near is not None and near not in like and _letters(near) != _letters(name):
        like.append(near)
    if not like:
        return name
    for number, other in enumerate(like, 1):
        echo(f"  {number} {shown(other)}")
    echo(f"  {len(like) + 1} {shown(name)}, a new class")
    answer = _ask("  which (Enter: none of them): ")
    choices = [*like, name]
    return choices[int(answer) - 1] if answer.isdecimal() and 1 <= int(answer) <= len(choices) else None


def _letters(name: str) -> str:
    """A name without its digits: "level 1" is no slip for "level 2"."""
    return "".join(sign for sign in name.lower() if not sign.isdigit())


def _ask(prompt: str) -> str:
    echo(prompt, nl=False)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.strip()


def _finish(session: Session, out: Path) -> None:
    """Write examples.yaml and the classifier; without two classes, say what is missing."""
    import yaml

    from dmin.files import write_atomic

    if not session.examples:
        echo("no answers yet", err=True)
        return
    content = yaml.safe_dump(session.examples, allow_unicode=True, sort_keys=False, width=10**6)
    write_atomic(out / "examples.yaml", content)
    echo(f"{len(session.answers)} answers, {len(session.labels)} classes saved: {out / 'examples.yaml'}", err=True)
    if len(session.labels) < 2:
        echo("a classifier needs at least two classes: go on with the same command", err=True)
        return
    session.save(out / "classifier")
    echo(f"classifier saved: dmin classify --model {out / 'classifier'} TEXT", err=True)


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
