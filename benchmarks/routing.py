"""QIM of 150 classes x 5 examples for 64 queries, width 384, one thread: literal broadcasting, einsum, Gram space.

Medians of interleaved repetitions in one process. The bare matrix product of queries and examples is the floor.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from dmin.methods.base import cosine
from dmin.routing import DynamicMemoryRouting, pearson, squash
from dmin.routing_gram import gram_cosine, gram_rows

CLASSES, EXAMPLES, QUERIES, WIDTH = 150, 5, 64, 384
REPETITIONS = 15


def literal(routing: DynamicMemoryRouting, memory: Tensor, query: Tensor) -> Tensor:
    """Algorithm 1 as one writes it first: products are broadcast and summed."""
    capsules, width = routing.capsules, WIDTH // routing.capsules
    m_hat = squash(routing.transform(memory).view(1, CLASSES, EXAMPLES, capsules, width))
    q_hat = squash(routing.transform(query).view(QUERIES, 1, 1, capsules, width))
    p = torch.tanh(pearson(m_hat, q_hat))  # [L, C, K, l]
    alpha = torch.zeros_like(p)
    for _ in range(routing.iterations):
        weights = alpha.softmax(dim=-1) + p
        v = squash((weights.unsqueeze(-1) * m_hat).sum(dim=2, keepdim=True))  # [L, C, 1, l, v]
        alpha = alpha + p * (m_hat * v).sum(dim=-1)
        q_hat = (q_hat + v) / 2
        p = torch.tanh(pearson(m_hat, q_hat))
    return cosine(query.unsqueeze(1), v[:, :, 0].flatten(-2))


def einsum(routing: DynamicMemoryRouting, memory: Tensor, query: Tensor) -> Tensor:
    """The plain form of the package."""
    return cosine(query.unsqueeze(1), routing(memory.unsqueeze(0), query.unsqueeze(1)))


def gram(routing: DynamicMemoryRouting, memory: Tensor, query: Tensor) -> Tensor:
    """The Gram form, support side included."""
    return gram_cosine(routing, gram_rows(routing, memory), query)


def bare(routing: DynamicMemoryRouting, memory: Tensor, query: Tensor) -> Tensor:
    """The matrix product alone."""
    del routing
    return query @ memory.reshape(-1, WIDTH).T


FORMS: dict[str, Callable[[DynamicMemoryRouting, Tensor, Tensor], Tensor]] = {
    "literal broadcasting": literal, "einsum": einsum, "Gram": gram, "bare product": bare,
}  # fmt: skip


def inputs() -> tuple[DynamicMemoryRouting, Tensor, Tensor]:
    """A routing, examples [C, K, d] and queries [L, d] of a usual size."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    memory = 5 * torch.randn(CLASSES, EXAMPLES, WIDTH, generator=generator) / WIDTH**0.5
    query = 5 * torch.randn(QUERIES, WIDTH, generator=generator) / WIDTH**0.5
    return DynamicMemoryRouting(WIDTH), memory, query


@torch.no_grad()
def main() -> list[str]:
    """Return the table."""
    threads = torch.get_num_threads()
    data = inputs()
    assert torch.allclose(literal(*data), gram(*data), atol=1e-5)
    times: dict[str, list[float]] = {name: [] for name in FORMS}
    for repetition in range(REPETITIONS + 1):
        for name, form in FORMS.items():
            start = time.perf_counter()
            form(*data)
            if repetition:  # the first turn warms up
                times[name].append(1000 * (time.perf_counter() - start))
    torch.set_num_threads(threads)
    lines = ["| form | ms (min to max) | literal is slower by |", "|---|---|---|"]
    slowest = statistics.median(times["literal broadcasting"])
    for name, values in times.items():
        middle = statistics.median(values)
        spread = f"{middle:.1f} ({min(values):.1f} to {max(values):.1f})"
        lines.append(f"| {name} | {spread} | {slowest / middle:.1f}x |")
    return lines


if __name__ == "__main__":
    print("\n".join(main()))
