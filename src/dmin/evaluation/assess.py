"""A classifier on a user's own test file: accuracy and F1, calibration, refusal, beside simple rows on the same vectors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dmin.classifier.few_shot import FewShotClassifier
from dmin.classifier.scoring import PLAIN_SCALE
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
    """What was measured."""

    classes: int
    examples: int
    texts: int
    quality: Quality  # answers of `predict`: with reject, a refusal counts as wrong
    unrefused: float  # accuracy if nothing were refused
    beside: dict[str, float]  # accuracy of simple rows, nothing refused
    reliability: Reliability
    uncalibrated: Reliability  # with the head's own scale
    scores: FloatArray = field(repr=False)  # highest cosine of each text that belongs
    separation: Separation | None = None
    refused: tuple[float, float] | None = None  # part refused of what belongs, of what does not
    outside_scores: FloatArray | None = field(default=None, repr=False)
    threshold: float | None = None
    base_and_novel: tuple[float, float] | None = (
        None  # accuracy on texts of base and of own classes, answered in one scale
    )
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
            "refused_of_what_belongs": self.refused[0] if self.refused else None,
            "refused_of_strangers": self.refused[1] if self.refused else None,
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
        test: texts of its classes; those of other classes are strangers that should be refused.
        outside: more texts that belong nowhere.
        beside: methods to score on the same vectors: "nearest", "logistic".
    """
    started = time.perf_counter()
    labels = [str(label) for label in classifier.classes_]
    place = {label: column for column, label in enumerate(labels)}
    inside = [row for row, label in enumerate(test.labels) if label in place]
    if not inside:
        raise DataError(
            f"no text of {test.name} has a label of the examples: {', '.join(test.classes[:5])} against "
            f"{', '.join(labels[:5])}"
        )
    strange = [text for row, text in enumerate(test.texts) if test.labels[row] not in place] + list(outside)
    truth = np.array([place[test.labels[row]] for row in inside])
    knowledge, model = classifier._ready(), classifier._model
    query = model.vectors(classifier._read([test.texts[row] for row in inside]), knowledge.width)
    cosines = model.cosines(query, knowledge, keep_base=classifier.keep_base).cpu().numpy()
    best = cosines.argmax(axis=1)
    top = cosines.max(axis=1)
    limits = classifier._limits(knowledge)
    accepted = top >= limits[best]
    answers = [
        labels[column] if yes else str(classifier.unknown_label) for column, yes in zip(best, accepted, strict=True)
    ]
    seconds = time.perf_counter() - started
    right = best == truth
    calibration, size = model.calibration, len(labels)
    plain = model.method.temperature if model.method.temperature != 1.0 else PLAIN_SCALE
    scale = calibration.scale(size, knowledge.mean_size) if calibration else PLAIN_SCALE
    found = Assessment(
        classes=len(knowledge.classes),
        examples=sum(len(entry.examples) for entry in knowledge.classes),
        texts=len(inside),
        quality=quality([labels[column] for column in truth], answers),
        unrefused=float(right.mean()),
        beside={name: _beside(name, classifier, query, truth) for name in beside} if not classifier.keep_base else {},
        reliability=reliability(_confidence(cosines, scale), right),
        uncalibrated=reliability(_confidence(cosines, plain), right),
        scores=top,
        base_and_novel=_base_and_novel(right, truth >= len(knowledge.classes)) if classifier.keep_base else None,
        seconds=seconds,
    )
    if not strange:
        return found
    vectors = model.vectors(classifier._read(strange), knowledge.width)
    others = model.cosines(vectors, knowledge, keep_base=classifier.keep_base).cpu().numpy()
    highest, nearest = others.max(axis=1), others.argmax(axis=1)
    finite = limits[np.isfinite(limits)]
    return Assessment(
        **{
            **found.__dict__,
            "separation": separation(top, highest),
            "refused": (float(1 - accepted.mean()), float((highest < limits[nearest]).mean())),
            "outside_scores": highest,
            "threshold": float(np.median(finite)) if len(finite) else None,
        }
    )


def _base_and_novel(right: Any, of_base: Any) -> tuple[float, float]:
    """Accuracy on texts of base classes, and of the others; 0 where there are none."""
    return (
        float(right[of_base].mean()) if of_base.any() else 0.0,
        float(right[~of_base].mean()) if (~of_base).any() else 0.0,
    )


def _confidence(cosines: FloatArray, scale: float) -> Any:
    return torch.from_numpy(cosines).double().mul(scale).softmax(dim=-1).max(dim=-1).values.numpy()


def _beside(name: str, classifier: FewShotClassifier, query: torch.Tensor, truth: Any) -> float:
    """Accuracy of a simple method on the very same rows; a name counts like an example."""
    entries = classifier._knowledge.classes
    rows = torch.nn.utils.rnn.pad_sequence([entry.vectors for entry in entries], batch_first=True)  # [C, K, d]
    sizes = torch.tensor([len(entry.vectors) for entry in entries], device=rows.device)
    mask = torch.arange(rows.shape[1], device=rows.device) < sizes.unsqueeze(1)  # [C, K]
    with torch.no_grad():
        scores = create(name, rows.shape[-1], way=len(entries), shot=rows.shape[1])(rows, query, mask)
    return float((scores.argmax(-1).cpu().numpy() == truth).mean())
