"""Two-stage training: supervised, then on episodes."""

from dmin.training.config import TrainConfig, load_config
from dmin.training.model import HeadInfo, TrainedModel, load_model, save_model, shipped_head
from dmin.training.pipeline import Trainer
from dmin.training.task import Task, prepare_task

__all__ = [
    "HeadInfo",
    "Task",
    "TrainConfig",
    "TrainedModel",
    "Trainer",
    "load_config",
    "load_model",
    "prepare_task",
    "save_model",
    "shipped_head",
]
