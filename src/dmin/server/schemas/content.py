"""Collections, classes, examples, history, and the service itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from dmin.server.schemas.parts import Answer, Label, Name, Request, TextLine


class CollectionSettings(Request):
    """How a collection classifies; the words of `FewShotClassifier`."""

    reject: Literal["auto"] | Annotated[float, Field(ge=-1, le=1)] | None = "auto"
    use_names: Literal["auto"] | bool = "auto"


class NewCollection(Request):
    """A collection to make; `classes` fills it at once."""

    name: Name
    description: Annotated[str, Field(max_length=2000)] = ""
    settings: CollectionSettings = Field(default_factory=CollectionSettings)
    classes: dict[Label, list[TextLine]] = Field(default_factory=dict)


class CollectionContent(Request):
    """All of a collection, to put in the place of what is there."""

    description: Annotated[str, Field(max_length=2000)] = ""
    settings: CollectionSettings = Field(default_factory=CollectionSettings)
    classes: dict[Label, list[TextLine]] = Field(default_factory=dict)


class CollectionPatch(Request):
    """What to change of a collection; what is left out stays."""

    description: Annotated[str, Field(max_length=2000)] | None = None
    settings: CollectionSettings | None = None


class Collection(Answer):
    """A collection of classes."""

    name: str
    description: str
    settings: CollectionSettings
    revision: int
    classes: int
    examples: int
    created_at: str


class CollectionList(Answer):
    """All collections that the key may see."""

    collections: list[Collection]


class ClassContent(Request):
    """All of a class, to put in the place of what is there."""

    examples: list[TextLine] = Field(default_factory=list)
    description: Annotated[str, Field(max_length=2000)] | None = None


class ClassPatch(Request):
    """What to change of a class; what is left out stays. `label` renames it."""

    label: Label | None = None
    description: Annotated[str, Field(max_length=2000)] | None = None


class NewExamples(Request):
    """Examples to add to a class, which is made if it is not there."""

    examples: Annotated[list[TextLine], Field(min_length=1)]


class ExamplePatch(Request):
    """A new text for an example, or another class for it."""

    text: TextLine | None = None
    label: Label | None = None


class Example(Answer):
    """One example."""

    id: int
    text: str
    added_at: str
    added_by: str


class LabelledClass(Answer):
    """A class with its examples."""

    label: str
    description: str | None
    revision: int
    examples: list[Example]


class ClassSummary(Answer):
    """A class without its examples."""

    label: str
    description: str | None
    revision: int
    examples: int


class ClassList(Answer):
    """The classes of a collection."""

    revision: int
    classes: list[ClassSummary]


class Changed(Answer):
    """A change that is on disk."""

    collection: str
    revision: int
    action: str
    summary: str
    added: int = 0
    removed: int = 0


class Change(Answer):
    """An entry of the history."""

    revision: int
    at: str
    who: str
    action: str
    label: str | None
    summary: str
    undone: bool
    undoes: int | None


class History(Answer):
    """The last changes, newest first."""

    changes: list[Change]
    undoable: int | None  # the revision that undo would take back


class ModelAnswer(Answer):
    """What classifies."""

    version: str
    model: str
    encoder: str | None
    width: int | None
    backend: str
    limits: dict[str, float]


class WhoAnswer(Answer):
    """Whom the service takes the caller for."""

    who: str
    role: Literal["read", "write", "admin"]
    collections: list[str] | None
    keys_needed: bool


class Health(Answer):
    """The state of the process."""

    status: str
    detail: str = ""


class ProblemDocument(Answer):
    """An error (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
