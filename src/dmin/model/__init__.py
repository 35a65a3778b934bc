"""A trained model: what training writes and a classifier opens."""

from dmin.model.calibration import Calibration
from dmin.model.folder import HeadInfo, TrainedModel, answers_own_classes, load_model, save_model, shipped_head

__all__ = [
    "Calibration",
    "HeadInfo",
    "TrainedModel",
    "answers_own_classes",
    "load_model",
    "save_model",
    "shipped_head",
]
