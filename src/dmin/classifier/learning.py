"""From examples to a new state: what is new is encoded, what is known is kept, the head is fitted or extended."""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dmin.adaptive import learn_unlabelled
from dmin.adaptive.namespace import array_namespace
from dmin.adaptive.unlabelled import MOST_TEXTS
from dmin.classifier.fitting import SETTLED_CLASSES, extend_model, fit_model, remove_from_model
from dmin.classifier.inputs import read_queries
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.refusal import check_reject_labels
from dmin.classifier.scoring import Model, check_finite
from dmin.classifier.settings import Settings
from dmin.classifier.state import State
from dmin.data.labels import mostly_words, name_text
from dmin.encoder.text_encoder import check_texts
from dmin.errors import ConfigError, DataError


def fit_state(settings: Settings, groups: Mapping[Any, Sequence[str]], before: State | None) -> State:
    """A state that knows these classes alone; the model that `before` has open is used again where it is the same."""
    groups, unknown = part_unknown(settings, groups)
    groups = {**groups, **{label: [] for label in settings.descriptions or {} if label not in groups}}
    if not groups:
        raise DataError("no classes were given")
    if len(groups) < 2 and settings.reject is None and not settings.keep_base:
        raise DataError("one class alone answers everything: give at least two classes, or set reject")
    settings.check()
    names_on = names_take_part(settings, groups)
    if before is not None and before.settings.opens_like(settings):
        knowledge = Knowledge(name_weight=before.model.name_weight)
        empty = State(settings, replace(before.model, head=None), knowledge, names_on, unknown, first=before.first)
    else:
        empty = replace(State.open(settings), names_on=names_on, unknown=unknown)
    state = replace(_learn(empty, groups), settled=True)
    check_reject_labels(settings.reject, state.labels)
    state.threshold  # noqa: B018 (found now, so that a fit which cannot find it fails and changes nothing)
    return state


def extend_state(state: State, groups: Mapping[Any, Sequence[str]], *, needs_examples: bool = False) -> State:
    """A state with these examples beside those that are known; new labels become classes."""
    groups, unknown = part_unknown(state.settings, groups, state.knowledge.by_label)
    if unknown:
        state = replace(state, unknown=(*state.unknown, *unknown))
    if not groups:
        return state
    if state.names_on is None:
        state = replace(state, names_on=names_take_part(state.settings, groups))
    merged = {}
    for label, texts in groups.items():
        known = state.knowledge.by_label.get(label)
        merged[label] = [*(known.examples if known else ()), *texts]
        if not texts and (needs_examples or known):
            raise DataError(f"class {label!r} has no example")
    return _learn(state, merged)


def part_unknown(
    settings: Settings, groups: Mapping[Any, Sequence[str]], known: Container[Any] = ()
) -> tuple[dict[Any, Sequence[str]], tuple[str, ...]]:
    """The classes, and apart from them the examples of `unknown_label`, which are out-of-scope texts.

    So labelled data with out-of-scope texts can be given to `fit`, `cross_val_score` and `GridSearchCV` as it is.
    """
    own = dict(groups)
    label = settings.unknown_label
    if label is None or label in known:  # a classifier of version 0.1 may have such a class
        return own, ()
    return own, tuple(own.pop(label, ()))


def names_take_part(settings: Settings, labels: Iterable[Any]) -> bool:
    """Are the names of classes rows beside their examples?"""
    if settings.precomputed:
        if settings.use_names is True:
            raise ConfigError("use_names=True needs an encoder: names are texts, and only vectors are given")
        return False
    return mostly_words(labels) if settings.use_names == "auto" else bool(settings.use_names)


def _learn(state: State, groups: Mapping[Any, Sequence[str]]) -> State:
    """The state with these classes added or changed."""
    settings = state.settings
    described = settings.descriptions or {}
    names = {}
    for label, texts in groups.items():
        if label in state.base_classes:
            raise DataError(f"class {label!r} is a base class of the model already: choose another name")
        if not texts and not described.get(label):
            raise DataError(f"class {label!r} has no example and no description")
        names[label] = described.get(label) or (name_text(label) if state.names_on else None)
    learned = learn_classes(state.model, groups, names, state.knowledge)
    knowledge = state.knowledge.replaced(learned)
    if state.settled:
        return _extended(state, knowledge, learned)
    return _fitted(state, knowledge)


def _extended(state: State, knowledge: Knowledge, changed: Sequence[ClassSupport]) -> State:
    """The state with these classes added or changed, in both stages of a cascade."""
    first = None if state.first is None else state.first.extended(state.knowledge, changed)
    model = extend_model(state.model, state.knowledge, changed)
    return replace(state, model=model, knowledge=knowledge, first=first)


def _fitted(state: State, knowledge: Knowledge) -> State:
    """The state with these classes and a head fitted to them; settled once there are enough of them."""
    settled = len(knowledge.classes) >= SETTLED_CLASSES
    found = replace(state, model=fit_model(state.model, knowledge), knowledge=knowledge, settled=settled)
    return found.with_first()


