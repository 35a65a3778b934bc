"""What a collection is asked, and what it answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dmin.server.schemas.parts import Answer, Label, Request, TextLine


class ClassifyRequest(Request):
    """Texts to classify."""

    texts: Annotated[list[TextLine], Field(min_length=1)]
    top_k: Annotated[int, Field(ge=1, le=100)] = 3
    explain: bool = False


class Ranked(Answer):
    """One of the most likely classes."""

    label: str
    probability: Annotated[float, Field(description="Of this class among all classes.")]
    cosine: Annotated[float, Field(description="Similarity to this class, -1 to 1; refusal goes by it.")]


class ShareOfScore(Answer):
    """One example's exact share of the score; null where a method cannot tell."""

    text: str
    share: float | None
    without: float | None
    is_name: bool


class Reason(Answer):
    """Why a text got its label."""

    nearest: str
    score: Annotated[float, Field(description="The deciding score, which the shares add up to.")]
    threshold: Annotated[float | None, Field(description="The cosine below which a text is refused.")]
    examples: list[ShareOfScore]


class AnswerToText(Answer):
    """The answer to one text; `label` is null where it is refused."""

    label: Annotated[str | None, Field(description="The class, or null where the text is refused.")]
    probability: Annotated[float, Field(description="Of the nearest class.")]
    cosine: Annotated[float, Field(description="Similarity to the nearest class, -1 to 1; refusal goes by it.")]
    refused: bool
    top: Annotated[list[Ranked], Field(description="The most likely classes, best first.")]
    explanation: Reason | None = None


class ClassifyAnswer(Answer):
    """One answer per text, all of one revision."""

    revision: int
    answers: list[AnswerToText]


class CheckAnswer(Answer):
    """What the support-set doctor found."""

    revision: int
    problems: int
    report: dict[str, Any]


class PileRequest(Request):
    """Unlabelled texts."""

    texts: Annotated[list[TextLine], Field(min_length=1)]


class SuggestRequest(PileRequest):
    """Unlabelled texts, of which the `n` most useful to label are wanted."""

    n: Annotated[int, Field(ge=1, le=500)] = 20
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0


class SuggestedText(Answer):
    """A text worth labelling, and why."""

    index: int
    text: str
    reason: str
    stands_for: int


class SuggestAnswer(Answer):
    """Texts to label next, the most useful first."""

    revision: int
    suggestions: list[SuggestedText]


class LabelledText(Request):
    """A text and its true label."""

    text: TextLine
    label: Label


class EvaluateRequest(Request):
    """Labelled texts to measure a collection on."""

    rows: Annotated[list[LabelledText], Field(min_length=1)]


class ClassQuality(Answer):
    """One class of an evaluation."""

    label: str
    texts: int
    precision: float
    recall: float
    f1: float


class WrongText(Answer):
    """A text that was answered wrongly."""

    text: str
    truth: str
    answer: str | None
    probability: float
    refused: bool


class EvaluateAnswer(Answer):
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


class MapRequest(Request):
    """Texts to place on the map beside the examples."""

    texts: list[TextLine] = Field(default_factory=list)


class MapPoint(Answer):
    """A text on the map; `label` is null for a text without one."""

    x: float
    y: float
    text: str
    label: str | None
    doubt: str | None = None  # the class that an example lies nearer to than to its own


class MapAnswer(Answer):
    """All examples and the given texts in two dimensions."""

    revision: int
    examples: list[MapPoint]
    texts: list[MapPoint]
    overlapping: list[tuple[str, str, int]]
