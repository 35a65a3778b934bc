"""Two-stage training: supervised, then on episodes."""

from dmin.training.config import TrainConfig, load_config
from dmin.training.task import Task, open_corpus, open_encoder, prepare_task
from dmin.training.train import Trainer

__all__ = ["Task", "TrainConfig", "Trainer", "load_config", "open_corpus", "open_encoder", "prepare_task"]
