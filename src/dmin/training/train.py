"""Training: `HeadTrainer` trains heads on one encoder, `Trainer` one head into a run folder, resumable at every point."""

from __future__ import annotations

import copy
import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch

from dmin.encoder import TextEncoder, VectorCache
from dmin.encoder.opening import tunable
from dmin.errors import ConfigError
from dmin.methods import FewShotMethod, StartsFromStage1, create, method_class
from dmin.methods.base import Inputs, complete_options
from dmin.methods.input_map import starting_memory
from dmin.model import HeadInfo, TrainedModel, save_model
from dmin.training.calibrate import calibrate
from dmin.training.checkpoint import Checkpoint, CheckpointStore
from dmin.training.config import TrainConfig
from dmin.training.loop import Loop
from dmin.training.metrics import MetricLog
from dmin.training.own_classes import LabelledVectors, calibrate_own_classes, fit_own_classes
from dmin.training.run_folder import CHECKPOINTS, METRICS, MODEL, begin, check_folder
from dmin.training.sources import TextSource, source_kind
from dmin.training.stage1 import BaseKnowledge, train_stage1
from dmin.training.stage2 import train_stage2
from dmin.training.task import BILSTM, Task, check_method, open_encoder, prepare_task
from dmin.training.tuning import add_lora, merge_lora, wants_bf16

Start = Literal["stage1", "raw"]
TRAINING_PARTS = ("train", "valid")  # parts of the class split that training reads


