"""Calibration, fitted on made-up cosines of known temperature, then on a real head."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dmin.data import ClassSplit, Corpus, join_corpora
from dmin.errors import ModelError
from dmin.evaluation.quality import reliability
from dmin.methods import DMINPlus, FewShotMethod, create
from dmin.model.calibration import Calibration
from dmin.training.calibrate import Scored, best_name_weight, calibrate, fit_base_offset, fit_refusal, fit_temperature
from dmin.training.small_tasks import CalibrationTask


def cosines_of(scale: float, classes: int, texts: int, seed: int) -> tuple[Tensor, Tensor]:
    """Cosines [n, C] whose labels are drawn from softmax(scale·cosine): `scale` is the truth."""
    random = np.random.default_rng(seed)
    cosines = torch.from_numpy(random.normal(0.3, 0.15, (texts, classes)))
    labels = torch.distributions.Categorical(logits=scale * cosines)
    torch.manual_seed(seed)
    return cosines.float(), labels.sample()


def test_the_true_temperature_is_found() -> None:
    scored = [Scored(*cosines_of(14.0, classes, 1500, seed), 5) for seed, classes in enumerate([5, 10, 20, 40])]
    level, per_class, per_example = fit_temperature(scored)
    assert level == pytest.approx(14.0, rel=0.08) and abs(per_class) < 1.0 and per_example == 0.0


def test_growth_is_learned_and_training_classes_have_a_level_of_their_own() -> None:
    def tasks(level: float, sizes: list[int], seed: int) -> list[Scored]:
        return [
            Scored(
                *cosines_of(level + 2.0 * np.log(shot / 5), size, 200, 1000 * seed + 97 * size + 11 * shot + number),
                shot,
            )
            for size in sizes
            for shot in (1, 5, 10)
            for number in range(40)
        ]

    level, per_class, per_example = fit_temperature(tasks(12.0, [5, 10], 1), tasks(18.0, [20, 40], 2))
    assert level == pytest.approx(12.0, rel=0.1) and abs(per_class) < 1.5
    assert per_example == pytest.approx(2.0, abs=0.8)


def test_calibrated_probabilities_have_a_small_calibration_error() -> None:
    tasks = [Scored(*cosines_of(9.0, size, 2000, seed), 5) for seed, size in enumerate([5, 10, 20, 40])]
    found = Calibration(*fit_temperature(tasks), 0.1, 0.0, 0.0, 1.0)
    cosines, labels = cosines_of(9.0, 30, 4000, 99)
    for scale, good in ((found.scale(30, 5), True), (25.0, False)):
        best = (scale * cosines.double()).softmax(-1).max(-1)
        assert (reliability(best.values.numpy(), (best.indices == labels).numpy()).error < 0.03) == good


def test_false_rejections_balance_with_unknown_texts_rejected() -> None:
    random = np.random.default_rng(0)

    def sample(unknown: float) -> Any:
        draw = [random.normal(mean, 0.05, 400) for mean in (0.6, 0.6, unknown)]
        return (2, *(torch.from_numpy(values) for values in draw))

    near, far = fit_refusal([sample(0.55)] * 4), fit_refusal([sample(0.0)] * 4)
    assert near[0] == 0.1  # unknown texts look alike: as strict as is allowed
    assert far[0] == 0.02  # unknown texts look different: few false rejections are needed
    assert far[2] == 0 and far[1] == pytest.approx(0.6 - 0.05 * 2.05, abs=0.02)


def corpus(sets: int = 1) -> Corpus:
    random = np.random.default_rng(3)
    parts = []
    for number in range(sets):
        words = ["".join(random.choice(list("abcdefghij"), 6)) for _ in range(10)]
        pairs = [(f"{word} {n} set {number}", word) for word in words for n in range(8)]
        parts.append(Corpus(f"set{number}", tuple(t for t, _ in pairs), tuple(w for _, w in pairs)))
    return join_corpora(parts) if sets > 1 else parts[0]


def letters(texts: Any) -> Tensor:
    """Counts of letters, blurred by each text's own noise: near for texts of one class."""
    rows = [[1.0 + text.split()[0].count(letter) for letter in "abcdefghij"] for text in texts]
    noise = [np.random.default_rng(list(text.encode())).normal(0, 0.6, 10) for text in texts]
    return torch.tensor(rows) + torch.tensor(np.array(noise)).float()


