"""Stage 2: meta-training on C-way K-shot episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmin.data import Corpus, Episode, EpisodeList, EpisodeSampler, VariedSampler
from dmin.encoder import EncoderNetwork, TextEncoder
from dmin.encoder.opening import tunable
from dmin.methods import EpisodeTensors, FewShotMethod, name_weight, prepared_scoring, score_prepared
from dmin.threads import one_thread
from dmin.training.checkpoint import Checkpoint, LoopState
from dmin.training.config import MetaSettings, TrainConfig
from dmin.training.loop import Loop, LoopSettings
from dmin.training.sources import Encoded, EncodedTexts, TextSource, TokenIds, encode_inputs, source_kind, take
from dmin.training.task import Task
from dmin.training.tuning import seen_words_learn, wants_bf16


class EpisodeBatch:
    """Index tensors of B episodes: every text once in `rows`, support and query as positions in it.

    Args:
        episodes: the episodes.
        base_rows: each base class's row in the memory.
        base_queries: for each episode, (index of a text, row of its base class) of queries from other base classes.
        name_rows: where each class's name stands among the texts, if names take part as last support rows.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        base_rows: Mapping[str, int],
        base_queries: Sequence[Sequence[tuple[int, int]]] = (),
        name_rows: Mapping[str, int] | None = None,
    ) -> None:
        support = torch.tensor([episode.support for episode in episodes])  # [B, C, K]
        self.named = name_rows is not None
        if name_rows is not None:
            names = torch.tensor([[[name_rows[label]] for label in episode.classes] for episode in episodes])
            support = torch.cat([support, names], dim=-1)  # [B, C, K + 1]
        query = torch.tensor([episode.query_rows for episode in episodes])  # [B, L]
        others = torch.tensor(base_queries, dtype=torch.long).reshape(len(episodes), -1, 2)  # [B, Lb, 2]
        parts = [support, query, others[..., 0]]
        self.rows, positions = torch.unique(torch.cat([part.flatten() for part in parts]), return_inverse=True)
        pieces = positions.split([part.numel() for part in parts])
        self.support, self.query, self.base_query = (
            piece.view_as(part) for piece, part in zip(pieces, parts, strict=True)
        )
        self.labels = torch.tensor([episode.query_labels for episode in episodes])  # [B, L]
        self.base_labels = others[..., 1]  # [B, Lb]
        self.base_rows = torch.tensor([[base_rows.get(name, -1) for name in episode.classes] for episode in episodes])

    def tensors(self, encoded: Encoded) -> EpisodeTensors:
        """The episodes with encoded texts [rows, ...] in place of positions."""
        device = encoded[0].device
        joint = self.base_query.numel() > 0
        asked = take(encoded, self.base_query) if joint else None
        return EpisodeTensors(
            take(encoded, self.support),
            take(encoded, self.query),
            self.labels.to(device),
            self.base_rows.to(device),
            asked if isinstance(asked, Tensor) else None,
            self.base_labels.to(device) if joint else None,
            self.named,
        )


class BaseQueries:
    """Draws queries from base classes that an episode does not hold, as many as the episode has of its own."""

    def __init__(self, corpus: Corpus, base_rows: Mapping[str, int], seed: int) -> None:
        self.corpus, self.base_rows, self.seed = corpus, base_rows, seed

    def draw(self, number: int, episode: Episode) -> list[tuple[int, int]]:
        """(index of a text, row of its base class) pairs for episode `number`."""
        random = np.random.default_rng([self.seed, 3, number])
        others = [label for label in self.base_rows if label not in episode.classes]
        chosen = random.choice(len(others), size=len(episode.query_rows))
        return [
            (int(random.choice(self.corpus.by_class[others[index]])), self.base_rows[others[index]]) for index in chosen
        ]


class EpisodeNetwork(nn.Module):
    """Encoder (if it learns) and method, trained as one.

    Args:
        encoder: learns too; None when the inputs are encoded already.
        method: what scores.
        bf16: let the encoder compute in bfloat16; the method stays in float32.
    """

    def __init__(self, encoder: EncoderNetwork | None, method: FewShotMethod, *, bf16: bool = False) -> None:
        super().__init__()
        self.encoder, self.method, self.bf16 = encoder, method, bf16

    def forward(self, inputs: Encoded | TokenIds, batch: EpisodeBatch) -> tuple[Tensor, Tensor]:
        """Return (loss, scores [B, L, C])."""
        encoded = encode_inputs(self.encoder, inputs, source_kind(self.method), self.bf16)
        return self.method.episode_loss(batch.tensors(encoded))


