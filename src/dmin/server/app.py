"""The FastAPI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.middleware.cors import CORSMiddleware

from dmin.server import problems
from dmin.server.observing import Observer, note_route
from dmin.server.routes import classes, collections, questions, service
from dmin.server.schemas import ProblemDocument
from dmin.server.security import Gate, Shield
from dmin.server.service import Service
from dmin.version import __version__


def create_app(parts: Service) -> FastAPI:
    """An application over the parts of a service; they are started and closed with it."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        parts.start()
        yield
        parts.close()

    app = FastAPI(
        title="dmin", version=__version__, lifespan=life, docs_url=None, redoc_url=None,
        description="Few-shot text classification: collections of classes, each known by a few examples.",
    )  # fmt: skip
    app.state.service = parts
    app.state.gate = Gate(parts.ring, parts.settings)
    for module in (questions, classes, collections, service):  # addresses are tried in this order: the busiest first
        app.include_router(module.router, dependencies=[Depends(note_route)])
    problems.install(app)
    if parts.settings.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(parts.settings.origins), allow_methods=["*"],
            allow_headers=["Authorization", "Content-Type", "If-Match", "If-None-Match", "Idempotency-Key"],
            expose_headers=["ETag", "Retry-After"],
        )  # fmt: skip
    app.add_middleware(Shield, settings=parts.settings)
    app.add_middleware(Observer, metrics=parts.metrics)  # added last, so it sees what the others refuse too
    _describe(app)
    return app


def _describe(app: FastAPI) -> None:
    """Add what FastAPI cannot know to the OpenAPI document: problem documents and bearer keys."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        parts = document.setdefault("components", {})
        parts.setdefault("schemas", {})["ProblemDocument"] = ProblemDocument.model_json_schema()
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"key": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]
