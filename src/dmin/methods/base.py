"""The contract of a few-shot method: a module that scores queries, and a description of its traits.

A method has `forward` (scores), `loss`, and `traits`. What only some methods can do besides is in
`dmin.methods.abilities`.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Self

from torch import Tensor, nn
from torch.nn import functional

from dmin.errors import ConfigError, nearest_name
from dmin.methods.input_map import INPUT_OPTIONS, InputMap, map_entries
from dmin.methods.search_space import SearchSpace
from dmin.methods.vectors import COSINE_EPSILON, cosine, masked_mean, unit

Inputs = Literal["vectors", "tokens", "texts"]
# Arguments of a constructor that `create` fills in; the others are the method's options.
RESERVED = {"self", "base_memory", "seed", "dim", "way", "shot", "squared_norm"}


@dataclass(frozen=True)
class Traits:
    """The fixed description of a method, as its class variable `traits`.

    An option that changes a trait replaces it for that instance: `self.traits = replace(self.traits, joint=True)`.
    """

    name: str  # for --method, --methods and summary.json
    title: str  # for tables
    frozen_title: str | None = None  # title in tables where the encoder is frozen; None: the same
    place: int = 1000  # order in tables and lists: the paper's rows first; equal places in the order of registration
    inputs: Inputs = "vectors"  # what it scores: vectors, token states, or texts
    pooling: str = "auto"  # default pooling for a frozen encoder
    meta_trained: bool = True  # has weights that learn on episodes; if not, `dmin train` refuses it
    needs_memory: bool = False  # its constructor needs W_base of stage 1
    episodes_from_base: bool = False  # trained on episodes of base classes, with queries of other base classes
    freezes_encoder: bool = False  # stage 2 leaves the encoder as stage 1 made it
    learning_rate: float = 1e-3  # of its own weights in stage 2
    scalar_learning_rate: float | None = None  # of scales and single weights; None: like the other weights
    tied_to: Literal["way", "shot"] | None = None  # works only for the C or the K that it was trained for
    gives_cosines: bool = False  # score / temperature is a cosine, or one less a constant of its class
    joint: bool = False  # a class's score depends on which other classes there are
    search: SearchSpace = field(default_factory=SearchSpace)  # what `dmin search` may choose
    # What a search chose on validation classes of several sets, where it gained beyond its confidence interval: settings of
    # `dmin train` that a new training with a frozen encoder begins with. The constructor's defaults stay the paper's.
    searched: tuple[tuple[str, Any], ...] = ()
    # Options with the values that they had in heads saved before heads stored all their options:
    early_options: tuple[tuple[str, Any], ...] = ()


class TokenStates(NamedTuple):
    """Texts as the states of their tokens, padded: states [..., T, d] and mask [..., T] (True = a real token)."""

    states: Tensor
    mask: Tensor

    def at(self, rows: Tensor) -> TokenStates:
        """The texts at some rows of the first axis."""
        return TokenStates(self.states[rows], self.mask[rows])


@dataclass(frozen=True)
class EpisodeTensors:
    """A batch of B episodes of the same shape; vectors [..., d], or token states [..., T, d] for methods on tokens."""

    support: Any  # [B, C, K, ...]
    query: Any  # [B, L, ...]
    labels: Tensor  # [B, L], 0 .. C-1
    base_rows: Tensor  # [B, C]: each class's row in the base memory, -1 for none
    base_query: Tensor | None = None  # [B, Lb, d]: texts of base classes outside the episode (`episodes_from_base`)
    base_labels: Tensor | None = None  # [B, Lb]: their rows in the base memory
    named: bool = False  # is the last support row of each class its name?


class FewShotMethod(nn.Module):
    """Scores [..., L, C] for queries [..., L, d] from support [..., C, K, d], with any leading batch of episodes.

    A mask [..., C, K] says which support rows are real (True), so classes may have unequal numbers of examples.
    """

    traits: Traits  # a class variable; see `Traits` for when an instance has its own
    # Copied from the traits of the class:
    name: ClassVar[str]
    title: ClassVar[str]
    inputs: ClassVar[Inputs]
    input_map: InputMap | None  # what vectors pass before the method sees them; see `dmin.methods.input_map`

    def __init__(self) -> None:
        super().__init__()
        self.input_map = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        map_entries(cls)
        if "traits" in cls.__dict__:
            cls.name, cls.title, cls.inputs = cls.traits.name, cls.traits.title, cls.traits.inputs

    @classmethod
    def build(cls, dim: int, *, way: int, shot: int, base_memory: Tensor | None, seed: int, **options: Any) -> Self:
        """Make the method; its constructor gets those of these values that it names, and the options."""
        if cls.traits.needs_memory:
            check_memory(cls.name, base_memory, dim)
        offered = {
            "dim": dim, "way": way, "shot": shot, "base_memory": base_memory, "seed": seed,
            # The memory's rows have the mean norm of the training vectors.
            "squared_norm": float((base_memory**2).sum(dim=-1).mean()) if base_memory is not None else float(dim),
        }  # fmt: skip
        named = inspect.signature(cls.__init__).parameters
        return cls(**{name: value for name, value in offered.items() if name in named}, **options)

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Return scores [..., L, C]; the highest wins."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy over all queries (Eq. 14); scores [..., L, C], labels [..., L]."""
        return functional.cross_entropy(scores.flatten(0, -2), labels.flatten())

    def episode_loss(self, episodes: EpisodeTensors) -> tuple[Tensor, Tensor]:
        """Return (loss, scores [B, L, C]) of a batch of training episodes."""
        scores = self(episodes.support, episodes.query, base_rows=episodes.base_rows)
        return self.loss(scores, episodes.labels), scores

    @property
    def temperature(self) -> float:
        """The factor in the scores: score / temperature is the raw similarity (a cosine where there is one)."""
        return 1.0

    @property
    def note(self) -> str:
        """How it differs from the published method, for the brackets beside the title in tables; usually nothing."""
        return ""


