"""Evaluation on stored episodes, statistics, pictures and reports."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dmin.evaluation.evaluate import evaluate_model
    from dmin.evaluation.evaluation_plan import EvaluationPlan
    from dmin.evaluation.own_classes import OwnClassesResult, evaluate_own_classes
    from dmin.evaluation.protocol import Cell, EpisodeResults, MethodScorer, run_episodes
    from dmin.evaluation.statistics import Interval, mean_interval

__all__ = [
    "Cell",
    "EpisodeResults",
    "EvaluationPlan",
    "Interval",
    "MethodScorer",
    "OwnClassesResult",
    "evaluate_model",
    "evaluate_own_classes",
    "mean_interval",
    "run_episodes",
]
_PLACES = {
    "Cell": "protocol",
    "EpisodeResults": "protocol",
    "EvaluationPlan": "evaluation_plan",
    "Interval": "statistics",
    "MethodScorer": "protocol",
    "OwnClassesResult": "own_classes",
    "evaluate_model": "evaluate",
    "evaluate_own_classes": "own_classes",
    "mean_interval": "statistics",
    "run_episodes": "protocol",
}


def __getattr__(name: str) -> Any:
    """Import a part when it is asked for: some need torch, which the service does without."""
    if name in _PLACES:
        return getattr(import_module(f"dmin.evaluation.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'dmin.evaluation' has no attribute {name!r}")