class HeadTrainer:
    """Trains heads on one encoder and one class split: stage 1 once, then stage 2 for each head.

    Every head starts from the memory and the encoder as stage 1 left them, whatever was trained before it.

    Args:
        encoder: shared by the heads; with tune lora it gets its adapters here.
        loop: runs the stages.
        config: of the first head; all heads share its seed and what of the encoder learns.
        start: "raw" leaves the encoder as it came in stage 1, so that only the memory is learned.
        several: more than one head will be trained, and tested: the encoder that stage 1 leaves is kept for the next
            one, and a frozen encoder encodes the test classes together with the others.
        tested: with `several`: the heads will be tested. False reads no text of a test class.
        show: show progress of encoding.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        loop: Loop,
        config: TrainConfig,
        *,
        start: Start = "stage1",
        several: bool = False,
        tested: bool = True,
        show: bool = False,
    ) -> None:
        self.encoder, self.loop, self.start, self.several, self.show = encoder, loop, start, several, show
        self.tested = tested
        if config.tune == "lora":
            add_lora(tunable(encoder).network, config.seed)
        self._knowledge: BaseKnowledge | None = None
        self._encoder_start: dict[str, Any] = {}  # the encoder's weights after stage 1, if they will change
        self._sources: dict[tuple[Inputs, tuple[str, ...], bool, bool], TextSource] = {}

    def learn_base(self, config: TrainConfig, task: Task, resumed: Checkpoint | None = None) -> BaseKnowledge:
        """Stage 1, once for all heads."""
        if self._knowledge is None:
            learning = config.model_copy(update={"tune": "none"}) if self.start == "raw" else config
            source = self.source(learning, task, "vectors", TRAINING_PARTS)
            self._knowledge = train_stage1(learning, task, source, self.encoder, self.loop, resumed)
            if self.several and config.tune != "none":
                self._encoder_start = copy.deepcopy(tunable(self.encoder).network.state_dict())
        return self._knowledge

    def train(self, config: TrainConfig, task: Task, resumed: Checkpoint | None = None) -> tuple[FewShotMethod, int]:
        """Train a head; returns it, and the number of its training episodes.

        Args:
            config: of this head.
            task: of this head.
            resumed: a checkpoint of either stage; one of stage 2 holds all that stage 1 made.
        """
        in_stage2 = resumed is not None and resumed.state.stage == 2
        knowledge = None if in_stage2 else self.learn_base(config, task, resumed)
        if self._encoder_start:
            tunable(self.encoder).network.load_state_dict(self._encoder_start)
            self.encoder.refresh()
        method = build_head(config, task, self.encoder.width, knowledge)
        episodes = 0
        if method.traits.meta_trained:
            source = self.source(config, task, source_kind(method), self.parts(config))
            if config.tune != "none" and method.traits.freezes_encoder:
                self._store_encoder(in_stage2)
            state = train_stage2(config, task, source, self.encoder, method, self.loop, resumed if in_stage2 else None)
            episodes = state.step * config.stage2.batch
        return method.eval(), episodes

    def source(self, config: TrainConfig, task: Task, kind: Inputs, parts: tuple[str, ...]) -> TextSource:
        """The texts of some parts of the split, encoded once if the encoder is frozen."""
        frozen, named = config.tune == "none", config.stage2.names > 0
        key = (kind, parts, frozen, named)
        if key not in self._sources:
            names = task.name_rows.values() if named else ()
            self._sources[key] = TextSource(
                task.texts, [*task.text_indices(*parts), *names], self.encoder, frozen=frozen, kind=kind,
                cache=VectorCache() if frozen else None, show=self.show,
            )  # fmt: skip
        return self._sources[key]

    def parts(self, config: TrainConfig) -> tuple[str, ...]:
        """The parts of the split that stage 2 opens."""
        tested = self.several and self.tested and config.tune == "none"
        return (*TRAINING_PARTS, "test") if tested else TRAINING_PARTS

    def merge_adapters(self, config: TrainConfig) -> None:
        """End the training of the encoder: with tune lora, it is a plain encoder again."""
        if config.tune == "lora":
            merge_lora(tunable(self.encoder).network)
        self.encoder.refresh()

    def _store_encoder(self, in_stage2: bool) -> None:
        """Keep the encoder for a stage 2 in which it is frozen, so in no checkpoint; resumed in stage 2, read it."""
        store = self.loop.store
        if store is None:
            return
        if in_stage2:
            store.load_encoder(tunable(self.encoder).network)
        elif self.loop.accelerator.is_main_process:
            store.save_encoder(tunable(self.encoder).network)
        self.encoder.refresh()


def build_head(config: TrainConfig, task: Task, dim: int, knowledge: BaseKnowledge | None) -> FewShotMethod:
    """The method at its start; without knowledge (a resumed run) its memory is filled in by the checkpoint."""
    memory = torch.ones(len(task.base_classes), dim)
    if knowledge:
        memory = starting_memory(knowledge.memory, knowledge.mean, config.options)
    method = create(
        config.method, dim, way=config.way, shot=config.shot, base_memory=memory, seed=config.seed, **config.options
    )
    if knowledge and method.input_map is not None:
        method.input_map.start(knowledge.mean)
    if knowledge and isinstance(method, StartsFromStage1):
        method.start_from_stage1(None if "scale" in config.options else knowledge.scale, knowledge.mean)
    return method


class Trainer:
    """Trains one configuration into one run folder.

    Args:
        config: the settings.
        out: the run folder.
        resume: go on from the folder's checkpoints.
        overwrite: begin anew in a folder that holds a run.
        show: show progress.
        warn: called with each warning; the commands print it.
    """

    def __init__(
        self,
        config: TrainConfig,
        out: Path,
        *,
        resume: bool = False,
        overwrite: bool = False,
        show: bool = False,
        warn: Callable[[str], None] = warnings.warn,
    ) -> None:
        self.config, self.out, self.show, self.warn = config, out, show, warn
        self.resume = resume
        check_folder(out, config, resume=resume, overwrite=overwrite)
        self.task = prepare_task(config, warn)
        if not method_class(config.method).traits.meta_trained:
            raise ConfigError(f"{config.method} has nothing to train: use it in dmin compare")
        if config.encoder == BILSTM:
            raise ConfigError(f"encoder {BILSTM} is for dmin compare: a model folder holds a Hugging Face encoder only")
        self.encoder = open_encoder(config)
        check_method(config, self.task, self.encoder.width)
        wants_bf16(config, self.encoder)  # what this machine cannot do is said before anything is written

    def run(self) -> TrainedModel:
        """Train both stages, write `model/`, return the trained model."""
        config, task = self.config, self.task
        accelerator = make_accelerator(config, self.out)
        loop = self._loop(accelerator)
        trainer = HeadTrainer(self.encoder, loop, config, show=self.show)
        with accelerator.main_process_first():  # so that the others find the folder and the cached vectors
            if accelerator.is_main_process and not self.resume:
                begin(self.out, config)
            trainer.source(config, task, "vectors", TRAINING_PARTS)
        resumed = loop.store.latest() if self.resume and loop.store else None
        if self.resume:
            loop.log.rewind(*((resumed.state.stage, resumed.state.step) if resumed else (0, 0)))
        method, _ = trainer.train(config, task, resumed)
        trainer.merge_adapters(config)
        calibration = self._own_classes(method) if config.all_classes else self._calibration(method)
        model = TrainedModel(self.encoder, method, replace(self._info(), calibration=calibration))
        if accelerator.is_main_process:
            save_model(self.out / MODEL, model)
        accelerator.wait_for_everyone()
        accelerator.end_training()
        return model

    def _loop(self, accelerator: Any) -> Loop:
        store = CheckpointStore(self.out / CHECKPOINTS, self.warn, self.config.digest)
        log = MetricLog(self.out / METRICS, accelerator)
        hint = f"dmin train --resume --out {shlex.quote(str(self.out))}"
        if accelerator.num_processes > 1:
            hint += f" (started again by the same launcher, with {accelerator.num_processes} processes)"
        return Loop(accelerator, store, log, show=self.show and accelerator.is_main_process, resume_hint=hint)

    def _calibration(self, method: FewShotMethod) -> dict[str, Any] | None:
        """Calibrate the head on the validation classes."""
        task, held = self.task, self.task.base_texts.held_out
        base = held[:: max(1, len(held) // 1000)]
        found = calibrate(method, task.corpus, task.split, self.encode, self.config.seed, base)
        return found.as_dict() if found else None

    def _own_classes(self, method: FewShotMethod) -> dict[str, Any]:
        """With all_classes: fit the vectors of the classes in the head's space, and calibrate on held-out texts."""
        task, config = self.task, self.config
        train = LabelledVectors.of(task.corpus, task.base_texts.train, self.encode)
        held = LabelledVectors.of(task.corpus, task.base_texts.held_out, self.encode)
        fit_own_classes(method, train, held, config.stage1, config.seed)
        found = calibrate_own_classes(method, train, held, config.seed)
        return found.as_dict()

    def encode(self, texts: Sequence[str]) -> torch.Tensor:
        """Vectors [n, d] by the encoder as it is now; those of a frozen one are cached."""
        frozen = self.config.tune == "none"
        found = VectorCache().encode(self.encoder, texts) if frozen else self.encoder.encode(texts)
        return torch.from_numpy(found).to(self.encoder.device)

    def _info(self) -> HeadInfo:
        config, encoder, task = self.config, self.encoder, self.task
        trained_on = {"data": task.corpus.name, "split": task.split_name, "tune": config.tune, "seed": config.seed}
        if config.all_classes:
            trained_on["all_classes"] = True
        if config.exclude:
            trained_on["exclude"] = ["/".join(Path(file).parts[-3:]) for file in config.exclude]
        options = complete_options(method_class(config.method), config.options)
        return HeadInfo(
            config.method, options, config.way, config.shot, encoder.width, task.base_classes, encoder.pooling,
            encoder.max_length, trained_on,
        )  # fmt: skip


def make_accelerator(config: TrainConfig, out: Path | None = None) -> Any:
    """An `accelerate.Accelerator` for this machine; several processes where `torchrun` or `accelerate` started them."""
    from accelerate import Accelerator

    tracked = config.tensorboard and out is not None
    accelerator = Accelerator(
        cpu=config.device == "cpu" or not torch.cuda.is_available(),
        log_with="tensorboard" if tracked else None,
        project_dir=str(out) if tracked else None,
    )
    if tracked:
        accelerator.init_trackers("tensorboard")
    return accelerator