def check_memory(name: str, base_memory: Tensor | None, dim: int) -> None:
    """Raise a `ConfigError` where there is no base memory, or one that does not fit vectors of this width."""
    if base_memory is None:
        raise ConfigError(f"{name} needs a base memory: stage 1 makes it")
    if base_memory.ndim != 2 or not len(base_memory) or base_memory.shape[-1] != dim:
        raise ConfigError(
            f"{name}: the base memory has shape {list(base_memory.shape)}; [N, {dim}] with N > 0 is needed"
        )


def option_defaults(cls: type[FewShotMethod]) -> dict[str, Any]:
    """A method's own options with their defaults."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)  # of a method without a constructor
    parameters = inspect.signature(cls.__init__).parameters.items()
    return {name: found.default for name, found in parameters if name not in RESERVED and found.kind not in several}


def complete_options(cls: type[FewShotMethod], options: dict[str, Any]) -> dict[str, Any]:
    """All of a method's own options, as a head stores them: later defaults must not change what it is."""
    return option_defaults(cls) | options


def early_options(cls: type[FewShotMethod], options: dict[str, Any]) -> dict[str, Any]:
    """Options of a stored head; what an early version left out has the value that it had then."""
    return dict(cls.traits.early_options) | options


def check_options(cls: type[FewShotMethod], options: dict[str, Any]) -> None:
    """Raise a `ConfigError` for an option the method does not have, with the nearest one it has."""
    known = [*option_defaults(cls), *(INPUT_OPTIONS if cls.inputs == "vectors" else ())]
    for option in options:
        if option not in known:
            near = nearest_name(option, known)
            hint = f"did you mean {near!r}? " if near else ""
            raise ConfigError(f"{cls.name} has no option {option!r}: {hint}its options: {', '.join(known) or 'none'}")
    if options.get("input_map") and not cls.traits.meta_trained:
        raise ConfigError(f"{cls.name} is not trained, so an input_map would stay at the identity: leave it out")


__all__ = [
    "COSINE_EPSILON", "RESERVED", "EpisodeTensors", "FewShotMethod", "Inputs", "TokenStates", "Traits", "check_memory",
    "check_options", "complete_options", "cosine", "early_options", "masked_mean", "option_defaults", "unit",
]  # fmt: skip
