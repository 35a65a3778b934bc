"""BERT fine-tuning: Devlin et al., NAACL 2019, in each episode anew.

A fresh linear layer on the encoder, trained on the C·K support texts for a fixed number of steps; then everything is
put back. No episode knows of another. With a frozen encoder only the layer learns: that is another, cheaper method and is
called by another name.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.encoder import EncoderNetwork
from dmin.methods.abilities import TokenRows
from dmin.methods.base import FewShotMethod, Traits
from dmin.methods.registry import register
from dmin.methods.search_space import SearchSpace, option

DROPOUT = 0.1


@register
class FineTune(FewShotMethod):
    """A linear layer (and the encoder) trained on the support of one episode.

    Args:
        dim: width of the vectors.
        steps: updates on the whole support.
        learning_rate: of the layer.
        encoder_learning_rate: of the encoder, when it learns.
        seed: of the layer's start and the dropout; the same in every episode, so their order does not matter.
    """

    traits = Traits(
        name="finetune", title="BERT fine-tune", frozen_title="fine-tune (head)", place=10, inputs="texts",
        meta_trained=False,
        search=SearchSpace(
            (option("steps", 100, 30, 300), option("learning_rate", 1e-2, 1e-3, 1e-1)), trials=4,
            beyond=(option("steps", 1000), option("learning_rate", 3e-4)),
        ),
        searched=(("options.steps", 300), ("options.learning_rate", 1e-3)),
    )  # fmt: skip

    def __init__(
        self,
        dim: int,
        steps: int = 100,
        learning_rate: float = 1e-2,
        encoder_learning_rate: float = 2e-5,
        *,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.dim, self.steps, self.seed = dim, steps, seed
        self.head_learning_rate, self.encoder_learning_rate = learning_rate, encoder_learning_rate

    def forward(
        self, support: Tensor, query: Tensor, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """With a frozen encoder: train the layer on support vectors [..., C, K, d], score queries [..., L, d]."""
        del base_rows
        kept = torch.ones(support.shape[:-1], dtype=torch.bool) if mask is None else mask.expand(support.shape[:-1])
        generator = torch.Generator().manual_seed(self.seed)
        classes = support.shape[-3]
        weight = 0.02 * torch.randn(classes, self.dim, generator=generator).to(support)
        weight = weight.expand(*support.shape[:-3], classes, self.dim).clone().requires_grad_()  # [..., C, d]
        bias = torch.zeros_like(weight[..., 0]).detach().requires_grad_()  # [..., C]
        optimizer = torch.optim.AdamW([weight, bias], lr=self.head_learning_rate)
        labels = torch.arange(classes, device=support.device).unsqueeze(1).expand(support.shape[:-1])[kept]
        inputs = support.detach()
        with torch.enable_grad():
            for _ in range(self.steps):
                drop = torch.rand(inputs.shape[-3:], generator=generator).to(inputs) >= DROPOUT
                logits = torch.einsum("...ckd,...jd->...ckj", inputs * drop / (1 - DROPOUT), weight)
                logits = (logits + bias[..., None, None, :])[kept]
                # A sum over episodes leaves each episode the gradient it would have alone.
                loss = functional.cross_entropy(logits, labels, reduction="sum") / (classes * support.shape[-2])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        return torch.einsum("...ld,...jd->...lj", query, weight.detach()) + bias.detach().unsqueeze(-2)

    def score_texts(self, encoder: EncoderNetwork, support: Sequence[TokenRows], query: TokenRows) -> Tensor:
        """Fine-tune a copy of the encoder on K support texts of each of C classes, score query texts [L]: -> [L, C].

        The encoder given is not touched, to the last bit.
        """
        with torch.random.fork_rng(), torch.enable_grad():
            torch.manual_seed(self.seed)
            own = copy.deepcopy(encoder).train()
            own.requires_grad_(True)
            head = nn.Linear(self.dim, len(support)).to(own.device)
            nn.init.normal_(head.weight, std=0.02)
            nn.init.zeros_(head.bias)
            optimizer = torch.optim.AdamW([
                {"params": own.parameters(), "lr": self.encoder_learning_rate},
                {"params": head.parameters(), "lr": self.head_learning_rate},
            ])  # fmt: skip
            rows = [row for texts in support for row in texts]
            labels = torch.tensor([number for number, texts in enumerate(support) for _ in texts], device=own.device)
            for _ in range(self.steps):
                loss = functional.cross_entropy(head(functional.dropout(own(rows), DROPOUT)), labels)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        with torch.no_grad():
            scores: Tensor = head(own.eval()(query))
        return scores