@pytest.mark.parametrize("sets", [1, 2])
def test_a_head_is_calibrated_on_classes_it_never_saw(sets: int) -> None:
    data = corpus(sets)
    found = calibrate(create("nearest", 10, way=5, shot=1), data, ClassSplit((), data.classes, ()), letters, seed=0)
    assert found is not None and found.tasks > 0
    assert 0 < found.refused_part <= 0.1 and -1 < found.threshold(1) <= 1
    assert found.scale(5, 1) > 1 and found.name_weight in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
    again = calibrate(create("nearest", 10, way=5, shot=1), data, ClassSplit((), data.classes, ()), letters, seed=0)
    assert again == found  # nothing is drawn without a seed
    assert Calibration.from_dict(found.as_dict()) == found


def calibrated(method: FewShotMethod, encode: Any) -> Calibration:
    data = corpus()
    found = calibrate(method, data, ClassSplit((), data.classes, ()), encode, seed=0)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["nearest", "dmin", "lwof"])
def test_a_name_that_says_more_than_an_example_gets_more_weight(name: str) -> None:
    """Names without noise beside noisy examples: a weight of 1 is not the best."""

    def encode(texts: Any) -> Tensor:
        exact = torch.tensor([[1.0 + text.split()[0].count(letter) for letter in "abcdefghij"] for text in texts])
        is_name = torch.tensor([len(text.split()) == 1 for text in texts])  # an example has more words
        noise = letters(texts) - exact
        return torch.where(is_name.unsqueeze(1), exact, exact + 2 * noise)

    method = create(
        name, 10, way=2, shot=1, base_memory=3 * torch.eye(10), **({"capsules": 1} if name == "dmin" else {})
    )
    found = calibrated(method, encode)
    assert found.name_weight in (1.5, 2.0, 3.0)


def test_a_method_that_learned_the_weight_of_a_name_keeps_it() -> None:
    method = create("dmin-plus", 10, way=2, shot=1, base_memory=3 * torch.eye(10))
    assert isinstance(method, DMINPlus)
    method.log_name_weight.data.fill_(0.3)
    assert calibrated(method.eval(), letters).name_weight == pytest.approx(math.exp(0.3), rel=1e-6)


def test_too_few_classes_or_no_cosines_give_nothing() -> None:
    data = corpus()
    assert (
        calibrate(create("nearest", 10, way=5, shot=1), data, ClassSplit((), data.classes[:2], ()), letters, seed=0)
        is None
    )
    assert (
        calibrate(create("prototypical", 10, way=5, shot=1), data, ClassSplit((), data.classes, ()), letters, seed=0)
        is None
    )
    with pytest.raises(ModelError, match="refused_part.*: train the model again"):
        Calibration.from_dict({"temperature": 1.0})


def test_base_classes_get_what_they_lack() -> None:
    """Base rows at an angle to their texts lose to novel classes until something is added."""
    torch.manual_seed(0)
    directions = torch.eye(8)
    memory = directions[:4] + 0.9 * torch.roll(directions[4:], 1, 0)
    method = create("dmin", 8, way=2, shot=1, base_memory=memory, use_memory=False, use_query=False, capsules=2)
    asked = directions[:4] + 0.9 * directions[4:].roll(2, 0)
    novel = CalibrationTask(
        asked[:2].unsqueeze(1) + 0.8, asked[:2].unsqueeze(1), asked[:2] + 0.8, torch.arange(2), asked[2:]
    )
    offset, slope = fit_base_offset(method, [novel], asked, torch.arange(4))
    assert offset > 0 and slope == 0  # one number of examples says nothing about growth


def test_where_the_weight_of_a_name_changes_nothing_it_is_one() -> None:
    """Prototypical Networks count every row as one example."""
    rows = torch.eye(4)
    own, other = rows[:2], rows[2:]
    task = CalibrationTask(own.unsqueeze(1), own.unsqueeze(1), own, torch.arange(2), other)
    assert best_name_weight(create("prototypical", 4, way=2, shot=1), [task]) == 1.0
