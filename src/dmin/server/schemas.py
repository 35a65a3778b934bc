"""What the API takes and answers, as pydantic models; `dmin.client` returns the same."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_BAD_IN_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def check_label(label: str) -> str:
    """A label that can stand in a list, an address and a file; else a ValueError."""
    if not label or label != label.strip():
        raise ValueError("a label must not be empty, nor begin or end with white space")
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in label):
        raise ValueError("a label must not hold control characters or line breaks")
    if label in (".", ".."):
        raise ValueError("'.' and '..' cannot stand in an address")
    return label


def check_text(text: str) -> str:
    """A text that can be encoded and stored; else a ValueError."""
    if not text.strip():
        raise ValueError("a text must not be empty")
    if _BAD_IN_TEXT.search(text):
        raise ValueError("a text must not hold control characters")
    return text


Name = Annotated[str, Field(pattern=_NAME, description="Letters, digits, dot, dash, underline.")]
Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_label)]
TextLine = Annotated[str, Field(min_length=1), AfterValidator(check_text)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")


class CollectionSettings(_Request):
    """How a collection classifies; the words of `FewShotClassifier`."""

    reject: Literal["auto"] | Annotated[float, Field(ge=-1, le=1)] | None = "auto"
    use_names: Literal["auto"] | bool = "auto"


class NewCollection(_Request):
    """A collection to make; `classes` fills it at once."""

    name: Name
    description: Annotated[str, Field(max_length=2000)] = ""
    settings: CollectionSettings = Field(default_factory=CollectionSettings)
    classes: dict[Label, list[TextLine]] = Field(default_factory=dict)


class CollectionContent(_Request):
    """All of a collection, to put in the place of what is there."""

    description: Annotated[str, Field(max_length=2000)] = ""
    settings: CollectionSettings = Field(default_factory=CollectionSettings)
    classes: dict[Label, list[TextLine]] = Field(default_factory=dict)


class CollectionPatch(_Request):
    """What to change of a collection; what is left out stays."""

    description: Annotated[str, Field(max_length=2000)] | None = None
    settings: CollectionSettings | None = None


class Collection(_Answer):
    """A collection of classes."""

    name: str
    description: str
    settings: CollectionSettings
    revision: int
    classes: int
    examples: int
    created_at: str


class CollectionList(_Answer):
    """All collections that the key may see."""

    collections: list[Collection]


class ClassContent(_Request):
    """All of a class, to put in the place of what is there."""

    examples: list[TextLine] = Field(default_factory=list)
    description: Annotated[str, Field(max_length=2000)] | None = None


class ClassPatch(_Request):
    """What to change of a class; what is left out stays. `label` renames it."""

    label: Label | None = None
    description: Annotated[str, Field(max_length=2000)] | None = None


class NewExamples(_Request):
    """Examples to add to a class, which is made if it is not there."""

    examples: Annotated[list[TextLine], Field(min_length=1)]


class ExamplePatch(_Request):
    """A new text for an example, or another class for it."""

    text: TextLine | None = None
    label: Label | None = None


class Example(_Answer):
    """One example."""

    id: int
    text: str
    added_at: str
    added_by: str


class LabelledClass(_Answer):
    """A class with its examples."""

    label: str
    description: str | None
    revision: int
    examples: list[Example]


class ClassSummary(_Answer):
    """A class without its examples."""

    label: str
    description: str | None
    revision: int
    examples: int


class ClassList(_Answer):
    """The classes of a collection."""

    revision: int
    classes: list[ClassSummary]


class Changed(_Answer):
    """A change that is on disk."""

    collection: str
    revision: int
    action: str
    summary: str
    added: int = 0
    removed: int = 0


class Change(_Answer):
    """An entry of the history."""

    revision: int
    at: str
    who: str
    action: str
    label: str | None
    summary: str
    undone: bool
    undoes: int | None


class History(_Answer):
    """The last changes, newest first."""

    changes: list[Change]
    undoable: int | None  # the revision that undo would take back


class ClassifyRequest(_Request):
    """Texts to classify."""

    texts: Annotated[list[TextLine], Field(min_length=1)]
    top_k: Annotated[int, Field(ge=1, le=100)] = 3
    explain: bool = False


class Ranked(_Answer):
    """One of the most likely classes."""

    label: str
    probability: float
    cosine: float


class ShareOfScore(_Answer):
    """One example's exact share of the score; null where a method cannot tell."""

    text: str
    share: float | None
    without: float | None
    is_name: bool


