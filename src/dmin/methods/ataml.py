"""Attentive Task-Agnostic Meta-Learning: Jiang, Havaei, Chartrand, Chouaib, Vincent, Jesson, Chapados and Matwin, 2018.

Model-agnostic meta-learning in which only the attention over the tokens and the classifier adapt to a task, while the
text representation is shared by all tasks. It needs the states of the tokens: on a single vector per text the attention is
the constant 1, and all that is left is an adapted classifier. The gradient of the outer loss goes through the inner
steps (second order) unless `first_order` says otherwise. Each class has a slot of its own in the initial classifier, so
a model belongs to one number of classes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.errors import ConfigError
from dmin.methods.base import FewShotMethod, TokenStates, Traits
from dmin.methods.registry import register
from dmin.methods.search_space import SearchSpace, option, rates


class Adapted(NamedTuple):
    """The part that adapts to a task, one copy per episode."""

    attention: Tensor  # u [..., d]
    weight: Tensor  # W [..., C, d]
    bias: Tensor  # [..., C]


@register
class ATAML(FewShotMethod):
    """Token attention and classifier adapted by gradient steps on the support.

    Args:
        dim: width of the token states.
        way: number C of classes.
        inner_steps: gradient steps in training.
        test_steps: gradient steps in use.
        inner_rate: their step size.
        first_order: treat the inner gradients as constants.
        seed: of the initial classifier.
    """

    traits = Traits(
        name="ataml", title="ATAML", place=20, inputs="tokens", tied_to="way",
        search=SearchSpace(
            (
                rates(1e-3, 1e-4), option("inner_rate", 0.1, 0.3, 1.0), option("inner_steps", 5, 10),
                option("test_steps", 10, 50),
            ),
            trials=4,  # each trial takes token states and second-order gradients
            beyond=(rates(3e-5), option("inner_rate", 3.0), option("inner_steps", 3), option("test_steps", 20)),
        ),
        searched=(("stage2.learning_rate", 1e-4), ("options.inner_rate", 1.0)),
    )  # fmt: skip

    def __init__(
        self,
        dim: int,
        way: int,
        inner_steps: int = 5,
        test_steps: int = 10,
        inner_rate: float = 0.1,
        first_order: bool = False,
        *,
        seed: int = 0,
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.attention = nn.Parameter(torch.zeros(dim))  # u = 0 is mean pooling
        self.weight = nn.Parameter(0.02 * torch.randn(way, dim, generator=generator))
        self.bias = nn.Parameter(torch.zeros(way))
        self.inner_steps, self.test_steps = inner_steps, test_steps
        self.inner_rate, self.first_order = inner_rate, first_order

    @property
    def note(self) -> str:
        """Says when the inner gradients are constants."""
        return "first order" if self.first_order else ""

    def forward(  # type: ignore[override]
        self, support: TokenStates, query: TokenStates, mask: Tensor | None = None, base_rows: Tensor | None = None
    ) -> Tensor:
        """Scores [..., L, C] for support states [..., C, K, T, d] and query states [..., L, T, d]."""
        del base_rows
        classes = support.states.shape[-4]
        if classes != len(self.weight):
            raise ConfigError(
                f"this ataml was trained for {len(self.weight)} classes, not {classes}: train one for each"
            )
        steps = self.inner_steps if self.training else self.test_steps
        return self.score(query, self.adapt(support, mask, steps))

    def adapt(self, support: TokenStates, mask: Tensor | None, steps: int) -> Adapted:
        """θ_T' = θ_T - rate·∇ CE(support), `steps` times, for each episode on its own."""
        leading = support.states.shape[:-4]
        classes, shots = support.states.shape[-4:-2]
        task = Adapted(*(p.expand(*leading, *p.shape) for p in (self.attention, self.weight, self.bias)))
        flat = TokenStates(support.states.flatten(-4, -3), support.mask.flatten(-3, -2))  # [..., C·K, T, d]
        labels = torch.arange(classes, device=self.weight.device).repeat_interleave(shots)
        labels = labels.expand(*leading, -1)
        real = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask.flatten(-2)
        outer = torch.is_grad_enabled()
        with torch.enable_grad():
            if not outer:
                task = Adapted(*(p.detach().requires_grad_() for p in task))
            for _ in range(steps):
                losses = functional.cross_entropy(
                    self.score(flat, task).flatten(0, -2), labels.flatten(), reduction="none"
                )
                weights = real / real.sum(dim=-1, keepdim=True)  # each episode's mean over its own support
                inner = (losses * weights.flatten()).sum()
                gradients = torch.autograd.grad(inner, task, create_graph=outer and not self.first_order)
                task = Adapted(*(p - self.inner_rate * g for p, g in zip(task, gradients, strict=True)))
        return task

    @staticmethod
    def score(texts: TokenStates, task: Adapted) -> Tensor:
        """Attend over the tokens, then classify: [..., n, T, d] -> [..., n, C]."""
        attended = torch.einsum("...nt,...ntd->...nd", token_attention(texts, task.attention), texts.states)
        return torch.einsum("...nd,...cd->...nc", attended, task.weight) + task.bias.unsqueeze(-2)


def token_attention(texts: TokenStates, direction: Tensor) -> Tensor:
    """α [..., n, T]: softmax of u·h_t over the real tokens, 0 on padding."""
    logits = torch.einsum("...ntd,...d->...nt", texts.states, direction)
    return logits.masked_fill(~texts.mask, torch.finfo(logits.dtype).min).softmax(dim=-1) * texts.mask
