"""The typed client: every call against a real service, retries, errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dmin.client import AsyncClient, Client, ServiceError
from dmin.errors import DminError
from dmin.server.keys import create_key
from tests.server.conftest import CLASSES, Live


def test_every_call(start: Callable[..., Live]) -> None:
    live = start()
    with Client(live.url) as client:
        assert client.create_collection("default", CLASSES).classes == 3
        answer = client.classify(["apple pear"], top_k=2, explain=True).answers[0]
        assert len(answer.top) == 2
        assert answer.explanation is not None
        assert [item.name for item in client.collections().collections] == ["default"]
        made = client.put_class("a/b", ["rain"], description="weather")
        assert client.get_class("a/b") == made
        with pytest.raises(ServiceError) as caught:
            client.put_class("a/b", ["snow"], revision=made.revision - 1)
        assert caught.value.status == 412
        assert caught.value.problem["changes"]
        assert client.add_examples("a/b", ["storm", "rain"]).added == 1
        assert client.delete_class("a/b").action == "delete-class"
        assert client.undo().action == "undo"
        assert client.history(most=2).changes[0].action == "undo"
        assert client.check().report["classes"] == 4
        assert len(client.suggest(["apple", "wheel road", "song"], 2).suggestions) == 2
        assert client.evaluate([("apple pear plum", "fruit")]).texts == 1
        assert client.import_file(b"sea: [wave]\n").added == 1
        assert "sea" in [item.label for item in client.classes().classes]
        assert client.model().width == 24
        assert client.delete_collection("default").action == "delete"


def test_the_same_awaited(live: Live) -> None:
    async def talk() -> list[str | None]:
        async with AsyncClient(live.url) as client:
            await client.add_examples("fruit", ["melon"])
            found = await asyncio.gather(*(client.classify([text]) for text in ("apple pear plum", "song tune melody")))
            return [answer.answers[0].top[0].label for answer in found]

    assert asyncio.run(talk()) == ["fruit", "music"]


def test_a_key_is_sent(live: Live) -> None:
    secret, _ = create_key(live.service.database, "app", "read")
    live.service.ring.refresh()
    with Client(live.url, secret) as client:
        assert client.classify(["apple"]).answers
    with Client(live.url, "dmin_wrong_key", retries=0) as client, pytest.raises(ServiceError, match="not known"):
        client.classify(["apple"])


class _Flaky(BaseHTTPRequestHandler):
    """Breaks the connection once, is busy once, then answers."""

    seen: list[str] = []  # noqa: RUF012

    def do_POST(self) -> None:
        self.seen.append(str(self.headers["Idempotency-Key"]))
        self.rfile.read(int(self.headers["Content-Length"]))
        if len(self.seen) == 1:
            self.connection.close()
            return
        busy = len(self.seen) == 2
        body = b"{}" if busy else b'{"collection": "default", "revision": 1, "action": "add-examples", "summary": ""}'
        self.send_response(503 if busy else 200)
        self.send_header("Content-Length", str(len(body)))
        if busy:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_retries_carry_one_idempotency_key() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Flaky)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Client(f"http://127.0.0.1:{server.server_port}") as client:
        assert client.add_examples("a", ["b"]).revision == 1
    server.shutdown()
    server.server_close()
    assert len(_Flaky.seen) == 3
    assert len(set(_Flaky.seen)) == 1
    assert len(_Flaky.seen[0]) == 32


def test_nobody_there_is_one_line() -> None:
    with Client("http://127.0.0.1:1", retries=0) as client, pytest.raises(DminError, match="does not answer"):
        client.model()
