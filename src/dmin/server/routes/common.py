"""What the routes share: the parts of the service, conditions of a request, answers with an ETag."""

from __future__ import annotations

import hashlib
import logging
import re
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse

from dmin.errors import one_line
from dmin.server import schemas
from dmin.server.problems import MEDIA_TYPE, Problem
from dmin.server.security import Caller, decoded, needs
from dmin.server.service import Service
from dmin.server.store import Condition, Outcome

_log = logging.getLogger("dmin.server")
_ETAG = re.compile(r'^"(\d{1,18})"$')
_KEY = re.compile(r"^[\x21-\x7e]{1,200}$")
_LABEL = TypeAdapter(schemas.Label)

_PROBLEM = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "A mistake in the request", **_PROBLEM},
    "5XX": {"description": "The service cannot do it now", **_PROBLEM},
}

Reader = Annotated[Caller, Depends(needs("read"))]
Writer = Annotated[Caller, Depends(needs("write"))]
Admin = Annotated[Caller, Depends(needs("admin"))]
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="The collection.")]
Number = Annotated[int, Path(ge=1, le=2**53, description="The example.")]


async def service_of(request: Request) -> Service:
    """The parts of the service."""
    found: Service = request.app.state.service
    return found


Parts = Annotated[Service, Depends(service_of)]


async def label_of(label: Annotated[str, Path(min_length=1, description="The class.")]) -> str:
    """The label of the address; it may hold a slash (%2F)."""
    try:
        return _LABEL.validate_python(decoded(label))
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise Problem(422, "invalid", f"path.label: {reason}") from error


LabelPart = Annotated[str, Depends(label_of)]


async def condition_of(request: Request) -> Condition:
    """If-Match, If-None-Match and Idempotency-Key of a request."""
    match, absent = request.headers.get("if-match"), request.headers.get("if-none-match")
    key = request.headers.get("idempotency-key")
    revision = None
    if match is not None and match.strip() != "*":
        found = _ETAG.match(match.strip())
        if found is None:
            raise Problem(400, "malformed", 'If-Match takes one ETag as it was answered, like "12".')
        revision = int(found[1])
    if absent is not None and absent.strip() != "*":
        raise Problem(400, "malformed", "If-None-Match takes * only: make it if it is not there.")
    if key is not None and not _KEY.match(key):
        raise Problem(400, "malformed", "Idempotency-Key takes 1 to 200 visible ASCII characters.")
    digest = hashlib.sha256(f"{request.method} {request.url.path}\n".encode())
    digest.update(await request.body())
    return Condition(revision, absent is not None, key, digest.hexdigest())


Conditions = Annotated[Condition, Depends(condition_of)]


def changed(service: Service, name: str, outcome: Outcome) -> JSONResponse:
    """Answer a change that is on disk, after this process serves it too."""
    try:
        service.engine.refresh(name)
    except SQLAlchemyError as error:  # it is on disk all the same; the watcher will fit it
        _log.warning("refresh after a change: %s", one_line(str(error)))
    headers = {"ETag": f'"{outcome.revision}"'} if outcome.revision is not None else {}
    if outcome.repeated:
        headers["Idempotency-Replayed"] = "true"
    return JSONResponse(outcome.body, outcome.status, headers=headers)


def tagged(answer: Any) -> JSONResponse:
    """An answer with its revision as ETag."""
    return JSONResponse(answer.model_dump(mode="json"), headers={"ETag": f'"{answer.revision}"'})


def check_texts(service: Service, texts: list[str], most: int) -> None:
    """Hold texts against the limits of a request."""
    if len(texts) > most:
        raise Problem(422, "too-many-texts", f"A request may have {most} texts; this one has {len(texts)}.")
    longest = service.settings.limits.text_length
    for number, text in enumerate(texts):
        if len(text) > longest:
            raise Problem(422, "too-long", f"Text {number} has {len(text)} characters; {longest} are allowed.")
