"""encoder="cascade": the static encoder answers what it is sure of, the default one the rest."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.classifier.cascade import MOST_LOST, UNSEEN, expected_loss, find_sure, margins
from dmin.data import load_corpus
from dmin.encoder import open_encoder
from dmin.errors import ConfigError, ModelError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parts() -> tuple[dict[str, list[str]], list[str], list[str]]:
    """(examples of each class, texts, their labels) of the built-in corpus."""
    corpus = load_corpus("starter")
    examples = {label: list(texts[:5]) for label, texts in corpus.examples.items()}
    rest = [(text, label) for label, texts in corpus.examples.items() for text in texts[5:11]]
    return examples, [text for text, _ in rest], [label for _, label in rest]


@pytest.fixture(scope="module")
def fitted(parts: tuple[dict[str, list[str]], list[str], list[str]]) -> FewShotClassifier:
    return FewShotClassifier(encoder="cascade").fit(parts[0])


@pytest.fixture(scope="module")
def single(parts: tuple[dict[str, list[str]], list[str], list[str]]) -> FewShotClassifier:
    return FewShotClassifier().fit(parts[0])


def test_each_text_is_answered_by_one_stage(fitted, single, parts) -> None:
    texts = parts[1]
    answers = fitted.answer(texts)
    stages = np.array([answer.stage for answer in answers])
    assert set(stages.tolist()) == {1, 2}
    first, state = FewShotClassifier(encoder="static").fit(parts[0]), fitted.state_
    alone = {1: first.decision_function(texts), 2: single.decision_function(texts)}
    for stage, expected in alone.items():
        rows = stages == stage
        np.testing.assert_allclose(fitted.decision_function(texts)[rows], expected[rows], rtol=0, atol=1e-4)
    assert state.first is not None
    np.testing.assert_array_equal(stages == 1, margins(alone[1]) >= state.first.sure)
    assert fitted.predict(texts).tolist() == [answer.label for answer in answers]
    assert (
        fitted.predict_proba(texts).argmax(axis=1).tolist() == fitted.decision_function(texts).argmax(axis=1).tolist()
    )


def test_little_accuracy_is_lost(fitted, single, parts) -> None:
    _, texts, labels = parts
    assert fitted.score(texts, labels) >= single.score(texts, labels) - 0.02  # (of a few hundred texts)
    assert fitted.state_.first.lost <= MOST_LOST


def test_a_classifier_of_one_stage_says_none(single, parts) -> None:
    assert single.answer(parts[1][:3])[0].stage is None
    assert "stage" not in single.explain(parts[1][0]).as_dict()


def test_the_second_stage_alone_encodes_what_the_first_is_not_sure_of(fitted, parts, monkeypatch) -> None:
    texts, seen = parts[1], []
    encoder = fitted.encoder_
    encode = type(encoder).encode
    monkeypatch.setattr(
        type(encoder), "encode", lambda self, given, **o: seen.extend(given) or encode(self, given, **o)
    )
    stages = [answer.stage for answer in fitted.answer(texts)]
    assert seen == [text for text, stage in zip(texts, stages, strict=True) if stage == 2]


@pytest.mark.parametrize("stage", [1, 2])
def test_shares_of_either_stage_add_up_to_the_score(fitted, parts, stage: int) -> None:
    text = next(text for text in parts[1] if fitted.answer([text])[0].stage == stage)
    found = fitted.explain(text)
    assert found.stage == stage
    assert f"stage: {stage}" in str(found)
    assert sum(share.share for share in found.examples) == pytest.approx(found.score, abs=1e-3)
    assert found.label == fitted.predict([text])[0]


def test_saved_loaded_and_pickled_it_answers_alike(fitted, parts, tmp_path: Path) -> None:
    texts = parts[1][:60]
    fitted.save(tmp_path / "saved")
    loaded = FewShotClassifier.load(tmp_path / "saved")
    assert loaded.encoder == "cascade"
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    for other in (loaded, again):
        assert other.answer(texts) == fitted.answer(texts)
        assert other.state_.first.share == fitted.state_.first.share


def test_it_does_not_carry_its_encoders(fitted, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two encoders"):
        fitted.save(tmp_path / "saved", with_encoder=True)


def test_a_damaged_first_stage_is_refused(fitted, tmp_path: Path) -> None:
    fitted.save(tmp_path / "saved")
    path = tmp_path / "saved" / "classifier.json"
    document = json.loads(path.read_text())
    del document["first"]["sure"]
    path.write_text(json.dumps(document))
    (tmp_path / "saved" / "manifest.json").unlink()
    document["format"] = 2  # (of a time without a manifest)
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match="damaged"), pytest.warns(UserWarning):
        FewShotClassifier.load(tmp_path / "saved")


def test_a_class_that_comes_and_goes_leaves_the_others_as_they_were(parts) -> None:
    examples, texts, _ = parts
    classifier = FewShotClassifier(encoder="cascade").fit(examples)
    before = classifier.answer(texts[:40])
    classifier.add_class("zebra", ["my zebra ran away", "feed the zebra", "the zebra is ill"])
    assert classifier.predict(["where does my zebra sleep", "is the zebra ill"]).tolist() == ["zebra", "zebra"]
    assert classifier.state_.first.head.sizes == classifier.state_.model.head.sizes
    classifier.remove_example("zebra", "feed the zebra")
    assert classifier.state_.first.head.sizes == classifier.state_.model.head.sizes
    classifier.remove_class("zebra")
    assert classifier.answer(texts[:40]) == before


def test_refit_finds_when_to_answer_anew(parts) -> None:
    examples = dict(list(parts[0].items())[:30])
    whole = FewShotClassifier(encoder="cascade").fit(examples)
    last = list(examples)[-1]
    grown = FewShotClassifier(encoder="cascade").fit({label: examples[label] for label in list(examples)[:-1]})
    grown.add_class(last, examples[last])
    assert grown.state_.first.sure != whole.state_.first.sure
    assert grown.refit().state_.first.sure == pytest.approx(whole.state_.first.sure)


def test_of_a_large_pile_both_stages_learn_from_the_same_sample(parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmin.classifier.learning.MOST_TEXTS", 250)
    classifier = FewShotClassifier(encoder="cascade").fit(parts[0]).adapt(parts[1][:300])
    assert len(classifier.predict(parts[1][:3])) == 3


def test_unlabelled_texts_teach_the_first_stage(fitted, parts) -> None:
    examples, texts, labels = parts
    repeated = [f"{text} {mark}" for text in texts for mark in (".", "!", "please", "now")]
    own = [list(examples).index(label) for label in labels]
    columns = np.repeat(own, 4)
    teacher = 20 * np.eye(len(examples), dtype=np.float32)[columns]  # sure of the right answers
    before = fitted.state_.first
    after = before.taught(teacher, np.full(len(columns), 0.7, np.float32), repeated, 1.0)
    assert after.share > max(before.share, 0.5)
    right = after.scored(texts)[1].argmax(axis=1) == own
    assert right.mean() > (before.scored(texts)[1].argmax(axis=1) == own).mean() + 0.2
    assert before.taught(teacher[:5], np.ones(5, np.float32), repeated[:5], 1.0) is before


def test_adapt_reaches_both_stages(parts) -> None:
    examples, texts, _ = parts
    classifier = FewShotClassifier(encoder="cascade").fit(
        examples, unlabelled=[*texts, *(f"{text} please" for text in texts)]
    )
    one = FewShotClassifier().fit(examples, unlabelled=[*texts, *(f"{text} please" for text in texts)])
    rows = [place for place, answer in enumerate(classifier.answer(texts)) if answer.stage == 2]
    expected = one.decision_function(texts)[rows]
    np.testing.assert_allclose(classifier.decision_function(texts)[rows], expected, rtol=0, atol=1e-4)
    assert classifier.state_.first.share > FewShotClassifier(encoder="cascade").fit(examples).state_.first.share


def test_what_is_refused_is_refused_by_the_second_stage(parts) -> None:
    examples, texts, _ = parts
    classifier = FewShotClassifier(encoder="cascade", reject="auto").fit(examples)
    strange = [
        "the mitochondria is the powerhouse of the cell",
        "ozymandias king of kings",
        "sing to me of the man, muse",
    ]
    answers = classifier.answer([*texts, *strange])
    assert any(answer.refused for answer in answers)
    assert all(answer.stage == 2 for answer in answers if answer.refused)
    limits = classifier.state_.limits
    assert all(answer.score >= limits.max() for answer in answers if answer.stage == 1)
    classifier.reject = 1.0
    assert {answer.stage for answer in classifier.answer(texts[:50])} == {2}


def test_few_examples_leave_everything_to_the_second_stage() -> None:
    classifier = FewShotClassifier(encoder="cascade", use_names=False).fit({0: ["send it back"], 1: ["where is it"]})
    assert [answer.stage for answer in classifier.answer(["send it back", "where is it"])] == [2, 2]
    with pytest.raises(ConfigError, match="cascade"):
        FewShotClassifier("nearest", encoder="cascade").fit({0: ["a b"], 1: ["c d"]})
    with pytest.raises(ConfigError, match="FewShotClassifier"):
        open_encoder("cascade")


def test_expected_loss_and_where_it_is_too_much() -> None:
    other = np.log(np.array([[0.7, 0.3], [0.5, 0.5], [0.1, 0.9]], np.float32))
    own = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], np.float32)
    np.testing.assert_allclose(expected_loss(own, other, 1.0), [0.4, 0.0, 0.0], atol=1e-6)
    margin = np.arange(1000, 0, -1).astype(np.float32)
    loss = np.zeros(1000)
    loss[500:] = 0.1
    sure, share, lost = find_sure(margin, loss)
    assert share * 1000 == 500 + sum((n * 0.1 + (n * 0.01) ** 0.5 + UNSEEN) / 1000 <= MOST_LOST for n in range(1, 500))
    assert sure == margin[round(share * 1000) - 1]
    assert lost <= MOST_LOST
    assert find_sure(margin, np.ones(1000) * 0.0)[1] == 1.0
    assert find_sure(margin[:40], np.zeros(40))[:2] == (np.inf, 0.0)
    assert find_sure(margin, np.r_[6.0, np.zeros(999)])[:2] == (np.inf, 0.0)
