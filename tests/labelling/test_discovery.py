"""`discover`: themes that are there, names and words, files that other commands take, pages that are safe."""

from __future__ import annotations

import csv
import io
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from dmin import FewShotClassifier
from dmin.data.labelled import read_corpus
from dmin.errors import ConfigError, DataError
from dmin.labelling import discover
from dmin.labelling.clusters import choose_count, cluster
from dmin.labelling.page import examples_yaml, page, positions, themes_csv
from dmin.labelling.words import propose_names, telling_words
from tests.conftest import word_corpus
from tests.labelling.hashed import encode
from tests.labelling.test_selection import clusters


@pytest.fixture
def pile() -> tuple[list[str], list[str]]:
    """Texts of six classes, each with a word of its own, and their labels."""
    corpus = word_corpus(texts=12, classes=6)
    texts = [f"{label} {label} {text}" for label, text in zip(corpus.labels, corpus.texts, strict=True)]
    return texts, list(corpus.labels)


def test_the_number_of_clusters_is_found() -> None:
    vectors, _ = clusters([40, 30, 30, 20, 25, 35, 30, 28], noise=0.05)
    assert 7 <= choose_count(vectors) <= 10


def test_grains_are_nested_and_agree_with_the_classes(pile: tuple[list[str], list[str]]) -> None:
    texts, labels = pile
    found = discover(texts, vectors=encode(texts), count=6)
    assert [grain.name for grain in found.grains] == ["coarse", "medium", "fine"]
    medium = found.grain()
    assigned = np.full(len(texts), -1)
    for number, theme in enumerate(medium.themes):
        assigned[list(theme.rows)] = number
    assert adjusted_rand_score(labels, assigned) > 0.9
    assert sum(theme.size for theme in medium.themes) + len(medium.nowhere) == len(texts)
    names = {theme.name.split("_")[0] for theme in medium.themes}
    assert len(names & set(labels)) >= 5  # named by the word that sets them apart
    sizes = [len(grain.themes) for grain in found.grains]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    fine, coarse = cluster(np.eye(30, dtype=np.float32).repeat(4, axis=0), count=12)[::-2]
    for number in range(int(fine.assigned.max()) + 1):
        assert len(set(coarse.assigned[fine.assigned == number]) - {-1}) <= 1


def test_what_fits_nowhere_is_said() -> None:
    vectors, _ = clusters([40, 40, 40], noise=0.03)
    odd = np.random.default_rng(5).normal(size=(2, 16)).astype(np.float32)
    everything = np.concatenate([vectors, odd / np.linalg.norm(odd, axis=1, keepdims=True)])
    texts = [f"text {number}" for number in range(len(everything))]
    found = discover(texts, vectors=everything, count=3)
    assert {120, 121} <= set(found.grain().nowhere) and len(found.grain().nowhere) < 10


def test_the_yaml_is_taken_as_examples(pile: tuple[list[str], list[str]], tmp_path: Path) -> None:
    texts, _ = pile
    odd = [*texts, *(f"yes: no #{number} 'quoted' \"{number}\" ünïcode" for number in range(6))]
    found = discover(odd, vectors=encode(odd), count=7)
    for grain in found.grains:
        path = tmp_path / f"{grain.name}.yaml"
        path.write_text(examples_yaml(grain), encoding="utf-8")
        examples = read_corpus(path).examples
        assert list(examples) == [theme.name for theme in grain.themes]
        assert all(set(rows) <= set(odd) and len(rows) <= 5 for rows in examples.values())
        assert all(f"# {theme.size} texts" in path.read_text(encoding="utf-8") for theme in grain.themes)
    classifier = FewShotClassifier(encoder=encode).fit(read_corpus(tmp_path / "medium.yaml").examples)
    first = found.grain().themes[0]
    assert classifier.predict([first.typical[0]])[0] == first.name


def test_each_text_gets_its_themes(pile: tuple[list[str], list[str]]) -> None:
    texts, _ = pile
    found = discover(texts, vectors=encode(texts), count=6)
    rows = list(csv.DictReader(io.StringIO(themes_csv(found, range(100, 100 + len(texts))))))
    assert [row["text"] for row in rows] == texts and rows[3]["row"] == "103"
    theme = found.grain().themes[2]
    assert [row["medium"] for row in rows].count(theme.name) == theme.size


def test_only_what_a_classifier_refuses_is_looked_at(pile: tuple[list[str], list[str]]) -> None:
    texts, labels = pile
    known = {
        name: [t for t, label in zip(texts, labels, strict=True) if label == name][:4] for name in [*labels[:1], "sea"]
    }
    classifier = FewShotClassifier(encoder=encode, reject=0.6).fit(known)
    found = discover(texts, classifier, count=4)
    inside = {place for place, label in enumerate(labels) if label in known}
    assert len(inside & set(found.looked_at)) <= 2 and len(found.looked_at) >= 44
    assert all(set(theme.rows) <= set(found.looked_at) for grain in found.grains for theme in grain.themes)
    with pytest.raises(ConfigError, match="refuses nothing"):
        discover(texts, FewShotClassifier(encoder=encode).fit(known))
    with pytest.raises(DataError, match="refuse none of the 72 texts"):
        discover(texts, FewShotClassifier(encoder=encode, reject=-1.0).fit(known))


