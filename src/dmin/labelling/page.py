"""What `dmin discover` writes: YAML for a person to edit, the theme of each text, and a page with a map."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import yaml

from dmin.errors import DataError
from dmin.files import safe_cell
from dmin.labelling.discovery import Discovery, Grain
from dmin.labelling.vectors import FloatArray
from dmin.report import Dot, Report, Theme

POINTS = 2000  # texts on the map
_SIDE = 720
_SHOWN = 160  # characters of a text on the page


def examples_yaml(grain: Grain) -> str:
    """Themes as `{name: [typical texts]}` for `dmin classify --examples`, with their size and words as comments."""
    lines = [
        "# Proposed classes. Rename, merge and drop; then: dmin classify --examples THIS_FILE --input ...",
        f"# {len(grain.themes)} themes ({grain.name}); {len(grain.nowhere)} texts fit nowhere.",
    ]
    for theme in grain.themes:
        lines.append(f"\n# {theme.size} texts; words: {', '.join(theme.words) or 'none'}")
        lines.append(
            yaml.safe_dump({theme.name: list(theme.typical)}, allow_unicode=True, width=10**6, sort_keys=False).rstrip()
        )
    return "\n".join(lines) + "\n"


def themes_csv(found: Discovery, rows: Sequence[int]) -> str:
    """One line for each text that was looked at: its row, its text and its theme at each grain, empty where none fits."""
    names: list[dict[int, str]] = [
        {place: theme.name for theme in grain.themes for place in theme.rows} for grain in found.grains
    ]
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(["row", "text", *(grain.name for grain in found.grains)])
    for place in found.looked_at:
        cells = (found.texts[place], *(theme_of.get(place, "") for theme_of in names))
        writer.writerow([rows[place], *map(safe_cell, cells)])
    return content.getvalue()


def positions(vectors: FloatArray, seed: int = 0) -> Any:
    """Two dimensions of vectors [n, d], each from 0 to 1: UMAP where it is installed, else t-SNE; PCA for a handful."""
    if len(vectors) < 10:
        from sklearn.decomposition import PCA

        size = min(2, *vectors.shape)
        flat = np.zeros((len(vectors), 2))
        flat[:, :size] = PCA(size, random_state=seed).fit_transform(vectors) if len(vectors) > 1 else 0
    else:
        flat = _embedded(vectors, seed)
    low, high = flat.min(axis=0), flat.max(axis=0)
    return (flat - low) / np.where(high > low, high - low, 1)


def _embedded(vectors: FloatArray, seed: int) -> Any:
    try:
        from umap import UMAP
    except ImportError:
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(vectors) - 1) / 3)
        # A start by PCA fails where all vectors are equal.
        start = "pca" if vectors.std(axis=0).max() > 1e-6 else "random"
        return TSNE(2, perplexity=perplexity, init=start, random_state=seed, max_iter=500).fit_transform(vectors)
    return UMAP(metric="cosine", random_state=seed, n_jobs=1, n_neighbors=min(15, len(vectors) - 1)).fit_transform(
        vectors
    )


def page(found: Discovery, title: str, *, grain: str = "medium", seed: int = 0) -> str:
    """A page in one file: a map of the texts, and the themes with their words and typical texts.

    Nothing is fetched from elsewhere. Every text of the pile is escaped, and none goes into the script.
    """
    if not found.looked_at:
        raise DataError("nothing was looked at: there is nothing to draw")
    chosen = found.grain(grain)
    shown = np.sort(np.random.default_rng(seed).permutation(len(found.looked_at))[:POINTS])
    report = Report(
        title,
        f"{len(found.looked_at)} texts, {len(chosen.themes)} themes ({chosen.name}), {len(chosen.nowhere)} fit nowhere; "
        f"{len(shown)} on the map.",
    )
    report.heading("Map")
    report.paragraph("Point at a dot to read its text; choose a theme to see its texts alone.", note=True)
    report.map(_SIDE, _dots(found, chosen, shown, seed), _themes(found, chosen), "Map of the texts")
    return report.html()


def _dots(found: Discovery, chosen: Grain, shown: Any, seed: int) -> list[Dot]:
    """The texts `shown` [n] as dots of the map."""
    theme_of = {place: number for number, theme in enumerate(chosen.themes) for place in theme.rows}
    dots = []
    for row, (x, y) in zip(shown, positions(found.vectors[shown], seed), strict=True):
        place = found.looked_at[row]
        number = theme_of.get(place, -1)
        name = chosen.themes[number].name if number >= 0 else "fits nowhere"
        at = [f"{20 + value * (_SIDE - 40):.1f}" for value in (x, y)]
        dots.append(Dot(at[0], at[1], number, _colour(number), f"{name}: {found.texts[place][:_SHOWN]}"))
    return dots


def _themes(found: Discovery, chosen: Grain) -> list[Theme]:
    """The themes beside the map, and what fits nowhere."""
    themes = [
        Theme(
            theme.name, f"{theme.size} texts", ", ".join(theme.words), [text[:_SHOWN] for text in theme.typical], number,
            _colour(number),
        )
        for number, theme in enumerate(chosen.themes)
    ]  # fmt: skip
    nowhere = [found.texts[place][:_SHOWN] for place in chosen.nowhere[:20]]
    return [*themes, Theme("Fits nowhere", f"{len(chosen.nowhere)} texts", "", nowhere, None, "")]


def _colour(number: int) -> str:
    """Neighbouring numbers get colours far apart (steps of the golden angle)."""
    return f"hsl({(number * 137.5) % 360:.0f} 60% 48%)" if number >= 0 else "var(--quiet)"
