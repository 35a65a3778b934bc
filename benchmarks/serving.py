"""One text per request from 32 clients at once, 66 classes of 5 examples: `dmin serve`, the classifier in one process with
batches of 32, and a plain FastAPI + sentence-transformers + logistic regression service (`benchmarks/plain_service.py`).

All on the same cores, clients too, which are bare sockets; every text is new, so that no cache helps. The last lines:
processor time of one short text on an idle service, with one thread per batch as it is set, and what a change costs.
"""

from __future__ import annotations

import http.client
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.common import Result, middle, short_texts, spread
from dmin import FewShotClassifier
from dmin.data import load_corpus

CLIENTS, TEXTS, ROUNDS, BATCH, EXAMPLES = 32, 320, 7, 32, 5


def main() -> Result:
    """Rounds in turns, then single texts."""
    examples = {label: texts[:EXAMPLES] for label, texts in load_corpus("starter").examples.items()}
    classifier = FewShotClassifier(reject="auto").fit(examples)
    rates: dict[str, list[float]] = {"process": [], "dmin": [], "plain": []}
    waits: dict[str, list[float]] = {"dmin": [], "plain": []}
    spent: dict[str, list[float]] = {"dmin": [], "plain": []}
    with _service(["dmin", "serve", "--examples", "starter", "--per-class", str(EXAMPLES)]) as dmin:
        with _service(["benchmarks.plain_service"]) as plain:
            for turn in range(ROUNDS + 1):
                texts = short_texts(TEXTS, turn)
                found = {"process": _in_process(classifier, texts)}
                found["dmin"], dmin_waits, dmin_cpu = _load(dmin, "/v1/collections/default/classify", texts)
                found["plain"], plain_waits, plain_cpu = _load(plain, "/classify", texts)
                print({name: round(rate) for name, rate in found.items()}, file=sys.stderr, flush=True)
                if turn:
                    for name, rate in found.items():
                        rates[name].append(rate)
                    waits["dmin"] += dmin_waits
                    waits["plain"] += plain_waits
                    spent["dmin"].append(dmin_cpu)
                    spent["plain"].append(plain_cpu)
        single = _single(dmin)
    return _report(rates, waits, spent, single)


def _report(
    rates: dict[str, list[float]],
    waits: dict[str, list[float]],
    spent: dict[str, list[float]],
    single: dict[str, float],
) -> Result:
    share = middle([one / two for one, two in zip(rates["dmin"], rates["process"], strict=True)])
    factor = middle([one / two for one, two in zip(rates["dmin"], rates["plain"], strict=True)])
    header = "| | texts/s (min to max) | p50, ms | p95, ms | p99, ms | processor time of a text, ms |"
    lines = [header, "|---|---|---|---|---|---|"]
    lines.append(f"| classifier in one process, batches of {BATCH} | {spread(rates['process'], 1, 0)} | | | | |")
    titles = {"dmin": "dmin serve", "plain": "FastAPI + sentence-transformers + logistic regression"}
    figures: dict[str, float] = {"share_of_process": share, "factor_to_plain": factor, **single}
    for name, title in titles.items():
        p50, p95, p99 = (float(value) for value in np.percentile(waits[name], [50, 95, 99]) * 1000)
        cost = spread(spent[name], 1000, 1)
        lines.append(f"| {title} | {spread(rates[name], 1, 0)} | {p50:.0f} | {p95:.0f} | {p99:.0f} | {cost} |")
        figures[f"{name}_cpu_ms"] = 1000 * middle(spent[name])
        figures |= {f"{name}_p50_ms": p50, f"{name}_p95_ms": p95, f"{name}_p99_ms": p99}
    lines += [
        "",
        f"The service has {100 * share:.0f} % of the throughput of the process, {factor:.1f}x that of the plain service.",
        (
            f"One short text alone: {single['wait_ms']:.0f} ms, {single['cpu_ms']:.0f} ms of processor time. "
            f"A new example on disk and answered: {single['change_ms']:.0f} ms."
        ),
    ]
    return Result(lines, figures)


