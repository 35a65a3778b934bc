"""Stage 1: a cosine classifier over the base classes, whose class vectors become the memory W_base."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.data import Corpus
from dmin.encoder import EncoderNetwork
from dmin.methods.base import unit
from dmin.training.config import SupervisedSettings
from dmin.training.sources import Encoded, TextSource, TokenIds, encode_inputs

INITIAL_SCALE = 10.0


class BaseClassifier(nn.Module):
    """s = τ·cos(e, w_k) for each base class k (Eq. 11).

    Args:
        encoder: learns too; None when the inputs are vectors.
        classes: number of base classes.
        dim: width of the vectors.
        seed: of the initial class vectors.
        bf16: let the encoder compute in bfloat16.
    """

    def __init__(
        self, encoder: EncoderNetwork | None, classes: int, dim: int, *, seed: int = 0, bf16: bool = False
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.encoder, self.bf16 = encoder, bf16
        self.weight = nn.Parameter(torch.randn(classes, dim, generator=generator) * math.sqrt(2 / dim))  # [N, d]
        self.scale = nn.Parameter(torch.tensor(INITIAL_SCALE))

    def forward(self, inputs: Encoded | TokenIds) -> Tensor:
        """Scores [n, N]."""
        vectors = encode_inputs(self.encoder, inputs, bf16=self.bf16)  # [n, d]
        assert isinstance(vectors, Tensor)  # noqa: S101 (stage 1 knows vectors only)
        return self.scale * unit(vectors) @ unit(self.weight).T


class SupervisedStage:
    """Batches of base texts, validated on texts kept aside."""

    number = 1
    title = "stage 1: base classes"
    unit = "texts"

    def __init__(
        self,
        network: BaseClassifier,
        source: TextSource,
        corpus: Corpus,
        base_classes: Sequence[str],
        settings: SupervisedSettings,
        *,
        seed: int,
        processes: int = 1,
        process: int = 0,
    ) -> None:
        self.network, self.source, self.seed, self.process = network, source, seed, process
        train, held = hold_out(corpus, base_classes, settings.held_out, seed)
        self.rows, self.labels = torch.tensor([row for row, _ in train]), torch.tensor([label for _, label in train])
        # With nothing held out, the training texts themselves are the only measure there is.
        judged = held or train
        self.held_rows = torch.tensor([row for row, _ in judged])
        self.held_labels = torch.tensor([label for _, label in judged])
        self.batch = min(settings.batch, max(1, len(train) // processes))
        self.per_step = self.batch * processes
        self.validate_every = max(1, len(train) // self.per_step)
        self.steps = settings.epochs * self.validate_every
        self.patience = settings.patience

    def loss(self, network: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Cross-entropy L_1 (Eq. 13) and accuracy of this process's part of update `step`."""
        start = step * self.per_step + self.process * self.batch
        picked = torch.tensor([self._drawn(position) for position in range(start, start + self.batch)])
        scores = network(self.source.inputs(self.rows[picked]))
        labels = self.labels[picked].to(scores.device)
        return functional.cross_entropy(scores, labels), (scores.argmax(-1) == labels).float().mean()

    def validate(self, network: nn.Module) -> float:
        """Accuracy on the held-out texts."""
        del network  # the weights are shared; every process computes the same
        scores = self.network(self.source.vectors(self.held_rows))
        return float((scores.argmax(-1).cpu() == self.held_labels).float().mean())

    def _drawn(self, position: int) -> int:
        """The text at a position of an endless stream: one seeded shuffle of the texts after another."""
        epoch, place = divmod(position, len(self.rows))
        if getattr(self, "_epoch", None) != epoch:
            self._epoch = epoch
            self._order = np.random.default_rng([self.seed, 1, epoch]).permutation(len(self.rows))
        return int(self._order[place])


def hold_out(
    corpus: Corpus, classes: Sequence[str], part: float, seed: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Divide each class's texts into (index, class number) pairs to learn from and to judge by.

    Every class keeps at least one text to learn from; a class of one text gives none away.
    """
    random = np.random.default_rng([seed, 0])
    train: list[tuple[int, int]] = []
    held: list[tuple[int, int]] = []
    for number, label in enumerate(classes):
        rows = random.permutation(corpus.by_class[label]).tolist()
        aside = min(math.ceil(part * len(rows)), len(rows) - 1) if part else 0
        held += [(row, number) for row in rows[:aside]]
        train += [(row, number) for row in rows[aside:]]
    return train, held


def memory_from(weight: Tensor, vectors: Tensor) -> Tensor:
    """W_base with its rows rescaled to the mean norm of the training vectors [n, d].

    Cosine training leaves the rows' norms without meaning, but squash, which comes next, is not scale-invariant.
    """
    size: Tensor = torch.linalg.vector_norm(vectors, dim=-1).mean()
    return unit(weight.detach()) * size
