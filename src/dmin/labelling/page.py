"""What `dmin discover` writes: YAML for a person to edit, the theme of each text, and a page with a map."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import yaml

from dmin.errors import DataError
from dmin.labelling.discovery import Discovery, Grain
from dmin.labelling.vectors import FloatArray

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
        writer.writerow([rows[place], found.texts[place], *(theme_of.get(place, "") for theme_of in names)])
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
    return UMAP(metric="cosine", random_state=seed, n_neighbors=min(15, len(vectors) - 1)).fit_transform(vectors)


def page(found: Discovery, title: str, *, grain: str = "medium", seed: int = 0) -> str:
    """A page in one file: a map of the texts, and the themes with their words and typical texts.

    Nothing is fetched from elsewhere. Every text of the pile is escaped, and none goes into the script.
    """
    if not found.looked_at:
        raise DataError("nothing was looked at: there is nothing to draw")
    chosen = found.grain(grain)
    generator = np.random.default_rng(seed)
    shown = np.sort(generator.permutation(len(found.looked_at))[:POINTS])
    theme_of = {place: number for number, theme in enumerate(chosen.themes) for place in theme.rows}
    dots = []
    for row, (x, y) in zip(shown, positions(found.vectors[shown], seed), strict=True):
        place = found.looked_at[row]
        number = theme_of.get(place, -1)
        name = chosen.themes[number].name if number >= 0 else "fits nowhere"
        dots.append(
            f'<circle cx="{20 + x * (_SIDE - 40):.1f}" cy="{20 + y * (_SIDE - 40):.1f}" r="3.5" data-theme="{number}" '
            f'fill="{_colour(number)}"><title>{escape(name)}: {escape(found.texts[place][:_SHOWN])}</title></circle>'
        )
    sections = [
        f'<section data-theme="{number}"><h2><i style="background:{_colour(number)}"></i>{escape(theme.name)} '
        f"<small>{theme.size} texts</small></h2><p>{escape(', '.join(theme.words))}</p><ul>"
        + "".join(f"<li>{escape(text[:_SHOWN])}</li>" for text in theme.typical)
        + "</ul></section>"
        for number, theme in enumerate(chosen.themes)
    ]
    nowhere = "".join(f"<li>{escape(found.texts[place][:_SHOWN])}</li>" for place in chosen.nowhere[:20])
    facts = (
        f"{len(found.looked_at)} texts, {len(chosen.themes)} themes ({chosen.name}), {len(chosen.nowhere)} fit nowhere; "
        f"{len(shown)} on the map"
    )
    return _PAGE.format(
        title=escape(title), facts=facts, side=_SIDE, dots="\n".join(dots), sections="\n".join(sections),
        nowhere=f"<section><h2>Fits nowhere <small>{len(chosen.nowhere)} texts</small></h2><ul>{nowhere}</ul></section>",
    )  # fmt: skip


def _colour(number: int) -> str:
    """Neighbouring numbers get colours far apart (steps of the golden angle)."""
    return f"hsl({(number * 137.5) % 360:.0f} 65% 45%)" if number >= 0 else "#bbb"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff; }}
main {{ display: grid; grid-template-columns: minmax(320px, {side}px) minmax(280px, 1fr); gap: 2rem; }}
svg {{ width: 100%; border: 1px solid #ddd; position: sticky; top: 1rem; }}
h2 {{ font-size: 1rem; margin: 0; }} h2 i {{ display: inline-block; width: .8em; height: .8em; margin-right: .5em; }}
section {{ margin-bottom: 1rem; padding: .4rem; cursor: pointer; }} section:hover {{ background: #f4f4f4; }}
small {{ color: #666; font-weight: normal; }} p {{ margin: .2rem 0; color: #555; }} ul {{ margin: .2rem 0; }}
.faded {{ opacity: .08; }}
@media (max-width: 800px) {{ main {{ grid-template-columns: 1fr; }} svg {{ position: static; }} }}
</style></head><body>
<h1>{title}</h1><p>{facts}. Point at a dot to read its text; click a theme to see its texts alone.</p>
<main><svg viewBox="0 0 {side} {side}" role="img" aria-label="Map of the texts">
{dots}
</svg><div>
{sections}
{nowhere}
</div></main>
<script>
let chosen = null;
for (const section of document.querySelectorAll("section[data-theme]")) section.addEventListener("click", () => {{
  chosen = chosen === section.dataset.theme ? null : section.dataset.theme;
  for (const dot of document.querySelectorAll("circle"))
    dot.classList.toggle("faded", chosen !== null && dot.dataset.theme !== chosen);
}});
</script></body></html>
"""
