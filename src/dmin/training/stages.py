"""The two stages, each on a loop that may resume: what `dmin train` and `dmin compare` share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dmin.encoder import Encoder, VectorCache
from dmin.errors import ConfigError
from dmin.methods import FewShotMethod, StartsFromStage1, create, method_class
from dmin.methods.base import Inputs
from dmin.threads import one_thread
from dmin.training.checkpoint import Checkpoint, LoopState
from dmin.training.config import TrainConfig
from dmin.training.loop import Loop, LoopSettings
from dmin.training.precision import breaks_on_bf16, pays_bf16
from dmin.training.sources import TextSource
from dmin.training.stage1 import BaseClassifier, SupervisedStage, memory_from
from dmin.training.stage2 import EpisodeNetwork, MetaStage
from dmin.training.task import Task
from dmin.training.words import seen_words_learn


@dataclass(frozen=True)
class BaseKnowledge:
    """What stage 1 hands over: the memory W_base [N, d], rescaled, the scale τ, and the mean of the base texts [d]."""

    memory: Tensor
    scale: float
    mean: Tensor


def open_encoder(config: TrainConfig) -> Encoder:
    """The encoder that the settings ask for, with the pooling that suits the method where they leave that open."""
    return Encoder(config.encoder, pooling=chosen_pooling(config), max_length=config.max_length, device=config.device)


def chosen_pooling(config: TrainConfig) -> str:
    """The pooling of the settings; "auto" with a resting encoder is the method's own, if it has one.

    A tuned encoder starts alike for every method, and can bring into its last layer what a method needs.
    """
    method = method_class(config.method)
    if method.inputs == "tokens" and config.pooling == "layers":
        return "auto"  # it does not pool
    return method.traits.pooling if config.pooling == "auto" and config.tune == "none" else config.pooling


def open_source(
    config: TrainConfig, task: Task, encoder: Encoder, parts: tuple[str, ...], *, kind: Inputs = "vectors",
    frozen: bool, show: bool = False,
) -> TextSource:  # fmt: skip
    """The texts of some parts of the split; the cache of vectors is used when the encoder is not being tuned."""
    cache = VectorCache() if config.tune == "none" else None
    names = task.name_rows.values() if config.stage2.names else ()
    return TextSource(
        task.texts, [*task.rows(*parts), *names], encoder, frozen=frozen, kind=kind, cache=cache, show=show
    )


def train_stage1(
    config: TrainConfig, task: Task, source: TextSource, encoder: Encoder, loop: Loop, resumed: Checkpoint | None = None
) -> BaseKnowledge:
    """Train the base classifier and hand over its memory."""
    accelerator = loop.accelerator
    tuned = encoder.network if config.tune != "none" else None
    network = BaseClassifier(
        tuned, len(task.base_classes), encoder.width, seed=config.seed, bf16=wants_bf16(config, encoder)
    ).to(accelerator.device)
    stage = SupervisedStage(
        network, source, task.corpus, task.base_classes, config.stage1, seed=config.seed,
        processes=accelerator.num_processes, process=accelerator.process_index,
    )  # fmt: skip
    rates = loop_settings(config, config.stage1.learning_rate, config.stage1.encoder_learning_rate)
    with one_thread(source.frozen), seen_words_learn(tuned, source.all_token_ids()):
        loop.run(stage, rates, resumed)
    encoder.refresh()
    rows = torch.tensor([row for label in task.base_classes for row in task.corpus.by_class[label]])
    vectors = source.vectors(rows)  # [n, d]
    return BaseKnowledge(memory_from(network.weight, vectors), network.scale.item(), vectors.mean(dim=0))


def build_head(config: TrainConfig, task: Task, dim: int, knowledge: BaseKnowledge | None) -> FewShotMethod:
    """The method at its start; without knowledge (a resumed run) its memory is filled in by the checkpoint."""
    memory = knowledge.memory if knowledge else torch.ones(len(task.base_classes), dim)
    method = create(
        config.method, dim, way=config.way, shot=config.shot, base_memory=memory, seed=config.seed, **config.options
    )
    if knowledge and isinstance(method, StartsFromStage1):
        method.start_from_stage1(None if "scale" in config.options else knowledge.scale, knowledge.mean)
    return method


def train_stage2(
    config: TrainConfig,
    task: Task,
    source: TextSource,
    encoder: Encoder,
    method: FewShotMethod,
    loop: Loop,
    resumed: Checkpoint | None = None,
) -> LoopState:
    """Meta-train the method (and the encoder, where it learns) on episodes."""
    tuned = config.tune != "none" and not method.traits.freezes_encoder
    if not tuned and not source.frozen:  # the encoder rests from here on: encode every text once
        source = TextSource(task.texts, source.rows, encoder, frozen=True, kind=source.kind)
    network = EpisodeNetwork(encoder.network if tuned else None, method, bf16=tuned and wants_bf16(config, encoder))
    network.to(loop.accelerator.device)
    stage = MetaStage(
        network, source, task.sampler, task.validation, task.base_rows, config.stage2, loop.accelerator,
        name_rows=task.name_rows,
    )  # fmt: skip
    rate = config.stage2.learning_rate or method.traits.learning_rate
    settings = loop_settings(config, rate, config.stage2.encoder_learning_rate)
    scalars = config.stage2.scalar_learning_rate or method.traits.scalar_learning_rate
    with one_thread(source.frozen), seen_words_learn(network.encoder, source.all_token_ids()):
        return loop.run(stage, replace(settings, scalar_learning_rate=scalars), resumed)


def loop_settings(config: TrainConfig, rate: float, encoder_rate: float) -> LoopSettings:
    """How a stage moves its weights."""
    return LoopSettings(rate, encoder_rate, config.weight_decay, config.warm_up, config.clip, config.seed)


def wants_bf16(config: TrainConfig, encoder: Encoder) -> bool:
    """Should the encoder learn in bfloat16?"""
    if config.tune == "none" or config.precision == "float32":
        return False
    if config.precision == "auto":
        return pays_bf16(encoder.network.device)
    if breaks_on_bf16(encoder.network.device):
        raise ConfigError(
            "precision bf16: this CPU announces matrix tiles that this system does not allow; use precision=float32, or "
            "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
        )
    return True
