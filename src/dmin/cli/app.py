"""One file a verb; here they come together, and here every mistake becomes one line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer

from dmin import __version__
from dmin.cli.ablate import ablate
from dmin.cli.classify import classify
from dmin.cli.compare import compare
from dmin.cli.data import data
from dmin.cli.demo import demo
from dmin.cli.discover import discover
from dmin.cli.evaluate import evaluate
from dmin.cli.figure import figure
from dmin.cli.label import label
from dmin.cli.model import model
from dmin.cli.serve import serve
from dmin.cli.suggest import suggest
from dmin.cli.train import train
from dmin.errors import DminError, TrainingInterruptedError, nearest_name

# Typer carries its own copy of click in some versions: its base class of usage errors is found through typer.
ClickError: type[Any] = typer.BadParameter.__mro__[2]
STOPPED = 130  # the exit code of a command that was stopped on request

app = typer.Typer(
    name="dmin",
    help="Few-shot text classification with Dynamic Memory Induction Networks. Start with: dmin demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(train)
app.command()(evaluate)
app.command()(classify)
app.command()(suggest)
app.command()(discover)
app.command()(label)
app.command()(compare)
app.command()(ablate)
app.add_typer(figure, name="figure")
app.add_typer(data, name="data")
app.add_typer(model, name="model")
app.add_typer(serve, name="serve")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dmin {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    """Few-shot text classification with Dynamic Memory Induction Networks. Start with: dmin demo"""
    del version


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code: 0 done, 2 a mistake in what was given, 130 stopped on request."""
    calm_threads()
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; a user's mistake is one line on standard error."""
    command = typer.main.get_command(app)
    try:
        code = command.main(
            args=list(arguments) if arguments is not None else None, prog_name="dmin", standalone_mode=False
        )
        if code == STOPPED:  # some versions of typer give this back for Ctrl-C in place of the exception
            raise KeyboardInterrupt
    except ClickError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message())
            return 0
        return _complain(_usage_message(error))
    except TrainingInterruptedError as error:
        typer.echo(str(error), err=True)
        return STOPPED
    except DminError as error:
        return _complain(str(error))
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("stopped", err=True)
        return STOPPED
    return 0


def calm_threads() -> None:
    """Let idle threads spin for a moment only, then sleep.

    Where cores are shared, OpenMP's default of spinning costs up to several times the work; sleeping at once costs a third
    of the speed of training where they are not. Set before torch is imported, and only by the commands; what the user set
    stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")


def _complain(message: str) -> int:
    typer.echo("error: " + " ".join(message.split()), err=True)
    return 2


def _usage_message(error: Any) -> str:
    """A usage error as one line, with the nearest thing that exists and where to read more."""
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    option, command = getattr(error, "option_name", None), re.match(r"No such command '(.*?)'", message)
    if context and option and message.startswith("No such option"):
        known = [name for parameter in context.command.params for name in parameter.opts]
        message = _no_such("option", option, nearest_name(option, known))
    elif context and command:
        message = _no_such("command", command[1], nearest_name(command[1], getattr(context.command, "commands", {})))
    return f"{message} (see: {context.command_path if context else 'dmin'} --help)"


def _no_such(kind: str, name: str, near: str | None) -> str:
    return f"no such {kind} {name!r}" + (f": did you mean {near!r}?" if near else "")
