"""A trained model: what training writes and a classifier opens."""

from dmin.model.calibration import Calibration
from dmin.model.folder import TrainedModel, answers_own_classes, load_model, save_model, shipped_head
from dmin.model.head_file import HeadInfo

__all__ = [
    "Calibration",
    "HeadInfo",
    "TrainedModel",
    "answers_own_classes",
    "load_model",
    "save_model",
    "shipped_head",
]
