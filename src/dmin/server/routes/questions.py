"""What a collection is asked: classify, check, suggest, evaluate, map."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from dmin.server import measuring, schemas, transfer
from dmin.server.problems import Problem, busy
from dmin.server.routes.common import PROBLEMS, Name, Parts, Reader, check_texts

router = APIRouter(prefix="/v1/collections/{name}", tags=["questions"], responses=PROBLEMS)
_ROWS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": schemas.EvaluateRequest.model_json_schema(ref_template="#/components/schemas/{model}")
            },
            "text/csv": {"schema": {"type": "string"}},
        },
    }
}


@router.post("/classify", response_model=schemas.ClassifyAnswer)
async def classify(name: Name, asked: schemas.ClassifyRequest, request: Request, service: Parts, _: Reader) -> Response:
    """Classify one or many texts."""
    limits = service.settings.limits
    check_texts(service, asked.texts, limits.texts)
    fitted = service.engine.known_state(name)
    if fitted is None:
        fitted = await run_in_threadpool(service.engine.state, name)
    fitted.ready()
    request.state.fields = {"texts": len(asked.texts), "collection": name}
    if service.settings.log_texts:
        request.state.fields["asked"] = asked.texts
    jobs = service.batcher.submit(fitted, asked.texts, asked.top_k, asked.explain, limits.deadline)
    try:
        async with asyncio.timeout(limits.deadline):
            parts = await asyncio.gather(*(asyncio.wrap_future(job.future) for job in jobs))
    except TimeoutError as error:
        raise busy("The service was too busy to answer in time.", "deadline") from error
    service.metrics.texts.inc(len(asked.texts))
    found = schemas.ClassifyAnswer(revision=fitted.revision, answers=[answer for part in parts for answer in part])
    return Response(found.model_dump_json(), media_type="application/json")  # checked once, when it was made


@router.post("/check", response_model=schemas.CheckAnswer)
def check(name: Name, service: Parts, _: Reader) -> schemas.CheckAnswer:
    """Look through the examples: repeated, contradictory, likely mislabelled; classes that overlap or are thin."""
    fitted = service.engine.state(name)
    report = service.engine.check(fitted)
    return schemas.CheckAnswer(revision=fitted.revision, problems=report.problems, report=report.as_dict())


@router.post("/suggest", response_model=schemas.SuggestAnswer)
def suggest(name: Name, asked: schemas.SuggestRequest, service: Parts, _: Reader) -> schemas.SuggestAnswer:
    """Which of these texts are worth labelling now, and why."""
    check_texts(service, asked.texts, service.settings.limits.pile)
    fitted = service.engine.state(name)
    found = [
        schemas.SuggestedText(index=item.index, text=item.text, reason=item.reason, stands_for=item.stands_for)
        for item in service.engine.suggest(fitted, asked.texts, asked.n, asked.seed)
    ]
    return schemas.SuggestAnswer(revision=fitted.revision, suggestions=found)


@router.post("/evaluate", response_model=schemas.EvaluateAnswer, openapi_extra=_ROWS)
async def evaluate(name: Name, request: Request, service: Parts, _: Reader) -> Any:
    """Measure a collection on labelled texts: JSON rows, or a file (CSV, TSV, JSONL, YAML)."""
    body, kind = await request.body(), request.headers.get("content-type", "application/json")

    def work() -> schemas.EvaluateAnswer:
        rows = _json_rows(body, service.settings.limits.pile) if kind.startswith("application/json") else None
        found = rows if rows is not None else transfer.read_rows(body, kind, service.settings.limits)
        check_texts(service, [text for text, _ in found], service.settings.limits.pile)
        fitted = service.engine.state(name)
        fitted.ready()
        return measuring.evaluate(service.engine, fitted, found)

    return await run_in_threadpool(work)


@router.post("/map", response_model=schemas.MapAnswer)
def draw_map(name: Name, asked: schemas.MapRequest, service: Parts, _: Reader) -> schemas.MapAnswer:
    """All examples, and the given texts, in two dimensions; likely mistakes and overlaps are marked."""
    check_texts(service, asked.texts, service.settings.limits.pile)
    return measuring.draw_map(service.engine, service.engine.state(name), asked.texts)


def _json_rows(body: bytes, most: int) -> list[tuple[str, str]]:
    """The rows of a JSON body; a problem names what is wrong."""
    from pydantic import ValidationError

    try:
        asked = schemas.EvaluateRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        malformed = first["type"] == "json_invalid"
        where = ".".join(["body", *map(str, first["loc"])])
        raise Problem(
            400 if malformed else 422, "malformed" if malformed else "invalid", f"{where}: {first['msg']}"
        ) from error
    if len(asked.rows) > most:
        raise Problem(413, "too-large", f"A request may have {most} rows.")
    return [(row.text, row.label) for row in asked.rows]
