"""Two-stage training: supervised, then on episodes."""

from dmin.training.config import TrainConfig, load_config
from dmin.training.pipeline import Trainer
from dmin.training.task import Task, prepare_task

__all__ = ["Task", "TrainConfig", "Trainer", "load_config", "prepare_task"]