def refit_state(state: State) -> State:
    """The state as a fresh fit on all of its examples would give it; no text is encoded again."""
    if not state.knowledge.classes:
        return state
    knowledge = Knowledge(state.knowledge.classes, state.knowledge.name_weight)
    return replace(_fitted(state, knowledge), settled=True)


def adapt_state(state: State, texts: Sequence[Any], known: Any = None) -> State:
    """The state after learning from unlabelled texts, at most 20,000, with the head fitted anew to all examples.

    `known` are the texts' vectors by the state's encoder [m, d], where they were made before.
    """
    if state.model.setup is None:
        raise ConfigError(
            f"unlabelled texts need the default head: a {state.model.method.name} model learns from examples alone"
        )
    if not state.settings.precomputed:
        check_texts(texts)
    if not len(texts):
        return state  # nothing to learn from
    texts = read_queries(texts, state.settings.precomputed)
    places = list(range(len(texts)))
    if len(texts) > MOST_TEXTS:
        places = np.sort(np.random.default_rng(0).permutation(len(texts))[:MOST_TEXTS]).tolist()
    if known is None:
        vectors = state.model.vectors([texts[place] for place in places], state.knowledge.width)  # [m, d]
    else:
        vectors = _checked(known, texts, state.knowledge.width)[places]  # [m, d]
    fitted = refit_state(state)
    head = fitted.model.head
    if head is None:
        raise DataError("there is no class yet that unlabelled texts could be learned for: call fit first")
    if head.dual is None and len(head.sizes) > 1:
        warnings.warn(f"{len(head.sizes)} classes are too many to learn from unlabelled texts", stacklevel=4)
    found = replace(fitted, model=replace(fitted.model, head=learn_unlabelled(head, vectors)))
    if found.first is None:
        return found
    cosines = found.cosines(vectors)
    learned = [texts[place] for place in places]
    first = found.first.taught(found.scores(vectors, cosines), cosines.max(axis=1), learned, found.probability_scale)
    return replace(found, first=first)


def _checked(vectors: Any, texts: Sequence[Any], width: int | None) -> Any:
    """Vectors [m, d] that are as many as the texts, as wide as the classes' and finite."""
    found = np.asarray(vectors, np.float32)
    if found.shape != (len(texts), width):
        raise DataError(
            f"vectors have the shape {found.shape} for {len(texts)} texts; [{len(texts)}, {width}] is needed"
        )
    check_finite(found, "vectors hold", texts)
    return found


def forget_class(state: State, label: Any) -> State:
    """The state without a class."""
    knowledge = state.knowledge.without(label)
    if not state.settled or not knowledge.classes:
        return _fitted(state, knowledge)
    first = None if state.first is None else state.first.without(state.knowledge.labels.index(label))
    model = remove_from_model(state.model, state.knowledge, label)
    return replace(state, model=model, knowledge=knowledge, first=first)


def forget_example(state: State, label: Any, row: int) -> State:
    """The state without one example of a class."""
    smaller = state.knowledge.by_label[label].without_row(row)
    knowledge = state.knowledge.replaced([smaller])
    if not state.settled:
        return _fitted(state, knowledge)
    return _extended(state, knowledge, [smaller])


def learn_classes(
    model: Model, groups: Mapping[Any, Sequence[str]], names: Mapping[Any, str | None], before: Knowledge
) -> list[ClassSupport]:
    """Encode each class's examples and name; rows that are known already are kept, not encoded again.

    Args:
        model: what encodes.
        groups: the examples of each class, known ones among them.
        names: the name or description that is one more row of each class, if any.
        before: the classes that are known.
    """
    rows = {label: [*texts, *filter(None, [names[label]])] for label, texts in groups.items()}
    warn_of_contradictions(rows, before)
    known = {
        (label, text): (entry.vectors[row], entry.prepared[row])
        for label in rows
        if (entry := before.by_label.get(label))
        for row, text in enumerate(entry.texts)
    }
    fresh = [(label, text) for label, texts in rows.items() for text in texts if (label, text) not in known]
    vectors = model.vectors([text for _, text in fresh], before.width)  # [n, d]
    xp = array_namespace(vectors)
    prepared = vectors if model.setup is not None else model.scorer.prepare(vectors)  # [n, d]
    known |= {key: (vectors[index], prepared[index]) for index, key in enumerate(fresh)}
    found = []
    for label, texts in rows.items():
        vector, ready = (xp.stack(parts) for parts in zip(*(known[label, text] for text in texts), strict=True))
        found.append(
            ClassSupport(label, tuple(texts), bool(names[label]), vector, vector if model.setup is not None else ready)
        )
    return found


def warn_of_contradictions(rows: Mapping[Any, Sequence[str]], known: Knowledge) -> None:
    """Warn of texts that stand under two classes, among these and those that are known."""
    owner: dict[str, Any] = {}
    for label, texts in rows.items():
        for text in texts:
            before = known.owners.get(text, label)
            other = owner.setdefault(text, label if before in rows else before)
            if other != label:
                warnings.warn(f"the text {text!r} stands under two classes: {other!r} and {label!r}", stacklevel=6)
