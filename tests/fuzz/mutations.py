"""Seeded mutations of files and of command lines: bytes, text, JSON structure."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

NASTY_TEXTS = (
    "", " ", "\x00", "\x1b[2J", "../../x", "/etc/passwd", "~nobody_here/x", "a" * 5000, "\ud800", "café", "🙂", "$x$",
    "null", "nan", "[", "{", "*a", "&a [*a]", "!!python/object:os.system x", "2020-99-99", "9" * 5000, "-1", "0",
    "1e999", "inf", "=cmd()",
)  # fmt: skip
NASTY_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 10**30, 1.5, float("nan"), float("inf"), "", "x", "../x", [], {}, [[]],
    [None], {"a": {}}, "9" * 5000,
)  # fmt: skip


def mutate_bytes(content: bytes, random: Random) -> bytes:
    """A few random changes: flipped bits, cuts, repeats, inserted or exchanged pieces."""
    found = bytearray(content)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(found) + 1)
        kind = random.randrange(6)
        if kind == 0 and found:
            found[at % len(found)] ^= 1 << random.randrange(8)
        elif kind == 1:
            del found[at : at + random.randint(1, 20)]
        elif kind == 2:
            found[at:at] = random.choice(NASTY_TEXTS).encode("utf-8", "surrogatepass")
        elif kind == 3:
            found[at:at] = found[at : at + random.randint(1, 40)]
        elif kind == 4:
            del found[at:]
        else:
            found[at:at] = bytes(random.randrange(256) for _ in range(random.randint(1, 8)))
    return bytes(found)


def mutate_json(content: bytes, random: Random) -> bytes:
    """One value, key or item of a JSON document exchanged, removed, repeated or nested."""
    try:
        document = json.loads(content)
    except ValueError:
        return mutate_bytes(content, random)
    places = list(_places(document))
    if not places:
        return mutate_bytes(content, random)
    parent, key = random.choice(places)
    kind = random.randrange(5)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[random.choice(NASTY_TEXTS)] = parent.pop(key)
    elif kind == 2:
        parent[key] = [parent[key]]
    elif kind == 3:
        nested: Any = parent[key]
        for _ in range(random.choice((3, 2000))):
            nested = [nested]
        parent[key] = nested
    else:
        parent[key] = random.choice(NASTY_VALUES)
    try:
        return json.dumps(document, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    except (RecursionError, ValueError):
        return content[: random.randrange(len(content) + 1)]


def _places(value: Any) -> Any:
    """(container, key) of every value in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


def mutate_file(path: Path, random: Random) -> None:
    """Change a file in place."""
    content = path.read_bytes()
    structured = path.suffix in (".json", ".jsonl") and random.random() < 0.6
    path.write_bytes(mutate_json(content, random) if structured else mutate_bytes(content, random))


def mutate_words(words: list[str], random: Random) -> list[str]:
    """A command line with a word exchanged, dropped, repeated or made nasty."""
    found = list(words)
    for _ in range(random.randint(1, 2)):
        at = random.randrange(len(found))
        kind = random.randrange(4)
        if kind == 0 and len(found) > 1:
            del found[at]
        elif kind == 1:
            found.insert(at, found[random.randrange(len(found))])
        else:
            found[at] = random.choice(NASTY_TEXTS)
    return [word.replace("\x00", "") for word in found]
