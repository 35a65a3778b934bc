"""Stage 2."""

from __future__ import annotations

import pytest
import torch
from accelerate import Accelerator

from dmin.data import Corpus, EpisodeSampler
from dmin.encoder import Encoder
from dmin.methods import create
from dmin.training.config import MetaSettings
from dmin.training.sources import TextSource, encode_inputs
from dmin.training.stage2 import EpisodeBatch, EpisodeNetwork, MetaStage, episode_accuracies
from tests.conftest import word_corpus

CORPUS = word_corpus()


def sampler(seed: int = 0) -> EpisodeSampler:
    return EpisodeSampler(CORPUS, CORPUS.classes, 3, 2, 4, seed)


def test_a_batch_holds_each_text_once_and_points_to_it() -> None:
    episodes = [sampler().episode(number) for number in range(3)]
    batch = EpisodeBatch(episodes, {episodes[0].classes[1]: 7})
    assert len(set(batch.rows.tolist())) == len(batch.rows)
    vectors = batch.rows.float().unsqueeze(1)  # a text's vector is its own number
    tensors = batch.tensors(vectors)
    assert tensors.support.squeeze(-1).tolist() == [[list(map(float, row)) for row in e.support] for e in episodes]
    assert tensors.query.squeeze(-1).tolist() == [list(map(float, e.query_rows)) for e in episodes]
    assert tensors.labels.tolist() == [e.query_labels for e in episodes]
    assert tensors.base_rows[0].tolist() == [-1, 7, -1]


@pytest.mark.parametrize("frozen", [True, False])
def test_vectors_from_a_table_and_from_the_encoder_are_the_same(tiny_encoder: Encoder, frozen: bool) -> None:
    source = TextSource(CORPUS.texts, range(20), tiny_encoder, frozen=frozen)
    rows = torch.tensor([3, 17, 5, 3])
    expected = torch.from_numpy(tiny_encoder.encode([CORPUS.texts[row] for row in rows]))
    assert torch.allclose(source.vectors(rows), expected, atol=1e-6)
    with torch.no_grad():
        assert torch.allclose(encode_inputs(tiny_encoder.network, source.inputs(rows)), expected, atol=1e-6)


def test_a_text_that_was_not_prepared_is_never_taken_for_a_vector(tiny_encoder: Encoder) -> None:
    source = TextSource(CORPUS.texts, range(5), tiny_encoder, frozen=True)
    assert torch.isnan(source.vectors(torch.tensor([9]))).all()


def test_accuracies_by_hand(tiny_encoder: Encoder) -> None:
    source = TextSource(CORPUS.texts, range(len(CORPUS.texts)), tiny_encoder, frozen=True)
    method = create("nearest", 24, way=3, shot=2)
    episodes = [sampler().episode(number) for number in range(3)]
    found = episode_accuracies(method, source, episodes)
    for episode, accuracy in zip(episodes, found, strict=True):
        scores = method(source.vectors(torch.tensor(episode.support)), source.vectors(torch.tensor(episode.query_rows)))
        right = scores.argmax(-1) == torch.tensor(episode.query_labels)
        assert accuracy == pytest.approx(right.double().mean().item())
    assert episode_accuracies(method, source, []) == []


def test_a_batch_of_episodes_has_the_mean_of_their_losses(tiny_encoder: Encoder) -> None:
    source = TextSource(CORPUS.texts, range(len(CORPUS.texts)), tiny_encoder, frozen=True)
    memory = torch.randn(4, 24, generator=torch.Generator().manual_seed(0))
    network = EpisodeNetwork(None, create("dmin", 24, way=3, shot=2, base_memory=memory))
    validation = sampler(9).take(2)

    def stage(batch: int) -> MetaStage:
        settings = MetaSettings(episodes=10, batch=batch, validate_every=4)
        return MetaStage(network, source, sampler(), validation, {}, settings, Accelerator(cpu=True))

    together, single = stage(4), stage(1)
    assert (together.steps, together.validate_every, single.steps) == (3, 1, 10)
    for step in range(2):
        alone = torch.stack([single.loss(network, 4 * step + number)[0] for number in range(4)]).mean()
        assert torch.allclose(together.loss(network, step)[0], alone, atol=1e-5)


def test_encoder_learns_through_support_and_query(tiny_encoder: Encoder) -> None:
    source = TextSource(CORPUS.texts, range(len(CORPUS.texts)), tiny_encoder, frozen=False)
    memory = torch.randn(4, 24, generator=torch.Generator().manual_seed(0))
    method = create("dmin", 24, way=3, shot=2, base_memory=memory)
    network = EpisodeNetwork(tiny_encoder.network, method)
    batch = EpisodeBatch([sampler().episode(0)], {})
    loss, scores = network(source.inputs(batch.rows), batch)
    loss.backward()
    assert scores.shape == (1, 12, 3)
    missing = [name for name, weight in network.named_parameters() if weight.requires_grad and weight.grad is None]
    assert missing == []


def test_corpus_is_not_needed_whole(tiny_encoder: Encoder) -> None:
    corpus = Corpus.from_mapping({"a": ["x one", "y two"], "b": ["z three"]})
    assert TextSource(corpus.texts, [1], tiny_encoder, frozen=False).inputs(torch.tensor([1]))
