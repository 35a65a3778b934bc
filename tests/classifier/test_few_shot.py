"""The public API of `FewShotClassifier`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dmin import FewShotClassifier
from dmin.classifier.arrays import as_numpy
from dmin.errors import ConfigError, DataError
from dmin.training import Trainer, load_config
from tests.classifier.common import EXAMPLES, PAIRS, letters, quick


@pytest.fixture(scope="module")
def fitted() -> FewShotClassifier:
    return FewShotClassifier(device="cpu", use_names=False).fit(EXAMPLES)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DMIN head on the embedded encoder, hardly trained."""
    out = tmp_path_factory.mktemp("runs") / "run"
    overrides: dict[str, Any] = {
        "data": "starter", "base_classes": 8, "stage1.epochs": 1, "stage2.episodes": 4, "stage2.validation_episodes": 3,
        "device": "cpu", "method": "dmin",
    }  # fmt: skip
    Trainer(load_config(overrides=overrides), out, warn=pytest.fail).run()
    return out


# Answers


def test_predicts_at_once(fitted: FewShotClassifier) -> None:
    texts = ["give me my money back", "my package is late", "is it going to rain"]
    assert fitted.predict(texts).tolist() == ["refund", "parcel", "weather"]
    assert fitted.decision_function(texts).shape == (3, 3)
    assert np.allclose(fitted.predict_proba(texts).sum(axis=1), 1)
    top = fitted.predict_top_k(texts, 2)
    assert [row[0][0] for row in top] == ["refund", "parcel", "weather"] and all(len(row) == 2 for row in top)
    assert top[0][0][1] == pytest.approx(fitted.decision_function(texts)[0].max())
    assert fitted.predict([]).tolist() == []


def test_decision_function_of_a_trained_model_is_a_cosine(run_folder: Path) -> None:
    for model in (run_folder, "nearest", "dmin-plus"):
        classifier = FewShotClassifier(model, device="cpu").fit(EXAMPLES)
        scores = classifier.decision_function(["hello there", "my money"])
        assert (np.abs(scores) <= 1 + 1e-6).all()
        assert classifier.answer(["my money"])[0].score == pytest.approx(scores[1].max())


def test_both_forms_of_fit_agree(fitted: FewShotClassifier) -> None:
    other = clone(fitted).fit([text for text, _ in PAIRS], [label for _, label in PAIRS])
    assert other.classes_.tolist() == sorted(EXAMPLES)  # scikit-learn's order
    assert fitted.classes_.tolist() == list(EXAMPLES)  # the mapping's order
    texts = ["hello", "money please"]
    columns = [list(EXAMPLES).index(label) for label in other.classes_]
    assert np.allclose(other.decision_function(texts), fitted.decision_function(texts)[:, columns], atol=1e-6)


@pytest.mark.parametrize("labels", [[3, 1, 3, 2], ["b", "a", "b", "c"], [("t", 1), ("t", 2), ("t", 1), ("t", 3)]])
def test_labels_come_back_as_they_were_given(labels: list[Any]) -> None:
    texts = ["aaa", "bbb", "aab", "ccc"]
    if isinstance(labels[0], tuple):
        groups: dict[Any, list[str]] = {}
        for text, label in zip(texts, labels, strict=True):
            groups.setdefault(label, []).append(text)
        classifier = quick().fit(groups)
    else:
        classifier = quick().fit(texts, labels)
    assert list(classifier.predict(["aaaa", "bbbb"])) == labels[:2]
    assert set(classifier.classes_.tolist()) == set(labels)


def test_fifty_examples_against_one_do_not_decide_by_number(run_folder: Path) -> None:
    """The routing sums over the examples; fifty near-copies must weigh like one of them, for and against."""
    many = [f"I want my money back for order {n}" for n in range(50)]
    texts = ["is rain expected tomorrow", "give me back my money", "hello"]
    for model in ("default", run_folder):
        one, fifty = (
            FewShotClassifier(model, device="cpu", use_names=False).fit(
                {"refund": many[:k], "weather": ["will it rain"]}
            )
            for k in (1, 50)
        )
        assert fifty.predict(texts).tolist() == one.predict(texts).tolist()
        # The cosines; the default's score also has logits, which are more certain of what fifty examples say.
        cosines = [[found.score for found in classifier.answer(texts)] for classifier in (fifty, one)]
        assert np.abs(np.subtract(*cosines)).max() < 0.15


