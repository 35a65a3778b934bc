"""Few-shot methods, one paper per file, by name."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dmin.methods.abilities import (
    ExactShares,
    FineTunesEncoder,
    KeepsBaseClasses,
    LearnsNameWeight,
    LimitsSupport,
    PreparedScoring,
    ReadsMemory,
    RewritesSupport,
    StartsFromStage1,
    exact_shares,
    name_weight,
    prepared_scoring,
    score_prepared,
)
from dmin.methods.ataml import ATAML
from dmin.methods.base import EpisodeTensors, FewShotMethod, TokenStates, Traits, check_options
from dmin.methods.dmin import DMIN
from dmin.methods.dmin_plus import DMINPlus
from dmin.methods.finetune import FineTune
from dmin.methods.hatt import HATT
from dmin.methods.induction import Induction
from dmin.methods.input_map import InputMap
from dmin.methods.logistic import Logistic
from dmin.methods.lwof import LwoF
from dmin.methods.matching import Matching
from dmin.methods.nearest import Nearest
from dmin.methods.prototypical import Prototypical
from dmin.methods.registry import (
    METHODS,
    import_all,
    load_entry_points,
    load_plugin,
    load_plugins,
    method_class,
    register,
)
from dmin.methods.relation import Relation


def create(
    name: str, dim: int, *, way: int, shot: int, base_memory: Tensor | None = None, seed: int = 0, **options: Any
) -> FewShotMethod:
    """Build a method by name.

    Args:
        name: a key of `METHODS`.
        dim: width of the vectors.
        way: number of classes in an episode (some methods have a slot for each).
        shot: number of examples per class (some methods have a filter of that height).
        base_memory: W_base [N, d], for the methods that have a memory.
        seed: of the initial weights.
        options: the method's own, and those of `dmin.methods.input_map`.
    """
    cls = method_class(name)
    check_options(cls, options)
    input_map = InputMap.from_options(dim, seed, options)
    method = cls.build(dim, way=way, shot=shot, base_memory=base_memory, seed=seed, **options)
    if input_map is not None:
        method.input_map = input_map
    return method


import_all(__name__, __path__)  # methods that nobody imports by name register themselves too
load_entry_points()
load_plugins()

__all__ = [
    "ATAML",
    "DMIN",
    "HATT",
    "METHODS",
    "DMINPlus",
    "EpisodeTensors",
    "ExactShares",
    "FewShotMethod",
    "FineTune",
    "FineTunesEncoder",
    "Induction",
    "KeepsBaseClasses",
    "LearnsNameWeight",
    "LimitsSupport",
    "Logistic",
    "LwoF",
    "Matching",
    "Nearest",
    "PreparedScoring",
    "Prototypical",
    "ReadsMemory",
    "Relation",
    "RewritesSupport",
    "StartsFromStage1",
    "TokenStates",
    "Traits",
    "check_options",
    "create",
    "exact_shares",
    "load_plugin",
    "method_class",
    "name_weight",
    "prepared_scoring",
    "register",
    "score_prepared",
]
