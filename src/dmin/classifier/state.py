"""The state of a fitted classifier: one frozen object that is replaced as a whole, never changed.

Every call takes the state once and answers from it alone, so threads predict without a lock while another one learns, and
what is saved fits together. Storage, card, assessment and copies read it through `FewShotClassifier.state_`.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dmin.adaptive.index import ClassIndex, import_faiss
from dmin.adaptive.namespace import array_namespace
from dmin.classifier.arrays import Array, all_finite, as_numpy
from dmin.classifier.cascade import FirstStage
from dmin.classifier.estimator import not_fitted
from dmin.classifier.fitting import INDEX, fit_model, packed_model, unpack
from dmin.classifier.inputs import read_queries
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.refusal import Reject, check_reject, column_limits, find_threshold, free_label
from dmin.classifier.scorers import head_digest
from dmin.classifier.scoring import PLAIN_SCALE, Model, open_model
from dmin.classifier.settings import Settings
from dmin.encoder import FloatArray, cannot_read
from dmin.encoder.text_encoder import check_texts
from dmin.errors import ConfigError, DataError, ModelError


@dataclass(frozen=True, eq=False)
class State:
    """Everything that a fitted classifier answers from.

    Args:
        settings: the parameters that are in force.
        model: encoder and method.
        knowledge: the classes with their examples and vectors.
        names_on: do the names of classes take part? None while there is no class.
        unknown: examples that were given under `unknown_label`: out-of-scope texts, of no class.
        settled: has the head been fitted to enough classes that later changes leave the others' scores alone?
        first: the first stage of encoder="cascade", which has the same classes.
    """

    settings: Settings
    model: Model
    knowledge: Knowledge
    names_on: bool | None = None
    unknown: tuple[str, ...] = ()
    settled: bool = False
    first: FirstStage | None = None

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Load the model; no class is known yet."""
        settings.check()
        encoder = None if settings.cascade else settings.encoder
        model = open_model(settings.model, encoder, settings.device, settings.backend)
        if settings.keep_base:
            if not model.base_classes:
                raise ConfigError(
                    "keep_base needs a trained model with a memory, like model='dmin-plus': this one knows no base classes"
                )
            if not model.scorer.keeps_base:
                raise ConfigError(f"keep_base: a {model.method.name} model keeps no base classes")
        if settings.search == "index":
            if model.setup is None:
                raise ConfigError(
                    f"search='index' is for the default head: a {model.method.name} model scores all classes"
                )
            import_faiss()
            model = replace(model, indexed=True)
        first = FirstStage.open() if settings.cascade else None
        return cls(settings, model, Knowledge(name_weight=model.name_weight), first=first)

    # Classes

    @property
    def base_classes(self) -> tuple[str, ...]:
        """The trained model's base classes, where they are kept."""
        return self.model.base_classes if self.settings.keep_base else ()

    @property
    def labels(self) -> list[Any]:
        """The labels in the order of the columns: own classes, then kept base classes."""
        return [*self.knowledge.labels, *self.base_classes]

    @property
    def class_count(self) -> int:
        """How many columns there are: own classes and kept base classes."""
        return len(self.knowledge.classes) + len(self.base_classes)

    def check_ready(self) -> Self:
        """Raise an error that says what is missing before a text can be answered."""
        count = self.class_count
        if not count:
            raise not_fitted("the classifier knows no class yet: call fit, or add_class")
        if count < 2 and self.settings.reject is None and not self.settings.keep_base:
            raise DataError("one class alone answers everything: add another, or set reject")
        return self

    # Scores

    def vectors(self, X: Sequence[Any]) -> Array:  # noqa: N803 (scikit-learn's name)
        """Vectors [L, d] of texts, or of the vectors that stand in their place."""
        return self.model.vectors(read_queries(X, self.settings.precomputed), self.knowledge.width)

    def cosines(self, query: Array) -> FloatArray:
        """The similarity of vectors [L, d] to each class, [L, C]."""
        return as_numpy(self.model.cosines(query, self.knowledge, keep_base=self.settings.keep_base))

    def scores(self, query: Array, cosines: FloatArray | None = None) -> FloatArray:
        """The deciding score of each class, [L, C]; `cosines`, where they are known already."""
        known = None if cosines is None else self.model.place(cosines)
        return as_numpy(self.model.scores(query, self.knowledge, known, keep_base=self.settings.keep_base))

    def scored(self, X: Sequence[Any]) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:  # noqa: N803
        """(cosines [L, C], deciding scores [L, C], which texts the first stage of a cascade answers [L])."""
        if self.first is None:
            query = self.vectors(X)
            cosines = self.cosines(query)
            return cosines, self.scores(query, cosines), np.zeros(len(query), dtype=bool)
        check_texts(X)
        texts = list(X)
        cosines, scores = self.first.scored(texts)
        sure = self.first.is_sure(cosines, scores, self.limits)
        rest = np.flatnonzero(~sure)
        if len(rest):
            query = self.vectors([texts[place] for place in rest])
            cosines[rest] = own = self.cosines(query)
            scores[rest] = self.scores(query, own)
        return cosines, scores, sure

    @property
    def probability_scale(self) -> float:
        """What deciding scores are multiplied by before the softmax."""
        calibration, head = self.model.calibration, self.model.head
        if head is not None and head.dual is None and self.model.setup is not None:
            calibration = self.model.setup.cosine_calibration
        return calibration.scale(self.class_count, self.knowledge.mean_size) if calibration else PLAIN_SCALE

    def probabilities(self, scores: FloatArray) -> NDArray[np.float64]:
        """Probabilities of the classes, [L, C], from deciding scores."""
        scaled = scores.astype(np.float64) * self.probability_scale  # [L, C]
        exponent = np.exp(scaled - scaled.max(axis=-1, keepdims=True, initial=-np.inf))
        found: NDArray[np.float64] = exponent / exponent.sum(axis=-1, keepdims=True)
        return found

    # Refusal

    @cached_property
    def threshold(self) -> float | None:
        """The threshold that reject="auto" finds for these classes; None where the model's own cut is used."""
        if not isinstance(self.settings.reject, str):
            return None
        if self.model.own_classes and self.model.calibration and self.settings.outside is None and not self.unknown:
            return None  # the few examples of added classes say little about the texts of the model's own
        given = [] if self.settings.outside is None else [self.vectors(self.settings.outside)]
        if self.unknown:
            given.append(self.model.vectors(self.unknown, self.knowledge.width))
        outside = array_namespace(given[0]).concat(given, axis=0) if given else None  # [n, d]
        return find_threshold(self.knowledge, self.model, outside)

    @property
    def limits(self) -> NDArray[np.float64]:
        """For each column the cosine below which a text is refused, [C]; minus infinity where nothing is."""
        sizes = [len(entry.examples) for entry in self.knowledge.classes]
        sizes += [max(1, round(self.knowledge.mean_size))] * len(self.base_classes)  # as their offset is
        return column_limits(self.settings.reject, self.threshold, self.model.calibration, self.labels, sizes)

    def unreadable(self, X: Sequence[Any]) -> NDArray[np.bool_]:  # noqa: N803
        """Which texts the encoder cannot read, for example in another script, [L]; warns of them once per encoder."""
        encoder = self.model.encoder
        if encoder is None or self.settings.precomputed:
            return np.zeros(len(X) if hasattr(X, "__len__") else len(np.asarray(X)), dtype=bool)
        return cannot_read(encoder, list(X))

    @property
    def refused_label(self) -> Any:
        """The label of a refused text: `unknown_label`, or where that is None one of the classes' own type.

        Scikit-learn's scorers sort labels and true values together, so None beside strings or numbers would fail there.
        """
        given = self.settings.unknown_label
        return given if given is not None else free_label(self.labels)

    def with_first(self, stored: tuple[dict[str, Any], dict[str, Any]] | None = None) -> State:
        """With the first stage of a cascade as it was stored, or fitted to the classes; as it is without a cascade."""
        if self.first is None:
            return self
        found = self.first.unpacked(*stored) if stored is not None else None
        if found is not None and found.head is not None and self.model.head is not None:
            if found.head.sizes != self.model.head.sizes:
                raise ModelError("its first stage belongs to other classes")
            return replace(self, first=found)
        return replace(self, first=self.first.fitted(self.model, self.knowledge, self.probability_scale))

    def with_outside(self) -> State:
        """The same state with the examples of `unknown_label` among the out-of-scope texts, as it is saved."""
        if not self.unknown:
            return self
        before = [] if self.settings.outside is None else list(self.settings.outside)
        added = [getattr(text, "vector", text) for text in self.unknown]
        return replace(self, settings=replace(self.settings, outside=[*before, *added]), unknown=())

    def refusing(self, reject: Reject, unknown_label: Any, outside: Sequence[str] | None) -> State:
        """This state with other parameters of refusal, the only ones that take effect without a fit.

        The last such state is kept, because its threshold may have cost a pass over all examples.
        """
        wanted = (reject, unknown_label, outside)
        for found in (self, self.__dict__.get("_refusing")):
            if found is not None and all(one is two for one, two in zip(found._refusal(), wanted, strict=True)):
                return found
        check_reject(reject)
        settings = replace(self.settings, reject=reject, unknown_label=unknown_label, outside=outside)
        found = replace(self, settings=settings)
        self.__dict__["_refusing"] = found  # like a cached property: two threads that come first make equal ones
        return found

    def _refusal(self) -> tuple[Any, ...]:
        return (self.settings.reject, self.settings.unknown_label, self.settings.outside)

    # Copies

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: nothing in it changes, so copies of a classifier share the encoder and the vectors."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle classes, vectors and fitted head by value, without what scoring keeps of them; the rest by name."""
        classes = [
            (entry.label, entry.texts, entry.named, as_numpy(entry.vectors), as_numpy(entry.prepared))
            for entry in self.knowledge.classes
        ]
        fitted = None if self.model.head is None else (*packed_model(self.model), self.settled)
        first = None if self.first is None else self.first.packed()
        rest = (self.knowledge.name_weight, self.names_on, made_by(self.model), fitted, self.unknown, first)
        return _unpickle, (self.settings, classes, *rest)