def test_blocks_and_buckets_change_nothing(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dmin.classifier import knowledge, scoring

    texts = ["one text", "another text", "a third one"]
    whole = FewShotClassifier(run_folder, device="cpu").fit(EXAMPLES).decision_function(texts)
    monkeypatch.setattr(scoring, "QUERY_BLOCK", 1)
    monkeypatch.setattr(knowledge, "SIZES", (100,))
    monkeypatch.setattr(knowledge, "BLOCK_ROWS", 1)
    again = FewShotClassifier(run_folder, device="cpu").fit(EXAMPLES).decision_function(texts)
    assert np.allclose(again, whole, atol=1e-6)


def test_thousands_of_classes() -> None:
    words = [f"{a}{b}{c}" for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwxyzabcdefghijklmn"]
    classifier = quick().fit({word: [word] for word in words})
    assert len(classifier.classes_) == 2000
    assert (classifier.predict(words[::100]) == np.array(words[::100])).mean() > 0.9  # anagrams may tie


# Classes that come and go


@pytest.mark.parametrize("trained", [False, True])
def test_adding_a_class_touches_that_class_only(trained: bool, run_folder: Path) -> None:
    classifier = FewShotClassifier(run_folder if trained else "default", device="cpu", use_names=False).fit(EXAMPLES)
    texts = ["play a song", "my money"]
    before = classifier.decision_function(texts)
    cached = {entry.label: entry.prepared for entry in classifier.state_.knowledge.classes}
    copies = {label: as_numpy(array).copy() for label, array in cached.items()}
    classifier.add_class("music", ["play some jazz", "put on a song", "start the music"])
    assert classifier.predict(["play a song"]).tolist() == ["music"]
    for entry in classifier.state_.knowledge.classes[:3]:
        assert entry.prepared is cached[entry.label]
        assert np.array_equal(as_numpy(entry.prepared), copies[entry.label])
    assert np.allclose(classifier.decision_function(texts)[:, :3], before, atol=1e-6)
    classifier.remove_class("music")
    assert np.allclose(classifier.decision_function(texts), before, atol=1e-6)


def test_examples_come_and_go_as_if_fitted_at_once() -> None:
    texts = ["some text", "another"]
    classifier = quick().fit({"a": ["alpha", "able"], "b": ["beta"]})
    classifier.add_examples("b", ["bravo"]).partial_fit(["charlie", "apple"], ["c", "a"]).remove_example("a", "able")
    at_once = quick().fit({"a": ["alpha", "apple"], "b": ["beta", "bravo"], "c": ["charlie"]})
    assert classifier.examples_ == at_once.examples_
    assert np.allclose(classifier.decision_function(texts), at_once.decision_function(texts), atol=1e-6)


def test_starting_from_nothing() -> None:
    classifier = quick()
    with pytest.raises(NotFittedError, match="call fit, or add_class"):
        classifier.predict(["hello"])
    classifier.add_class("a", ["aaa"])
    with pytest.raises(DataError, match="one class alone"):
        classifier.predict(["hello"])
    assert classifier.add_class("b", ["bbb"]).predict(["aab"]).tolist() == ["a"]
    with pytest.raises(DataError, match="one class alone"):
        quick().fit({"a": ["aaa"]})
    assert quick(reject=0.999, unknown_label="?").fit({"a": ["aaa"]}).predict(["aaa", "zzzz"]).tolist() == ["a", "?"]


def test_two_threads_predict_while_a_third_adds_and_removes() -> None:
    classifier = quick().fit({"a": ["aaa"], "b": ["bbb"]})
    failures: list[BaseException] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                scores = classifier.decision_function(["aaa", "bbb", "ccc"])
                assert scores.shape[1] in (2, 3) and np.isfinite(scores).all()
                assert set(classifier.predict(["aaa", "ccc"])) <= {"a", "b", "c"}
        except BaseException as error:  # noqa: BLE001 (told to the main thread)
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        classifier.add_class("c", ["ccc", "cccc"])
        classifier.remove_class("c")
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []


# Names


def test_names_take_part_where_labels_are_words() -> None:
    examples = {"opening_hours": ["when do you start"], "lostCard": ["it is gone"]}
    with_names = FewShotClassifier(device="cpu").fit(examples)
    assert [entry.texts[-1] for entry in with_names.state_.knowledge.classes] == ["opening hours", "lost Card"]
    assert with_names.predict(["what are your opening hours on Sunday"]).tolist() == ["opening_hours"]
    assert with_names.examples_ == {label: tuple(texts) for label, texts in examples.items()}
    without = quick(use_names="auto").fit({"C17": ["aaa"], "C18": ["bbb"]})
    assert not any(entry.named for entry in without.state_.knowledge.classes)
    assert not any(entry.named for entry in quick(use_names="auto").fit(["a", "b"], [0, 1]).state_.knowledge.classes)


def test_a_description_is_enough_for_a_class() -> None:
    classifier = FewShotClassifier(
        device="cpu", descriptions={"C1": "questions about the weather", "C2": "lost bank cards"}
    )
    classifier.fit({"C1": [], "C2": []})
    assert classifier.predict(["will it rain", "my card was stolen"]).tolist() == ["C1", "C2"]
    with pytest.raises(DataError, match="'C3' has no example and no description"):
        classifier.add_class("C3")
    found = classifier.explain("is it sunny")
    assert found.examples[0].is_name and found.examples[0].text == "questions about the weather"


# Refusal


def test_reject_by_number_by_label_and_auto(fitted: FewShotClassifier) -> None:
    texts = ["give me my money back", "who won the chess game in 1972"]
    assert fitted.predict(texts).tolist()[0] == "refund"
    for reject in (0.35, {"refund": 0.35, "parcel": 0.35, "weather": 0.35}, "auto"):
        classifier = clone(fitted).set_params(reject=reject, unknown_label="none").fit(EXAMPLES)
        assert classifier.predict(texts).tolist() == ["refund", "none"], reject
        assert "none" not in classifier.classes_
        assert classifier.explain(texts[1]).label == "none" and classifier.explain(texts[1]).nearest in EXAMPLES
        assert classifier.score(texts, ["refund", "refund"]) == 0.5  # a refusal counts as wrong
    assert clone(fitted).set_params(reject={"refund": 0.99}).fit(EXAMPLES).predict(["is rain coming"]).tolist() == [
        "weather"
    ]


def test_automatic_rejection_needs_something_to_learn_from() -> None:
    with pytest.raises(DataError, match="reject="):
        quick(reject="auto").fit({"a": ["aaa"], "b": ["bbb"]})


# Explanations


@pytest.mark.parametrize("trained", [False, True])
def test_shares_add_up_to_the_score(trained: bool, run_folder: Path) -> None:
    classifier = FewShotClassifier(run_folder if trained else "default", device="cpu").fit(EXAMPLES)
    for text in ("where has my order gone", "I demand a refund", "umbrella or not"):
        found = classifier.explain(text)
        assert found.label == classifier.predict([text])[0]
        assert sum(example.share for example in found.examples) == pytest.approx(found.score, abs=1e-5)
        assert found.score == pytest.approx(classifier.decision_function([text]).max(), abs=1e-5)
        own = {example.text for example in found.examples if not example.is_name and example.label == found.label}
        assert own == set(EXAMPLES[str(found.label)])
        assert found.runner_up in set(EXAMPLES) - {found.label}


def test_leaving_one_out_is_what_removing_it_would_give(run_folder: Path) -> None:
    classifier = FewShotClassifier(run_folder, device="cpu", use_names=False).fit(EXAMPLES)
    text = "I want a refund now"
    found = classifier.explain(text)
    assert found.nearest == "refund"
    for example in found.examples:
        smaller = clone(classifier).fit(EXAMPLES).remove_example("refund", example.text)
        assert smaller.decision_function([text])[0, 0] == pytest.approx(example.without, abs=1e-5)


def test_an_explanation_can_be_read_anywhere(fitted: FewShotClassifier) -> None:
    found = fitted.explain("<b>money</b> back & now")
    assert "refund" in str(found) and "runner-up" in str(found)
    assert found.as_dict()["examples"][0]["share"] == found.examples[0].share
    html = found._repr_html_()
    assert "&lt;b&gt;money" in html and "<b>money" not in html


# Base classes


def test_base_classes_stay_answerable(run_folder: Path) -> None:
    classifier = FewShotClassifier(run_folder, device="cpu", keep_base=True, use_names=False).fit(EXAMPLES)
    assert len(classifier.base_classes_) == 8
    assert classifier.classes_.tolist() == [*EXAMPLES, *classifier.base_classes_]
    assert classifier.decision_function(["hello"]).shape == (1, 11)
    with pytest.raises(DataError, match="is a base class of the model already"):
        classifier.add_class(classifier.base_classes_[0], ["hello"])
    with pytest.raises(ConfigError, match="keep_base needs"):
        FewShotClassifier(keep_base=True, encoder=letters).fit(EXAMPLES)


# What a trained head adds


def test_the_memory_that_shaped_a_class_is_named(run_folder: Path) -> None:
    found = FewShotClassifier(run_folder, device="cpu").fit(EXAMPLES).explain("I want a refund")
    bases = FewShotClassifier(run_folder, device="cpu", keep_base=True).fit(EXAMPLES).base_classes_
    assert 0 < len(found.memory) <= 5 and {name for name, _ in found.memory} <= set(bases)
    weights = [abs(weight) for _, weight in found.memory]
    assert weights == sorted(weights, reverse=True)
    assert "memory: " in str(found) and "memory: " in found._repr_html_()
    assert found.as_dict()["memory"][0] == list(found.memory[0])
    assert FewShotClassifier(device="cpu").fit(EXAMPLES).explain("I want a refund").memory == ()  # reads none


@pytest.mark.slow
def test_a_method_that_does_not_divide_its_scores_explains_by_leaving_out(tmp_path: Path) -> None:
    overrides: dict[str, Any] = {
        "data": "starter", "method": "lwof", "base_classes": 8, "stage1.epochs": 1, "stage2.episodes": 2,
        "stage2.validation_episodes": 2, "device": "cpu",
    }  # fmt: skip
    Trainer(load_config(overrides=overrides), tmp_path / "run", warn=pytest.fail).run()
    classifier = FewShotClassifier(tmp_path / "run", device="cpu", use_names=False).fit(EXAMPLES)
    found = classifier.explain("I want a refund now")
    assert all(np.isnan(example.share) for example in found.examples)
    assert all(-1 <= example.without <= 1 for example in found.examples)
    assert "nan" not in str(found)


def test_other_parameters_after_a_fit_take_effect_at_the_next(run_folder: Path) -> None:
    classifier = FewShotClassifier("nearest", device="cpu").fit(EXAMPLES)
    plain = classifier.decision_function(["my money"])
    classifier.set_params(model=run_folder)
    assert np.array_equal(classifier.decision_function(["my money"]), plain)
    assert not np.allclose(classifier.fit(EXAMPLES).decision_function(["my money"]), plain)


def test_an_answer_holds_all_there_is_to_say() -> None:
    classifier = FewShotClassifier(device="cpu", reject=0.4, unknown_label="?").fit(EXAMPLES)
    texts = ["give my money back", "who won the chess game"]
    first, second = classifier.answer(texts, k=2)
    assert first.label == "refund" and not first.refused and second.label == "?" and second.refused
    assert first.probability == pytest.approx(classifier.predict_proba(texts)[0].max())
    assert [first.top, second.top] == [tuple(row) for row in classifier.predict_top_k(texts, 2)]
    assert classifier.predict(texts).tolist() == ["refund", "?"]
