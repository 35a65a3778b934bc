"""`dmin serve`: the service, its keys and copies of its store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from dmin.cli import options
from dmin.errors import ConfigError

STORE = "runs/serve/store.sqlite"
_STORE_HELP = "A file (SQLite), or postgresql://user:password@host/database."

serve = typer.Typer(help="Serve a classifier over HTTP, with a page.", invoke_without_command=True)
KEYS_HELP = """Make, list and revoke the keys of a store.

\b
Examples:
  dmin serve keys create website
  dmin serve keys list
"""
keys = typer.Typer(help=KEYS_HELP, no_args_is_help=True)
serve.add_typer(keys, name="keys")


@serve.callback()
def start(
    context: typer.Context,
    examples: str | None = typer.Option(
        None, help="Fill the collection `default`, if the store has none: a file, or a data set like starter."
    ),
    per_class: int | None = typer.Option(None, help="Take only the first so many examples per class."),
    store: str = typer.Option(STORE, envvar="DMIN_STORE", help=_STORE_HELP),
    host: str = typer.Option("127.0.0.1", help="The address to listen on; others than loopback need a key."),
    port: int = typer.Option(8765, help="The port; 0 takes a free one."),
    model: str = typer.Option("default", help="default, nearest, the folder of a run, or a Hugging Face id."),
    encoder: str | None = typer.Option(None, help="Another encoder, with nearest prototypes."),
    backend: options.Backend = "auto",
    workers: int = typer.Option(0, help="Batches worked on side by side, one core each; 0 takes all cores."),
    batch: int = typer.Option(32, help="Texts of one encoder batch, at most."),
    queue: int = typer.Option(2048, help="Texts that may wait; more are answered with 503."),
    requests_per_minute: int = typer.Option(6000, help="Requests per key and minute; 0 means no limit."),
    allow_host: list[str] = typer.Option([], help="Another name under which a proxy calls the service."),
    allow_origin: list[str] = typer.Option([], help="A site whose pages may call the API (CORS)."),
    log_texts: bool = typer.Option(False, "--log-texts", help="Write texts into the log too."),
) -> None:
    """Serve a classifier over HTTP, with a page.

    \b
    Examples:
      dmin serve --examples intents.yaml
      dmin serve --store postgresql://dmin@localhost/dmin --host 0.0.0.0
    """
    if context.invoked_subcommand is not None:
        return
    run = _server("run")
    settings_of = _server("settings")
    if min(workers, queue - 1, batch - 1, requests_per_minute, port) < 0 or port > 65535:
        raise ConfigError("--workers, --port and --requests-per-minute are 0 or more, --batch and --queue 1 or more")
    limits = settings_of.Limits(queue=queue, requests_per_minute=requests_per_minute)
    settings = settings_of.Settings(
        store=store, host=host, port=port, model=model, encoder=encoder, backend=backend, workers=workers, batch=batch,
        log_texts=log_texts, origins=tuple(allow_origin), hosts=tuple(allow_host), limits=limits,
    )  # fmt: skip
    content = _examples(examples, per_class)
    run.run_service(settings, content, lambda line: typer.echo(line))


def _examples(name: str | None, per_class: int | None) -> dict[str, list[str]] | None:
    if name is None:
        return None
    if per_class is not None and per_class < 1:
        raise ConfigError(f"--per-class {per_class}: at least 1 is needed")
    from dmin.data.catalog import load_corpus

    return {label: texts[:per_class] for label, texts in load_corpus(name).examples.items()}


@keys.command()
def create(
    name: str = typer.Argument(..., help="Who gets it; the history shows this name."),
    role: str = typer.Option("read", help="read, write or admin; each may do what those before it may."),
    collection: list[str] = typer.Option([], help="A collection that it is for; several are possible. Default: all."),
    days: float | None = typer.Option(None, help="It expires after so many days."),
    store: str = typer.Option(STORE, envvar="DMIN_STORE", help=_STORE_HELP),
) -> None:
    """Make a key and print it, this once."""
    secret, key = _server("keys").create_key(_database(store), name, role, tuple(collection), days)
    until = f", expires {key.expires_at}" if key.expires_at else ""
    typer.echo(f"key {key.id} for {key.name}, role {key.role}{until}; it is shown this once:", err=True)
    typer.echo(secret)


@keys.command(name="list")
def list_all(store: str = typer.Option(STORE, envvar="DMIN_STORE", help=_STORE_HELP)) -> None:
    """All keys: number, name, role, collections, state."""
    for key in _server("keys").list_keys(_database(store)):
        where = ",".join(key.collections) if key.collections else "all collections"
        end = f" until {key.expires_at}" if key.expires_at and key.state == "active" else ""
        typer.echo(f"{key.id}\t{key.name}\t{key.role}\t{where}\t{key.state}{end}")


@keys.command()
def revoke(
    identifier: str = typer.Argument(..., metavar="ID", help="The number that `list` shows."),
    store: str = typer.Option(STORE, envvar="DMIN_STORE", help=_STORE_HELP),
) -> None:
    """Make a key worthless, within a second also for services that run."""
    _server("keys").revoke_key(_database(store), identifier)
    typer.echo(f"key {identifier} is revoked")


@serve.command()
def backup(
    target: Path = typer.Argument(..., metavar="FILE", help="The copy; it must not exist yet."),
    store: str = typer.Option(STORE, envvar="DMIN_STORE", help=_STORE_HELP),
) -> None:
    """Copy an SQLite store as of one moment, also while the service runs.

    The copy is a store: dmin serve --store FILE serves it.

    \b
    Examples:
      dmin serve backup monday.sqlite
    """
    size = _server("backup").back_up(store, target)
    typer.echo(f"{size:,} bytes written: {target}")


def _server(part: str) -> Any:
    """A module of the server; without its extra, the error says how to get it."""
    import importlib

    try:
        return importlib.import_module(f"dmin.server.{part}")
    except ModuleNotFoundError as error:
        raise ConfigError(f"serving needs an extra ({error.name} is missing): pip install 'dmin[serve]'") from error


def _database(store: str) -> Any:
    database = _server("database").Database(store)
    database.migrate()
    return database
