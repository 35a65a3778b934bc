"""What only some methods can do, as protocols: a method has an ability by having its methods.

Call sites ask `isinstance(method, KeepsBaseClasses)` and never for a method by its class or name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from dmin.encoder import EncoderNetwork
from dmin.methods.base import FewShotMethod

TokenRows = Sequence[Sequence[int]]  # token ids of several texts


@runtime_checkable
class PreparedScoring(Protocol):
    """Scores in two steps, so that a classifier does the work on its examples once and keeps the result.

    Every method on vectors has a prepared scoring: see `prepared_scoring`.
    """

    def prepare(self, support: Tensor) -> Tensor:
        """The work that each example allows on its own: [..., d] -> [..., d]."""
        ...

    def support_side(self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None) -> Any:
        """All that scoring needs of prepared support [..., C, K, d] and that no query changes.

        `row_weights` [..., C, K] let a row count for more or less than one example.
        """
        ...

    def query_side(self, query: Tensor) -> Any:
        """All that scoring needs of queries [..., L, d] and that no class changes."""
        ...

    def score_sides(self, support: Any, queries: Any) -> Tensor:
        """Scores [..., L, C] from what `support_side` and `query_side` made."""
        ...


@runtime_checkable
class ExactShares(Protocol):
    """Scores that divide exactly among the examples of a class; see `exact_shares`."""

    def contributions(
        self, prepared: Tensor, query: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> Tensor:
        """Each prepared example's share of each score: [..., L, C, K], adding up over K to the score."""
        ...


@runtime_checkable
class KeepsBaseClasses(Protocol):
    """Can answer with its base classes beside new ones."""

    def base_scores(self, query: Tensor) -> Tensor:
        """Scores of the base classes [..., L, N], in the scale of the novel ones."""
        ...


@runtime_checkable
class ReadsMemory(Protocol):
    """Reads the examples of a class against the base classes."""

    def memory_weights(self, support: Tensor) -> Tensor | None:
        """The weight of each base class for each example [K, d]: [K, N]; None with the memory switched off."""
        ...


@runtime_checkable
class RewritesSupport(Protocol):
    """Replaces support vectors by what its memory makes of them."""

    def memory_module(self) -> Callable[[Tensor], Tensor] | None:
        """Maps support [..., C, K, d] to support of the same shape; None with the memory switched off."""
        ...


@runtime_checkable
class LearnsNameWeight(Protocol):
    """Can be trained with class names among the support, and learns how many examples a name is worth."""

    def learned_name_weight(self) -> float:
        """How many examples a class's name is worth beside them."""
        ...


@runtime_checkable
class StartsFromStage1(Protocol):
    """Starts stage 2 from more of stage 1 than W_base."""

    def start_from_stage1(self, scale: float | None, mean: Tensor) -> None:
        """Take over τ (None: the user gave another) and the mean [d] of the base texts' vectors."""
        ...


@runtime_checkable
class LimitsSupport(Protocol):
    """Can hold the weight of a large class down to what it was trained with."""

    def limit_support(self, most: int) -> None:
        """From now on a class of more than `most` examples weighs like one of `most`."""
        ...


@runtime_checkable
class FineTunesEncoder(Protocol):
    """Trains a copy of the encoder in each episode."""

    def score_texts(self, encoder: EncoderNetwork, support: Sequence[TokenRows], query: TokenRows) -> Tensor:
        """Scores [L, C] of query texts [L] after fine-tuning on K texts of each of C classes; the encoder stays."""
        ...


class SupportSide(NamedTuple):
    """Prepared support [..., C, K, d] as it is, with mask and weights [..., C, K]."""

    prepared: Tensor
    mask: Tensor | None
    row_weights: Tensor | None


class ForwardScoring:
    """Prepared scoring for methods without one of their own: nothing is prepared, `forward` does all the work.

    Such methods count every row as one example, whatever its weight.
    """

    def __init__(self, method: FewShotMethod) -> None:
        self.method = method

    def prepare(self, support: Tensor) -> Tensor:
        """The support as it is."""
        return support

    def support_side(
        self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None
    ) -> SupportSide:
        """The support as it is."""
        return SupportSide(prepared, mask, row_weights)

    def query_side(self, query: Tensor) -> Tensor:
        """The queries as they are."""
        return query

    def score_sides(self, support: SupportSide, queries: Tensor) -> Tensor:
        """`forward`: [..., L, C]."""
        scores: Tensor = self.method(support.prepared, queries, support.mask)
        return scores


def prepared_scoring(method: FewShotMethod) -> PreparedScoring:
    """The method's own prepared scoring, or `forward` in its place."""
    return method if isinstance(method, PreparedScoring) else ForwardScoring(method)


def score_prepared(
    method: FewShotMethod,
    prepared: Tensor,
    query: Tensor,
    mask: Tensor | None = None,
    row_weights: Tensor | None = None,
) -> Tensor:
    """Scores [..., L, C] on support [..., C, K, d] that went through `prepare`."""
    scoring = prepared_scoring(method)
    return scoring.score_sides(scoring.support_side(prepared, mask, row_weights), scoring.query_side(query))


def exact_shares(method: FewShotMethod) -> ExactShares | None:
    """The method if its scores divide among the examples of a class, else None.

    A joint score also depends on the examples of other classes, so it never divides.
    """
    return method if isinstance(method, ExactShares) and not method.traits.joint else None


def name_weight(method: FewShotMethod) -> float:
    """How many examples a name is worth: what the method learned, or 1."""
    return method.learned_name_weight() if isinstance(method, LearnsNameWeight) else 1.0