class MetaStage:
    """A batch of new episodes per update, validated on fixed episodes of other classes."""

    number = 2
    title = "stage 2: episodes"
    unit = "episodes"

    def __init__(
        self,
        network: EpisodeNetwork,
        source: TextSource,
        sampler: EpisodeSampler | VariedSampler,
        validation: EpisodeList,
        base_rows: Mapping[str, int],
        settings: MetaSettings,
        accelerator: Any,
        name_rows: Mapping[str, int] | None = None,
    ) -> None:
        self.name_rows, self.names = name_rows, settings.names
        self.network, self.source, self.sampler, self.validation = network, source, sampler, validation
        self.base_rows, self.accelerator, self.batch = base_rows, accelerator, settings.batch
        self.per_step = settings.batch * accelerator.num_processes
        self.steps = -(-settings.episodes // self.per_step)
        self.validate_every = max(1, settings.validate_every // self.per_step)
        self.patience = settings.patience
        joint = network.method.traits.episodes_from_base
        self.base_queries = BaseQueries(sampler.corpus, base_rows, sampler.seed) if joint else None

    def loss(self, network: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Loss L_2 (Eq. 14) and accuracy of this process's episodes of update `step`."""
        first = step * self.per_step + self.accelerator.process_index * self.batch
        numbers = range(first, first + self.batch)
        episodes = [self.sampler.episode(number) for number in numbers]
        asked = (
            [self.base_queries.draw(n, e) for n, e in zip(numbers, episodes, strict=True)] if self.base_queries else []
        )
        named = np.random.default_rng([self.sampler.seed, 6, first]).random() < self.names
        batch = EpisodeBatch(episodes, self.base_rows, asked, self.name_rows if named else None)
        loss, scores = network(self.source.inputs(batch.rows), batch)
        return loss, (scores.argmax(-1) == batch.labels.to(scores.device)).float().mean()

    def validate(self, network: nn.Module) -> float:
        """Mean accuracy over the validation episodes; the processes share the work."""
        del network
        correct = torch.zeros(len(self.validation), dtype=torch.float64)
        mine = range(self.accelerator.process_index, len(self.validation), self.accelerator.num_processes)
        episodes = [self.validation.episodes[number] for number in mine]
        names = self.name_rows if self.names == 1 else None  # else the harder question is asked
        accuracies = episode_accuracies(self.network.method, self.source, episodes, names)
        for number, accuracy in zip(mine, accuracies, strict=True):
            correct[number] = accuracy
        return float(self.accelerator.reduce(correct, "sum").mean())


def score_episode(
    method: FewShotMethod, texts: EncodedTexts, episode: Episode, name_rows: Mapping[str, int] | None = None
) -> Tensor:
    """Scores [L, C] of an episode's queries; with names, each class's name is one more row of its support.

    A method that learned what a name is worth weighs it so; for the others it is an example like any other.
    """
    support = torch.tensor(episode.support)  # [C, K]
    if name_rows is not None:
        support = torch.cat([support, torch.tensor([[name_rows[label]] for label in episode.classes])], dim=-1)
    rows, query = texts.at(support), texts.at(torch.tensor(episode.query_rows))
    if name_rows is None or not isinstance(rows, Tensor) or not isinstance(query, Tensor):
        scores: Tensor = method(rows, query)
    else:
        weights = torch.ones(rows.shape[:-1], device=rows.device)  # [C, K + 1]
        weights[:, -1] = name_weight(method)
        scores = score_prepared(method, prepared_scoring(method).prepare(rows), query, None, weights)
    return scores


def episode_accuracies(
    method: FewShotMethod,
    source: TextSource,
    episodes: Sequence[Episode],
    name_rows: Mapping[str, int] | None = None,
) -> list[float]:
    """Accuracy of each episode by the method and the encoder as they are now; each text is encoded once."""
    used = {row for episode in episodes for rows in (*episode.support, *episode.query) for row in rows}
    if name_rows is not None:
        used |= {name_rows[label] for episode in episodes for label in episode.classes}
    table = source.snapshot(used)
    accuracies = []
    for episode in episodes:
        scores = score_episode(method, table, episode, name_rows)
        right = scores.argmax(-1).cpu() == torch.tensor(episode.query_labels)
        accuracies.append(float(right.double().mean()))
    return accuracies


def train_stage2(
    config: TrainConfig,
    task: Task,
    source: TextSource,
    encoder: TextEncoder,
    method: FewShotMethod,
    loop: Loop,
    resumed: Checkpoint | None = None,
) -> LoopState:
    """Meta-train the method (and the encoder, where it learns) on episodes."""
    tuned = config.tune != "none" and not method.traits.freezes_encoder
    if not tuned and not source.frozen:  # the encoder is frozen from here on: encode every text once
        source = TextSource(task.texts, source.rows, encoder, frozen=True, kind=source.kind)
    learning = tunable(encoder).network if tuned else None
    network = EpisodeNetwork(learning, method, bf16=tuned and wants_bf16(config, encoder))
    network.to(loop.accelerator.device)
    stage = MetaStage(
        network, source, task.sampler, task.validation, task.base_rows, config.stage2, loop.accelerator,
        name_rows=task.name_rows,
    )  # fmt: skip
    rate = config.stage2.learning_rate or method.traits.learning_rate
    settings = LoopSettings.of(config, rate, config.stage2.encoder_learning_rate)
    scalars = config.stage2.scalar_learning_rate or method.traits.scalar_learning_rate
    with one_thread(source.frozen), seen_words_learn(network.encoder, source.all_token_ids()):
        return loop.run(stage, replace(settings, scalar_learning_rate=scalars), resumed)
