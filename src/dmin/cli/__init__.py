"""The `dmin` command."""

from dmin.cli.app import main

__all__ = ["main"]
