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

from dmin.classifier.arrays import as_torch
from dmin.classifier.explanation import Explanation
from dmin.classifier.few_shot import FewShotClassifier
from dmin.classifier.scoring import PLAIN_SCALE
from dmin.classifier.state import State
from dmin.data import Corpus
from dmin.data.corpus import without_near_misses
from dmin.encoder import FloatArray
from dmin.errors import ConfigError
from dmin.evaluation.answers import (
    AnsweredText,
    ScoredTexts,
    answer_all,
    explain_faults,
    explain_unsure,
    score_texts,
    write_predictions,
)
from dmin.evaluation.assessment_page import assessment_page
from dmin.evaluation.figures import (
    confusion_figure,
    precision_figure,
    refusal_figure,
    reliability_figure,
    save_png,
)
from dmin.evaluation.precision import PrecisionCurve, PrecisionPoint, precision_curve
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
    refusing: bool = False  # texts below a threshold are refused
    curve: PrecisionCurve = field(default_factory=lambda: precision_curve([0.0], [True]), repr=False)
    target: PrecisionPoint | None = None  # the threshold of a target precision, which is then in force
    answers: tuple[AnsweredText, ...] = field(default=(), repr=False)  # in-scope texts, then out-of-scope ones
    faults: tuple[tuple[AnsweredText, Explanation], ...] = field(default=(), repr=False)
    unsure: tuple[tuple[AnsweredText, Explanation], ...] = field(default=(), repr=False)  # right, but barely

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
            "target": asdict(self.target) if self.target else None,
            "base_accuracy": self.base_and_novel[0] if self.base_and_novel else None,
            "novel_accuracy": self.base_and_novel[1] if self.base_and_novel else None,
            "harmonic_mean": harmonic_mean(*self.base_and_novel) if self.base_and_novel else None,
            "confusions": [{"true": true, "answer": answer, "texts": n} for true, answer, n in worst],
            "per_class": {label: asdict(found) for label, found in self.quality.classes.items()},
            "seconds": round(self.seconds, 2),
        }

    def write(self, folder: Path) -> None:
        """Write `assessment.json`, `predictions.jsonl`, the page `report.html` and the pictures."""
        write_json(folder / "assessment.json", self.as_dict())
        write_predictions(self.answers, folder / "predictions.jsonl")
        assessment_page(self).write(folder / "report.html")
        save_png(precision_figure(self.curve, self.target), folder / "precision.png")
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
    classifier: FewShotClassifier,
    test: Corpus,
    outside: Sequence[str] = (),
    beside: Sequence[str] = BESIDE,
    target_precision: float | None = None,
) -> Assessment:
    """Measure a fitted classifier on labelled texts.

    Args:
        classifier: fitted.
        test: texts of its classes; those of other classes are out-of-scope and should be refused.
        outside: more out-of-scope texts.
        beside: methods to score on the same vectors: "nearest", "logistic".
        target_precision: refuse below the threshold that gives this precision with most answers, in place of the
            classifier's own `reject`; `Assessment.target` holds it.

    Raises:
        DataError: when no text has a label of the classes.
        ConfigError: when no threshold reaches the target precision.
    """
    started = time.perf_counter()
    state = classifier.state_.check_ready()
    test = without_near_misses(test, [str(label) for label in state.labels])
    scored = score_texts(state, test, outside)
    curve = precision_curve(
        np.concatenate([scored.top, scored.outside_top]),
        np.concatenate([scored.right, np.zeros(len(scored.outside), dtype=bool)]),
    )
    target = None
    if target_precision is not None:
        target = _target(curve, target_precision)
        state = state.refusing(target.threshold, state.refused_label, None)
    accepted = scored.top >= state.limits[scored.best]
    answers = answer_all(state, scored)
    seconds = time.perf_counter() - started
    entries, keep_base = state.knowledge.classes, state.settings.keep_base
    truth = [scored.labels[column] for column in scored.truth]
    found = Assessment(
        classes=len(entries) or len(scored.labels),  # of a model that answers without examples: its own
        examples=sum(len(entry.examples) for entry in entries),
        texts=len(scored.texts),
        quality=quality(truth, [answer.answer for answer in answers if answer.in_scope]),
        unrefused=float(scored.right.mean()),
        beside={} if keep_base else {name: _beside(name, state, scored.query, scored.truth) for name in beside},
        reliability=reliability(_confidence(scored.scores, state.probability_scale), scored.right),
        uncalibrated=reliability(_confidence(scored.scores, _plain_scale(state)), scored.right),
        scores=scored.top,
        base_and_novel=_base_and_novel(scored.right, scored.truth >= len(entries)) if keep_base and entries else None,
        seconds=seconds,
        refusing=state.settings.reject is not None,
        curve=curve,
        target=target,
        answers=answers,
        faults=tuple(explain_faults(state, answers)),
        unsure=tuple(explain_unsure(state, answers)),
    )
    return _with_refusal(found, state, float(1 - accepted.mean()), scored) if scored.outside else found


def _plain_scale(state: State) -> float:
    """What scores are multiplied by where nothing was calibrated."""
    if state.model.head is not None:
        return 1.0  # its scores are logits already
    temperature = state.model.method.temperature
    return temperature if temperature != 1.0 else PLAIN_SCALE


def _target(curve: PrecisionCurve, wanted: float) -> PrecisionPoint:
    target = curve.at(wanted)
    if target is None:
        best = curve.best
        raise ConfigError(
            f"no threshold gives a precision of {100 * wanted:g} % on these texts: the highest is "
            f"{100 * best.precision:.1f} %, with {100 * best.coverage:.1f} % of the texts answered"
        )
    return target


def _with_refusal(found: Assessment, state: State, false_rejections: float, scored: ScoredTexts) -> Assessment:
    """The assessment with what the classifier does with out-of-scope texts."""
    highest, nearest, limits = scored.outside_top, scored.outside_best, state.limits  # [n], [n], [C]
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


def _confidence(scores: FloatArray, scale: float) -> NDArray[np.float64]:
    """The highest probability of each text, [L]."""
    found: NDArray[np.float64] = torch.from_numpy(scores).double().mul(scale).softmax(dim=-1).max(dim=-1).values.numpy()
    return found


def _beside(name: str, state: State, query: Any, truth: NDArray[Any]) -> float:
    """Accuracy of a simple method on the same vectors; a name counts like an example."""
    entries = state.knowledge.classes
    rows = torch.nn.utils.rnn.pad_sequence(
        [as_torch(entry.vectors) for entry in entries], batch_first=True
    )  # [C, K, d]
    sizes = torch.tensor([len(entry.vectors) for entry in entries], device=rows.device)
    mask = torch.arange(rows.shape[1], device=rows.device) < sizes.unsqueeze(1)  # [C, K]
    with torch.no_grad():
        scores = create(name, rows.shape[-1], way=len(entries), shot=rows.shape[1])(rows, as_torch(query), mask)
    return float((scores.argmax(-1).cpu().numpy() == truth).mean())
