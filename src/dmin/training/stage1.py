"""Stage 1: a cosine classifier over the base classes, whose class vectors become the memory W_base."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.encoder import EncoderNetwork, TextEncoder
from dmin.encoder.opening import tunable
from dmin.methods.base import unit
from dmin.threads import one_thread
from dmin.training.checkpoint import Checkpoint
from dmin.training.config import SupervisedSettings, TrainConfig
from dmin.training.loop import Loop, LoopSettings
from dmin.training.sources import Encoded, TextSource, TokenIds, encode_inputs
from dmin.training.task import BaseTexts, Task
from dmin.training.tuning import seen_words_learn, wants_bf16

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
    """Batches of base texts, validated on held-out texts."""

    number = 1
    title = "stage 1: base classes"
    unit = "texts"

    def __init__(
        self,
        network: BaseClassifier,
        source: TextSource,
        base_texts: BaseTexts,
        settings: SupervisedSettings,
        *,
        seed: int,
        processes: int = 1,
        process: int = 0,
    ) -> None:
        self.network, self.source, self.seed, self.process = network, source, seed, process
        train = base_texts.train
        self.rows, self.labels = torch.tensor([row for row, _ in train]), torch.tensor([label for _, label in train])
        # With nothing held out, the training texts themselves are the only measure there is.
        judged = base_texts.held_out or train
        self.held_rows = torch.tensor([row for row, _ in judged])
        self.held_labels = torch.tensor([label for _, label in judged])
        self.batch = min(settings.batch, max(1, len(train) // processes))
        self.per_step = self.batch * processes
        self.validate_every = max(1, len(train) // self.per_step)
        self.steps = settings.epochs * self.validate_every
        self.patience = settings.patience
        self._epoch, self._order = -1, np.empty(0, dtype=int)  # the shuffle that was drawn last

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
        if self._epoch != epoch:
            self._epoch = epoch
            self._order = np.random.default_rng([self.seed, 1, epoch]).permutation(len(self.rows))
        return int(self._order[place])


def memory_from(weight: Tensor, vectors: Tensor) -> Tensor:
    """W_base with its rows rescaled to the mean norm of the training vectors [n, d].

    Cosine training leaves the rows' norms without meaning, but squash, which comes next, is not scale-invariant.
    """
    size: Tensor = torch.linalg.vector_norm(vectors, dim=-1).mean()
    return unit(weight.detach()) * size


@dataclass(frozen=True)
class BaseKnowledge:
    """What stage 1 hands over: the memory W_base [N, d], rescaled, the scale τ, and the mean of the base texts [d]."""

    memory: Tensor
    scale: float
    mean: Tensor


def train_stage1(
    config: TrainConfig,
    task: Task,
    source: TextSource,
    encoder: TextEncoder,
    loop: Loop,
    resumed: Checkpoint | None = None,
) -> BaseKnowledge:
    """Train the base classifier and hand over its memory."""
    accelerator = loop.accelerator
    tuned = tunable(encoder).network if config.tune != "none" else None
    network = BaseClassifier(
        tuned, len(task.base_classes), encoder.width, seed=config.seed, bf16=wants_bf16(config, encoder)
    ).to(accelerator.device)
    stage = SupervisedStage(
        network, source, task.base_texts, config.stage1, seed=config.seed,
        processes=accelerator.num_processes, process=accelerator.process_index,
    )  # fmt: skip
    rates = LoopSettings.of(config, config.stage1.learning_rate, config.stage1.encoder_learning_rate)
    with one_thread(source.frozen), seen_words_learn(tuned, source.all_token_ids()):
        loop.run(stage, rates, resumed)
    encoder.refresh()
    rows = torch.tensor(task.corpus.rows_of(task.base_classes))
    vectors = source.vectors(rows)  # [n, d]
    return BaseKnowledge(memory_from(network.weight, vectors), network.scale.item(), vectors.mean(dim=0))
