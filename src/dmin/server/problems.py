"""Problem documents (RFC 9457): every error of the service in one form, without internals."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from dmin.errors import DminError, UnknownNameError, one_line

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger("dmin.server")


class Problem(Exception):  # noqa: N818 (the name that the RFC gives it)
    """An answer that is an error: status, a short kind, one sentence with the way out, and more fields."""

    def __init__(self, status: int, kind: str, detail: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.headers, self.more = headers or {}, more

    def response(self) -> JSONResponse:
        """As a response."""
        body = {
            "type": f"urn:dmin:problem:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail.encode("utf-8", "replace").decode(),  # bytes of a file may be quoted
            **self.more,
        }
        return JSONResponse(body, self.status, headers=self.headers, media_type=MEDIA_TYPE)


def busy(detail: str, kind: str = "busy", seconds: int = 1) -> Problem:
    """503 with Retry-After: the same request may succeed later."""
    return Problem(503, kind, detail, {"Retry-After": str(seconds)})


def of_database(error: DBAPIError | PoolTimeout) -> Problem:
    """The problem of a database that does not do what it is asked; the service goes on."""
    text = str(getattr(error, "orig", error)).lower()
    if "full" in text or "no space" in text or "disk" in text:
        return Problem(
            507, "disk-full", "The store has no space left; nothing was changed. Free space, then try again."
        )
    if "readonly" in text or "read-only" in text or "permission" in text:
        return Problem(507, "read-only", "The store cannot be written; nothing was changed.")
    return busy("The store cannot be reached now; nothing was changed. Try again.", "store-unreachable", 2)


def install(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""

    @app.exception_handler(Problem)
    async def problem(_: Request, error: Problem) -> JSONResponse:
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        found = [_field(item) for item in error.errors()[:20]]
        malformed = any(item.get("type") == "json_invalid" for item in error.errors())
        return Problem(
            400 if malformed else 422,
            "malformed" if malformed else "invalid",
            _not_json(request, error) or "; ".join(f"{item['where']}: {item['what']}" for item in found[:3]),
            errors=found,
        ).response()

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        kinds = {404: "not-found", 405: "method-not-allowed", 400: "malformed", 413: "too-large"}
        allowed = (error.headers or {}).get("Allow", "")
        details = {
            404: "There is nothing at this address; /docs lists all of them.",
            405: f"This address does not take this method{f', only {allowed}' if allowed else ''}; /docs lists them all.",
        }
        detail = details.get(error.status_code, one_line(str(error.detail)))
        headers = dict(error.headers or {})
        return Problem(error.status_code, kinds.get(error.status_code, "http"), detail, headers).response()

    @app.exception_handler(DminError)
    async def mistake(_: Request, error: DminError) -> JSONResponse:
        status = 404 if isinstance(error, UnknownNameError) else 422
        return Problem(status, "invalid", one_line(error)).response()

    @app.exception_handler(DBAPIError)
    @app.exception_handler(OperationalError)
    @app.exception_handler(PoolTimeout)
    async def database(_: Request, error: DBAPIError) -> JSONResponse:
        _log.error("store: %s", one_line(str(getattr(error, "orig", error))))
        return of_database(error).response()


def _field(item: Any) -> dict[str, str]:
    """One finding of pydantic in words, without quoting what was sent."""
    where = ".".join(str(part) for part in item.get("loc", ()))
    what = _WORDS.get(str(item.get("type"))) or one_line(str(item.get("msg", "is not valid")))
    return {"where": where or "body", "what": what}


# What pydantic says of the commonest mistakes, in words that say what to do.
_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is no field of this request",
    "list_type": 'must be a list, also of one: ["..."]',
    "string_type": "must be a text in quotes",
}


def _not_json(request: Request, error: RequestValidationError) -> str | None:
    """What to do where the body was not read as JSON; None where it was."""
    kinds = {item.get("type"): item for item in error.errors() if tuple(item.get("loc", ()))[:1] == ("body",)}
    if "json_invalid" in kinds:
        item = kinds["json_invalid"]
        reason, place = item.get("ctx", {}).get("error", "cannot be read"), item["loc"][-1]
        return f"The body is not JSON: {one_line(str(reason))}, at character {place}."
    if "model_attributes_type" in kinds and "json" not in request.headers.get("content-type", ""):
        return "The body was not read as JSON: send the header Content-Type: application/json."
    return None
