"""DMIN's induction and cosine in Gram space: the scores of `DMIN.induce` and `DMIN.cosine`, without the class vectors.

`dmin.routing.gram` has the mathematics; here is the rule for when it is used. A classifier keeps the support side of its
classes and makes the query side once for all of them.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from torch import Tensor

from dmin.routing import DynamicMemoryRouting
from dmin.routing.gram import GramQueries, GramRows, gram_cosine, gram_queries, gram_rows


class DMINQueries(NamedTuple):
    """Queries [..., L, d], and what the routing in Gram space needs of them; None without QIM."""

    query: Tensor
    gram: GramQueries | None


def gram_pays(routing: DynamicMemoryRouting | None, adapted: Tensor) -> TypeGuard[DynamicMemoryRouting]:
    """Is the Gram form cheaper for examples [..., K, d]? It pays while K is smaller than the width of a capsule."""
    return routing is not None and adapted.shape[-2] < routing.width


def gram_cosines(
    routing: DynamicMemoryRouting, adapted: Tensor, query: Tensor, mask: Tensor | None, row_weights: Tensor | None
) -> Tensor:
    """cos(e_q, e_c) with e_c = DMR({e'_{c,s}}, e_q), for every query and class: [..., L, C]."""
    return gram_cosine(routing, gram_rows(routing, adapted, mask, row_weights), gram_queries(routing, query))


__all__ = ["DMINQueries", "GramRows", "gram_cosine", "gram_cosines", "gram_pays", "gram_queries", "gram_rows"]
