"""What every few-shot method is: a module that scores queries against classes known by a few examples each."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.errors import ConfigError, nearest_name

Inputs = Literal["vectors", "tokens", "texts"]
COSINE_EPSILON = 1e-8
# What `create` gives a method by itself; everything else in its constructor is an option.
RESERVED = {"self", "base_memory", "seed", "dim", "way", "shot", "squared_norm"}


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
    base_query: Tensor | None = (
        None  # [B, Lb, d]: texts of base classes outside the episode, where a method asks for them
    )
    base_labels: Tensor | None = None  # [B, Lb]: their rows in the base memory
    named: bool = False  # is the last support row of each class its name?


class SupportSide(NamedTuple):
    """Prepared support [..., C, K, d] as it is, with mask and weights [..., C, K]."""

    prepared: Tensor
    mask: Tensor | None
    row_weights: Tensor | None


class FewShotMethod(nn.Module):
    """Scores [..., L, C] for queries [..., L, d] from support [..., C, K, d], with any leading batch of episodes.

    A mask [..., C, K] says which support rows are real (True), so classes may have unequal numbers of examples.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    inputs: ClassVar[Inputs] = "vectors"
    pooling: ClassVar[str] = "auto"  # how it likes a resting encoder to pool, where the settings leave that open
    meta_trained: ClassVar[bool] = True
    needs_memory: ClassVar[bool] = False
    episodes_from_base: ClassVar[bool] = False  # episodes are made of base classes, with base queries beside them
    freezes_encoder: bool = False  # stage 2 leaves the encoder as stage 1 made it
    learning_rate: ClassVar[float] = 1e-3  # of its own weights, unless the configuration says otherwise
    scalar_learning_rate: ClassVar[float | None] = (
        None  # of its scales and single weights; None: like the other weights
    )
    tied_to: ClassVar[Literal["way", "shot"] | None] = None  # works for the C or K that it was trained for only
    learns_names: ClassVar[bool] = False  # can be trained with class names among the support
    divides_scores: bool = False  # `contributions` says what each example gave
    gives_cosines: bool = False  # score / temperature is a cosine, or one less a constant of its class
    joint: bool = False  # a class's score depends on which other classes there are

    @property
    def note(self) -> str:
        """What a table must say beside the title, because it differs from the paper's method; usually nothing."""
        return ""

    @classmethod
    def build(cls, dim: int, *, way: int, shot: int, base_memory: Tensor | None, seed: int, **options: Any) -> Self:
        """Make the method; its constructor gets those of these values that it names, and the options."""
        offered = {
            "dim": dim, "way": way, "shot": shot, "base_memory": base_memory, "seed": seed,
            # The memory's rows have the mean norm of the training vectors.
            "squared_norm": float((base_memory**2).sum(dim=-1).mean()) if base_memory is not None else float(dim),
        }  # fmt: skip
        named = inspect.signature(cls.__init__).parameters
        return cls(**{name: value for name, value in offered.items() if name in named}, **options)

    def centre_on(self, mean: Tensor) -> None:
        """Told the mean [d] of the base texts before training; most methods have no use for it."""
        del mean

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Return scores [..., L, C]; the highest wins."""
        del support, query, mask, base_rows
        raise TypeError(f"{type(self).__name__} scores {self.inputs}, not vectors")

    @property
    def temperature(self) -> float:
        """What the scores are multiples of: score / temperature is the raw similarity (a cosine where there is one)."""
        return 1.0

    @property
    def name_weight(self) -> float:
        """How many examples a class's name is worth beside them."""
        return 1.0

    def prepare(self, support: Tensor) -> Tensor:
        """The work that each example allows on its own, [..., d] -> [..., d]: done once and kept by a classifier."""
        return support

    def score_prepared(
        self, prepared: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """`forward` on support that went through `prepare`.

        `row_weights` [..., C, K] let a row count for more or less than an example; methods that do not sum over the
        examples count it as one.
        """
        return self.score_sides(self.support_side(prepared, mask, row_weights), self.query_side(query))

    def support_side(self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None) -> Any:
        """All that scoring needs of prepared support and that no query changes: made once and kept by a classifier."""
        return SupportSide(prepared, mask, row_weights)

    def query_side(self, query: Tensor) -> Any:
        """All that scoring needs of queries [..., L, d] and that no class changes: made once for all blocks of classes."""
        return query

    def score_sides(self, support: Any, queries: Any) -> Tensor:
        """Scores [..., L, C] from what `support_side` and `query_side` made."""
        scores: Tensor = self(support.prepared, queries, support.mask)
        return scores

    def contributions(
        self, prepared: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """Each prepared example's share of each score: [..., L, C, K], for the methods whose score divides."""
        del prepared, query, mask, row_weights
        raise TypeError(f"{type(self).__name__} does not divide its scores among the examples")

    def memory_weights(self, support: Tensor) -> Tensor | None:
        """What each base class gave to (or took from) each example of a class [K, d]: [K, N]; None without a memory."""
        del support
        return None

    def base_scores(self, query: Tensor) -> Tensor:
        """Scores of the base classes [..., L, N], in the scale of the novel ones."""
        del query
        raise TypeError(f"{type(self).__name__} keeps no base classes")

    def loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy over all queries (Eq. 14); scores [..., L, C], labels [..., L]."""
        return functional.cross_entropy(scores.flatten(0, -2), labels.flatten())

    def episode_loss(self, episodes: EpisodeTensors) -> tuple[Tensor, Tensor]:
        """Return (loss, scores [B, L, C]) of a batch of training episodes."""
        scores = self(episodes.support, episodes.query, base_rows=episodes.base_rows)
        return self.loss(scores, episodes.labels), scores


def cosine(x: Tensor, y: Tensor) -> Tensor:
    """Cosine over the last axis; leading axes broadcast; 0 for a zero vector, with a finite gradient."""
    return torch.einsum("...d,...d->...", unit(x), unit(y))


def unit(x: Tensor) -> Tensor:
    """Scale the last axis to norm 1; a zero vector stays zero, with a finite gradient."""
    squared = (x * x).sum(dim=-1, keepdim=True)
    return x * torch.rsqrt(squared.clamp_min(COSINE_EPSILON**2))


def masked_mean(support: Tensor, mask: Tensor | None) -> Tensor:
    """Mean over the real rows: [..., K, d] with mask [..., K] -> [..., d]."""
    if mask is None:
        return support.mean(dim=-2)
    weights = mask.unsqueeze(-1).to(support.dtype)
    return (support * weights).sum(dim=-2) / weights.sum(dim=-2).clamp_min(1)


def check_options(cls: type[FewShotMethod], options: dict[str, Any]) -> None:
    """Raise a `ConfigError` for an option the method does not have, with the nearest one it has."""
    parameters = inspect.signature(cls.__init__).parameters
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)  # of a method without a constructor
    known = [name for name, found in parameters.items() if name not in RESERVED and found.kind not in several]
    for option in options:
        if option not in known:
            near = nearest_name(option, known)
            hint = f"did you mean {near!r}? " if near else ""
            listed = ", ".join(known) or "none"
            raise ConfigError(f"{cls.name} has no option {option!r}: {hint}its options: {listed}")
