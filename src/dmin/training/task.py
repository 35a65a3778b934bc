"""What a run starts from: its encoder, texts, classes and episodes; wrong settings for them are refused here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from dmin.data import (
    ClassSplit,
    Corpus,
    Episode,
    EpisodeList,
    EpisodeSampler,
    VariedSampler,
    choose_split,
    leave_out,
    load_corpus,
)
from dmin.data.labelled import read_corpus
from dmin.encoder import TextEncoder
from dmin.encoder import open_encoder as open_named
from dmin.encoder.opening import is_frozen
from dmin.errors import ConfigError, DataError, unknown_name
from dmin.methods import METHODS, FewShotMethod, KeepsBaseClasses, LearnsNameWeight, create, method_class
from dmin.methods.base import check_options
from dmin.training.config import TrainConfig

# Validation episodes draw by a seed of their own, away from the training episodes.
VALIDATION_SEED = 1_000_003
ALL_CLASSES = "all-classes"  # stands for the name of a class split where no class is held back
BILSTM = "bilstm"  # an encoder that is learned from nothing, for comparisons

BaseText = tuple[int, int]  # (index of a text, number of its base class, which is its row in the memory)


@dataclass(frozen=True)
class BaseTexts:
    """The texts of the base classes: those that stage 1 learns from, and those held out to validate it."""

    train: tuple[BaseText, ...]
    held_out: tuple[BaseText, ...]


@dataclass(frozen=True)
class Task:
    """Texts, class split, base classes and their texts, training episodes and validation episodes."""

    corpus: Corpus
    split_name: str
    split: ClassSplit
    base_classes: tuple[str, ...]
    base_texts: BaseTexts
    sampler: EpisodeSampler | VariedSampler
    validation: EpisodeList

    def text_indices(self, *parts: str) -> list[int]:
        """Indices of all texts of the classes of some parts of the split."""
        return [index for part in parts for index in self.corpus.rows_of(self.split.part(part))]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts of the corpus, then the names of its classes."""
        return (*self.corpus.texts, *(self.corpus.name_of(label) for label in self.corpus.classes))

    @cached_property
    def name_rows(self) -> dict[str, int]:
        """Where each class's name stands in `texts`."""
        return {label: len(self.corpus.texts) + number for number, label in enumerate(self.corpus.classes)}

    @property
    def base_rows(self) -> dict[str, int]:
        """Each base class's row in the memory."""
        return {label: row for row, label in enumerate(self.base_classes)}


def prepare_task(config: TrainConfig, warn: Callable[[str], None], corpus: Corpus | None = None) -> Task:
    """Load the data (unless given), choose classes and draw the validation episodes."""
    method = method_class(config.method)
    check_options(method, config.options)
    corpus = corpus or open_corpus(config)
    if config.all_classes:
        return _all_classes_task(config, method, corpus, warn)
    split_name, split = choose_split(corpus, config.split, config.split_seed, config.split_sizes)
    base = choose_base(config, split)
    if method.traits.episodes_from_base:
        drawn = base
    else:
        drawn = split.train if config.episode_classes == "all" else tuple(c for c in split.train if c not in base)
    base_texts = hold_out(corpus, base, config.stage1.held_out, config.seed)
    seen = corpus.hiding(row for row, _ in base_texts.held_out) if config.stage2.hold_out else corpus
    sampler = make_sampler(config, seen, drawn)
    if sampler.left_out:
        warn(_left_out(sampler))
    enough, _ = corpus.large_enough(split.valid, config.shot + config.queries)
    way = min(config.way, len(enough))
    if way < 2:
        raise DataError(
            f"{corpus.name}: validation needs 2 classes of {config.shot} + {config.queries} texts; split {split_name} "
            f"has {len(enough)}. Choose another split, or lower --shot or --queries"
        )
    if way < config.way and method.traits.tied_to == "way":
        raise ConfigError(
            f"{config.method} is trained for {config.way} classes, but only {way} validation classes are large enough"
        )
    if way < config.way:
        warn(f"only {way} validation classes are large enough: validating {way}-way instead of {config.way}-way")
    judge = EpisodeSampler(corpus, split.valid, way, config.shot, config.queries, VALIDATION_SEED + config.seed)
    return Task(corpus, split_name, split, base, base_texts, sampler, judge.take(config.stage2.validation_episodes))


