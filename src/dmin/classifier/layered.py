"""A mapping to which entries are added at little cost, however large it is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
MOST_RECENT = 1000  # entries beside the base; more are merged into it


class Layered(Mapping[Key, Value]):
    """An immutable mapping; `extended` gives another one that shares what is large.

    Args:
        base: the entries; it must not be changed afterwards.
        recent: entries that were added since, none of them in `base`.
    """

    def __init__(self, base: Mapping[Key, Value], recent: Mapping[Key, Value] | None = None) -> None:
        self._base, self._recent = base, recent or {}

    def extended(self, more: Mapping[Key, Value]) -> Layered[Key, Value]:
        """With more entries; those that are there already stay."""
        recent = {**{key: value for key, value in more.items() if key not in self}, **self._recent}
        if len(recent) > MOST_RECENT:
            return Layered({**self._base, **recent})
        return Layered(self._base, recent)

    def __getitem__(self, key: Key) -> Value:
        return self._recent[key] if key in self._recent else self._base[key]

    def __contains__(self, key: object) -> bool:
        return key in self._recent or key in self._base

    def __iter__(self) -> Iterator[Key]:
        yield from self._base
        yield from self._recent

    def __len__(self) -> int:
        return len(self._base) + len(self._recent)
