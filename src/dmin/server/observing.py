"""Logs as JSON lines and metrics for Prometheus; texts stand in neither, unless the operator asks for them."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.responses import Response

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


def install(app: FastAPI, metrics: Metrics) -> None:
    """Count, time and log every request; what nobody caught becomes a 500 problem with a number to look for."""

    @app.middleware("http")
    async def observe(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
        start, number = time.perf_counter(), uuid.uuid4().hex[:12]
        try:
            response = await proceed(request)
        except Problem:
            raise
        except Exception:
            logging.getLogger("dmin.server").exception("request %s failed", number)
            response = Problem(
                500, "internal", f"Something went wrong here. The log has it under {number}.", request=number
            ).response()
        seconds = time.perf_counter() - start
        route = _route(request)
        metrics.requests.labels(request.method, route, str(response.status_code)).inc()
        metrics.seconds.labels(route).observe(seconds)
        response.headers["X-Request-Id"] = number
        fields: dict[str, Any] = {
            "request": number, "method": request.method, "route": route, "status": response.status_code,
            "ms": round(1000 * seconds, 1), "who": getattr(request.state, "who", None),
            **getattr(request.state, "fields", {}),
        }  # fmt: skip
        _log.info("request", extra={"fields": fields})
        return response


def _route(request: Request) -> str:
    """The address with the names of its parts, not what stands there: labels can be private."""
    route = request.scope.get("route")
    return str(getattr(route, "path", "none"))
