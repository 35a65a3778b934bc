"""Evaluation on stored episodes, statistics, pictures and reports."""

from dmin.evaluation.evaluate import EvaluationPlan, evaluate_model
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
