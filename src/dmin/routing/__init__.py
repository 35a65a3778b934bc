"""Dynamic memory routing: Algorithm 1 of the paper, and its exact fast form in Gram space."""

from dmin.routing.algorithm import (
    SQUASH_EPSILON,
    DynamicMemoryRouting,
    Initialisation,
    SoftmaxAxis,
    identity_linear,
    pearson,
    squash,
)

__all__ = [
    "SQUASH_EPSILON",
    "DynamicMemoryRouting",
    "Initialisation",
    "SoftmaxAxis",
    "identity_linear",
    "pearson",
    "squash",
]