def test_the_page_is_whole_and_escaped(pile: tuple[list[str], list[str]]) -> None:
    evil = "<script>alert(1)</script> & \"quoted\" 'text' {braces}"
    texts = [*pile[0], *(f"{evil} {number}" for number in range(5))]
    html = page(discover(texts, vectors=encode(texts), count=7), "a <b> title")
    assert "<script>alert" not in html and "&lt;script&gt;alert(1)" in html and "a &lt;b&gt; title" in html
    assert html.count("<circle") == len(texts) and "http://" not in html and "https://" not in html
    assert html.count("<script>") == 1


@pytest.mark.parametrize("count", [1, 2, 3, 9, 10, 12])
def test_small_piles_and_maps(count: int) -> None:
    texts = [f"word{number} word{number % 3}" for number in range(count)]
    found = discover(texts, vectors=encode(texts))
    assert sum(theme.size for theme in found.grain().themes) + len(found.grain().nowhere) == count
    spots = positions(found.vectors)
    assert spots.shape == (count, 2) and np.isfinite(spots).all() and spots.min() >= 0 and spots.max() <= 1
    assert page(found, "small").count("<circle") == count


def test_the_map_is_by_umap_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for umap-learn sees what it is given; small piles have fewer neighbours than it asks for by default."""
    asked: dict[str, Any] = {}

    class UMAP:
        def __init__(self, **options: Any) -> None:
            asked.update(options)

        def fit_transform(self, vectors: Any) -> Any:
            return 7 * vectors[:, :2] - 3

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=UMAP))
    vectors = encode([f"word{number}" for number in range(12)])
    spots = positions(vectors, seed=4)
    assert asked == {"metric": "cosine", "random_state": 4, "n_jobs": 1, "n_neighbors": 11}
    low, high = vectors[:, :2].min(axis=0), vectors[:, :2].max(axis=0)
    np.testing.assert_allclose(spots, (vectors[:, :2] - low) / (high - low), atol=1e-5)


@pytest.mark.slow
def test_the_map_by_umap_itself(pile: tuple[list[str], list[str]]) -> None:
    """Runs where the extra `label` is installed: neighbours stay neighbours, the same seed gives the same map."""
    pytest.importorskip("umap")
    texts, labels = pile
    found = discover(texts, vectors=encode(texts))
    spots = positions(found.vectors, seed=1)
    assert spots.shape == (len(texts), 2) and np.isfinite(spots).all() and spots.min() >= 0 and spots.max() <= 1
    assert np.array_equal(spots, positions(found.vectors, seed=1))
    distances = ((spots[:, None] - spots[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    assert np.mean([labels[row] == labels[near] for row, near in enumerate(nearest)]) > 0.8
    same = positions(np.ones((12, 8), np.float32))
    assert np.isfinite(same).all()
    assert page(found, "with UMAP").count("<circle") == len(texts)


def test_a_pile_of_one_text_repeated_is_one_theme() -> None:
    texts = ["the same thing"] * 40
    found = discover(texts, vectors=encode(texts))
    assert [theme.size for theme in found.grain().themes] == [40]
    assert found.grain().themes[0].typical == ("the same thing",)


def test_words_that_set_a_cluster_apart() -> None:
    texts = ["my card is lost", "card stolen today", "my loan rate", "loan payment today", "??? 12"]
    words = telling_words(texts, [0, 0, 1, 1, -1], 2)
    assert words[0][0] == "card" and words[1][0] == "loan" and "today" not in words[0][:2]
    assert telling_words(["???", "12 34"], [0, 1], 2) == [[], []]


def test_names_differ() -> None:
    names = propose_names([["a1", "b"], ["a1", "b"], ["a1", "b", "c"], [], [], ["x"]])
    assert len(set(names)) == 6 and names[0] == "a1_b" and names[2] == "a1_b_c" and names[3] == "theme_4"
    assert names[5] == "x"


@pytest.mark.parametrize("texts", [[], ["", None]])
def test_an_empty_pile_is_one_line(texts: list[Any]) -> None:
    with pytest.raises(DataError, match="the pile is empty|can be read"):
        discover(texts)


def test_a_spreadsheet_runs_no_cell_of_the_themes(pile: tuple[list[str], list[str]]) -> None:
    texts, _ = pile
    found = discover([f"=cmd|{text}" for text in texts], vectors=encode(texts), count=6)
    cells = [row["text"] for row in csv.DictReader(io.StringIO(themes_csv(found, range(len(texts)))))]
    assert cells == [f"'=cmd|{text}" for text in texts]