def made_by(model: Model) -> dict[str, str | None]:
    """Digests of the encoder and the head that made a state's vectors."""
    head = head_digest(model.method) if model.setup is None else model.setup.digest
    return {"encoder": model.encoder.fingerprint if model.encoder else None, "head": head}


def restore(
    settings: Settings,
    classes: Sequence[ClassSupport],
    name_weight: float,
    names_on: bool | None,
    digests: Mapping[str, str | None],
    fitted: tuple[Mapping[str, Any], Mapping[str, Any], bool] | None = None,
    first: tuple[dict[str, Any], dict[str, Any]] | None = None,
) -> State:
    """A state that was saved or pickled: the model is opened again, the vectors are kept.

    Vectors of another encoder are refused. Where the package came with another head then, it prepares the same vectors.

    Args:
        settings: the parameters.
        classes: with their vectors.
        name_weight: how many examples a name is worth.
        names_on: do names take part?
        digests: of the encoder and the head that made the vectors.
        fitted: arrays and values of a fitted adaptive head, and whether it is settled.
        first: arrays and values of the first stage of a cascade.

    Raises:
        ModelError: when the encoder is not the one that made the vectors, or they are not finite.
    """
    for entry in classes:
        if not (all_finite(entry.vectors) and all_finite(entry.prepared)):
            raise ModelError(f"the vectors of class {entry.label!r} hold NaN or infinity: they are damaged")
    state = State.open(settings)
    model, now = state.model, made_by(state.model)
    if now["encoder"] != digests["encoder"]:
        raise ModelError("its vectors were made by another encoder than the one that is installed")
    classes = [
        replace(entry, vectors=model.place(entry.vectors), prepared=model.place(entry.prepared)) for entry in classes
    ]
    if model.setup is not None:
        found = _restore_fitted(
            replace(state, names_on=names_on), classes, fitted if now["head"] == digests["head"] else None
        )
        return found.with_first(first)
    if now["head"] != digests["head"]:
        classes = [replace(entry, prepared=model.scorer.prepare(entry.vectors)) for entry in classes]
        name_weight = model.name_weight
    return replace(state, knowledge=Knowledge(tuple(classes), name_weight), names_on=names_on)


