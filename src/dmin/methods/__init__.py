"""Few-shot methods, one paper a file, by name."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dmin.errors import unknown_name
from dmin.methods.ataml import ATAML
from dmin.methods.base import EpisodeTensors, FewShotMethod, TokenStates, check_options
from dmin.methods.dmin import DMIN
from dmin.methods.dmin_plus import DMINPlus
from dmin.methods.finetune import FineTune
from dmin.methods.hatt import HATT
from dmin.methods.induction import Induction
from dmin.methods.logistic import Logistic
from dmin.methods.lwof import LwoF
from dmin.methods.matching import Matching
from dmin.methods.nearest import Nearest
from dmin.methods.prototypical import Prototypical
from dmin.methods.relation import Relation

# In the order of the paper's tables, then the plain rows.
METHODS: dict[str, type[FewShotMethod]] = {
    method.name: method
    for method in (
        FineTune, ATAML, Relation, Induction, HATT, LwoF, DMIN, DMINPlus, Prototypical, Matching, Nearest, Logistic,
    )
}  # fmt: skip


def method_class(name: str) -> type[FewShotMethod]:
    """Return a method's class by name; an unknown name is an error with the nearest known one."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


def create(
    name: str, dim: int, *, way: int, shot: int, base_memory: Tensor | None = None, seed: int = 0, **options: Any
) -> FewShotMethod:
    """Build a method by name.

    Args:
        name: a key of `METHODS`.
        dim: width of the vectors.
        way: number of classes in an episode (some methods have a slot for each).
        shot: number of examples a class (some methods have a filter of that height).
        base_memory: W_base [N, d], for the methods that have a memory.
        seed: of the initial weights.
        options: the method's own.
    """
    cls = method_class(name)
    check_options(cls, options)
    return cls.build(dim, way=way, shot=shot, base_memory=base_memory, seed=seed, **options)


__all__ = [
    "ATAML",
    "DMIN",
    "HATT",
    "METHODS",
    "DMINPlus",
    "EpisodeTensors",
    "FewShotMethod",
    "FineTune",
    "Induction",
    "Logistic",
    "LwoF",
    "Matching",
    "Nearest",
    "Prototypical",
    "Relation",
    "TokenStates",
    "create",
    "method_class",
]
