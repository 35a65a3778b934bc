"""`--plugin` (methods from outside the package, for every command), and help that lists the registered methods."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

OPTION = "--plugin"
HELP = "A Python file or module that registers a method of your own (see the docs, Methods). May be repeated."


def plugins_first(arguments: Sequence[str]) -> list[str]:
    """Move every `--plugin X` in front of the command, so that it may stand anywhere on the line."""
    first: list[str] = []
    rest: list[str] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if argument == "--":
            return [*first, *rest, "--", *waiting]
        if argument == OPTION and waiting:
            first += [OPTION, waiting.pop(0)]
        elif argument.startswith(f"{OPTION}="):
            first += [OPTION, argument.partition("=")[2]]
        else:
            rest.append(argument)
    return [*first, *rest]


def use_plugins(plugins: Sequence[str]) -> None:
    """Load plugins here, and let processes that this one starts load them too."""
    if not plugins:
        return
    from dmin.files import user_path
    from dmin.methods import load_plugin
    from dmin.methods.registry import PLUGINS_VARIABLE

    for plugin in plugins:
        load_plugin(plugin)
    given = [str(user_path(plugin).resolve()) if plugin.endswith(".py") else plugin for plugin in plugins]
    before = [plugin for plugin in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep) if plugin]
    os.environ[PLUGINS_VARIABLE] = os.pathsep.join(dict.fromkeys([*before, *given]))


class ListsMethods(TyperCommand):
    """A command whose help names the registered methods, those of plugins too, in place of `{methods}`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Ask the registry only now: it imports torch, which the help of all commands must not."""
        from dmin.methods import METHODS

        self.help = (self.help or "").replace("{methods}", ", ".join(METHODS))
        super().format_help(ctx, formatter)
