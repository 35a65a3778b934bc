"""The measure behind the table of capsule widths."""

from __future__ import annotations

import pytest
import torch

from reproduce.capsule_width import participation_ratio


@pytest.mark.parametrize("directions", [1, 3, 8])
def test_the_ratio_counts_directions_of_equal_variance(directions: int) -> None:
    vectors = torch.zeros(2 * directions, 8)
    for number in range(directions):
        vectors[2 * number, number], vectors[2 * number + 1, number] = 5.0, -5.0
    assert participation_ratio(vectors + 100.0) == pytest.approx(directions, abs=1e-4)  # the mean does not count


def test_a_weak_direction_counts_little() -> None:
    vectors = torch.tensor([[10.0, 0.0], [-10.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert participation_ratio(vectors) == pytest.approx((200 + 2) ** 2 / (200**2 + 2**2))
