"""Evaluation on stored episodes, statistics, pictures and reports."""

from dmin.evaluation.evaluate import EvaluationPlan, evaluate_model
from dmin.evaluation.protocol import Cell, EpisodeResults, MethodScorer, run_episodes
from dmin.evaluation.statistics import Interval, mean_interval

__all__ = [
    "Cell",
    "EpisodeResults",
    "EvaluationPlan",
    "Interval",
    "MethodScorer",
    "evaluate_model",
    "mean_interval",
    "run_episodes",
]
