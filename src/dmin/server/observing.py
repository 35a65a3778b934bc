"""Logs as JSON lines and metrics for Prometheus; texts stand in neither, unless the operator asks for them."""

from __future__ import annotations

import json
import logging
import secrets
import time
from typing import Any

from fastapi import Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dmin.server.database import now
from dmin.server.problems import Problem

_log = logging.getLogger("dmin.server.requests")


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        line = {"at": now(), "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_to_standard_error(level: str = "INFO") -> None:
    """Write the service's log as JSON lines to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    for name in ("dmin.server", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


class Metrics:
    """What Prometheus reads."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("dmin_requests", "Requests", ["method", "route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "dmin_request_seconds", "Time to answer a request", ["route"], registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
        )  # fmt: skip
        self.texts = Counter("dmin_texts", "Texts classified", registry=self.registry)
        self.batches = Histogram(
            "dmin_batch_texts", "Texts of one encoder batch", registry=self.registry, buckets=(1, 2, 4, 8, 16, 32, 64)
        )
        self.waiting = Gauge("dmin_waiting_texts", "Texts that wait for the encoder", registry=self.registry)
        self.collections = Gauge("dmin_collections", "Collections in memory", registry=self.registry)


class Observer:
    """ASGI middleware: counts, times and logs every request; what nobody caught becomes a 500 problem with a number."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and note what came of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, number, status = time.perf_counter(), secrets.token_hex(6), 0
        state = scope.setdefault("state", {})

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", number.encode())]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except Exception:
            logging.getLogger("dmin.server").exception("request %s failed", number)
            if status:
                raise  # half of the answer is on its way: the connection must break
            detail = f"Something went wrong here. The log has it under {number}."
            await Problem(500, "internal", detail, request=number).response()(scope, receive, answer)
        self._note(scope, state, number, status, time.perf_counter() - start)

    def _note(self, scope: Scope, state: dict[str, Any], number: str, status: int, seconds: float) -> None:
        route = state.get("route", "none")
        self._metrics.requests.labels(scope["method"], route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        fields = {
            "request": number, "method": scope["method"], "route": route, "status": status,
            "ms": round(1000 * seconds, 1), "who": state.get("who"), **state.get("fields", {}),
        }  # fmt: skip
        if _log.isEnabledFor(logging.INFO):  # made by hand, because `_log.info` walks the stack for the calling line
            _log.handle(_log.makeRecord(_log.name, logging.INFO, "", 0, "request", (), None, extra={"fields": fields}))


async def note_route(request: Request) -> None:
    """A dependency of every route: notes its address with the names of its parts, because labels can be private."""
    request.state.route = getattr(request.scope.get("route"), "path", "none")
