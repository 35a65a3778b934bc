"""The edits that the API offers, each as an `Edit` that `Store.change` carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import func, select

from dmin.errors import counted
from dmin.server import queries
from dmin.server.draft import Draft
from dmin.server.problems import Problem
from dmin.server.schemas import CollectionContent, CollectionPatch, ExamplePatch, NewCollection
from dmin.server.store import Edit
from dmin.server.tables import collections


def create_collection(new: NewCollection) -> Edit:
    """Make a collection and fill it."""

    def work(draft: Draft) -> str:
        if draft.exists:
            raise Problem(409, "exists", f"There is a collection {new.name!r} already.")
        total = draft._connection.execute(select(func.count()).select_from(collections)).scalar_one()
        if total >= draft._limits.collections:
            raise Problem(422, "too-many-collections", f"The store may have {draft._limits.collections} collections.")
        draft.create(new.description, new.settings.model_dump())
        added = _fill(draft, new.classes)
        return f"collection made with {counted(len(new.classes), 'class')}, {counted(added, 'example')}"

    return Edit(
        "create", work, status=201, creates=True,
        represent=lambda connection, _: queries.one_collection(connection, new.name),
    )  # fmt: skip


def put_collection(name: str, content: CollectionContent) -> Edit:
    """Put this content in the place of all that a collection has."""

    def work(draft: Draft) -> str:
        if draft.exists:
            draft.describe(content.description, content.settings.model_dump())
        else:
            draft.create(content.description, content.settings.model_dump())
        for label in draft.labels():
            if label not in content.classes:
                draft.remove_class(label)
            else:
                draft.remove_examples(label, keep=content.classes[label])
        _fill(draft, content.classes)
        return f"collection replaced: {counted(len(content.classes), 'class')}"

    return Edit("replace", work, creates=True, represent=lambda connection, _: queries.one_collection(connection, name))


def patch_collection(name: str, patch: CollectionPatch) -> Edit:
    """Change description or settings."""

    def work(draft: Draft) -> str:
        draft.describe(patch.description, patch.settings.model_dump() if patch.settings else None)
        return "description or settings changed"

    return Edit("settings", work, represent=lambda connection, _: queries.one_collection(connection, name))


def delete_collection() -> Edit:
    """Remove a collection."""

    def work(draft: Draft) -> str:
        draft.drop()
        return "collection removed"

    return Edit("delete", work)


def put_class(name: str, label: str, examples: Sequence[str], description: str | None) -> Edit:
    """Put examples and description in the place of what a class has; it is made if it is not there."""

    def work(draft: Draft) -> str:
        new = not draft.has_class(label)
        if not examples and not description:
            raise Problem(422, "empty-class", "A class needs at least one example, or a description.")
        draft.put_class(label, description)
        removed = draft.remove_examples(label, keep=examples)
        added = draft.add_examples(label, examples)
        if new:
            return f"class {label} made with {counted(added, 'example')}"
        return f"class {label}: {counted(added, 'example')} added, {removed} removed"

    return Edit("put-class", work, label, represent=lambda connection, _: queries.one_class(connection, name, label))


def patch_class(name: str, label: str, new_label: str | None, description: str | None, described: bool) -> Edit:
    """Rename a class or change its description."""

    def work(draft: Draft) -> str:
        if not draft.has_class(label):
            raise queries.no_such_class(label)
        if described:
            if not description and not draft.examples(label):
                raise Problem(422, "empty-class", "A class without examples needs its description.")
            draft.put_class(label, description)
        if new_label is None or new_label == label:
            return f"class {label}: description changed"
        if draft.has_class(new_label):
            raise Problem(409, "exists", f"There is a class {new_label!r} already.")
        draft.rename_class(label, new_label)
        return f"class {label} renamed to {new_label}"

    shown = new_label or label
    return Edit("patch-class", work, label, represent=lambda connection, _: queries.one_class(connection, name, shown))


def delete_class(label: str) -> Edit:
    """Remove a class and its examples."""

    def work(draft: Draft) -> str:
        if not draft.has_class(label):
            raise queries.no_such_class(label)
        size = len(draft.examples(label))
        draft.remove_class(label)
        return f"class {label} removed ({counted(size, 'example')})"

    return Edit("delete-class", work, label)


def add_examples(label: str, texts: Sequence[str]) -> Edit:
    """Add examples to a class; it is made if it is not there."""

    def work(draft: Draft) -> str:
        if not draft.has_class(label):
            draft.put_class(label, None)
        return f"{counted(draft.add_examples(label, texts), 'example')} added to {label}"

    return Edit("add-examples", work, label)


def patch_example(label: str, identifier: int, patch: ExamplePatch) -> Edit:
    """Give an example another text, or put it into another class."""

    def work(draft: Draft) -> str:
        _known(draft, label)
        old = draft.remove_example(label, identifier)
        target = patch.label or label
        if not draft.has_class(target):
            draft.put_class(target, None)
        draft.add_examples(target, [patch.text or old])
        _not_empty(draft, label)
        return f"an example of {label} " + (f"moved to {target}" if target != label else "changed")

    return Edit("patch-example", work, label)


def delete_example(label: str, identifier: int) -> Edit:
    """Remove one example."""

    def work(draft: Draft) -> str:
        _known(draft, label)
        draft.remove_example(label, identifier)
        _not_empty(draft, label)
        return f"an example of {label} removed"

    return Edit("delete-example", work, label)


def import_examples(classes: Mapping[str, Sequence[str]], descriptions: Mapping[str, str]) -> Edit:
    """Add many classes and examples at once."""

    def work(draft: Draft) -> str:
        if not draft.exists:
            draft.create("", {"reject": "auto", "use_names": "auto"})
        added = _fill(draft, classes, descriptions)
        return f"imported {counted(added, 'example')} in {counted(len(classes), 'class')}"

    return Edit("import", work, creates=True)


def _fill(draft: Draft, content: Mapping[str, Sequence[str]], descriptions: Mapping[str, str] | None = None) -> int:
    """Add classes and examples; returns how many examples are new."""
    added = 0
    described = descriptions or {}
    for label, texts in content.items():
        if not texts and label not in described:
            raise Problem(422, "empty-class", f"The class {label!r} has no example and no description.")
        if not draft.has_class(label) or label in described:
            draft.put_class(label, described.get(label))
        added += draft.add_examples(label, texts)
    return added


def _known(draft: Draft, label: str) -> None:
    if not draft.has_class(label):
        raise queries.no_such_class(label)


def _not_empty(draft: Draft, label: str) -> None:
    """A class that lost its last example goes, unless it has a description."""
    if draft.has_class(label) and not draft.examples(label) and not draft._class(label).description:
        draft.remove_class(label)
