"""Service processes: killed at any moment, stopped under load, two on one PostgreSQL, many clients."""

from __future__ import annotations

import concurrent.futures
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from dmin.server import edits
from dmin.server.database import Database
from dmin.server.settings import Settings
from dmin.server.store import Store
from tests.server.conftest import CLASSES, STRESS, Cluster, Live
from tests.server.processes import ServiceProcess

pytestmark = pytest.mark.slow

AT = "/v1/collections/default"


class Writer(threading.Thread):
    """Adds one example after the other and notes those that were answered."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(daemon=True)
        self._url, self._name = url, name
        self.answered: list[str] = []
        self.tried: list[str] = []

    def run(self) -> None:
        with httpx.Client(base_url=self._url, timeout=20, trust_env=False) as http:
            for number in range(10_000):
                text = f"{self._name} {number}"
                self.tried.append(text)
                try:
                    answer = http.post(f"{AT}/classes/{self._name}/examples", json={"examples": [text]})
                except httpx.TransportError:
                    return  # the service was killed: this one may or may not be there
                if answer.status_code != 200:
                    return
                self.answered.append(text)


def test_kill_loses_no_answered_change(settings: Settings) -> None:
    """A tenth of the hundred kills, unless DMIN_STRESS=1."""
    chance = random.Random(7)
    kills, answered, known = (100 if STRESS else 10), 0, set()
    for number in range(kills):
        with ServiceProcess(settings) as process:
            if number == 0:
                assert process.http.post("/v1/collections", json={"name": "default", "classes": CLASSES}).is_success
            else:
                _check(process, known)
            writers = [Writer(process.url, f"kill{number}-{letter}") for letter in "ab"]
            for writer in writers:
                writer.start()
            until = time.monotonic() + 20
            while not any(writer.answered for writer in writers) and time.monotonic() < until:
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.4))
            process.kill()
            for writer in writers:
                writer.join(20)
                known |= {(text, True) for text in writer.answered}
                known |= {(text, False) for text in writer.tried if text not in writer.answered}
                answered += len(writer.answered)
    with ServiceProcess(settings) as process:
        _check(process, known)
        assert process.http.post(f"{AT}/classify", json={"texts": ["apple"]}).is_success
    assert answered >= kills, "the writers wrote too little for this test to mean anything"
    with sqlite3.connect(settings.store) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def _check(process: ServiceProcess, known: set[tuple[str, bool]]) -> None:
    """What was answered is there; what was not may be there, whole; nothing else is."""
    lines = process.http.get(f"{AT}/export", params={"format": "jsonl"}).text.splitlines()
    import json

    there = {json.loads(line)["text"] for line in lines}
    missing = {text for text, sure in known if sure} - there
    assert not missing, f"answered and lost: {sorted(missing)[:5]}"
    start = {text for texts in CLASSES.values() for text in texts}
    assert there <= start | {text for text, _ in known}


def test_a_stop_answers_what_was_sent(settings: Settings) -> None:
    """The stop comes when every request has left its client and the first of them is being scored."""
    with ServiceProcess(settings) as process:
        process.http.post("/v1/collections", json={"name": "default", "classes": CLASSES})
        statuses: list[int] = []
        sent = threading.Semaphore(0)

        def ask(number: int) -> None:
            def follow(event: str, info: dict[str, Any]) -> None:
                if event == "http11.send_request_body.complete":
                    sent.release()

            texts = [f"apple {number} {step}" for step in range(100)]
            with httpx.Client(base_url=process.url, timeout=30, trust_env=False) as http:
                http.get("/readyz")  # from here on the connection is there
                body = {"texts": texts, "explain": True}
                statuses.append(http.post(f"{AT}/classify", json=body, extensions={"trace": follow}).status_code)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        assert all(sent.acquire(timeout=30) for _ in threads)
        until = time.monotonic() + 30
        while "dmin_batch_texts_count 0.0" in process.http.get("/metrics").text:
            assert time.monotonic() < until
        code = process.stop()
        for thread in threads:
            thread.join(30)
    assert statuses == [200] * 4
    assert code in (0, -15)


def test_two_services_on_one_postgresql_see_each_other_and_agree(settings: Settings, cluster: Cluster) -> None:
    chosen = replace(settings, store=cluster.database())
    with ServiceProcess(chosen) as one, ServiceProcess(chosen) as two:
        one.http.post("/v1/collections", json={"name": "default", "classes": CLASSES})
        texts = [f"{a} {b}" for a in ("apple", "engine", "song") for b in ("road", "drum", "melon", "rain")]
        assert two.http.post(f"{AT}/classify", json={"texts": texts}).is_success
        delays = []
        for number in range(10):
            writer, reader = (one, two) if number % 2 else (two, one)
            body = {"examples": [f"doctor nurse {number}", f"pill fever {number}"]}
            revision = writer.http.put(f"{AT}/classes/health{number}", json=body).headers["etag"].strip('"')
            begun = time.monotonic()
            while True:
                seen = reader.http.post(f"{AT}/classify", json={"texts": texts, "top_k": 100}).json()
                if seen["revision"] >= int(revision):
                    break
                assert time.monotonic() < begun + 5, "the change was not seen"
            delays.append(time.monotonic() - begun)
            assert writer.http.post(f"{AT}/classify", json={"texts": texts, "top_k": 100}).json() == seen
        assert max(delays) < 1, delays
        tag = one.http.get(f"{AT}/classes/car").headers["etag"]
        assert one.http.put(f"{AT}/classes/car", json={"examples": ["a"]}, headers={"If-Match": tag}).is_success
        late = two.http.put(f"{AT}/classes/car", json={"examples": ["b"]}, headers={"If-Match": tag})
        assert late.status_code == 412
        assert late.json()["changes"][0]["label"] == "car"


def test_a_lost_notice_is_made_up_for_within_a_second(
    start: Callable[..., Live], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change by another process whose notice never comes; the reader hears nothing and looks by itself."""
    live = start(store=cluster.database())
    live.fill()
    monkeypatch.setattr(Database, "notify", lambda *_: None)
    other = Database(live.service.settings.store)
    revision = (
        Store(other).change("default", edits.import_examples({"sea": ["wave shore", "sand tide"]}, {}), "x").revision
    )
    other.close()
    until = time.monotonic() + 1
    while live.http.post(f"{AT}/classify", json={"texts": ["apple"]}).json()["revision"] < (revision or 0):
        assert time.monotonic() < until, "the change was not seen"


