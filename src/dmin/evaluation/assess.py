"""A classifier on a user's own test file: accuracy, F1, calibration, refusal, beside simple methods on the same vectors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dmin.classifier.few_shot import FewShotClassifier
from dmin.classifier.scoring import PLAIN_SCALE
from dmin.classifier.state import State
from dmin.data import Corpus
from dmin.encoder import FloatArray
from dmin.errors import DataError
from dmin.evaluation.figures import confusion_figure, refusal_figure, reliability_figure, save_png
from dmin.evaluation.quality import (
    Quality,
    Reliability,
    Separation,
    harmonic_mean,
    quality,
    reliability,
    separation,
)
from dmin.files import write_json
from dmin.methods import create

BESIDE = ("nearest", "logistic")


@dataclass(frozen=True)
class Assessment:
    """The measurements of one classifier on labelled texts."""

    classes: int
    examples: int
    texts: int
    quality: Quality  # answers of `predict`: with reject, a refusal counts as wrong
    unrefused: float  # accuracy if nothing were refused
    beside: dict[str, float]  # accuracy of simple methods, nothing refused
    reliability: Reliability
    uncalibrated: Reliability  # with the head's own scale
    scores: FloatArray = field(repr=False)  # highest cosine of each in-scope text
    separation: Separation | None = None
    refused: tuple[float, float] | None = None  # part refused: of in-scope texts, of out-of-scope texts
    outside_scores: FloatArray | None = field(default=None, repr=False)
    threshold: float | None = None
    base_and_novel: tuple[float, float] | None = None  # accuracy on texts of base and of own classes, all at once
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """As it stands in `assessment.json`."""
        worst = [(t, a, n) for (t, a), n in self.quality.confusion.most_common() if t != a][:20]
        return {
            "classes": self.classes,
            "examples": self.examples,
            "texts": self.texts,
            "accuracy": self.quality.accuracy,
            "macro_f1": self.quality.macro_f1,
            "accuracy_without_refusal": self.unrefused,
            "beside": self.beside,
            "calibration_error": self.reliability.error,
            "calibration_error_before": self.uncalibrated.error,
            "separation": asdict(self.separation) if self.separation else None,
            "refused_in_scope": self.refused[0] if self.refused else None,
            "refused_out_of_scope": self.refused[1] if self.refused else None,
            "threshold": self.threshold,
            "base_accuracy": self.base_and_novel[0] if self.base_and_novel else None,
            "novel_accuracy": self.base_and_novel[1] if self.base_and_novel else None,
            "harmonic_mean": harmonic_mean(*self.base_and_novel) if self.base_and_novel else None,
            "confusions": [{"true": true, "answer": answer, "texts": n} for true, answer, n in worst],
            "per_class": {label: asdict(found) for label, found in self.quality.classes.items()},
            "seconds": round(self.seconds, 2),
        }

    def write(self, folder: Path) -> None:
        """Write `assessment.json` and the pictures."""
        write_json(folder / "assessment.json", self.as_dict())
        save_png(reliability_figure(self.uncalibrated, self.reliability), folder / "reliability.png")
        shown = self.quality.confusion
        if len(self.quality.classes) > 60:  # only what is mixed up, or nobody can read it
            mixed = {name for (true, answer), _ in shown.most_common() if true != answer for name in (true, answer)}
            chosen = set(list(self.quality.classes)[:40]) & mixed
            shown = type(shown)({pair: n for pair, n in shown.items() if set(pair) <= chosen})
        if shown:
            save_png(confusion_figure(shown, "answers by true class"), folder / "confusion.png")
        if self.outside_scores is not None:
            figure = refusal_figure(self.scores, self.outside_scores, self.threshold)
            save_png(figure, folder / "refusal.png")


def assess(
    classifier: FewShotClassifier, test: Corpus, outside: Sequence[str] = (), beside: Sequence[str] = BESIDE
) -> Assessment:
    """Measure a fitted classifier on labelled texts.

    Args:
        classifier: fitted.
        test: texts of its classes; those of other classes are out-of-scope and should be refused.
        outside: more out-of-scope texts.
        beside: methods to score on the same vectors: "nearest", "logistic".
    """
    started = time.perf_counter()
    state = classifier.state_.check_ready()
    labels = [str(label) for label in state.labels]
    column_of = {label: column for column, label in enumerate(labels)}
    known = [label in column_of for label in test.labels]
    in_scope = [text for text, is_known in zip(test.texts, known, strict=True) if is_known]
    if not in_scope:
        raise DataError(
            f"no text of {test.name} has a label of the examples: {', '.join(test.classes[:5])} against "
            f"{', '.join(labels[:5])}"
        )
    truth = np.array([column_of[label] for label in test.labels if label in column_of])
    query = state.vectors(in_scope)  # [L, d]
    cosines, limits = state.cosines(query), state.limits  # [L, C], [C]
    best, top = cosines.argmax(axis=1), cosines.max(axis=1)
    accepted = top >= limits[best]
    unknown = str(state.settings.unknown_label)
    answers = [labels[column] if yes else unknown for column, yes in zip(best, accepted, strict=True)]
    seconds = time.perf_counter() - started
    right, entries = best == truth, state.knowledge.classes
    keep_base, temperature = state.settings.keep_base, state.model.method.temperature
    found = Assessment(
        classes=len(entries) or len(labels),  # of a model that answers without examples: its own
        examples=sum(len(entry.examples) for entry in entries),
        texts=len(in_scope),
        quality=quality([labels[column] for column in truth], answers),
        unrefused=float(right.mean()),
        beside={} if keep_base else {name: _beside(name, state, query, truth) for name in beside},
        reliability=reliability(_confidence(cosines, state.probability_scale), right),
        uncalibrated=reliability(_confidence(cosines, temperature if temperature != 1.0 else PLAIN_SCALE), right),
        scores=top,
        base_and_novel=_base_and_novel(right, truth >= len(entries)) if keep_base and entries else None,
        seconds=seconds,
    )
    others = [text for text, is_known in zip(test.texts, known, strict=True) if not is_known] + list(outside)
    return _with_refusal(found, state, float(1 - accepted.mean()), others) if others else found


def _with_refusal(found: Assessment, state: State, false_rejections: float, outside: Sequence[str]) -> Assessment:
    """The assessment with what the classifier does with out-of-scope texts."""
    cosines, limits = state.cosines(state.vectors(outside)), state.limits  # [n, C], [C]
    highest, nearest = cosines.max(axis=1), cosines.argmax(axis=1)
    finite = limits[np.isfinite(limits)]
    return replace(
        found,
        separation=separation(found.scores, highest),
        refused=(false_rejections, float((highest < limits[nearest]).mean())),
        outside_scores=highest,
        threshold=float(np.median(finite)) if len(finite) else None,
    )


def _base_and_novel(right: NDArray[np.bool_], of_base: NDArray[np.bool_]) -> tuple[float, float]:
    """Accuracy on texts of base classes, and of the others; 0 where there are none."""
    return (
        float(right[of_base].mean()) if of_base.any() else 0.0,
        float(right[~of_base].mean()) if (~of_base).any() else 0.0,
    )


def _confidence(cosines: FloatArray, scale: float) -> NDArray[np.float64]:
    """The highest probability of each text, [L]."""
    found: NDArray[np.float64] = (
        torch.from_numpy(cosines).double().mul(scale).softmax(dim=-1).max(dim=-1).values.numpy()
    )
    return found


def _beside(name: str, state: State, query: torch.Tensor, truth: NDArray[Any]) -> float:
    """Accuracy of a simple method on the same vectors; a name counts like an example."""
    entries = state.knowledge.classes
    rows = torch.nn.utils.rnn.pad_sequence([entry.vectors for entry in entries], batch_first=True)  # [C, K, d]
    sizes = torch.tensor([len(entry.vectors) for entry in entries], device=rows.device)
    mask = torch.arange(rows.shape[1], device=rows.device) < sizes.unsqueeze(1)  # [C, K]
    with torch.no_grad():
        scores = create(name, rows.shape[-1], way=len(entries), shot=rows.shape[1])(rows, query, mask)
    return float((scores.argmax(-1).cpu().numpy() == truth).mean())
