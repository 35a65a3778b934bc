"""Models that answer all classes of their data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dmin import FewShotClassifier
from dmin.data import Corpus
from dmin.errors import ConfigError, DataError
from dmin.methods import create
from dmin.model import answers_own_classes, load_model
from dmin.model.card import model_card
from dmin.training import Trainer, load_config
from dmin.training.config import SupervisedSettings
from dmin.training.own_classes import (
    LabelledVectors,
    calibrate_own_classes,
    fit_own_classes,
    fit_scale,
    own_accuracy,
    own_cosines,
    with_memory_rows,
)
from dmin.training.task import held_out_episodes, prepare_task
from tests.conftest import WORDS, word_corpus

SMALL: dict[str, Any] = {
    "all_classes": True, "way": 3, "shot": 2, "queries": 4, "device": "cpu", "stage1.batch": 8, "stage2.episodes": 20,
    "stage2.validate_every": 10, "stage2.validation_episodes": 5, "precision": "float32",
}  # fmt: skip


def silent(message: str) -> None:
    del message


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny_encoder_folder: Path) -> Path:
    """A trained run folder of the nine word classes."""
    folder = tmp_path_factory.mktemp("own")
    data = folder / "words.csv"
    corpus = word_corpus()
    lines = [f"{text},{label}" for text, label in zip(corpus.texts, corpus.labels, strict=True)]
    data.write_text("text,label\n" + "\n".join(lines) + "\n")
    settings = {**SMALL, "data": str(data), "encoder": str(tiny_encoder_folder)}
    Trainer(load_config(overrides=settings), folder / "run", warn=silent).run()
    return folder / "run"


def clusters(classes: int, texts: int, seed: int, noise: float = 1.0) -> LabelledVectors:
    """Noisy vectors around one centre per class."""
    centres = torch.randn(classes, 16, generator=torch.Generator().manual_seed(0)) + 2
    labels = torch.arange(classes).repeat_interleave(texts)
    generator = torch.Generator().manual_seed(seed)
    return LabelledVectors(centres[labels] + noise * torch.randn(len(labels), 16, generator=generator), labels)


def head(name: str, train: LabelledVectors, classes: int) -> Any:
    memory = torch.randn(classes, 16, generator=torch.Generator().manual_seed(5))
    method = create(name, 16, way=2, shot=2, base_memory=memory).eval()
    method.start_from_stage1(10.0, train.vectors.mean(dim=0))
    return method


@pytest.mark.parametrize("name", ["dmin-plus", "dmin", "lwof"])
def test_the_vectors_of_the_classes_learn_and_nothing_else_does(name: str) -> None:
    train, held = clusters(6, 40, 1), clusters(6, 20, 2)
    method = head(name, train, 6)
    before = {key: value.clone() for key, value in method.state_dict().items()}
    learning = {key: weight.requires_grad for key, weight in method.named_parameters()}
    assert own_accuracy(method, held) < 0.5
    accuracy = fit_own_classes(method, train, held, SupervisedSettings(learning_rate=0.05), seed=0)
    assert accuracy > 0.85 and accuracy == own_accuracy(method, held)
    changed = {key for key, value in method.state_dict().items() if not torch.equal(value, before[key])}
    assert changed == {"base_memory"}
    assert {key: weight.requires_grad for key, weight in method.named_parameters()} == learning


def test_the_best_epoch_is_kept() -> None:
    train, held = clusters(4, 30, 1), clusters(4, 30, 2)
    method = head("dmin-plus", train, 4)
    good = fit_own_classes(method, train, held, SupervisedSettings(learning_rate=0.05), seed=0)
    rows = method.base_memory.detach().clone()
    wrong = LabelledVectors(train.vectors, train.labels.flip(0))  # each class learns the texts of another
    assert fit_own_classes(method, wrong, held, SupervisedSettings(learning_rate=0.05), seed=0) == good
    assert torch.equal(method.base_memory, rows)


def test_the_scale_of_probabilities_is_the_most_likely_one() -> None:
    generator = torch.Generator().manual_seed(0)
    cosines = torch.rand(4000, 5, generator=generator)
    labels = torch.multinomial((12 * cosines).softmax(dim=-1), 1, generator=generator).flatten()
    assert fit_scale(cosines, labels) == pytest.approx(12, abs=0.7)


def test_calibration_lets_novel_classes_compete() -> None:
    train, held = clusters(10, 40, 1), clusters(10, 20, 2)
    method = head("dmin-plus", train, 10)
    fit_own_classes(method, train, held, SupervisedSettings(learning_rate=0.05), seed=0)
    found = calibrate_own_classes(method, train, held, seed=0)
    highest = own_cosines(method, held.vectors).max(dim=-1).values + found.offset(1)
    refused = float((highest < found.threshold(1)).double().mean())
    assert refused == pytest.approx(found.refused_part, abs=0.02)
    assert found.cut_per_log_example == found.base_offset_per_log_example
    # Few examples say less about a class than its trained vector: without an offset one side would win too often.
    assert found.offset(10) > found.offset(1)


def test_a_smaller_memory_scores_the_other_classes_alike() -> None:
    train = clusters(5, 10, 1)
    for name in ("dmin", "lwof"):
        method = head(name, train, 5)
        smaller = with_memory_rows(method, torch.tensor([0, 2, 3]))
        assert torch.allclose(own_cosines(smaller, train.vectors), own_cosines(method, train.vectors)[:, [0, 2, 3]])
        assert len(method.base_memory) == 5
        assert smaller(torch.randn(2, 2, 16), train.vectors).shape == (50, 2)


def test_validation_asks_held_out_texts_only(words: Corpus) -> None:
    held = [row for rows in words.by_class.values() for row in rows[:3]]
    seen, hidden = words.hiding(held), words.hiding(set(range(len(words.texts))) - set(held))
    episodes = held_out_episodes(seen, hidden, way=4, shot=2, queries=10, seed=1, count=8)
    assert len(episodes) == 8
    for episode in episodes:
        assert set(episode.query_rows) <= set(held) and len(episode.query_rows) == 4 * 3
        assert not {row for rows in episode.support for row in rows} & set(held)
        assert all(words.labels[row] == label for label, rows in zip(episode.classes, episode.query, strict=True) for row in rows)  # noqa: E501  # fmt: skip
    again = held_out_episodes(seen, hidden, way=4, shot=2, queries=10, seed=1, count=8)
    assert again.hash == episodes.hash


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"split_seed": 1}, ConfigError, "leave out split_seed=1"),
        ({"split": "main"}, ConfigError, "leave out split='main'"),
        ({"base_classes": 3}, ConfigError, "leave out base_classes=3"),
        (
            {"method": "relation"},
            ConfigError,
            "a relation model keeps no classes of its own; use lwof, dmin, dmin-plus",
        ),
        ({"stage1.held_out": 0}, ConfigError, "stage1.held_out must be above 0"),
        ({"queries": 40}, DataError, "lower --shot or --queries"),
    ],
)
def test_what_contradicts_all_classes_is_refused(
    words_file: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    config = load_config(overrides={**SMALL, "data": str(words_file), **change})
    with pytest.raises(error, match=message):
        prepare_task(config, silent)


def test_a_run_keeps_no_class_back(run: Path) -> None:
    info = load_model(run).info
    assert set(info.base_classes) == set(WORDS) and info.trained_on["split"] == "all-classes"
    assert info.calibration is not None and info.calibration["temperature"] > 1
    assert answers_own_classes(run) and answers_own_classes(run / "model")
    assert not answers_own_classes("default") and not answers_own_classes(run / "nowhere")


def test_a_classifier_answers_at_once(run: Path) -> None:
    classifier = FewShotClassifier(run)
    corpus = word_corpus()
    assert np.mean(classifier.predict(corpus.texts) == np.array(corpus.labels)) > 0.8
    assert set(classifier.classes_) == set(WORDS) and classifier.base_classes_ == list(classifier.classes_)
    probabilities = classifier.predict_proba(corpus.texts[:5])
    assert probabilities.shape == (5, 9) and np.allclose(probabilities.sum(axis=1), 1)
    explained = classifier.explain(corpus.texts[0])
    assert explained.nearest in WORDS and explained.examples == ()


def test_whether_it_is_fitted_is_known_without_loading_or_fetching(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("nothing may be fetched or loaded")

    monkeypatch.setattr("dmin.model.places.fetch_folder", refuse)
    monkeypatch.setattr("dmin.classifier.trained.load_model", refuse)
    assert FewShotClassifier(run).__sklearn_is_fitted__()
    assert not FewShotClassifier("owner/name").__sklearn_is_fitted__()
    assert not FewShotClassifier().__sklearn_is_fitted__()


def test_classes_can_be_added_beside_its_own(run: Path) -> None:
    corpus = word_corpus()
    alone = FewShotClassifier(run, use_names=False).decision_function(corpus.texts)
    classifier = FewShotClassifier(run, use_names=False)
    classifier.add_class("jobs", ["hire apply interview", "career job offer", "resume hire boss"])
    assert list(classifier.classes_) == ["jobs", *load_model(run).info.base_classes]
    both = classifier.decision_function(corpus.texts)
    assert np.ptp(both[:, 1:] - alone) < 1e-5  # the own classes move together: by the offset, which depends on K
    assert classifier.predict(["hire apply interview"]).tolist() == ["jobs"]
    fitted = FewShotClassifier(run, use_names=False).fit({"jobs": ["hire apply interview"]})  # one class is enough
    assert len(fitted.classes_) == 10
    with pytest.raises(DataError, match="'sea' is a base class of the model already"):
        classifier.add_class("sea", ["boat"])


def test_it_refuses_by_its_own_threshold(run: Path) -> None:
    corpus = word_corpus()
    classifier = FewShotClassifier(run, reject="auto", unknown_label="none")
    part = float(np.mean(classifier.predict(corpus.texts) == "none"))
    assert 0 < part < 0.35
    classifier.add_class("jobs", [f"hire apply interview {number}" for number in range(8)])
    assert classifier.threshold_ is None  # eight examples of one class do not decide for the nine others
    assert float(np.mean(classifier.predict(corpus.texts) == "none")) == pytest.approx(part, abs=0.1)


def test_it_is_saved_and_loaded(run: Path, tmp_path: Path) -> None:
    classifier = FewShotClassifier(run, reject="auto").open()
    classifier.save(tmp_path / "saved")
    texts = word_corpus().texts[:20]
    loaded = FewShotClassifier.load(tmp_path / "saved")
    assert np.array_equal(loaded.decision_function(texts), classifier.decision_function(texts))
    assert loaded.predict(texts).tolist() == classifier.predict(texts).tolist()


def test_its_card_says_that_it_needs_no_examples(run: Path) -> None:
    card = model_card(load_model(run).info)
    assert "without examples" in card and "classifier.fit" not in card and "classifier.add_class" in card


def test_training_can_be_resumed(run: Path) -> None:
    before = (run / "model" / "head.safetensors").read_bytes()
    Trainer(load_config(run / "config.yaml"), run, resume=True, warn=silent).run()
    assert (run / "model" / "head.safetensors").read_bytes() == before
    assert json.loads((run / "model" / "head.json").read_text())["trained_on"]["all_classes"] is True


def test_the_encoder_can_be_tuned(words_file: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    settings = {**SMALL, "data": str(words_file), "encoder": str(tiny_encoder_folder), "tune": "full"}
    more = {"stage2.episodes": 0, "stage1.encoder_learning_rate": 5e-3}
    trainer = Trainer(load_config(overrides=settings | more), tmp_path / "run", warn=silent)
    model = trainer.run()
    held = LabelledVectors.of(trainer.task.corpus, trainer.task.base_texts.held_out, trainer.encode)
    texts = [trainer.task.corpus.texts[row] for row, _ in trainer.task.base_texts.held_out]
    labels = [trainer.task.base_classes[number] for _, number in trainer.task.base_texts.held_out]
    accuracy = own_accuracy(model.method, held)
    assert accuracy > 0.8  # frozen, this random encoder reaches 0.56
    assert FewShotClassifier(tmp_path / "run").score(texts, labels) == pytest.approx(
        accuracy
    )  # the tuned encoder is kept