def test_two_services_on_one_sqlite_file_agree(settings: Settings) -> None:
    with ServiceProcess(settings) as one, ServiceProcess(settings) as two:
        one.http.post("/v1/collections", json={"name": "default", "classes": CLASSES})
        assert two.http.post(f"{AT}/classify", json={"texts": ["apple"]}).is_success
        revision = int(one.http.put(f"{AT}/classes/x", json={"examples": ["doctor"]}).headers["etag"].strip('"'))
        until = time.monotonic() + 2
        while two.http.post(f"{AT}/classify", json={"texts": ["doctor"]}).json()["revision"] < revision:
            assert time.monotonic() < until
        asked = {"texts": ["doctor", "apple road"], "top_k": 10}
        assert one.http.post(f"{AT}/classify", json=asked).json() == two.http.post(f"{AT}/classify", json=asked).json()


def test_thirty_two_clients_at_once(settings: Settings) -> None:
    """Every request is answered, and answered for its own text."""
    requests = 3_000 if STRESS else 300
    with ServiceProcess(settings) as process:
        process.http.post("/v1/collections", json={"name": "default", "classes": CLASSES})
        words = [text for texts in CLASSES.values() for text in texts]
        asked = {"texts": words, "top_k": 1}
        right = [answer["label"] for answer in process.http.post(f"{AT}/classify", json=asked).json()["answers"]]

        def ask(part: int) -> int:
            with httpx.Client(base_url=process.url, timeout=30, trust_env=False) as http:
                for number in range(requests // 32):
                    at = (part + number) % len(words)
                    answer = http.post(f"{AT}/classify", json={"texts": [words[at]], "top_k": 1})
                    assert answer.status_code == 200, answer.text
                    assert answer.json()["answers"][0]["label"] == right[at]
            return requests // 32

        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            assert sum(pool.map(ask, range(32))) == 32 * (requests // 32)


def test_a_backup_of_a_running_service_serves_the_same(settings: Settings, tmp_path: Path) -> None:
    from dmin.server.backup import back_up

    copy = tmp_path / "copy.sqlite"
    with ServiceProcess(settings) as process:
        process.http.post("/v1/collections", json={"name": "default", "classes": CLASSES})
        assert back_up(settings.store, copy) > 0
        process.http.delete(f"{AT}/classes/car")
    with ServiceProcess(replace(settings, store=str(copy))) as restored:
        labels = [row["label"] for row in restored.http.get(f"{AT}/classes").json()["classes"]]
    assert labels == list(CLASSES)
