"""Logistic regression on the support vectors: the classic that few-shot methods forget to compare with."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from dmin.methods.base import FewShotMethod, Traits, unit
from dmin.methods.registry import register
from dmin.methods.search_space import SearchSpace, option


@register
class Logistic(FewShotMethod):
    """Multinomial logistic regression, fitted anew in each episode on L2-normalised vectors.

    Args:
        strength: inverse of the regularisation (scikit-learn's C).
    """

    traits = Traits(
        name="logistic", title="logistic regression", place=120, meta_trained=False, joint=True,
        search=SearchSpace((option("strength", 10.0, 1.0, 3.0, 30.0, 100.0), option("input_centre", False, True))),
    )  # fmt: skip

    def __init__(self, strength: float = 10.0) -> None:
        super().__init__()
        self.strength = strength

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Linear scores [..., L, C]; no gradient flows."""
        del base_rows
        leading = support.shape[:-3]
        kept = torch.ones(support.shape[:-1], dtype=torch.bool) if mask is None else mask.expand(support.shape[:-1])
        episodes = zip(
            unit(support).detach().reshape(-1, *support.shape[-3:]),
            unit(query).detach().reshape(-1, *query.shape[-2:]),
            kept.reshape(-1, *kept.shape[-2:]),
            strict=True,
        )
        scores = torch.stack([self._fit(*episode) for episode in episodes])
        return scores.reshape(*leading, query.shape[-2], support.shape[-3])

    def _fit(self, support: Tensor, query: Tensor, kept: Tensor) -> Tensor:
        """One episode: support [C, K, d], query [L, d], kept [C, K] -> scores [L, C]."""
        from sklearn.linear_model import LogisticRegression

        labels = torch.arange(len(support)).unsqueeze(1).expand_as(kept)[kept.cpu()]
        model = LogisticRegression(C=self.strength, max_iter=2000, tol=1e-6)
        with warnings.catch_warnings():
            # One example per class is what we do, not a mistake.
            warnings.filterwarnings("ignore", message="The number of unique classes")
            model.fit(support[kept].cpu().double().numpy(), labels.numpy())
        found = model.decision_function(query.cpu().double().numpy())
        if found.ndim == 1:  # two classes: scikit-learn gives one column
            found = np.stack([-found, found], axis=1)
        return torch.from_numpy(found).to(query)
