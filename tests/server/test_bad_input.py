"""Whatever is sent, the answer is a problem document, the store is untouched, and the service goes on."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Callable
from urllib.parse import quote

import pytest
from sqlalchemy import text

from dmin.server.settings import Limits
from tests.server.conftest import STRESS, Cluster, Live

AT = "/v1/collections/default"
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        (b"{", {400}),
        (b"", {422}),
        (b"null", {422}),
        (b"[]", {422}),
        (b'{"texts": ["\xff\xfe"]}', {400}),
        (b'{"texts": ["\\ud800"]}', {400, 422}),
        (b"[" * 100_000, {400}),
        (b'{"texts": [' + b"1" * 5000 + b"]}", {400, 422}),
        (b'{"texts": ["a"], "texts": "b"}', {422}),
        (b"\x00\x01\x02", {400}),
    ],
)
def test_malformed_bodies(shared: Live, body: bytes, statuses: set[int]) -> None:
    for path, method in ((f"{AT}/classify", "POST"), (f"{AT}/classes/x", "PUT"), ("/v1/collections", "POST")):
        answer = shared.http.request(method, path, content=body, headers=JSON)
        assert answer.status_code in statuses, (path, answer.status_code, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert "Traceback" not in answer.text
    assert shared.http.get("/v1/collections").json()["collections"][0]["classes"] == 3


@pytest.mark.parametrize(
    "label", ["x" * 10_000, "a\u0000b", "a\nb", " padded", "\u2028", ".", "..", "\u007f", "x" * 201]
)
def test_labels_that_cannot_be(shared: Live, label: str) -> None:
    answer = shared.http.put(f"{AT}/classes/{quote(label, safe='')}", json={"examples": ["a"]})
    assert answer.status_code in (404, 405, 422), answer.status_code
    assert answer.headers["content-type"] == "application/problem+json"
    body = {"name": "new", "classes": {label: ["a"]}}
    assert shared.http.post("/v1/collections", json=body).status_code == 422
    assert shared.http.get("/v1/collections/new").status_code == 404
    assert shared.http.get(AT).json()["classes"] == 3


@pytest.mark.parametrize(
    "label", ["Größe", "退款", "🎈", "a/b/c", "100%", "a?b#c", "'; DROP TABLE classes; --", "a\\b"]
)
def test_labels_that_look_odd_but_can_be(shared: Live, label: str) -> None:
    at = f"{AT}/classes/{quote(label, safe='')}"
    assert shared.http.put(at, json={"examples": ["rain cloud"]}).json()["label"] == label
    assert shared.http.get(at).json()["label"] == label
    assert label in [row["label"] for row in shared.http.get(f"{AT}/classes").json()["classes"]]
    assert shared.http.delete(at).status_code == 200


@pytest.mark.parametrize("name", ["nowhere", "%00", "..%2F..%2Fetc", "x" * 500, "%ff"])
def test_unknown_collections(shared: Live, name: str) -> None:
    answer = shared.http.post(f"/v1/collections/{name}/classify", json={"texts": ["a"]})
    assert answer.status_code in (400, 404, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_bytes_that_are_no_http(shared: Live) -> None:
    for sent in (b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", shared.port), timeout=5) as connection:
            connection.sendall(sent)
            connection.settimeout(5)
            assert connection.recv(1000)[:12] in (b"HTTP/1.1 400", b"")
    assert shared.http.get("/healthz").status_code == 200


def test_every_upload_survives_fuzzing(live: Live) -> None:
    """Valid uploads with random bytes changed, cut and put in: never a 5xx, and all or nothing."""
    chance = random.Random(18)
    seeds = {
        "text/csv": b'text,label\nwave shore,sea\n"sand, tide",sea\n',
        "text/tab-separated-values": b"text\tlabel\nwave shore\tsea\n",
        "application/x-ndjson": b'{"text": "wave", "label": "sea"}\n{"text": "sand", "label": "sea"}\n',
        "application/json": b'{"sea": ["wave", "sand"], "sky": ["cloud"]}',
        "application/yaml": b"sea:\n  - wave shore\n  - 'sand: tide'\nsky: [cloud, rain]\n",
    }
    rounds = 400 if STRESS else 40
    count = 0
    for kind, seed in seeds.items():
        for _ in range(rounds):
            body = _mutated(seed, chance)
            for path in ("/v1/collections/fuzz/import", f"{AT}/evaluate"):
                answer = live.http.post(path, content=body, headers={"Content-Type": kind})
                assert answer.status_code in (200, 400, 413, 422), (kind, body, answer.text)
                count += 1
    for _ in range(rounds):
        body = _mutated(b'{"texts": ["wave shore", "sand"], "n": 1, "top_k": 2, "explain": true}', chance)
        for path in ("classify", "suggest", "map"):
            answer = live.http.post(f"{AT}/{path}", content=body, headers=JSON)
            assert answer.status_code in (200, 400, 413, 422), (path, body, answer.text)
            count += 1
    assert count >= 500
    assert live.http.get(AT).json()["revision"] == 1
    assert live.http.get("/readyz").status_code == 200


def _mutated(seed: bytes, chance: random.Random) -> bytes:
    body = bytearray(seed)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(body) + 1)
        kind = chance.randrange(4)
        if kind == 0 and body:
            body[min(at, len(body) - 1)] = chance.randrange(256)
        elif kind == 1:
            body[at:at] = chance.choice(
                [b'"', b"\x00", b"\xff", b"\n", b"{}", b"!!python/object:os.system", b"&a *a", b","]
            )
        elif kind == 2:
            del body[at : at + chance.randint(1, 5)]
        else:
            body[at:at] = body[: chance.randrange(20)]
    return bytes(body)


def test_a_full_disk_is_said_and_passes(live: Live) -> None:
    """SQLite's own limit of pages gives the error that a full disk gives."""
    database = live.service.database
    with database.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    database.engine.dispose()
    from sqlalchemy import event

    limit = {"pages": int(pages) + 2}

    @event.listens_for(database.engine, "begin")
    def small(connection: object) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count={limit['pages']}")  # type: ignore[attr-defined]

    body = {"examples": [f"a long example number {number} " + "word " * 300 for number in range(100)]}
    answer = live.http.put(f"{AT}/classes/big", json=body)
    assert answer.status_code == 507, answer.text
    assert answer.json()["type"] == "urn:dmin:problem:disk-full"
    assert live.http.get(AT).json()["revision"] == 1
    assert live.http.post(f"{AT}/classify", json={"texts": ["apple"]}).status_code == 200
    limit["pages"] = 1_000_000
    assert live.http.put(f"{AT}/classes/big", json=body).status_code == 200


