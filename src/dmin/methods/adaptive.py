"""The adaptive head of the default classifier as a method on episodes. Ours.

Logistic regression and a query-weighted class vector on centred vectors decide together; see `dmin.adaptive`. Unusual:
nothing is trained, everything is fitted to the support of each episode. It is not in the registry, because the default
classifier also uses a general spread that belongs to its encoder, which a method on bare vectors does not know.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dmin.adaptive import Recipe, Spread, fit_head
from dmin.methods.base import FewShotMethod, Traits


class Adaptive(FewShotMethod):
    """Deciding scores of a head that is fitted to each episode."""

    traits = Traits(name="adaptive", title="adaptive head", meta_trained=False, joint=True)

    @torch.no_grad()
    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores [..., L, C]."""
        del base_rows
        leading, (classes, shot, width) = support.shape[:-3], support.shape[-3:]
        real = torch.ones(support.shape[:-1], dtype=torch.bool) if mask is None else mask.expand(support.shape[:-1])
        episodes = zip(
            support.reshape(-1, classes, shot, width), query.reshape(-1, *query.shape[-2:]),
            real.reshape(-1, classes, shot), strict=True,
        )  # fmt: skip
        scores = []
        for rows, asked, is_real in episodes:
            head = fit_head(
                Recipe(matching=0.0), [Spread.flat(width)], rows[is_real].float(), is_real.sum(dim=1).tolist(),
                [False] * classes,
            )  # fmt: skip
            scores.append(head.scores(head.view(asked.float())))
        return torch.stack(scores).reshape(*leading, query.shape[-2], classes)
