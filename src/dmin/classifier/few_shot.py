"""`FewShotClassifier`: what an application holds."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import Tensor

from dmin.classifier.examples import group_examples
from dmin.classifier.explanation import Explanation, Share
from dmin.classifier.labels import is_wordy, name_text
from dmin.classifier.refusal import calibrate_threshold
from dmin.classifier.storage import load_classifier, save_classifier
from dmin.classifier.support import ClassSupport, Knowledge
from dmin.encoder import Encoder, FloatArray
from dmin.encoder.encoder import check_texts
from dmin.errors import ConfigError, DataError, unknown_name
from dmin.methods import DMIN, FewShotMethod, create
from dmin.methods.base import unit
from dmin.training import load_model

# Floats of one intermediate tensor [queries, classes, examples, width]; bounds the memory of a prediction.
_BLOCK = 32_000_000
_PLAIN_TEMPERATURE = 20.0  # of probabilities where no scale was learned
# One change at a time; predictions never wait, they read a snapshot.
_CHANGING = threading.RLock()

Examples = Mapping[Any, Sequence[str]] | Sequence[str]
Reject = float | Mapping[Any, float] | Literal["auto"] | None


class FewShotClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies texts from a few examples of each class; a scikit-learn estimator without training at fit.

    Args:
        model: "default" (the embedded encoder with nearest prototypes), or the folder of a run or model.
        encoder: in place of the default model's encoder, any callable `texts -> array [n, d]`.
        use_names: let the class's name take part as one more example: True, False, or "auto" (where labels are words).
        descriptions: a sentence for a label, in place of its name; a class may have nothing but that.
        keep_base: classify over the trained model's base classes too.
        reject: refuse a text whose highest similarity lies below this: a number, a number for each label, or "auto"
            (found from the classes themselves, see `dmin.classifier.refusal`); None refuses nothing.
        unknown_label: what a refused text gets.
        backend: what computes; "torch".
        device: where to compute; without one, a GPU where there is one.

    Example:
        >>> classifier = FewShotClassifier().fit({"refund": ["I want my money back"], "parcel": ["where is my order"]})
        >>> classifier.predict(["please return what I paid"]).tolist()
        ['refund']
    """

    def __init__(
        self,
        model: str | Path = "default",
        *,
        encoder: Callable[[Sequence[str]], Any] | None = None,
        use_names: bool | Literal["auto"] = "auto",
        descriptions: Mapping[Any, str] | None = None,
        keep_base: bool = False,
        reject: Reject = None,
        unknown_label: Any = None,
        backend: str = "torch",
        device: str | None = None,
    ) -> None:
        self.model = model
        self.encoder = encoder
        self.use_names = use_names
        self.descriptions = descriptions
        self.keep_base = keep_base
        self.reject = reject
        self.unknown_label = unknown_label
        self.backend = backend
        self.device = device

    _knowledge: Knowledge
    _names_on: bool | None
    threshold_: float | None  # found by reject="auto"
    encoder_: Encoder | None

    # What it knows

    @property
    def classes_(self) -> Any:
        """The labels, in the order of the columns of `decision_function`: own classes, then kept base classes."""
        labels = [*self._knowledge.labels, *self.base_classes_]
        if len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float | np.generic):
            return np.array(labels)
        found = np.empty(len(labels), dtype=object)
        found[:] = labels
        return found

    @property
    def base_classes_(self) -> list[str]:
        """The trained model's base classes, where they are kept."""
        return list(self._base_classes) if self.keep_base else []

    @property
    def examples_(self) -> dict[Any, tuple[str, ...]]:
        """The examples of each class."""
        return {entry.label: entry.examples for entry in self._knowledge.classes}

    # Learning: nothing is trained, each change encodes what is new and replaces the knowledge as a whole

    def fit(self, X: Examples, y: Iterable[Any] | None = None) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn the classes from `{label: [texts]}`, or from texts `X` with labels `y`; what was known is replaced."""
        groups = group_examples(X, y)
        for label in self.descriptions or {}:
            groups.setdefault(label, [])
        if not groups:
            raise DataError("no classes were given")
        if len(groups) < 2 and self.reject is None and not self.keep_base:
            raise DataError("one class alone answers everything: give at least two classes, or set reject")
        with _CHANGING:
            self._load()
            names_on = self._decide_names(groups)
            knowledge = Knowledge().replaced(self._encode(groups, names_on))
            threshold = self._threshold_for(knowledge)
            self._knowledge, self._names_on, self.threshold_ = knowledge, names_on, threshold
        return self

    def partial_fit(self, X: Examples, y: Iterable[Any] | None = None, classes: Any = None) -> Self:  # noqa: N803
        """Add examples; labels not seen before become classes. `classes` is scikit-learn's and not needed."""
        del classes
        return self._change(group_examples(X, y))

    def add_class(self, label: Hashable, texts: Sequence[str] = ()) -> Self:
        """Add a class; the others are not touched. Without texts it needs a description, or a name made of words."""
        self._load()
        if label in self._knowledge.by_label:
            raise DataError(f"class {label!r} is there already: use add_examples")
        return self._change(group_examples({label: texts}, None), names_alone=True)

    def add_examples(self, label: Hashable, texts: Sequence[str]) -> Self:
        """Add examples to a class that is there."""
        self._known(label)
        return self._change(group_examples({label: texts}, None))

    def remove_class(self, label: Hashable) -> Self:
        """Forget a class."""
        with _CHANGING:
            self._known(label)
            self._knowledge = self._knowledge.without(label)
        return self

    def remove_example(self, label: Hashable, text: str) -> Self:
        """Forget one example of a class."""
        with _CHANGING:
            entry = self._known(label)
            if text not in entry.examples:
                raise unknown_name(f"example of {label!r}", text, entry.examples)
            row = entry.examples.index(text)
            kept = [index for index in range(len(entry.texts)) if index != row]
            if not kept:
                raise DataError(f"{text!r} is the last example of {label!r}: use remove_class")
            texts = tuple(entry.texts[index] for index in kept)
            changed = ClassSupport(label, texts, entry.named, entry.vectors[kept], entry.prepared[kept])
            self._knowledge = self._knowledge.replaced([changed])
        return self

    # Keeping

    def save(self, path: str | Path) -> None:
        """Write classes, examples, vectors and, if there is one, the trained model into a folder."""
        self._ready()
        save_classifier(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, encoder: Any = None, device: str | None = None) -> FewShotClassifier:
        """Read a folder that `save` wrote; a classifier with an encoder of its own needs that encoder again."""
        return load_classifier(cls, Path(path), encoder, device)

    # Answers

    def predict(self, X: Sequence[str]) -> Any:  # noqa: N803
        """The most likely class of each text, or `unknown_label` where it is refused."""
        knowledge = self._ready()
        scores = self._scores(X, knowledge)
        labels = self._labels(knowledge)
        answers = [labels[index] for index in scores.argmax(axis=1)] if len(scores) else []
        for row, (answer, score) in enumerate(zip(answers, scores.max(axis=1, initial=-np.inf), strict=True)):
            limit = self._limit(answer)
            if limit is not None and score < limit:
                answers[row] = self.unknown_label
        if answers and len({type(answer) for answer in answers}) == 1 and isinstance(answers[0], str | int | float):
            return np.array(answers)
        found = np.empty(len(answers), dtype=object)
        found[:] = answers
        return found

    def predict_proba(self, X: Sequence[str]) -> FloatArray:  # noqa: N803
        """Probabilities of the classes, [texts, classes]; what is refused still has them."""
        knowledge = self._ready()
        scores = torch.from_numpy(self._scores(X, knowledge))
        temperature = self._method.temperature if self._method.temperature != 1.0 else _PLAIN_TEMPERATURE
        found: FloatArray = (temperature * scores).softmax(dim=-1).numpy()
        return found

    def decision_function(self, X: Sequence[str]) -> FloatArray:  # noqa: N803
        """The raw similarity (cosine) of each text to each class, [texts, classes]."""
        return self._scores(X, self._ready())

    def predict_top_k(self, X: Sequence[str], k: int = 3) -> list[list[tuple[Any, float]]]:  # noqa: N803
        """The k most similar classes of each text with their similarity, best first."""
        knowledge = self._ready()
        if k < 1:
            raise DataError(f"k={k}: at least 1 is needed")
        scores, labels = self._scores(X, knowledge), self._labels(knowledge)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return [[(labels[c], float(scores[row, c])) for c in columns] for row, columns in enumerate(order)]

    def score(self, X: Sequence[str], y: Iterable[Any], sample_weight: Any = None) -> float:  # noqa: N803
        """Accuracy; a refused text counts as wrong."""
        right = [bool(answer == label) for answer, label in zip(self.predict(X), y, strict=True)]
        return float(np.average(right, weights=sample_weight))

    @torch.no_grad()
    def explain(self, text: str) -> Explanation:
        """The decision for one text, with each example's exact share of the winning score."""
        knowledge = self._ready()
        query = self._vectors([text])
        scores = self._block(query, knowledge)[0]  # [C]
        labels = self._labels(knowledge)
        order = scores.argsort(descending=True, stable=True).tolist()
        nearest, score = labels[order[0]], float(scores[order[0]])
        runner = order[1] if len(order) > 1 else None
        limit = self._limit(nearest)
        entry = knowledge.by_label.get(nearest)
        return Explanation(
            text=text,
            label=self.unknown_label if limit is not None and score < limit else nearest,
            nearest=nearest,
            score=score,
            runner_up=labels[runner] if runner is not None else None,
            runner_up_score=float(scores[runner]) if runner is not None else None,
            threshold=limit,
            examples=self._shares(entry, query) if entry is not None else (),
        )

    # Inside

    def _shares(self, entry: ClassSupport, query: Tensor) -> tuple[Share, ...]:
        method, temperature = self._method, self._method.temperature
        parts = method.contributions(entry.prepared.unsqueeze(0), query)[0, 0] / temperature  # [K]
        shares = []
        for row, text in enumerate(entry.texts):
            rest = [index for index in range(len(entry.texts)) if index != row]
            without = float("nan")
            if rest:
                without = float(method.score_prepared(entry.prepared[rest].unsqueeze(0), query)[0, 0]) / temperature
            shares.append(Share(text, float(parts[row]), without, entry.named and row == len(entry.texts) - 1))
        return tuple(sorted(shares, key=lambda share: -share.share))

    def _load(self) -> None:
        """Load model and encoder, once."""
        if hasattr(self, "_method"):
            return
        if self.backend != "torch":
            raise ConfigError(f"backend {self.backend!r}: only 'torch' is there")
        if self.use_names not in (True, False, "auto"):
            raise ConfigError(f"use_names={self.use_names!r}: True, False or 'auto'")
        base: tuple[str, ...] = ()
        method: FewShotMethod
        if str(self.model) == "default":
            self.encoder_ = Encoder(device=self.device) if self.encoder is None else None
            method = create("nearest", 0, way=0, shot=0)
        else:
            if self.encoder is not None:
                raise ConfigError("a trained model brings its own encoder: leave out encoder, or use model='default'")
            trained = load_model(Path(self.model), device=self.device)
            if trained.method.inputs != "vectors":
                raise ConfigError(f"a {trained.info.method} model cannot classify by itself: use dmin evaluate")
            self.encoder_, method, base = trained.encoder, trained.method, trained.info.base_classes
            if isinstance(method, DMIN):
                method.row_limit = trained.info.shot
        if self.keep_base and not isinstance(method, DMIN):
            raise ConfigError("keep_base needs a trained dmin model: the default knows no base classes")
        self._knowledge = Knowledge()
        self._names_on, self.threshold_ = None, None
        self._base_classes, self._method = base, method

    def _decide_names(self, labels: Iterable[Any]) -> bool:
        return all(is_wordy(label) for label in labels) if self.use_names == "auto" else bool(self.use_names)

    def _threshold_for(self, knowledge: Knowledge) -> float | None:
        return calibrate_threshold(knowledge, self._method) if isinstance(self.reject, str) else None

    def _limit(self, label: Any) -> float | None:
        if self.reject is None:
            return None
        if isinstance(self.reject, Mapping):
            return self.reject.get(label)
        if isinstance(self.reject, str):
            return self.threshold_
        return float(self.reject)

    def _change(self, groups: dict[Any, list[str]], *, names_alone: bool = False) -> Self:
        with _CHANGING:
            self._load()
            if self._names_on is None:
                self._names_on = self._decide_names(groups)
            merged = {}
            for label, texts in groups.items():
                known = self._knowledge.by_label.get(label)
                merged[label] = [*(known.examples if known else ()), *texts]
                if not texts and not names_alone:
                    raise DataError(f"class {label!r} has no example")
            self._knowledge = self._knowledge.replaced(self._encode(merged, self._names_on, self._knowledge))
        return self

    def _encode(
        self, groups: Mapping[Any, Sequence[str]], names_on: bool, before: Knowledge | None = None
    ) -> list[ClassSupport]:
        """Encode each class's examples and name; rows that are known already are kept, not encoded again."""
        if self.keep_base:
            for label in groups:
                if label in self._base_classes:
                    raise DataError(f"class {label!r} is a base class of the model already: choose another name")
        rows: dict[Any, list[str]] = {}
        named: dict[Any, bool] = {}
        for label, texts in groups.items():
            name = (self.descriptions or {}).get(label) or (name_text(label) if names_on else None)
            if not texts and not name:
                raise DataError(f"class {label!r} has no example and no description")
            rows[label], named[label] = [*texts, *([name] if name else [])], bool(name)
        self._warn_of_contradictions(rows)
        known = {
            (label, text): (entry.vectors[row], entry.prepared[row])
            for label in rows
            if before and (entry := before.by_label.get(label))
            for row, text in enumerate(entry.texts)
        }
        fresh = [(label, text) for label, texts in rows.items() for text in texts if (label, text) not in known]
        vectors = self._vectors([text for _, text in fresh])
        with torch.no_grad():
            prepared = self._method.prepare(vectors)
        known |= {key: (vectors[row], prepared[row]) for row, key in enumerate(fresh)}
        return [
            ClassSupport(
                label, tuple(texts), named[label], torch.stack([known[label, t][0] for t in texts]),
                torch.stack([known[label, t][1] for t in texts]),
            )
            for label, texts in rows.items()
        ]  # fmt: skip

    def _warn_of_contradictions(self, rows: Mapping[Any, Sequence[str]]) -> None:
        owner: dict[str, Any] = {}
        for label, texts in rows.items():
            for text in texts:
                other = owner.setdefault(text, label)
                if other != label:
                    warnings.warn(f"the text {text!r} stands under two classes: {other!r} and {label!r}", stacklevel=5)

    def _known(self, label: Hashable) -> ClassSupport:
        self._load()
        if label not in self._knowledge.by_label:
            raise unknown_name("class", str(label), map(str, self._knowledge.labels))
        return self._knowledge.by_label[label]

    def _ready(self) -> Knowledge:
        from sklearn.exceptions import NotFittedError

        knowledge: Knowledge | None = getattr(self, "_knowledge", None)
        if knowledge is None or not (knowledge.classes or self.keep_base):
            raise NotFittedError("the classifier knows no class yet: call fit, or add_class")
        if len(knowledge.classes) < 2 and self.reject is None and not self.keep_base:
            raise DataError("one class alone answers everything: add another, or set reject")
        return knowledge

    def _labels(self, knowledge: Knowledge) -> list[Any]:
        return [*knowledge.labels, *self.base_classes_]

    @torch.no_grad()
    def _scores(self, texts: Sequence[str], knowledge: Knowledge) -> FloatArray:
        query = self._vectors(texts)  # [L, d]
        largest = max((bucket.prepared.numel() for bucket in knowledge.buckets), default=1)
        step = max(1, _BLOCK // largest)
        blocks = [self._block(query[at : at + step], knowledge) for at in range(0, len(query), step)]
        if not blocks:
            return np.empty((0, len(self._labels(knowledge))), np.float32)
        scores: FloatArray = torch.cat(blocks).float().cpu().numpy()
        return scores

    def _block(self, query: Tensor, knowledge: Knowledge) -> Tensor:
        """Raw similarities [L, classes], the columns of each bucket put in their place."""
        columns = len(knowledge.classes)
        scores = query.new_empty(len(query), columns)
        for bucket in knowledge.buckets:
            scores[:, bucket.columns] = self._method.score_prepared(bucket.prepared, query, bucket.mask)
        scores = scores / self._method.temperature
        if not self.keep_base or not isinstance(self._method, DMIN):
            return scores
        return torch.cat([scores, unit(query) @ unit(self._method.base_memory).T], dim=1)

    def _vectors(self, texts: Sequence[str]) -> Tensor:
        if self.encoder_ is not None:
            return torch.from_numpy(self.encoder_.encode(list(texts))).to(self.encoder_.network.device)
        assert self.encoder is not None  # noqa: S101 (one of the two is there)
        check_texts(texts)
        vectors = np.asarray(self.encoder(list(texts)), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise DataError(
                f"the encoder gave an array of shape {vectors.shape} for {len(texts)} texts; [n, d] is needed"
            )
        if not np.isfinite(vectors).all():
            row = int(np.argwhere(~np.isfinite(vectors))[0, 0])
            raise DataError(f"the encoder gave a vector that is not a number for text {row} ({texts[row]!r})")
        width = next((entry.vectors.shape[1] for entry in self._knowledge.classes), vectors.shape[1])
        if len(vectors) and vectors.shape[1] != width:
            raise DataError(f"the encoder gave vectors of width {vectors.shape[1]}; the classes have width {width}")
        return torch.from_numpy(vectors)
