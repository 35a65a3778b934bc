"""Stage 2: meta-training on C-way K-shot episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dmin.data import Episode, EpisodeList, EpisodeSampler
from dmin.encoder import EncoderNetwork
from dmin.methods import EpisodeTensors, FewShotMethod
from dmin.training.config import MetaSettings
from dmin.training.sources import Inputs, TextSource, encode_inputs


class EpisodeBatch:
    """Index tensors of B episodes: every text once in `rows`, support and query as positions in it."""

    def __init__(self, episodes: Sequence[Episode], base_rows: Mapping[str, int]) -> None:
        support = torch.tensor([episode.support for episode in episodes])  # [B, C, K]
        query = torch.tensor([episode.query_rows for episode in episodes])  # [B, L]
        self.rows, positions = torch.unique(torch.cat([support.flatten(), query.flatten()]), return_inverse=True)
        self.support = positions[: support.numel()].view_as(support)
        self.query = positions[support.numel() :].view_as(query)
        self.labels = torch.tensor([episode.query_labels for episode in episodes])  # [B, L]
        self.base_rows = torch.tensor([[base_rows.get(name, -1) for name in episode.classes] for episode in episodes])

    def tensors(self, vectors: Tensor) -> EpisodeTensors:
        """The episodes with vectors [rows, d] in place of positions."""
        device = vectors.device
        return EpisodeTensors(
            vectors[self.support.to(device)],
            vectors[self.query.to(device)],
            self.labels.to(device),
            self.base_rows.to(device),
        )


class EpisodeNetwork(nn.Module):
    """Encoder (if it learns) and method, trained as one.

    Args:
        encoder: learns too; None when the inputs are vectors.
        method: what scores.
        bf16: let the encoder compute in bfloat16; the method stays in float32.
    """

    def __init__(self, encoder: EncoderNetwork | None, method: FewShotMethod, *, bf16: bool = False) -> None:
        super().__init__()
        self.encoder, self.method, self.bf16 = encoder, method, bf16

    def forward(self, inputs: Inputs, batch: EpisodeBatch) -> tuple[Tensor, Tensor]:
        """Return (loss, scores [B, L, C])."""
        episodes = batch.tensors(encode_inputs(self.encoder, inputs, self.bf16))
        return self.method.episode_loss(episodes)


class MetaStage:
    """A batch of fresh episodes an update, validated on fixed episodes of other classes."""

    number = 2
    title = "stage 2: episodes"
    unit = "episodes"

    def __init__(
        self,
        network: EpisodeNetwork,
        source: TextSource,
        sampler: EpisodeSampler,
        validation: EpisodeList,
        base_rows: Mapping[str, int],
        settings: MetaSettings,
        accelerator: Any,
    ) -> None:
        self.network, self.source, self.sampler, self.validation = network, source, sampler, validation
        self.base_rows, self.accelerator, self.batch = base_rows, accelerator, settings.batch
        self.per_step = settings.batch * accelerator.num_processes
        self.steps = -(-settings.episodes // self.per_step)
        self.validate_every = max(1, settings.validate_every // self.per_step)
        self.patience = settings.patience

    def loss(self, network: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Loss L_2 (Eq. 14) and accuracy of this process's episodes of update `step`."""
        first = step * self.per_step + self.accelerator.process_index * self.batch
        batch = EpisodeBatch([self.sampler.episode(first + i) for i in range(self.batch)], self.base_rows)
        loss, scores = network(self.source.inputs(batch.rows), batch)
        return loss, (scores.argmax(-1) == batch.labels.to(scores.device)).float().mean()

    def validate(self, network: nn.Module) -> float:
        """Mean accuracy over the validation episodes; the processes share the work."""
        del network
        correct = torch.zeros(len(self.validation), dtype=torch.float64)
        mine = range(self.accelerator.process_index, len(self.validation), self.accelerator.num_processes)
        episodes = [self.validation.episodes[number] for number in mine]
        accuracies = episode_accuracies(self.network.method, self.source, episodes)
        for number, accuracy in zip(mine, accuracies, strict=True):
            correct[number] = accuracy
        return float(self.accelerator.reduce(correct, "sum").mean())


def episode_accuracies(method: FewShotMethod, source: TextSource, episodes: Sequence[Episode]) -> list[float]:
    """Accuracy of each episode by the method and the encoder as they are now; each text is encoded once."""
    if not episodes:
        return []
    batch = EpisodeBatch(episodes, {})
    vectors = source.vectors(batch.rows)  # [rows, d]
    accuracies = []
    for number in range(len(episodes)):
        scores = method(
            vectors[batch.support[number].to(vectors.device)], vectors[batch.query[number].to(vectors.device)]
        )
        accuracies.append(float((scores.argmax(-1).cpu() == batch.labels[number]).double().mean()))
    return accuracies
