"""Settings by name: the paper's own two, for whoever has its data and a GPU."""

from __future__ import annotations

from typing import Any

from dmin.errors import unknown_name

_PAPER: dict[str, Any] = {
    "method": "dmin",
    "encoder": "bert-base-uncased",
    "pooling": "cls",
    "tune": "full",
    "queries": 10,
    "max_length": 128,
    "stage2.episodes": 5000,
}
PRESETS: dict[str, dict[str, Any]] = {
    "paper-odic": {**_PAPER, "data": "odic", "base_classes": 100, "test_episodes": 300, "max_length": 64},
    "paper-rcv1": {
        **_PAPER,
        "data": "rcv1",
        "base_classes": 20,
        "test_episodes": 100,
        "max_length": 256,
        "split_seed": 0,
        "split_sizes": (31, 10, 14),  # of the 55 topics; the paper does not say
    },
}


def preset(name: str | None) -> dict[str, Any]:
    """The settings of a preset; none for None."""
    if name is None:
        return {}
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return dict(PRESETS[name])
