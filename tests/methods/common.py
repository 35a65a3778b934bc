"""Vectors and a small separable world that the method tests share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dmin.methods import EpisodeTensors, FewShotMethod


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class World:
    """Twelve classes that differ in 6 of 24 directions, drowned by noise in the other 18: learn where to look."""

    dim, classes, way = 24, 12, 4

    def __init__(self, shot: int, seed: int = 0) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.shot = shot
        self.means = torch.zeros(self.classes, self.dim)
        self.means[:, :6] = torch.randn(self.classes, 6, generator=self.generator)
        self.noise = torch.cat([torch.full((6,), 0.1), torch.full((18,), 2.0)])

    def draw(self, rows: Tensor) -> Tensor:
        """Texts of these classes [...] as vectors [..., d]."""
        return self.means[rows] + self.noise * torch.randn(*rows.shape, self.dim, generator=self.generator)

    def episodes(self, count: int, queries: int = 5) -> EpisodeTensors:
        order = [torch.randperm(self.classes, generator=self.generator) for _ in range(count)]
        rows = torch.stack([o[: self.way] for o in order])  # [B, C]
        others = torch.stack([o[self.way :] for o in order])  # [B, N - C]
        labels = torch.arange(self.way).repeat_interleave(queries).expand(count, -1)
        base = others.repeat(1, 2)
        return EpisodeTensors(
            self.draw(rows.unsqueeze(-1).expand(-1, -1, self.shot)),
            self.draw(rows.repeat_interleave(queries, dim=1)),
            labels, rows, self.draw(base), base,
        )  # fmt: skip

    def accuracy(self, method: FewShotMethod) -> float:
        test = self.episodes(100)
        method.eval()
        with torch.no_grad():
            return float((method(test.support, test.query).argmax(-1) == test.labels).float().mean())


def train(method: FewShotMethod, batch: Callable[[], EpisodeTensors], steps: int, rate: float) -> None:
    """Plain Adam on fresh episodes."""
    method.train()
    optimizer = torch.optim.Adam([weight for weight in method.parameters() if weight.requires_grad], lr=rate)
    for _ in range(steps):
        loss, _ = method.episode_loss(batch())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
