"""What vectors may pass before any method sees them: centring, a linear map, norm 1. Each is an option of every method.

A frozen encoder gives all methods the same vectors. A learned linear map in front of a method stands for the part of the
encoder that would learn, and some methods bring one of their own; with `input_map` every method on vectors can have it.

Unusual: the map is applied where raw vectors enter a method from outside (`ENTRIES`), in one place for all methods. A
method may call its own entries, as `forward` calls `prepare`; the vectors are then mapped already, and pass once.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from dmin.methods.vectors import COSINE_EPSILON, unit
from dmin.routing import identity_linear

INPUT_OPTIONS = {
    "input_map": "learn a linear map of all vectors, starting at the identity",
    "input_unit": "scale all vectors to norm 1",
    "input_centre": "subtract the mean of the base texts from all vectors",
}
# Methods of a `FewShotMethod` to which vectors come from outside, and the places of the arguments that are raw vectors.
ENTRIES: dict[str, tuple[int, ...]] = {
    "forward": (0, 1),  # support, query
    "episode_loss": (0,),  # episodes
    "prepare": (0,),  # support
    "query_side": (0,),  # query
    "contributions": (1,),  # prepared, query
    "base_scores": (0,),  # query
    "memory_weights": (0,),  # support
    "adapt": (0,),  # support
}
_inside = threading.local()  # methods whose entry is being called in this thread


class InputMap(nn.Module):
    """x -> unit(W (x - mean) + b), each part only where it is asked for.

    Args:
        dim: width of the vectors.
        linear: learn W, from the identity, and b.
        to_unit: scale to norm 1.
        centre: subtract the mean; it is 0 until `start` gives it.
        seed: of the noise in the initial map.
    """

    mean: Tensor

    def __init__(self, dim: int, *, linear: bool, to_unit: bool, centre: bool, seed: int = 0) -> None:
        super().__init__()
        self.linear = identity_linear(dim, torch.Generator().manual_seed(seed)) if linear else None
        self.to_unit, self.centre = to_unit, centre
        if centre:
            self.register_buffer("mean", torch.zeros(dim))

    @classmethod
    def from_options(cls, dim: int, seed: int, options: dict[str, Any]) -> InputMap | None:
        """Take the input options out of `options`; None where none of them is on."""
        linear, to_unit, centre = (bool(options.pop(name, False)) for name in INPUT_OPTIONS)
        return (
            cls(dim, linear=linear, to_unit=to_unit, centre=centre, seed=seed) if linear or to_unit or centre else None
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """Map vectors [..., d] -> [..., d]."""
        if self.centre:
            vectors = vectors - self.mean.to(vectors.dtype)
        if self.linear is not None:
            vectors = self.linear(vectors)
        return unit(vectors) if self.to_unit else vectors

    def start(self, mean: Tensor) -> None:
        """Take the mean [d] of the base texts."""
        if self.centre:
            self.mean.copy_(mean)


def starting_memory(memory: Tensor, mean: Tensor, options: dict[str, Any]) -> Tensor:
    """W_base [N, d] in the space of vectors that pass the input options, before the map has learned.

    Stage 1 leaves open what its rows have in common, so with `input_centre` they are taken around their own mean, then
    scaled to the typical norm of a centred vector; `mean` [d] is that of the base texts.
    """
    if options.get("input_centre"):
        squared = ((memory**2).sum(dim=-1).mean() - (mean**2).sum()).clamp_min(COSINE_EPSILON)
        memory = unit(memory - memory.mean(dim=0)) * squared.sqrt()
    return unit(memory) if options.get("input_unit") else memory


def map_entries(cls: type[nn.Module]) -> None:
    """Let the entries that a class defines pass raw vectors through the `input_map` of the instance, if it has one."""
    for name, places in ENTRIES.items():
        if callable(found := cls.__dict__.get(name)):
            setattr(cls, name, _mapped(found, places))


def _mapped(entry: Callable[..., Any], places: tuple[int, ...]) -> Callable[..., Any]:
    names = list(inspect.signature(entry).parameters)[1:]  # without self

    @functools.wraps(entry)
    def call(self: Any, *values: Any, **named: Any) -> Any:
        inside = _inside.__dict__.setdefault("methods", [])
        if self.input_map is None or self in inside:
            return entry(self, *values, **named)
        given = dict(zip(names, values, strict=False)) | named
        given |= {names[place]: _through(self.input_map, given[names[place]]) for place in places}
        inside.append(self)
        try:
            return entry(self, **given)
        finally:
            inside.pop()

    return call


def _through(input_map: InputMap, value: Any) -> Any:
    """Vectors, or a batch of episodes with all its vectors, mapped."""
    if isinstance(value, Tensor):
        return input_map(value)
    asked = None if value.base_query is None else input_map(value.base_query)
    return replace(value, support=input_map(value.support), query=input_map(value.query), base_query=asked)
