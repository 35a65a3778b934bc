"""The service itself: health, metrics, model, who I am, the page and the description of the API."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from sqlalchemy import text
from starlette.responses import FileResponse, HTMLResponse, Response

from dmin.report import ICON, LOOK
from dmin.server import schemas
from dmin.server.problems import Problem, busy
from dmin.server.routes.common import PROBLEMS, Parts, Reader
from dmin.version import __version__

router = APIRouter(tags=["service"], responses=PROBLEMS)
PAGE = Path(__file__).parent.parent / "page"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
_FILES = {path.name: path for path in (*PAGE.iterdir(), LOOK, ICON) if path.suffix in _TYPES}  # the only ones


@router.get("/healthz", response_model=schemas.Health)
def health() -> schemas.Health:
    """The process lives."""
    return schemas.Health(status="ok")


@router.get("/readyz", response_model=schemas.Health)
def ready(service: Parts) -> schemas.Health:
    """The process can answer and its store can be reached."""
    with service.database.reading() as connection:
        connection.execute(text("SELECT 1"))
    if service.batcher.waiting >= service.settings.limits.queue:
        raise busy("Too many texts are waiting.", "queue-full")
    return schemas.Health(status="ok")


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(service: Parts, _: Reader) -> Response:
    """Metrics for Prometheus."""
    return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/model", response_model=schemas.ModelAnswer)
def model(service: Parts, _: Reader) -> schemas.ModelAnswer:
    """What classifies, and the limits of a request."""
    settings = service.settings
    return schemas.ModelAnswer(
        version=__version__, model=Path(settings.model).name, encoder=_last_part(service.engine.encoder_name),
        width=service.engine.width, backend=settings.backend, limits=asdict(settings.limits),
    )  # fmt: skip


def _last_part(name: str | None) -> str | None:
    """An encoder's name without the folders of this machine."""
    return Path(name).name if name and Path(name).is_absolute() else name


@router.get("/v1/me", response_model=schemas.WhoAnswer)
def me(request: Request, caller: Reader) -> schemas.WhoAnswer:
    """Whom the service takes the caller for."""
    seen = list(caller.collections) if caller.collections is not None else None
    needed = request.app.state.gate.keys_needed
    return schemas.WhoAnswer(who=caller.who, role=caller.role, collections=seen, keys_needed=needed)


@router.get("/", include_in_schema=False)
def page() -> FileResponse:
    """The page."""
    return _file("index.html")


@router.get("/page/{file}", include_in_schema=False)
def page_file(file: str) -> FileResponse:
    """A part of the page."""
    return _file(file)


def _file(name: str) -> FileResponse:
    path = _FILES.get(name)
    if path is None:
        raise Problem(404, "not-found", "There is nothing at this address.")
    return FileResponse(path, media_type=_TYPES[path.suffix], headers={"Cache-Control": "no-cache"})


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """The API for people: every address with what it takes and answers."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(PAGE), autoescape=True)
    document: dict[str, Any] = request.app.openapi()
    return HTMLResponse(environment.get_template("docs.html.j2").render(document=document))