def _in_process(classifier: FewShotClassifier, texts: list[str]) -> float:
    start = time.perf_counter()
    for at in range(0, len(texts), BATCH):
        classifier.answer(texts[at : at + BATCH], 1)
    return len(texts) / (time.perf_counter() - start)


class _Started:
    """A service process and its port."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.port = process, port


@contextmanager
def _service(command: list[str]) -> Iterator[_Started]:
    """Start a service on a free port and wait until it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        options = [str(port)]
        if command[0] == "dmin":
            options = ["--port", str(port), "--store", str(Path(folder) / "s.sqlite"), "--requests-per-minute", "0"]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", *command, *options], env=environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _wait(port, process)
            yield _Started(process, port)
        finally:
            process.terminate()
            process.wait(30)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        assert process.poll() is None, "the service ended"
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the service does not answer")


def _load(service: _Started, path: str, texts: list[str]) -> tuple[float, list[float], float]:
    """Texts per second, the seconds that each request took, and the service's processor seconds per text.

    One loop serves all clients: threads of this process would take the service's cores for changing places.
    """
    requests = [_request(path, text) for text in texts]
    clients = [_Client(service.port, requests[part::CLIENTS]) for part in range(CLIENTS)]
    before, start = _processor_seconds(service.process.pid), time.perf_counter()
    with selectors.DefaultSelector() as ready:
        for client in clients:
            ready.register(client.connection, selectors.EVENT_READ, client)
            client.send()
        while ready.get_map():
            for key, _ in ready.select(120):
                if key.data.receive() and not key.data.send():
                    ready.unregister(key.fileobj)
                    key.data.connection.close()
    seconds, spent = time.perf_counter() - start, _processor_seconds(service.process.pid) - before
    waits = [wait for client in clients for wait in client.waits]
    assert len(waits) == len(texts)
    return len(texts) / seconds, waits, spent / len(texts)


class _Client:
    """A connection that sends a request when the answer to the one before is there."""

    def __init__(self, port: int, requests: list[bytes]) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._left, self._answer, self._start = iter(requests), b"", 0.0
        self.waits: list[float] = []

    def send(self) -> bool:
        """Send the next request; False when there is none."""
        request = next(self._left, None)
        if request is None:
            return False
        self._start, self._answer = time.perf_counter(), b""
        self.connection.sendall(request)
        return True

    def receive(self) -> bool:
        """Take what has come; True when the answer is whole."""
        part = self.connection.recv(1 << 16)
        assert part, "the service closed the connection"
        self._answer += part
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found:
            return False
        assert head.startswith(b"HTTP/1.1 200"), self._answer
        if len(body) < int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            return False
        self.waits.append(time.perf_counter() - self._start)
        return True


def _request(path: str, text: str) -> bytes:
    body = json.dumps({"texts": [text]} if path == "/classify" else {"texts": [text], "top_k": 1}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


def _single(service: _Started) -> dict[str, float]:
    """Texts one after the other: milliseconds of waiting and of processor time for one, and for a change."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    waits, changes = [], []
    before = _processor_seconds(service.process.pid)
    texts, path = short_texts(50, 77), "/v1/collections/default/classify"
    for text in texts:
        start = time.perf_counter()
        connection.request(
            "POST", path, json.dumps({"texts": [text], "top_k": 1}), {"Content-Type": "application/json"}
        )
        assert connection.getresponse().read()
        waits.append(time.perf_counter() - start)
    spent = _processor_seconds(service.process.pid) - before
    for text in short_texts(10, 78):
        start = time.perf_counter()
        path = "/v1/collections/default/classes/card_lost/examples"
        connection.request("POST", path, json.dumps({"examples": [text]}), {"Content-Type": "application/json"})
        assert connection.getresponse().read()
        changes.append(time.perf_counter() - start)
    connection.close()
    return {
        "wait_ms": 1000 * middle(waits),
        "cpu_ms": 1000 * spent / len(texts),
        "change_ms": 1000 * middle(changes),
    }


def _processor_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    print("\n".join(main().lines))
