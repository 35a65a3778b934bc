"""A trained model: what training writes and a classifier opens. What needs torch is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dmin.model.calibration import Calibration
from dmin.model.head_file import HeadInfo
from dmin.model.places import answers_own_classes, shipped_head

if TYPE_CHECKING:
    from dmin.model.folder import TrainedModel, load_model, save_model

__all__ = [
    "Calibration",
    "HeadInfo",
    "TrainedModel",
    "answers_own_classes",
    "load_model",
    "save_model",
    "shipped_head",
]


def __getattr__(name: str) -> Any:
    """Import what needs torch only when it is asked for."""
    if name in __all__:
        return getattr(import_module("dmin.model.folder"), name)
    raise AttributeError(f"module 'dmin.model' has no attribute {name!r}")
