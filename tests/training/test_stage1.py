"""Stage 1."""

from __future__ import annotations

import torch

from dmin.encoder import Encoder
from dmin.training.config import SupervisedSettings
from dmin.training.sources import TextSource
from dmin.training.stage1 import BaseClassifier, SupervisedStage, memory_from
from dmin.training.task import BaseTexts, hold_out
from tests.conftest import word_corpus


def test_memory_has_the_mean_norm_of_the_vectors() -> None:
    vectors = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    memory = memory_from(torch.tensor([[10.0, 0.0], [0.0, -0.1], [1.0, 1.0]]), vectors)
    assert torch.allclose(memory.norm(dim=1), torch.full((3,), 3.0))
    assert torch.allclose(memory[1], torch.tensor([0.0, -3.0]))


def stage(tiny_encoder: Encoder, processes: int = 1, process: int = 0, batch: int = 8) -> SupervisedStage:
    corpus = word_corpus(classes=4)
    source = TextSource(corpus.texts, range(len(corpus.texts)), tiny_encoder, frozen=True)
    network = BaseClassifier(None, 4, tiny_encoder.width)
    settings = SupervisedSettings(batch=batch, epochs=3, held_out=0.25)
    texts = hold_out(corpus, corpus.classes, settings.held_out, 0)
    return SupervisedStage(network, source, texts, settings, seed=0, processes=processes, process=process)


def test_without_held_out_texts_the_training_texts_validate(tiny_encoder: Encoder) -> None:
    corpus = word_corpus(classes=2)
    source = TextSource(corpus.texts, range(len(corpus.texts)), tiny_encoder, frozen=True)
    texts = BaseTexts(((3, 0), (20, 1)), ())
    one = SupervisedStage(BaseClassifier(None, 2, 24), source, texts, SupervisedSettings(), seed=0)
    assert one.held_rows.tolist() == [3, 20] and one.held_labels.tolist() == [0, 1]


def test_an_epoch_sees_every_text_once(tiny_encoder: Encoder) -> None:
    one = stage(tiny_encoder)
    assert len(one.rows) == 48 and len(one.held_rows) == 16
    assert (one.validate_every, one.steps) == (6, 18)
    for epoch in range(2):
        drawn = [one._drawn(position) for position in range(48 * epoch, 48 * (epoch + 1))]
        assert sorted(drawn) == list(range(48))
    assert [one._drawn(position) for position in range(48)] != drawn


def test_two_processes_share_a_batch(tiny_encoder: Encoder) -> None:
    """The mean loss of two halves is the loss of the whole."""
    whole = stage(tiny_encoder, batch=8)
    halves = [stage(tiny_encoder, processes=2, process=rank, batch=4) for rank in range(2)]
    for step in range(8):
        together = whole.loss(whole.network, step)[0]
        apart = torch.stack([half.loss(half.network, step)[0] for half in halves]).mean()
        assert torch.allclose(together, apart, atol=1e-6)
