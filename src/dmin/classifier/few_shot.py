"""`FewShotClassifier`: the scikit-learn compatible public API."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dmin.classifier.check import SupportReport, examine
from dmin.classifier.estimator import Estimator, not_fitted
from dmin.classifier.explanation import Answer, Explanation, answer_texts, explain_text
from dmin.classifier.inputs import VectorText, check_label, label_array, read_examples
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.learning import adapt_state, extend_state, fit_state, forget_class, forget_example, refit_state
from dmin.classifier.locks import lock_of
from dmin.classifier.refusal import Reject
from dmin.classifier.settings import Settings
from dmin.classifier.state import State
from dmin.classifier.storage import load_state, push_state, save_state
from dmin.encoder import FloatArray, TextEncoder
from dmin.errors import DataError, unknown_name
from dmin.model import answers_own_classes

Examples = Mapping[Any, Sequence[str]] | Sequence[str]


class FewShotClassifier(Estimator):
    """Classifies texts from a few examples of each class; a scikit-learn estimator without training at fit.

    Threads may predict while another one changes the classes: each call answers from one snapshot. Changes of one
    classifier wait for each other. `reject`, `unknown_label` and `outside` may be set after a fit and take effect at the
    next call, `descriptions` at the next change, all other parameters at the next fit.

    Args:
        model: "default" (the adaptive head on the default encoder), "nearest" (nearest prototypes on "minilm"),
            "dmin-plus" (the trained head that comes with the package, on "minilm"), the folder of a run or model, or a
            Hugging Face id.
        encoder: in place of the default encoder: the name of another one, with the adaptive head; or, with nearest
            prototypes, a folder, a Hugging Face id, any callable `texts -> array [n, d]`, or "precomputed": `X` then holds
            vectors [n, d]. model="adaptive" uses the adaptive head on these too. "cascade": the fast encoder "static"
            answers the texts that it is sure of, the default one the others.
        use_names: let the class's name take part as one more row: True, False, or "auto" (where labels are words).
        descriptions: a sentence for a label, in place of its name; a class may have nothing but that.
        keep_base: classify over the trained model's base classes too. A model that was trained with all_classes always
            does, and answers without a fit.
        reject: refuse a text whose highest cosine lies below this: a number from -1 to 1, one for each label, or "auto"
            (learned from the examples and from out-of-scope texts; see `dmin.classifier.refusal`); None refuses nothing.
        unknown_label: the label of a refused text; examples that `fit` gets under it are out-of-scope texts, of no class.
            None: "unknown" among labels that are strings, -1 among whole numbers.
        outside: out-of-scope texts for reject="auto" to learn from.
        backend: what encodes: "auto", "torch", "onnx", or "onnx-int8" (twice as fast on a CPU; see the page on speed).
            With "torch" scores are computed by torch too, in place of numpy; the answers are the same.
        device: where to compute; without one, a GPU where there is one.
        search: "exact", or "index": with many thousands of classes, an approximate index finds the classes that `predict`
            and `answer` then score exactly (default head; needs the extra `index`). All else stays exact.

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
        backend: str = "auto",
        device: str | None = None,
        search: str = "exact",
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
        self.search = search

    _state: State  # the only thing that fit, add_class and the like change

    def __sklearn_is_fitted__(self) -> bool:
        if hasattr(self, "_state"):
            return bool(self._state.labels)
        return Path(self.model).is_dir() and self._needs_no_fit()  # (nothing is fetched to show an object)

    # Fitted attributes

    @property
    def state_(self) -> State:
        """One frozen snapshot of everything that answers are made from."""
        if not hasattr(self, "_state"):
            if not self._needs_no_fit():
                raise not_fitted("the classifier knows no class yet: call fit, or add_class")
            self.open()
        return self._state.refusing(self.reject, self.unknown_label, self.outside)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the columns of `decision_function`: own classes, then kept base classes."""
        return label_array(self.state_.labels)

    @property
    def base_classes_(self) -> list[str]:
        """The trained model's base classes, where they are kept."""
        return list(self.state_.base_classes)

    @property
    def examples_(self) -> dict[Any, tuple[str, ...]]:
        """The examples of each class."""
        return {entry.label: entry.examples for entry in self.state_.knowledge.classes}

    @property
    def n_features_in_(self) -> int:
        """The width of precomputed vectors; texts have no features."""
        state = self.state_
        if not state.settings.precomputed or state.knowledge.width is None:
            raise AttributeError("n_features_in_ is there after fit with encoder='precomputed'")
        return state.knowledge.width

    @property
    def encoder_(self) -> TextEncoder | None:
        """The encoder; None where the vectors come from elsewhere."""
        return self.state_.model.encoder

    @property
    def threshold_(self) -> float | None:
        """The threshold of reject="auto" for the classes as they are now; None where the model's own cut is used."""
        return self._ready().threshold

    # Changes: each encodes what is new and replaces the state as a whole

    def open(self) -> Self:
        """Load model and encoder ahead of the first fit, for example before a service takes requests."""
        with lock_of(self):
            self._state = self._current()
        return self

    def fit(
        self,
        X: Examples,  # noqa: N803 (scikit-learn's name)
        y: Iterable[Any] | None = None,
        *,
        unlabelled: Sequence[str] | None = None,
    ) -> Self:
        """Learn the classes from `{label: [texts]}`, or from texts `X` with labels `y`; what was known is replaced.

        Args:
            X: the examples.
            y: their labels, where `X` is no mapping.
            unlabelled: texts of unknown class to learn from as well; see `adapt`.
        """
        settings = self._settings()
        groups = read_examples(X, y, settings.precomputed)
        with lock_of(self):
            state = fit_state(settings, groups, getattr(self, "_state", None))
            self._state = state if unlabelled is None else adapt_state(state, unlabelled)
        return self

    def adapt(self, X: Sequence[str], *, vectors: Any = None) -> Self:  # noqa: N803
        """Learn from texts whose classes are not known, beside the examples; the head is fitted anew to both.

        Texts like those that will be asked for help most. Of more than 20,000 a sample is used. New texts gain as well, the
        cosines that refusal goes by stay as they are, and `refit` takes it back. `vectors` [m, d] are the texts' own by
        `encoder_`, where they are known: then nothing is encoded.
        """
        with lock_of(self):
            self._state = adapt_state(self._ready(), X, vectors)
        return self

    def partial_fit(self, X: Examples, y: Iterable[Any] | None = None, classes: Any = None) -> Self:  # noqa: N803
        """Add examples; labels not seen before become classes. `classes` is scikit-learn's and not needed."""
        del classes
        groups = read_examples(X, y, self._precomputed())
        with lock_of(self):
            self._state = extend_state(self._current(), groups)
        return self

    def add_class(self, label: Hashable, texts: Sequence[str] = ()) -> Self:
        """Add a class; the others are not touched. Without texts it needs a description."""
        check_label(label)
        if self.unknown_label is not None and label == self.unknown_label:
            raise DataError(
                f"class {label!r} is the unknown_label of refused texts: give such texts as outside, or to fit"
            )
        groups = read_examples({label: texts}, None, self._precomputed())
        with lock_of(self):
            state = self._current()
            if label in state.knowledge.by_label:
                raise DataError(f"class {label!r} is there already: use add_examples")
            self._state = extend_state(state, groups)
        return self

    def add_examples(self, label: Hashable, texts: Sequence[str]) -> Self:
        """Add examples to a class that is there."""
        with lock_of(self):
            self._class(label)
            groups = read_examples({label: texts}, None, self._precomputed())
            self._state = extend_state(self._current(), groups, needs_examples=True)
        return self

    def remove_class(self, label: Hashable) -> Self:
        """Remove a class."""
        with lock_of(self):
            self._class(label)
            self._state = forget_class(self._current(), label)
        return self

    def remove_example(self, label: Hashable, text: str) -> Self:
        """Remove one example of a class."""
        with lock_of(self):
            entry, state = self._class(label), self._current()
            if state.settings.precomputed and not isinstance(text, str):
                text = VectorText.of(text)
            if text not in entry.examples:
                raise unknown_name(f"example of {label!r}", text, entry.examples)
            if len(entry.texts) == 1:
                raise DataError(f"{text!r} is the last example of {label!r}: use remove_class")
            self._state = forget_example(state, label, entry.examples.index(text))
        return self

    def refit(self) -> Self:
        """Fit the head anew to all examples, as a fresh `fit` on them would; no text is encoded again.

        Changes after a fit leave the scores of all other classes as they are. After many of them a refit is more accurate.
        """
        with lock_of(self):
            self._state = refit_state(self._current())
        return self

    # Storage

    def save(self, path: str | Path, *, with_encoder: bool = False) -> None:
        """Write classes, examples, vectors and, if there is one, the trained model into a folder.

        Args:
            path: the folder.
            with_encoder: also write the encoder, so that the folder loads where its package is not installed.
        """
        save_state(self._ready().with_outside(), Path(path), with_encoder=with_encoder)

    @classmethod
    def load(
        cls, path: str | Path, *, encoder: Any = None, device: str | None = None, backend: str | None = None
    ) -> Self:
        """Read a folder that `save` wrote, or a hub id that `push_to_hub` filled.

        A classifier with an encoder of its own needs that encoder again.

        Args:
            path: the folder, or the hub id.
            encoder: in place of the one that the folder names or carries.
            device: where to compute.
            backend: what computes, if not what computed when it was saved.
        """
        state = load_state(path, encoder, device, backend)
        classifier = cls(**state.settings.as_dict())
        classifier._state = state
        return classifier

    def push_to_hub(self, identifier: str, *, private: bool = False) -> str:
        """Send the classifier, with a card, to the Hugging Face hub as `owner/name`; return its address."""
        return push_state(self._ready().with_outside(), identifier, private=private)

    # Answers

    def predict(self, X: Sequence[str]) -> NDArray[Any]:  # noqa: N803
        """The most likely class of each text, or `unknown_label` where it is refused."""
        return label_array([found.label for found in self.answer(X)])

    def answer(self, X: Sequence[str], k: int = 1) -> list[Answer]:  # noqa: N803
        """Label, cosine, deciding score, probability and the k most likely classes of each text, encoded once."""
        return answer_texts(self._ready(), X, k)

    def predict_proba(self, X: Sequence[str]) -> NDArray[np.float64]:  # noqa: N803
        """Probabilities of the classes, [texts, classes]; a refused text has them too."""
        state = self._ready()
        return state.probabilities(state.scored(X)[1])

    def decision_function(self, X: Sequence[str]) -> FloatArray:  # noqa: N803
        """The deciding score of each text for each class, [texts, classes]; its largest is what `predict` answers.

        With the default model it is a logit plus a weighted cosine; with "nearest" and trained models, the raw cosine.
        """
        return self._ready().scored(X)[1]

    def predict_top_k(self, X: Sequence[str], k: int = 3) -> list[list[tuple[Any, float]]]:  # noqa: N803
        """The k most likely classes of each text with their deciding scores, best first."""
        return [list(found.top) for found in self.answer(X, k)]

    def score(self, X: Sequence[str], y: Iterable[Any], sample_weight: Any = None) -> float:  # noqa: N803
        """Accuracy of `predict`: to refuse a text is right if its label is `unknown_label`, else wrong."""
        right = [bool(found.label == label) for found, label in zip(self.answer(X), y, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def explain(self, text: str) -> Explanation:
        """The decision for one text, with each example's exact share of the winning score."""
        return explain_text(self._ready(), text)

    def check(self) -> SupportReport:
        """Find examples that are repeated, contradictory or likely mislabelled, and classes that overlap or are thin."""
        state = self._ready()
        return examine(state.knowledge, state.model)

    # Inside

    def _settings(self) -> Settings:
        settings = Settings(**{name: getattr(self, name) for name in Settings.__dataclass_fields__})
        return replace(settings, keep_base=True) if self._needs_no_fit() else settings

    def _needs_no_fit(self) -> bool:
        """True for a model that answers its own classes."""
        return self.encoder is None and answers_own_classes(self.model)

    def _precomputed(self) -> bool:
        """Vectors are given in place of texts: as at the fit, if there was one."""
        settings = self._state.settings if hasattr(self, "_state") else self._settings()
        return settings.precomputed

    def _current(self) -> State:
        """The state that a change begins with; of an object that was not fitted, one without classes."""
        if not hasattr(self, "_state"):
            return State.open(self._settings())
        state = self.state_
        return replace(state, settings=replace(state.settings, descriptions=self.descriptions))

    def _class(self, label: Hashable) -> ClassSupport:
        check_label(label)
        knowledge = self._state.knowledge if hasattr(self, "_state") else Knowledge()
        if label not in knowledge.by_label:
            raise unknown_name("class", str(label), map(str, knowledge.labels))
        return knowledge.by_label[label]

    def _ready(self) -> State:
        return self.state_.check_ready()