def _restore_fitted(
    state: State,
    classes: Sequence[ClassSupport],
    fitted: tuple[Mapping[str, Any], Mapping[str, Any], bool] | None,
) -> State:
    """A state with an adaptive head: as it was, or fitted anew where this version has other constants."""
    knowledge, setup = Knowledge(tuple(classes), state.knowledge.name_weight), state.model.setup
    if fitted is None or setup is None:
        if classes:
            warnings.warn(
                "it was saved with other constants of the head, which is fitted to its examples anew", stacklevel=6
            )
        return replace(state, model=fit_model(state.model, knowledge), knowledge=knowledge, settled=True)
    arrays, values, settled = fitted
    head = unpack(setup, arrays, values, state.model.place)
    if len(classes) > setup.recipe.most_classes:
        head = head.with_room()
    index = None
    if state.model.indexed:
        kept = {name.removeprefix(INDEX): array for name, array in arrays.items() if name.startswith(INDEX)}
        index = ClassIndex.unpacked(kept, head) if kept else ClassIndex.build(head)
    if head.sizes != tuple(len(entry.texts) for entry in classes):
        raise ModelError("its fitted head belongs to other classes")
    return replace(state, model=replace(state.model, head=head, index=index), knowledge=knowledge, settled=settled)


def _unpickle(
    settings: Settings,
    classes: Sequence[tuple[Hashable, tuple[str, ...], bool, FloatArray, FloatArray]],
    name_weight: float,
    names_on: bool | None,
    digests: Mapping[str, str | None],
    fitted: tuple[Mapping[str, Any], Mapping[str, Any], bool] | None = None,
    unknown: tuple[str, ...] = (),
    first: tuple[dict[str, Any], dict[str, Any]] | None = None,
) -> State:
    entries = [
        ClassSupport(label, texts, named, vectors, prepared) for label, texts, named, vectors, prepared in classes
    ]
    return replace(restore(settings, entries, name_weight, names_on, digests, fitted, first), unknown=unknown)
