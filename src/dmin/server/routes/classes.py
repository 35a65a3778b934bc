"""Classes and their examples."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse

from dmin.server import edits, queries, schemas
from dmin.server.problems import Problem
from dmin.server.routes.common import (
    PROBLEMS,
    Conditions,
    LabelPart,
    Name,
    Number,
    Parts,
    Reader,
    Writer,
    changed,
    check_texts,
    tagged,
)  # fmt: skip

router = APIRouter(prefix="/v1/collections/{name}/classes", tags=["classes"], responses=PROBLEMS)


@router.get("", response_model=schemas.ClassList)
def list_classes(name: Name, service: Parts, _: Reader) -> JSONResponse:
    """The classes of a collection, with the number of their examples."""
    with service.database.reading() as connection:
        return tagged(queries.class_list(connection, name))


@router.get("/{label}", response_model=schemas.LabelledClass)
def read_class(name: Name, label: LabelPart, service: Parts, _: Reader) -> JSONResponse:
    """A class with its examples."""
    with service.database.reading() as connection:
        return tagged(queries.one_class(connection, name, label))


@router.put("/{label}", response_model=schemas.LabelledClass)
def put_class(
    name: Name, label: LabelPart, content: schemas.ClassContent, service: Parts, caller: Writer, condition: Conditions
) -> JSONResponse:
    """Put these examples in the place of what the class has; makes it where it is not."""
    check_texts(service, content.examples, service.settings.limits.examples)
    edit = edits.put_class(name, label, content.examples, content.description)
    return changed(service, name, service.store.change(name, edit, caller.who, condition))


@router.patch("/{label}", response_model=schemas.LabelledClass)
def change_class(
    name: Name, label: LabelPart, patch: schemas.ClassPatch, service: Parts, caller: Writer, condition: Conditions
) -> JSONResponse:
    """Rename a class, or change its description."""
    if not patch.model_fields_set:
        raise Problem(422, "invalid", "body: label or description is needed")
    described = "description" in patch.model_fields_set
    edit = edits.patch_class(name, label, patch.label, patch.description, described)
    return changed(service, name, service.store.change(name, edit, caller.who, condition))


@router.delete("/{label}", response_model=schemas.Changed)
def remove_class(name: Name, label: LabelPart, service: Parts, caller: Writer, condition: Conditions) -> JSONResponse:
    """Remove a class and its examples."""
    return changed(service, name, service.store.change(name, edits.delete_class(label), caller.who, condition))


@router.get("/{label}/examples", response_model=schemas.LabelledClass)
def list_examples(name: Name, label: LabelPart, service: Parts, _: Reader) -> JSONResponse:
    """The examples of a class, with their numbers."""
    with service.database.reading() as connection:
        return tagged(queries.one_class(connection, name, label))


@router.post("/{label}/examples", response_model=schemas.Changed)
def add_examples(
    name: Name, label: LabelPart, new: schemas.NewExamples, service: Parts, caller: Writer, condition: Conditions
) -> JSONResponse:
    """Add examples to a class; makes it where it is not. A text that it has already is not added twice."""
    check_texts(service, new.examples, service.settings.limits.examples)
    edit = edits.add_examples(label, new.examples)
    return changed(service, name, service.store.change(name, edit, caller.who, condition))


@router.patch("/{label}/examples/{number}", response_model=schemas.Changed)
def change_example(
    name: Name, label: LabelPart, number: Number, patch: schemas.ExamplePatch, service: Parts, caller: Writer,
    condition: Conditions,
) -> JSONResponse:  # fmt: skip
    """Give an example another text, or move it into another class."""
    if patch.text is None and patch.label is None:
        raise Problem(422, "invalid", "body: text or label is needed")
    check_texts(service, [patch.text] if patch.text else [], 1)
    edit = edits.patch_example(label, number, patch)
    return changed(service, name, service.store.change(name, edit, caller.who, condition))


@router.delete("/{label}/examples/{number}", response_model=schemas.Changed)
def remove_example(
    name: Name, label: LabelPart, number: Number, service: Parts, caller: Writer, condition: Conditions
) -> JSONResponse:
    """Remove an example; the class goes with its last one, unless it has a description."""
    edit = edits.delete_example(label, number)
    return changed(service, name, service.store.change(name, edit, caller.who, condition))
