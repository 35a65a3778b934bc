"""Stage 2 on cached vectors: episodes per second of DMIN, 5-way 5-shot with 10 queries per class, width 384, one thread.

One update of the literal form (both modules broadcast and sum), of einsum, and of what the package takes (einsum for
the memory, Gram space for the examples), with 1, 4 and 16 episodes an update.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.common import Result, middle, ratio, spread, take_turns, threads
from dmin.methods import DMIN, EpisodeTensors
from dmin.methods.base import cosine
from dmin.routing import DynamicMemoryRouting, pearson, squash

WAY, SHOT, QUERIES, WIDTH, BASE = 5, 5, 10, 384, 25
REPETITIONS, EPISODES = 7, 32


def literal_route(routing: DynamicMemoryRouting, memory: Tensor, query: Tensor) -> Tensor:
    """Algorithm 1 as one writes it first, for memory [..., n, d] and queries [..., d] whose leading axes broadcast."""
    m_hat = squash(routing.transform(memory).unflatten(-1, (routing.capsules, -1)))  # [..., n, l, v]
    q_hat = squash(routing.transform(query).unflatten(-1, (routing.capsules, -1))).unsqueeze(-3)  # [..., 1, l, v]
    p = torch.tanh(pearson(m_hat, q_hat))  # [..., n, l]
    alpha = torch.zeros_like(p)
    for _ in range(routing.iterations):
        weights = alpha.softmax(dim=-1) + p
        v = squash((weights.unsqueeze(-1) * m_hat).sum(dim=-3, keepdim=True))
        alpha = alpha + p * (m_hat * v).sum(dim=-1)
        q_hat = (q_hat + v) / 2
        p = torch.tanh(pearson(m_hat, q_hat))
    return v.squeeze(-3).flatten(-2)


class Literal(DMIN):
    """Both modules by broadcasting."""

    def forward(self, support: Tensor, query: Tensor, *_: Any, **__: Any) -> Tensor:
        """Scores [..., L, C]."""
        assert self.memory_routing is not None and self.query_routing is not None
        adapted = literal_route(self.memory_routing, self.base_memory, support)
        vectors = literal_route(self.query_routing, adapted.unsqueeze(-4), query.unsqueeze(-2))
        return self.scale * cosine(query.unsqueeze(-2), vectors)


class Einsum(DMIN):
    """Both modules by einsum."""

    def forward(self, support: Tensor, query: Tensor, *_: Any, **__: Any) -> Tensor:
        """Scores [..., L, C]."""
        return self.scale * cosine(query.unsqueeze(-2), self.induce(self.adapt(support), query))


FORMS: dict[str, type[DMIN]] = {"literal": Literal, "einsum": Einsum, "dmin (Gram)": DMIN}


def random_episodes(count: int) -> EpisodeTensors:
    """Episodes of random vectors: the time does not depend on what they say."""
    generator = torch.Generator().manual_seed(count)
    support = 5 * torch.randn(count, WAY, SHOT, WIDTH, generator=generator) / WIDTH**0.5
    query = 5 * torch.randn(count, WAY * QUERIES, WIDTH, generator=generator) / WIDTH**0.5
    labels = torch.arange(WAY).repeat_interleave(QUERIES).expand(count, -1)
    return EpisodeTensors(support, query, labels, torch.full((count, WAY), -1))


def updates(form: type[DMIN], episodes: EpisodeTensors) -> Callable[[int], None]:
    """A turn: as many updates as it takes for all episodes."""
    memory = torch.randn(BASE, WIDTH, generator=torch.Generator().manual_seed(0)) / 4
    method = form(memory).train()
    optimizer = torch.optim.AdamW(method.parameters(), lr=1e-4, fused=True)

    def turn(number: int) -> None:
        del number
        for _ in range(EPISODES // len(episodes.labels)):
            loss, _ = method.episode_loss(episodes)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return turn


def main() -> Result:
    """All forms and sizes take turns."""
    sizes = (1, 4, 16)
    with threads(1):
        one, two = (form(torch.ones(BASE, WIDTH)) for form in (Literal, DMIN))
        data = random_episodes(1)
        assert torch.allclose(one(data.support, data.query), two(data.support, data.query), atol=1e-4)
        forms = {
            f"{name} {size}": updates(form, random_episodes(size)) for size in sizes for name, form in FORMS.items()
        }
        seconds = take_turns(forms, REPETITIONS)
    lines = ["| episodes an update | form | episodes/s (min to max) | against literal | against einsum |"]
    lines += ["|---|---|---|---|---|"]
    figures = {}
    for size in sizes:
        for name in FORMS:
            values = seconds[f"{name} {size}"]
            rates = [EPISODES / value for value in values]
            faster = [ratio(seconds[f"{other} {size}"], values) for other in ("literal", "einsum")]
            lines.append(f"| {size} | {name} | {spread(rates, digits=0)} | {faster[0]:.2f}x | {faster[1]:.2f}x |")
            figures[f"{name} {size}"] = {"episodes_per_second": middle(rates), "against_literal": faster[0]}
    return Result(lines, figures)


if __name__ == "__main__":
    print("\n".join(main().lines))
