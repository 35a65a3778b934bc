"""The calls of the API as values: what is sent, and what comes back. Both clients send the same."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from dmin.errors import DminError
from dmin.server import schemas

T = TypeVar("T", bound=BaseModel)
AGAIN = frozenset({429, 502, 503, 504})  # statuses after which the same request may succeed


class ServiceError(DminError):
    """An error that the service answered; `problem` is its problem document."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail") or f"the service answered {status}"))
        self.status, self.problem = status, dict(problem)


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request."""

    method: str
    path: str
    model: type[T]
    body: BaseModel | None = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """As httpx takes it. A change gets a number, so that it is done once however often it is sent."""
        headers = dict(self.headers)
        if self.method != "GET":
            headers.setdefault("Idempotency-Key", uuid.uuid4().hex)
        found: dict[str, Any] = {"method": self.method, "url": self.path, "headers": headers}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
            found["content"] = self.body.model_dump_json(exclude_unset=True).encode()
        elif self.content is not None:
            found["content"] = self.content
        return found

    def read(self, response: httpx.Response) -> T:
        """The answer as a model; an error as a `ServiceError`."""
        if response.is_success:
            return self.model.model_validate_json(response.content)
        try:
            problem = response.json()
        except ValueError:
            problem = {}
        raise ServiceError(response.status_code, problem if isinstance(problem, dict) else {})


def seconds_to_wait(response: httpx.Response | None, attempt: int) -> float:
    """What Retry-After says, else twice as long each time."""
    told = response.headers.get("retry-after", "") if response is not None else ""
    return min(float(told), 30.0) if told.isdigit() else 0.1 * 2.0**attempt


def _at(collection: str, *parts: str) -> str:
    return "/".join(["/v1/collections", *(quote(part, safe="") for part in (collection, *parts))])


def _match(revision: int | None) -> dict[str, str]:
    return {} if revision is None else {"If-Match": f'"{revision}"'}


def classify(collection: str, texts: Sequence[str], top_k: int, explain: bool) -> Call[schemas.ClassifyAnswer]:
    """Classify texts."""
    body = schemas.ClassifyRequest(texts=list(texts), top_k=top_k, explain=explain)
    return Call("POST", f"{_at(collection)}/classify", schemas.ClassifyAnswer, body)


def collections() -> Call[schemas.CollectionList]:
    """List collections."""
    return Call("GET", "/v1/collections", schemas.CollectionList)


def create_collection(name: str, classes: Mapping[str, Sequence[str]], description: str) -> Call[schemas.Collection]:
    """Make a collection."""
    content = {label: list(texts) for label, texts in classes.items()}
    body = schemas.NewCollection(name=name, classes=content, description=description)
    return Call("POST", "/v1/collections", schemas.Collection, body)


def delete_collection(collection: str) -> Call[schemas.Changed]:
    """Remove a collection."""
    return Call("DELETE", _at(collection), schemas.Changed)


def classes(collection: str) -> Call[schemas.ClassList]:
    """List classes."""
    return Call("GET", f"{_at(collection)}/classes", schemas.ClassList)


def get_class(collection: str, label: str) -> Call[schemas.LabelledClass]:
    """Read a class."""
    return Call("GET", _at(collection, "classes", label), schemas.LabelledClass)


def put_class(
    collection: str, label: str, examples: Sequence[str], description: str | None, revision: int | None
) -> Call[schemas.LabelledClass]:
    """Put a class."""
    body = schemas.ClassContent(examples=list(examples), description=description)
    path = _at(collection, "classes", label)
    return Call("PUT", path, schemas.LabelledClass, body, headers=_match(revision))


def delete_class(collection: str, label: str, revision: int | None) -> Call[schemas.Changed]:
    """Remove a class."""
    return Call("DELETE", _at(collection, "classes", label), schemas.Changed, headers=_match(revision))


def add_examples(collection: str, label: str, examples: Sequence[str]) -> Call[schemas.Changed]:
    """Add examples."""
    body = schemas.NewExamples(examples=list(examples))
    return Call("POST", _at(collection, "classes", label, "examples"), schemas.Changed, body)


def undo(collection: str) -> Call[schemas.Changed]:
    """Take back the last change."""
    return Call("POST", f"{_at(collection)}/undo", schemas.Changed)


def history(collection: str, most: int) -> Call[schemas.History]:
    """Read the history."""
    return Call("GET", f"{_at(collection)}/history?most={most}", schemas.History)


def check(collection: str) -> Call[schemas.CheckAnswer]:
    """Ask the doctor."""
    return Call("POST", f"{_at(collection)}/check", schemas.CheckAnswer)


def suggest(collection: str, texts: Sequence[str], n: int, seed: int) -> Call[schemas.SuggestAnswer]:
    """Ask what to label next."""
    body = schemas.SuggestRequest(texts=list(texts), n=n, seed=seed)
    return Call("POST", f"{_at(collection)}/suggest", schemas.SuggestAnswer, body)


def evaluate(collection: str, rows: Sequence[tuple[str, str]]) -> Call[schemas.EvaluateAnswer]:
    """Measure on labelled texts."""
    body = schemas.EvaluateRequest(rows=[schemas.LabelledText(text=text, label=label) for text, label in rows])
    return Call("POST", f"{_at(collection)}/evaluate", schemas.EvaluateAnswer, body)


def import_file(collection: str, content: bytes, content_type: str) -> Call[schemas.Changed]:
    """Send a file of examples."""
    headers = {"Content-Type": content_type}
    return Call("POST", f"{_at(collection)}/import", schemas.Changed, content=content, headers=headers)


def model() -> Call[schemas.ModelAnswer]:
    """Read what classifies."""
    return Call("GET", "/v1/model", schemas.ModelAnswer)