def _all_classes_task(
    config: TrainConfig, method: type[FewShotMethod], corpus: Corpus, warn: Callable[[str], None]
) -> Task:
    """A task whose classes are all base classes; both stages are validated on the same held-out texts."""
    _check_all_classes(config, method, corpus)
    classes = corpus.classes
    base_texts = hold_out(corpus, classes, config.stage1.held_out, config.seed)
    if not base_texts.held_out:
        raise DataError(f"{corpus.name}: no class has a second text to hold out, and all_classes is validated by texts")
    seen = corpus.hiding(row for row, _ in base_texts.held_out)
    enough, _ = seen.large_enough(classes, config.shot + config.queries)
    way = min(config.way, max(2, len(enough)))
    sampler = make_sampler(config.model_copy(update={"way": way}), seen, classes)
    if sampler.left_out:
        warn(_left_out(sampler))
    held = corpus.hiding(row for row, _ in base_texts.train)
    validation = held_out_episodes(
        seen, held, way, config.shot, config.queries, VALIDATION_SEED + config.seed, config.stage2.validation_episodes
    )
    return Task(corpus, ALL_CLASSES, ClassSplit(classes, (), ()), classes, base_texts, sampler, validation)


def _check_all_classes(config: TrainConfig, method: type[FewShotMethod], corpus: Corpus) -> None:
    """Refuse settings that all_classes contradicts."""
    able = [name for name, other in METHODS.items() if _keeps_classes(other)]
    if not _keeps_classes(method):
        raise ConfigError(f"all_classes: a {config.method} model keeps no classes of its own; use {', '.join(able)}")
    for name in ("split", "split_seed", "split_sizes"):
        if getattr(config, name) is not None:
            raise ConfigError(f"all_classes holds no class back: leave out {name}={getattr(config, name)!r}")
    for name in ("base_classes", "episode_classes"):
        if getattr(config, name) != "all":
            raise ConfigError(f"all_classes trains on every class: leave out {name}={getattr(config, name)!r}")
    if not config.stage1.held_out:
        raise ConfigError("all_classes is validated by held-out texts: stage1.held_out must be above 0, like 0.1")
    if len(corpus.classes) < 2:
        raise DataError(f"{corpus.name} has {len(corpus.classes)} class: at least 2 are needed")


def _keeps_classes(method: type[FewShotMethod]) -> bool:
    """Can a model of this method answer its base classes, in cosines?"""
    return issubclass(method, KeepsBaseClasses) and method.traits.gives_cosines


def held_out_episodes(
    seen: Corpus, held: Corpus, way: int, shot: int, queries: int, seed: int, count: int
) -> EpisodeList:
    """Episodes of known classes: support of texts that training sees, queries of texts that it does not.

    Args:
        seen: lists the texts to learn from.
        held: the same corpus, listing the held-out texts.
        way: classes in an episode, at most.
        shot: support texts per class.
        queries: held-out texts per class, at most: a small class has few.
        seed: of the episodes.
        count: how many.
    """
    classes = [label for label in seen.large_enough(seen.classes, shot)[0] if held.by_class[label]]
    episodes = []
    for number in range(count):
        random = np.random.default_rng([seed, number])
        chosen = [classes[index] for index in random.permutation(len(classes))[:way]]
        support = [random.permutation(seen.by_class[label])[:shot].tolist() for label in chosen]
        query = [random.permutation(held.by_class[label])[:queries].tolist() for label in chosen]
        episodes.append(Episode(tuple(chosen), tuple(map(tuple, support)), tuple(map(tuple, query))))
    return EpisodeList(seen.fingerprint, tuple(episodes))


def open_corpus(config: TrainConfig) -> Corpus:
    """The data of a configuration, without the texts that it leaves out."""
    columns = {"text_column": config.text_column, "label_column": config.label_column, "encoding": config.encoding}
    corpus = load_corpus(config.data, **columns)
    texts = [text for file in config.exclude for text in read_corpus(file, fallback=True, **columns).texts]
    return leave_out(corpus, texts) if texts else corpus


