"""Start a service process: open the store, fill it, listen, and stop cleanly."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import Callable, Mapping, Sequence

import uvicorn

from dmin.errors import ConfigError, one_line
from dmin.server import edits, queries
from dmin.server.app import create_app
from dmin.server.database import Database
from dmin.server.keys import list_keys
from dmin.server.observing import log_to_standard_error
from dmin.server.service import Service
from dmin.server.settings import DEFAULT_COLLECTION, Settings
from dmin.threads import one_blas_thread_for_good

_GRACE = 30  # seconds for requests that were accepted before a stop
_LAST_READ = 0.05  # seconds in which a stop still takes connections that wait, and reads what they sent


class Server(uvicorn.Server):  # type: ignore[misc]  # (the types of uvicorn are not read)
    """Answers whatever was sent before a stop, also what waits unread in the system.

    Unusual: uvicorn closes every connection that has no request yet, so one whose request was sent and not read, because
    the service was busy, would be reset.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take the connections that wait, listen no more, read what the last of them sent, and end as uvicorn does."""
        await asyncio.sleep(_LAST_READ)
        for server in self.servers:
            server.close()
        await asyncio.sleep(_LAST_READ)
        await super().shutdown(sockets)


def run_service(
    settings: Settings,
    examples: Mapping[str, Sequence[str]] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; `examples` fill the collection `default` if the store has none."""
    # Batches have threads of their own; with those of a tokenizer or of products beside them, much time goes into waiting.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # whatever it was: the command line asks for threads
    one_blas_thread_for_good()
    log_to_standard_error()
    database = Database(settings.store)
    database.migrate()
    check_public(settings, database)
    service = Service(settings, database)
    if examples:
        added = fill(service, examples)
        say(added)
    server = Server(_config(service))
    gc.freeze()  # what is there now stays to the end: collections while requests run need not walk it
    with _socket(settings) as listening:
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        say(f"serving on http://{shown}:{port}  (the page; /docs has the API; Ctrl-C stops)")
        server.run(sockets=[listening])


def check_public(settings: Settings, database: Database) -> None:
    """Refuse an address that others can reach as long as nobody needs a key."""
    if settings.public and not any(key.state == "active" for key in list_keys(database)):
        raise ConfigError(
            f"--host {settings.host} can be reached from other machines, and the store has no key: make one first, "
            "dmin serve keys create NAME --role admin"
        )


def fill(service: Service, examples: Mapping[str, Sequence[str]]) -> str:
    """Put examples into the collection `default` unless it has classes; says what was done."""
    with service.database.reading() as connection:
        known = queries.content(connection, DEFAULT_COLLECTION)
    if known is not None and known.examples:
        return (
            f"the store {service.settings.store} has {len(known.examples)} classes in {DEFAULT_COLLECTION!r} already: the "
            "examples were not imported; --store NEW begins another store"
        )
    edit = edits.import_examples(examples, {})
    done = service.store.change(DEFAULT_COLLECTION, edit, queries.SERVICE)
    return f"{done.body['summary']} into {DEFAULT_COLLECTION!r}"


def _config(service: Service) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(service),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        proxy_headers=False,  # nothing here depends on the caller's address
        h11_max_incomplete_event_size=64 << 10,
    )


def _socket(settings: Settings) -> socket.socket:
    """A listening socket; a port that is taken is an error in words.

    Unusual: its connections send small packets at once. asyncio sees to that only where a socket names its protocol; else
    the body of an answer waits 40 ms for the other side to acknowledge the header.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        reason = error.strerror or one_line(error)
        raise ConfigError(f"cannot listen on {settings.host}:{settings.port} ({reason}): try another --port") from error
    return listening
