"""Service processes that a test may kill: forked from a process that has imported everything, so they start quickly."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Self

import httpx

from dmin.server.settings import Settings

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.server.preloaded"])


def _serve(settings: Settings, pipe: Connection) -> None:
    from dmin.server.run import run_service

    run_service(settings, None, pipe.send)


class ServiceProcess:
    """`dmin serve` in a process of its own."""

    def __init__(self, settings: Settings) -> None:
        here, there = _CONTEXT.Pipe()
        self._process: Any = _CONTEXT.Process(target=_serve, args=(replace(settings, port=0), there), daemon=True)
        self._process.start()
        there.close()
        assert here.poll(60), "the service did not start"
        self.url = next(word for word in str(here.recv()).split() if word.startswith("http://"))
        self.http = httpx.Client(base_url=self.url, timeout=20, trust_env=False)
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                if self.http.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.02)
        raise AssertionError("the service does not answer")

    def kill(self) -> None:
        """kill -9."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.join(20)

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        if self._process.is_alive():
            os.kill(self._process.pid, signal.SIGTERM)
            self._process.join(40)
        self.http.close()
        return int(self._process.exitcode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self.kill()
        self.http.close()