def open_encoder(config: TrainConfig) -> TextEncoder:
    """The encoder of a configuration, with the pooling that suits the method where the settings leave that open."""
    if config.encoder != BILSTM:
        if is_frozen(config.encoder) and (config.tune != "none" or method_class(config.method).inputs != "vectors"):
            asked = f"tune {config.tune}" if config.tune != "none" else f"method {config.method}"
            raise ConfigError(
                f"{asked}: the encoder {config.encoder!r} has no weights that torch loads; use tune none and a method on "
                "vectors, or the encoder minilm"
            )
        pooling = chosen_pooling(config)
        return open_named(config.encoder, pooling=pooling, max_length=config.max_length, device=config.device)
    if config.tune != "full":
        raise ConfigError(f"encoder {BILSTM} knows nothing before training: use --tune full")
    from dmin.encoder.bilstm import bilstm_encoder

    return bilstm_encoder(max_length=config.max_length, seed=config.seed, device=config.device)


def chosen_pooling(config: TrainConfig) -> str:
    """The pooling of the settings; "auto" with a frozen encoder is the method's own, if it has one.

    A tuned encoder starts alike for every method, and can bring into its last layer what a method needs.
    """
    method = method_class(config.method)
    if method.inputs == "tokens" and config.pooling == "layers":
        return "auto"  # it does not pool
    if is_frozen(config.encoder):
        return config.pooling  # a method's own choice is for encoders on torch
    return method.traits.pooling if config.pooling == "auto" and config.tune == "none" else config.pooling


def make_sampler(config: TrainConfig, corpus: Corpus, classes: Sequence[str]) -> EpisodeSampler | VariedSampler:
    """Training episodes: of one shape, or of varied ones."""
    settings = config.stage2
    method = method_class(config.method)
    learns_names = issubclass(method, LearnsNameWeight)
    if settings.names and (method.traits.tied_to == "shot" or (settings.names < 1 and not learns_names)):
        able = ", ".join(name for name, other in METHODS.items() if issubclass(other, LearnsNameWeight))
        raise ConfigError(f"stage2.names: {config.method} cannot learn from class names now and then; {able} can")
    if settings.ways is None and settings.shots is None:
        return EpisodeSampler(corpus, classes, config.way, config.shot, config.queries, config.seed)
    ways, shots = settings.ways or (config.way, config.way), settings.shots or (config.shot,)
    if not 2 <= ways[0] <= ways[1] or min(shots) < 1:
        raise ConfigError(
            f"stage2.ways {list(ways)} and stage2.shots {list(shots)}: from at least 2 classes, 1 text up"
        )
    return VariedSampler(corpus, classes, ways, shots, config.queries, config.seed, settings.batch)


def choose_base(config: TrainConfig, split: ClassSplit) -> tuple[str, ...]:
    """The classes of the memory, in row order."""
    chosen = config.base_classes
    if chosen == "all":
        return split.train
    if isinstance(chosen, int):
        if not 0 < chosen <= len(split.train):
            raise ConfigError(f"base_classes {chosen}: the split has {len(split.train)} training classes")
        order = np.random.default_rng([config.seed, 2]).permutation(len(split.train))[:chosen]
        return tuple(split.train[index] for index in sorted(order))
    for label in chosen:
        if label not in split.train:
            raise unknown_name("base class", label, split.train)
    return tuple(chosen)


def hold_out(corpus: Corpus, classes: Sequence[str], part: float, seed: int) -> BaseTexts:
    """Divide each class's texts into those to learn from and those to validate by.

    Every class keeps at least one text to learn from; of a class of one text none is held out.
    """
    random = np.random.default_rng([seed, 0])
    train: list[BaseText] = []
    held: list[BaseText] = []
    for number, label in enumerate(classes):
        rows = random.permutation(corpus.by_class[label]).tolist()
        aside = min(math.ceil(part * len(rows)), len(rows) - 1) if part else 0
        held += [(row, number) for row in rows[:aside]]
        train += [(row, number) for row in rows[aside:]]
    return BaseTexts(tuple(train), tuple(held))


def check_method(config: TrainConfig, task: Task, dim: int) -> None:
    """Build the method once and drop it, so that options that it refuses are an error before any training."""
    memory = torch.ones(len(task.base_classes), dim)
    try:
        create(config.method, dim, way=config.way, shot=config.shot, base_memory=memory, **config.options)
    except ConfigError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{config.method}: {error}") from error


def _left_out(sampler: EpisodeSampler | VariedSampler) -> str:
    names = ", ".join(sampler.left_out[:5]) + (" ..." if len(sampler.left_out) > 5 else "")
    return (
        f"{len(sampler.left_out)} training classes have fewer than {sampler.shot} + {sampler.queries} texts and are left "
        f"out of the episodes: {names}"
    )
