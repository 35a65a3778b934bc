"""A service's process: its stop."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from dmin.server.run import Server


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


async def answer_of_a_request_that_a_stop_finds_unread(server: uvicorn.Server, listening: socket.socket) -> bytes:
    """The request lies in the system when the stop comes: right after the service took its connection."""
    config = server.config
    config.load()
    stops = []

    class Stopped(config.http_protocol_class):  # type: ignore[name-defined,misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            stops.append(asyncio.ensure_future(server.shutdown()))

    config.http_protocol_class = Stopped
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listening])
    with socket.create_connection(listening.getsockname()) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
        client.setblocking(False)
        found = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1000), 20)
    await asyncio.gather(*stops)
    return found


@pytest.mark.parametrize("http", ["h11", "httptools"])
def test_a_stop_answers_a_request_that_was_sent_and_not_read(http: Any) -> None:
    for kind, answered in ((Server, True), (uvicorn.Server, False)):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = kind(uvicorn.Config(hello, http=http, lifespan="off", log_config=None))
            try:
                found = asyncio.run(answer_of_a_request_that_a_stop_finds_unread(server, listening))
            except ConnectionResetError:
                found = b""
        assert found.endswith(b"hello") == answered  # uvicorn's own stop resets it
