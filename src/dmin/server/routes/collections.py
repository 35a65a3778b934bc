"""Collections: list, make, read, replace, change, remove; history, undo, files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from dmin.server import edits, queries, schemas, transfer
from dmin.server.problems import Problem
from dmin.server.routes.common import (
    PROBLEMS,
    Admin,
    Conditions,
    Name,
    Parts,
    Reader,
    Writer,
    changed,
    check_texts,
    tagged,
)  # fmt: skip
from dmin.server.service import Service

router = APIRouter(prefix="/v1/collections", tags=["collections"], responses=PROBLEMS)
_FILES = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string"}} for kind in ("text/csv", "application/yaml")},
    }
}
_EXPORTS: dict[str, Any] = {
    "description": "The file",
    "content": {"application/yaml": {}, "application/x-ndjson": {}},
}


@router.get("", response_model=schemas.CollectionList)
def list_collections(service: Parts, caller: Reader) -> Any:
    """All collections that the key may see."""
    with service.database.reading() as connection:
        found = queries.all_collections(connection)
    return {"collections": [item for item in found if caller.sees(item.name)]}


@router.post("", response_model=schemas.Collection, status_code=201)
def make_collection(new: schemas.NewCollection, service: Parts, caller: Admin, condition: Conditions) -> JSONResponse:
    """Make a collection."""
    if not caller.sees(new.name):
        raise Problem(403, "forbidden", "The key is not for this collection.")
    _check_classes(service, new.classes)
    outcome = service.store.change(new.name, edits.create_collection(new), caller.who, condition)
    return changed(service, new.name, outcome)


@router.get("/{name}", response_model=schemas.Collection)
def read_collection(name: Name, service: Parts, _: Reader) -> JSONResponse:
    """One collection."""
    with service.database.reading() as connection:
        return tagged(queries.one_collection(connection, name))


@router.put("/{name}", response_model=schemas.Collection)
def replace_collection(
    name: Name, content: schemas.CollectionContent, service: Parts, caller: Admin, condition: Conditions
) -> JSONResponse:
    """Put this content in the place of all that is there; makes the collection where it is not."""
    _check_classes(service, content.classes)
    outcome = service.store.change(name, edits.put_collection(name, content), caller.who, condition)
    return changed(service, name, outcome)


@router.patch("/{name}", response_model=schemas.Collection)
def change_collection(
    name: Name, patch: schemas.CollectionPatch, service: Parts, caller: Writer, condition: Conditions
) -> JSONResponse:
    """Change description or settings."""
    outcome = service.store.change(name, edits.patch_collection(name, patch), caller.who, condition)
    return changed(service, name, outcome)


@router.delete("/{name}", response_model=schemas.Changed)
def remove_collection(name: Name, service: Parts, caller: Admin, condition: Conditions) -> JSONResponse:
    """Remove a collection; undo brings it back."""
    return changed(service, name, service.store.change(name, edits.delete_collection(), caller.who, condition))


@router.get("/{name}/history", response_model=schemas.History)
def read_history(
    name: Name, service: Parts, _: Reader, most: Annotated[int, Query(ge=1, le=500)] = 50
) -> schemas.History:
    """The last changes with who and when, newest first."""
    with service.database.reading() as connection:
        return queries.history(connection, name, most)


@router.post("/{name}/undo", response_model=schemas.Changed)
def undo(name: Name, service: Parts, caller: Writer, condition: Conditions) -> JSONResponse:
    """Take back the last change that was not taken back yet."""
    return changed(service, name, service.store.undo(name, caller.who, condition))


@router.get("/{name}/export", response_class=Response, responses={200: _EXPORTS})
def export(
    name: Name, service: Parts, _: Reader, kind: Annotated[Literal["yaml", "jsonl"], Query(alias="format")] = "yaml"
) -> Response:
    """The examples as a file: YAML `{label: [texts]}`, or JSONL with text and label."""
    with service.database.reading() as connection:
        content = queries.content(connection, name)
    if content is None:
        raise queries.no_such_collection(name)
    text = transfer.to_yaml(content) if kind == "yaml" else transfer.to_jsonl(content)
    media = "application/yaml" if kind == "yaml" else "application/x-ndjson"
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"', "ETag": f'"{content.revision}"'}
    return Response(text, media_type=f"{media}; charset=utf-8", headers=headers)


@router.post("/{name}/import", response_model=schemas.Changed, openapi_extra=_FILES)
async def import_file(
    name: Name, request: Request, service: Parts, caller: Writer, condition: Conditions
) -> JSONResponse:
    """Add the examples of a file (CSV, TSV, JSONL, JSON, YAML) in one change: all of them, or none."""
    from starlette.concurrency import run_in_threadpool

    body = await request.body()
    kind = request.headers.get("content-type", "")

    def work() -> JSONResponse:
        rows = transfer.read_rows(body, kind, service.settings.limits)
        edit = edits.import_examples(transfer.grouped(rows), {})
        return changed(service, name, service.store.change(name, edit, caller.who, condition))

    return await run_in_threadpool(work)


def _check_classes(service: Service, classes: dict[str, list[str]]) -> None:
    limits = service.settings.limits
    for texts in classes.values():
        check_texts(service, texts, limits.examples)
