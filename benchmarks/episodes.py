"""Stage 2 on cached vectors: episodes a second of DMIN at 1, 4 and 16 episodes an update, 5-way 5-shot, width 384."""

from __future__ import annotations

import statistics
import time

import torch

from dmin.methods import EpisodeTensors, create

WAY, SHOT, QUERIES, WIDTH, BASE = 5, 5, 10, 384, 25
REPETITIONS, EPISODES = 5, 32


def random_episodes(count: int) -> EpisodeTensors:
    """Episodes of random vectors: the time does not depend on what they say."""
    generator = torch.Generator().manual_seed(count)
    support = 5 * torch.randn(count, WAY, SHOT, WIDTH, generator=generator) / WIDTH**0.5
    query = 5 * torch.randn(count, WAY * QUERIES, WIDTH, generator=generator) / WIDTH**0.5
    labels = torch.arange(WAY).repeat_interleave(QUERIES).expand(count, -1)
    return EpisodeTensors(support, query, labels, torch.full((count, WAY), -1))


def main() -> list[str]:
    """Return the table; the batch sizes take turns, so that a slow moment of the machine hits all."""
    memory = torch.randn(BASE, WIDTH, generator=torch.Generator().manual_seed(0)) / 4
    batches = {size: random_episodes(size) for size in (1, 4, 16)}
    method = create("dmin", WIDTH, way=WAY, shot=SHOT, base_memory=memory).train()
    optimizer = torch.optim.AdamW(method.parameters(), lr=1e-4)

    def update(size: int) -> None:
        loss, _ = method.episode_loss(batches[size])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    rates: dict[int, list[float]] = {size: [] for size in batches}
    for repetition in range(REPETITIONS + 1):
        for size in batches:
            start = time.perf_counter()
            for _ in range(EPISODES // size):
                update(size)
            if repetition:  # the first turn warms up
                rates[size].append(EPISODES / (time.perf_counter() - start))
    base = statistics.median(rates[1])
    lines = ["| episodes an update | episodes/s (min to max) | against 1 |", "|---|---|---|"]
    for size, values in rates.items():
        middle = statistics.median(values)
        lines.append(f"| {size} | {middle:.0f} ({min(values):.0f} to {max(values):.0f}) | {middle / base:.2f}x |")
    return lines


if __name__ == "__main__":
    print("\n".join(main()))
