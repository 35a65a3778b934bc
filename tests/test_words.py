"""The documentation and the docstrings use the field's words: a list of those that we avoid, and what to write instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
AVOIDED = {
    r"\bresting\b": "frozen",
    r"\bstrangers?\b": "out-of-scope or unknown texts",
    r"\b(examples|texts|queries) a class\b(?!')": "... per class",
    r"\bnot a? ?numbers?\b": "NaN",
    r"\bthe whole road\b": "say which steps",
    r"\bwhat belongs\b(?! to)": "in-scope texts",
    r"\bcrumbs\b": "say what is left",
    r"\blike with like\b": "say what is compared",
    r"\bwhat an application holds\b": "the public API",
}
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "examples/**/*.ipynb",
        "src/dmin/**/*.py",
        "src/dmin/**/*.md",
        "reproduce/**/*.md",
    )
    for path in ROOT.glob(pattern)
)


def found_words(text: str) -> list[str]:
    """Each avoided expression in the text, with its line and what to write instead."""
    flat = text.replace("\n", " ")  # an expression may stand at the end of a line
    return [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}; write: {instead}"
        for pattern, instead in AVOIDED.items()
        for match in re.finditer(pattern, flat, re.IGNORECASE)
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_avoided_word(path: Path) -> None:
    assert found_words(path.read_text(encoding="utf-8")) == []


def test_the_search_finds_words_across_lines_and_spares_other_uses() -> None:
    assert found_words("a resting encoder, then\nfive examples a\nclass") == [
        "line 1: 'resting'; write: frozen",
        "line 2: 'examples a class'; write: ... per class",
    ]
    assert found_words("how many examples a class's name is worth; what belongs to the weights") == []
    assert len(PAGES) > 100
