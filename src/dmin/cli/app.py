"""The `dmin` command: one file per subcommand; here every error becomes one line and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import pairwise
from typing import Any

import typer

from dmin import __version__
from dmin.cli.ablate import ablate
from dmin.cli.assess import assess
from dmin.cli.classify import classify
from dmin.cli.compare import compare
from dmin.cli.data import data
from dmin.cli.demo import demo
from dmin.cli.discover import discover
from dmin.cli.evaluate import evaluate
from dmin.cli.figure import figure
from dmin.cli.label import label
from dmin.cli.model import model
from dmin.cli.plugins import HELP, ListsMethods, plugins_first, use_plugins
from dmin.cli.search import search
from dmin.cli.serve import serve
from dmin.cli.suggest import suggest
from dmin.cli.train import train
from dmin.errors import DminError, TrainingInterruptedError, nearest_name, one_line, without_long_words
from dmin.extras import missing_extra

# Typer carries its own copy of click in some versions: its base class of usage errors is found through typer.
ClickError: type[Any] = typer.BadParameter.__mro__[2]
STOPPED = 130  # the exit code of a command that was stopped on request
LONGEST_MESSAGE = 2000  # characters

app = typer.Typer(
    name="dmin",
    help="Few-shot text classification with Dynamic Memory Induction Networks. Start with: dmin demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would swallow [texts] and break paragraphs at the lines of the source
)
app.command()(demo)
app.command()(train)
app.command()(evaluate)
app.command()(assess)
app.command()(classify)
app.command()(suggest)
app.command()(discover)
app.command()(label)
app.command(cls=ListsMethods)(compare)
app.command()(ablate)
app.command(cls=ListsMethods)(search)
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
    plugin: list[str] = typer.Option([], "--plugin", metavar="FILE.py", help=HELP),
) -> None:
    """Few-shot text classification with Dynamic Memory Induction Networks. Start with: dmin demo"""
    del version
    use_plugins(plugin)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code: 0 done, 2 a user's error, 130 stopped on request."""
    calm_threads()
    encode_anything()
    code = run(arguments)
    sys.exit(finish_output(code))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; a user's error is one line on standard error. Returns the exit code."""
    command = typer.main.get_command(app)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if any(pair in (("--out", ""), ("--output", "")) for pair in pairwise(words)) or {"--out=", "--output="} & {*words}:
        return _complain("--out is empty: name a file or a folder")  # pathlib would take it for the current folder
    try:
        code = command.main(
            args=plugins_first(words),
            prog_name="dmin",
            standalone_mode=False,
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
    except ModuleNotFoundError as error:
        found = missing_extra(error, f"dmin {next((word for word in words if not word.startswith('-')), '')}".strip())
        if found is None:
            raise
        return _complain(str(found))
    except OSError as error:  # the last line of defence: the system refused a file, a name or a device
        return _complain(_system_message(error))
    except RecursionError:
        return _complain("something that was given is nested too deeply")
    return 0


def encode_anything() -> None:
    """Let standard output and error escape what the locale's encoding has no sign for, in place of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def finish_output(code: int) -> int:
    """Write out what is printed so far; where that fails (a full disk, /dev/full), say so and give another exit code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries, and complains, once more
        if error.errno == errno.EPIPE:
            return code
        return _complain(f"cannot write to standard output: {one_line(error)}")
    return code


def calm_threads() -> None:
    """Let idle OpenMP threads spin briefly, then sleep.

    Where cores are shared, the default of spinning costs up to several times the work; where they are not, sleeping at once
    costs a third of the speed of training. Set before torch is imported, and only by the commands; the user's own settings
    stay.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")


def _complain(message: str) -> int:
    typer.echo("error: " + one_line(without_long_words(message), LONGEST_MESSAGE), err=True)
    return 2


def _system_message(error: OSError) -> str:
    """The reason that the system gives, with the file if it names one."""
    places = [str(name) for name in (error.filename, error.filename2) if name is not None]
    if not places and error.errno == errno.ENOSPC:
        places = ["cannot write to standard output"]
    return ": ".join([", ".join(places), one_line(error)] if places else [one_line(error)])


def _usage_message(error: Any) -> str:
    """A usage error as one line, with the nearest thing that exists and where to read more."""
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    option, command = getattr(error, "option_name", None), re.match(r"No such command '(.*?)'", message)
    if context and option and message.startswith("No such option"):
        known = [
            name
            for parameter in context.command.params
            if not getattr(parameter, "hidden", False)
            for name in parameter.opts
        ]
        message = _no_such("option", option, nearest_name(option, known))
    elif context and command:
        message = _no_such("command", command[1], nearest_name(command[1], getattr(context.command, "commands", {})))
    return f"{message} (see: {context.command_path if context else 'dmin'} --help)"


def _no_such(kind: str, name: str, near: str | None) -> str:
    return f"no such {kind} {name!r}" + (f": did you mean {near!r}?" if near else "")