class Reason(_Answer):
    """Why a text got its label."""

    nearest: str
    score: float
    threshold: float | None
    examples: list[ShareOfScore]


class AnswerToText(_Answer):
    """The answer to one text; `label` is null where it is refused."""

    label: str | None
    probability: float
    cosine: float
    refused: bool
    top: list[Ranked]
    explanation: Reason | None = None


class ClassifyAnswer(_Answer):
    """One answer per text, all of one revision."""

    revision: int
    answers: list[AnswerToText]


class CheckAnswer(_Answer):
    """What the support-set doctor found."""

    revision: int
    problems: int
    report: dict[str, Any]


class PileRequest(_Request):
    """Unlabelled texts."""

    texts: Annotated[list[TextLine], Field(min_length=1)]


class SuggestRequest(PileRequest):
    """Unlabelled texts, of which the `n` most useful to label are wanted."""

    n: Annotated[int, Field(ge=1, le=500)] = 20
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0


class SuggestedText(_Answer):
    """A text worth labelling, and why."""

    index: int
    text: str
    reason: str
    stands_for: int


class SuggestAnswer(_Answer):
    """Texts to label next, the most useful first."""

    revision: int
    suggestions: list[SuggestedText]


class LabelledText(_Request):
    """A text and its true label."""

    text: TextLine
    label: Label


class EvaluateRequest(_Request):
    """Labelled texts to measure a collection on."""

    rows: Annotated[list[LabelledText], Field(min_length=1)]


class ClassQuality(_Answer):
    """One class of an evaluation."""

    label: str
    texts: int
    precision: float
    recall: float
    f1: float


class WrongText(_Answer):
    """A text that was answered wrongly."""

    text: str
    truth: str
    answer: str | None
    probability: float
    refused: bool


class EvaluateAnswer(_Answer):
    """Accuracy with its 95 % confidence interval (Wilson), the confusion matrix, and the wrong texts."""

    revision: int
    texts: int
    accuracy: float
    low: float
    high: float
    macro_f1: float
    refused: int
    unknown_labels: list[str]  # labels of the file that the collection does not have
    classes: list[ClassQuality]
    labels: list[str]  # rows and columns of the matrix; refused texts stand in one more column
    confusion: list[list[int]]
    wrong: list[WrongText]


class MapRequest(_Request):
    """Texts to place on the map beside the examples."""

    texts: list[TextLine] = Field(default_factory=list)


class MapPoint(_Answer):
    """A text on the map; `label` is null for a text without one."""

    x: float
    y: float
    text: str
    label: str | None
    doubt: str | None = None  # the class that an example lies nearer to than to its own


class MapAnswer(_Answer):
    """All examples and the given texts in two dimensions."""

    revision: int
    examples: list[MapPoint]
    texts: list[MapPoint]
    overlapping: list[tuple[str, str, int]]


class ModelAnswer(_Answer):
    """What classifies."""

    version: str
    model: str
    encoder: str | None
    width: int | None
    backend: str
    limits: dict[str, float]


class WhoAnswer(_Answer):
    """Whom the service takes the caller for."""

    who: str
    role: Literal["read", "write", "admin"]
    collections: list[str] | None
    keys_needed: bool


class Health(_Answer):
    """The state of the process."""

    status: str
    detail: str = ""


class ProblemDocument(_Answer):
    """An error (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