def test_a_database_that_goes_away_and_comes_back(start: Callable[..., Live], cluster: Cluster) -> None:
    live = start(store=cluster.database())
    live.fill()
    cluster.stop()
    try:
        write = live.http.put(f"{AT}/classes/new", json={"examples": ["a"]})
        assert write.status_code == 503
        assert int(write.headers["retry-after"]) >= 1
        assert write.headers["content-type"] == "application/problem+json"
        assert "127.0.0.1" not in write.text
        assert live.http.get("/readyz").status_code == 503
        assert live.http.get("/healthz").status_code == 200
        answer = live.http.post(f"{AT}/classify", json={"texts": ["apple pear"]})  # what is fitted is still answered
        assert answer.status_code == 200
    finally:
        cluster.start()
    assert live.http.put(f"{AT}/classes/new", json={"examples": ["a"]}).status_code == 200
    assert live.http.get("/readyz").status_code == 200
    with live.service.database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM changes")).scalar() == 2


def test_errors_show_nothing_of_the_inside(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret of the inside")

    monkeypatch.setattr(live.service.engine, "classify", fail)
    answer = live.http.post(f"{AT}/classify", json={"texts": ["apple"]})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["request"] == answer.headers["x-request-id"]
    monkeypatch.undo()
    assert live.http.post(f"{AT}/classify", json={"texts": ["apple"]}).status_code == 200


def test_a_queue_that_is_full_says_when_to_come_again(start: Callable[..., Live]) -> None:
    live = start(Limits(queue=2))
    live.fill()
    answer = live.http.post(f"{AT}/classify", json={"texts": ["a", "b", "c"]})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["type"] == "urn:dmin:problem:queue-full"
    assert live.http.post(f"{AT}/classify", json={"texts": ["a", "b"]}).status_code == 200


def test_json_with_numbers_beyond_measure(shared: Live) -> None:
    body = json.dumps({"texts": ["a"], "top_k": 10**400})
    assert shared.http.post(f"{AT}/classify", content=body, headers=JSON).status_code == 422
    assert shared.http.delete(f"{AT}/classes/car/examples/{10**30}").status_code == 422
    headers = {"If-Match": f'"{10**30}"'}
    assert shared.http.delete(f"{AT}/classes/car", headers=headers).status_code == 400
