"""`FewShotClassifier`: what an application holds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import Tensor

from dmin.classifier.check import SupportReport, examine
from dmin.classifier.examples import check_label, group_examples
from dmin.classifier.explanation import Answer, Explanation, Share
from dmin.classifier.labels import label_array
from dmin.classifier.learning import learn_classes
from dmin.classifier.refusal import Reject, check_reject, check_reject_labels, column_limits, find_threshold
from dmin.classifier.scoring import PLAIN_SCALE, Model, open_model
from dmin.classifier.state import ClassSupport, Knowledge
from dmin.classifier.storage import load_classifier, push_classifier, save_classifier
from dmin.classifier.vectors import PRECOMPUTED, VectorText
from dmin.data.labels import mostly_words, name_text
from dmin.encoder import Encoder, FloatArray
from dmin.encoder.onnx import check_backend
from dmin.errors import ConfigError, DataError, unknown_name
from dmin.methods import KeepsBaseClasses

# One change at a time; predictions never wait, they read a snapshot.
_CHANGING = threading.RLock()

Examples = Mapping[Any, Sequence[str]] | Sequence[str]


class FewShotClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies texts from a few examples of each class; a scikit-learn estimator without training at fit.

    Args:
        model: "default" (the embedded encoder with the head that comes with the package), "nearest" (the embedded encoder
            with nearest prototypes), the folder of a run or model, or a Hugging Face id.
        encoder: in place of the model's encoder, with nearest prototypes: any callable `texts -> array [n, d]`, the name
            or folder of another encoder, or "precomputed": `X` then holds vectors [n, d].
        use_names: let the class's name take part as one more row: True, False, or "auto" (where labels are words).
        descriptions: a sentence for a label, in place of its name; a class may have nothing but that.
        keep_base: classify over the trained model's base classes too.
        reject: refuse a text whose highest cosine lies below this: a number, a number for each label, or "auto" (what the
            model learned about strangers; see `dmin.classifier.refusal`); None refuses nothing.
        unknown_label: what a refused text gets.
        outside: texts known to belong nowhere, for reject="auto" to learn from.
        backend: what encodes: "torch", "onnx", or "onnx-int8" (about twice as fast on a CPU; see the page on speed).
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
        encoder: Callable[[Sequence[str]], Any] | str | None = None,
        use_names: bool | Literal["auto"] = "auto",
        descriptions: Mapping[Any, str] | None = None,
        keep_base: bool = False,
        reject: Reject = None,
        unknown_label: Any = None,
        outside: Sequence[str] | None = None,
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
        self.outside = outside
        self.backend = backend
        self.device = device

    _model: Model
    _knowledge: Knowledge
    _names_on: bool | None
    _opened_for: tuple[Any, ...]
    _threshold: tuple[Knowledge, float | None]  # of reject="auto", and the knowledge that it belongs to

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_knowledge")

    # What it knows

    @property
    def classes_(self) -> Any:
        """The labels, in the order of the columns of `decision_function`: own classes, then kept base classes."""
        if not hasattr(self, "_knowledge"):
            raise AttributeError("classes_ is there after fit, or add_class")
        return label_array(self._labels(self._knowledge))

    @property
    def base_classes_(self) -> list[str]:
        """The trained model's base classes, where they are kept."""
        return list(self._model.base_classes) if self.keep_base else []

    @property
    def examples_(self) -> dict[Any, tuple[str, ...]]:
        """The examples of each class."""
        return {entry.label: entry.examples for entry in self._knowledge.classes}

    @property
    def n_features_in_(self) -> int:
        """The width of precomputed vectors; texts have no features."""
        if self.encoder != PRECOMPUTED or not getattr(self, "_knowledge", Knowledge()).width:
            raise AttributeError("n_features_in_ is there after fit with encoder='precomputed'")
        return int(self._knowledge.width or 0)

    @property
    def encoder_(self) -> Encoder | None:
        """What turns texts into vectors; None where the vectors come from elsewhere."""
        return self._model.encoder

    @property
    def threshold_(self) -> float | None:
        """What reject="auto" found for the classes as they are now; None where the model's own cut has to do."""
        knowledge = self._ready()
        stored = getattr(self, "_threshold", None)
        if stored is None or stored[0] is not knowledge:
            stored = (knowledge, self._find_threshold(self._model, knowledge))
            self._threshold = stored
        return stored[1]

    # Learning: nothing is trained, each change encodes what is new and replaces the knowledge as a whole

    def fit(self, X: Examples, y: Iterable[Any] | None = None) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn the classes from `{label: [texts]}`, or from texts `X` with labels `y`; what was known is replaced."""
        groups = group_examples(self._read_mapping(X), y)
        for label in self.descriptions or {}:
            groups.setdefault(label, [])
        if not groups:
            raise DataError("no classes were given")
        if len(groups) < 2 and self.reject is None and not self.keep_base:
            raise DataError("one class alone answers everything: give at least two classes, or set reject")
        with _CHANGING:
            self._check_parameters()
            model = self._opened() or self._open()
            names_on = self._decide_names(groups)
            knowledge = self._learn(model, groups, names_on, Knowledge(name_weight=model.name_weight))
            check_reject_labels(self.reject, [*knowledge.labels, *(model.base_classes if self.keep_base else ())])
            threshold = self._find_threshold(model, knowledge)
            self._model, self._knowledge, self._names_on = model, knowledge, names_on
            self._opened_for, self._threshold = self._names_of_model(), (knowledge, threshold)
        return self

    def partial_fit(self, X: Examples, y: Iterable[Any] | None = None, classes: Any = None) -> Self:  # noqa: N803
        """Add examples; labels not seen before become classes. `classes` is scikit-learn's and not needed."""
        del classes
        return self._change(group_examples(self._read_mapping(X), y))

    def add_class(self, label: Hashable, texts: Sequence[str] = ()) -> Self:
        """Add a class; the others are not touched. Without texts it needs a description."""
        check_label(label)
        with _CHANGING:
            if label in self._current()[1].by_label:
                raise DataError(f"class {label!r} is there already: use add_examples")
            return self._change(group_examples(self._read_mapping({label: texts}), None))

    def add_examples(self, label: Hashable, texts: Sequence[str]) -> Self:
        """Add examples to a class that is there."""
        with _CHANGING:
            self._known(label)
            return self._change(group_examples(self._read_mapping({label: texts}), None), needs_examples=True)

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
            if self.encoder == PRECOMPUTED and not isinstance(text, str):
                text = VectorText.of(text)
            if text not in entry.examples:
                raise unknown_name(f"example of {label!r}", text, entry.examples)
            row = entry.examples.index(text)
            kept = [index for index in range(len(entry.texts)) if index != row]
            if not kept:
                raise DataError(f"{text!r} is the last example of {label!r}: use remove_class")
            texts = tuple(entry.texts[index] for index in kept)
            changed = replace(entry, texts=texts, vectors=entry.vectors[kept], prepared=entry.prepared[kept])
            self._knowledge = self._knowledge.replaced([changed])
        return self

    # Keeping

    def save(self, path: str | Path) -> None:
        """Write classes, examples, vectors and, if there is one, the trained model into a folder."""
        self._ready()
        save_classifier(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, encoder: Any = None, device: str | None = None) -> FewShotClassifier:
        """Read a folder that `save` wrote, or a hub id that `push_to_hub` filled.

        A classifier with an encoder of its own needs that encoder again.
        """
        return load_classifier(cls, path, encoder, device)

    def push_to_hub(self, identifier: str, *, private: bool = False) -> str:
        """Send the classifier, with a card, to the Hugging Face hub as `owner/name`; return its address."""
        self._ready()
        return push_classifier(self, identifier, private=private)

    # Answers

    def predict(self, X: Sequence[str]) -> Any:  # noqa: N803
        """The most likely class of each text, or `unknown_label` where it is refused."""
        return label_array([found.label for found in self.answer(X)])

    def answer(self, X: Sequence[str], k: int = 1) -> list[Answer]:  # noqa: N803
        """All there is to say about each text, encoded once: label, cosine, probability, the k most similar classes."""
        knowledge = self._ready()
        if k < 1:
            raise DataError(f"k={k}: at least 1 is needed")
        scores, labels, limits = self._scores(X, knowledge), self._labels(knowledge), self._limits(knowledge)
        probabilities = self._probabilities(scores, knowledge)
        answers = []
        for row, columns in enumerate(np.argsort(-scores, axis=1, kind="stable")[:, :k]):
            best = columns[0]
            top = tuple((labels[column], float(scores[row, column])) for column in columns)
            refused = bool(scores[row, best] < limits[best])
            label = self.unknown_label if refused else labels[best]
            answers.append(Answer(label, top[0][1], float(probabilities[row, best]), refused, top))
        return answers

    def predict_proba(self, X: Sequence[str]) -> FloatArray:  # noqa: N803
        """Probabilities of the classes, [texts, classes]; what is refused still has them."""
        knowledge = self._ready()
        return self._probabilities(self._scores(X, knowledge), knowledge)

    def decision_function(self, X: Sequence[str]) -> FloatArray:  # noqa: N803
        """The raw similarity (cosine) of each text to each class, [texts, classes]."""
        return self._scores(X, self._ready())

    def predict_top_k(self, X: Sequence[str], k: int = 3) -> list[list[tuple[Any, float]]]:  # noqa: N803
        """The k most similar classes of each text with their similarity, best first."""
        return [list(found.top) for found in self.answer(X, k)]

    def score(self, X: Sequence[str], y: Iterable[Any], sample_weight: Any = None) -> float:  # noqa: N803
        """Accuracy; a refused text counts as wrong, whatever its label."""
        right = [
            not found.refused and bool(found.label == label) for found, label in zip(self.answer(X), y, strict=True)
        ]
        return float(np.average(right, weights=sample_weight))

    def explain(self, text: str) -> Explanation:
        """The decision for one text, with each example's exact share of the winning score."""
        knowledge, model = self._ready(), self._model
        query = model.vectors(self._read([text]), knowledge.width)
        scores = model.cosines(query, knowledge, keep_base=self.keep_base)[0].cpu().numpy()  # [C]
        labels = self._labels(knowledge)
        order = np.argsort(-scores, kind="stable")
        best, runner = int(order[0]), int(order[1]) if len(order) > 1 else None
        limit = float(self._limits(knowledge)[best])
        entry = knowledge.by_label.get(labels[best])
        return Explanation(
            text=str(text),
            label=self.unknown_label if scores[best] < limit else labels[best],
            nearest=labels[best],
            score=float(scores[best]),
            runner_up=labels[runner] if runner is not None else None,
            runner_up_score=float(scores[runner]) if runner is not None else None,
            threshold=limit if limit > -np.inf else None,
            examples=self._shares(entry, query) if entry is not None else (),
            memory=model.memory_of(entry) if entry is not None else (),
        )

    def check(self) -> SupportReport:
        """Look through the examples: repeated, contradictory, likely mislabelled; classes that overlap or are thin."""
        return examine(self._ready(), self._model)

    # Inside

    def _probabilities(self, scores: FloatArray, knowledge: Knowledge) -> FloatArray:
        calibration = self._model.calibration
        scale = calibration.scale(scores.shape[1], knowledge.mean_size) if calibration else PLAIN_SCALE
        found: FloatArray = torch.from_numpy(scores).double().mul(scale).softmax(dim=-1).numpy()
        return found

    def _shares(self, entry: ClassSupport, query: Tensor) -> tuple[Share, ...]:
        parts, without = self._model.shares(entry, query, self._knowledge.name_weight)
        shares = [
            Share(text, float(parts[row]), without[row], entry.named and row == len(entry.texts) - 1)
            for row, text in enumerate(entry.texts)
        ]
        return tuple(sorted(shares, key=lambda share: -share.share))

    def _opened(self) -> Model | None:
        """The model that is loaded, if the parameters that name it are still the same."""
        return self._model if getattr(self, "_opened_for", None) == self._names_of_model() else None

    def _open(self) -> Model:
        """Load model and encoder."""
        model = open_model(self.model, self.encoder, self.device, self.backend)
        if self.keep_base and not model.base_classes:
            raise ConfigError("keep_base needs a trained model with a memory: this one knows no base classes")
        keeps_base = isinstance(model.method, KeepsBaseClasses) and model.method.traits.gives_cosines
        if self.keep_base and not keeps_base:
            raise ConfigError(f"keep_base: a {model.method.name} model keeps no base classes")
        return model

    def _check_parameters(self) -> None:
        check_backend(self.backend)
        if self.use_names not in (True, False, "auto"):
            raise ConfigError(f"use_names={self.use_names!r}: True, False or 'auto'")
        check_reject(self.reject)

    def _names_of_model(self) -> tuple[Any, ...]:
        return (str(self.model), self.encoder, self.backend, self.device, self.keep_base)

    def _current(self) -> tuple[Model, Knowledge]:
        """Model and knowledge as they are; of an object that was not fitted, those that it would begin with."""
        if hasattr(self, "_knowledge"):
            return self._model, self._knowledge
        self._check_parameters()
        model = self._open()
        return model, Knowledge(name_weight=model.name_weight)

    def _read(self, X: Sequence[Any]) -> Sequence[str]:  # noqa: N803
        """Texts as they are; vectors, where they are given in place of texts, under a name."""
        return VectorText.rows(X) if self.encoder == PRECOMPUTED else X

    def _read_mapping(self, X: Any) -> Any:  # noqa: N803
        if self.encoder != PRECOMPUTED:
            return X
        if isinstance(X, Mapping) and not hasattr(X, "shape"):  # some sparse matrices are mappings too
            return {label: self._read(rows) for label, rows in X.items()}
        return self._read(X)

    def _decide_names(self, labels: Iterable[Any]) -> bool:
        if self.encoder == PRECOMPUTED:
            if self.use_names is True:
                raise ConfigError("use_names=True needs an encoder: names are texts, and only vectors are given")
            return False
        return mostly_words(labels) if self.use_names == "auto" else bool(self.use_names)

    def _find_threshold(self, model: Model, knowledge: Knowledge) -> float | None:
        """The threshold of reject="auto"; None where the model's own cut has to do."""
        if not isinstance(self.reject, str):
            return None
        strangers = None
        if self.outside is not None:
            strangers = model.vectors(self._read(self.outside), knowledge.width)
        return find_threshold(knowledge, model, strangers)

    def _limits(self, knowledge: Knowledge) -> Any:
        """For each column, the cosine below which a text is refused, [C]; minus infinity where nothing is."""
        sizes = [len(entry.examples) for entry in knowledge.classes] + [1] * len(self.base_classes_)
        threshold = self.threshold_ if isinstance(self.reject, str) else None
        return column_limits(self.reject, threshold, self._model.calibration, self._labels(knowledge), sizes)

    def _change(self, groups: dict[Any, list[str]], *, needs_examples: bool = False) -> Self:
        with _CHANGING:
            model, before = self._current()
            names_on = getattr(self, "_names_on", None)
            names_on = self._decide_names(groups) if names_on is None else names_on
            merged = {}
            for label, texts in groups.items():
                known = before.by_label.get(label)
                merged[label] = [*(known.examples if known else ()), *texts]
                if not texts and (needs_examples or known):
                    raise DataError(f"class {label!r} has no example")
            knowledge = self._learn(model, merged, names_on, before)
            if not hasattr(self, "_knowledge"):
                self._model, self._opened_for = model, self._names_of_model()
            self._knowledge, self._names_on = knowledge, names_on
        return self

    def _learn(self, model: Model, groups: Mapping[Any, Sequence[str]], names_on: bool, before: Knowledge) -> Knowledge:
        """What is known, with these classes added or changed."""
        described = self.descriptions or {}
        names = {}
        for label, texts in groups.items():
            if self.keep_base and label in model.base_classes:
                raise DataError(f"class {label!r} is a base class of the model already: choose another name")
            if self.reject is not None and label == self.unknown_label:
                raise DataError(f"class {label!r} is the unknown_label of refused texts too: rename one of them")
            if not texts and not described.get(label):
                raise DataError(f"class {label!r} has no example and no description")
            names[label] = described.get(label) or (name_text(label) if names_on else None)
        return before.replaced(learn_classes(model, groups, names, before))

    def _known(self, label: Hashable) -> ClassSupport:
        check_label(label)
        knowledge = getattr(self, "_knowledge", Knowledge())
        if label not in knowledge.by_label:
            raise unknown_name("class", str(label), map(str, knowledge.labels))
        return knowledge.by_label[label]

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

    def _scores(self, X: Sequence[str], knowledge: Knowledge) -> FloatArray:  # noqa: N803
        query = self._model.vectors(self._read(X), knowledge.width)  # [L, d]
        scores: FloatArray = self._model.cosines(query, knowledge, keep_base=self.keep_base).cpu().numpy()
        return scores
