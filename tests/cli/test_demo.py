"""The demo: what it says first, what it measures, what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmin import FewShotClassifier
from dmin.cli.app import run
from dmin.cli.demo import NEW_CLASS, NEW_TEXTS, OUTSIDE_TEXTS, UNKNOWN, tell, verdict
from dmin.data import load_corpus
from dmin.evaluation import Cell, EpisodeResults

EXPECTED = ("no_signal", "stock_question", "choose_seat", "reserve_table", "voucher_problem")


@pytest.mark.slow
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--episodes", "20"]) == 0
    output = capsys.readouterr().out
    told, trained = output.split("Training on episodes")
    for text, label in zip(NEW_TEXTS, EXPECTED, strict=True):
        assert f"“{text}” -> {label}" in told
    for text in OUTSIDE_TEXTS:
        assert f"“{text}” -> {UNKNOWN}" in told
    assert f"now -> {NEW_CLASS}" in told and "logistic regression on the same vectors" in told
    assert "nearest prototype" in trained and "of 4 settings" in trained
    names = {path.name for path in Path("runs/demo").iterdir()}
    assert {"config.yaml", "metrics.jsonl", "checkpoints", "model", "summary.json", "report.html"} <= names
    summary = json.loads(Path("runs/demo/summary.json").read_text())
    assert len(summary["cells"]) == 8 and {cell["method"] for cell in summary["cells"]} == {"dmin-plus", "nearest"}
    page = Path("runs/demo/report.html").read_text()
    assert page.index(NEW_CLASS) < page.index("Confusion matrix") < page.index("classes never trained on")
    assert "other texts are answered right" in page and "Wrong answers" in page and 'class="bar-line' in page
    assert run(["demo", "--episodes", "20"]) == 0  # again, over the first


def test_unlabelled_texts_are_shown_by_number_of_examples() -> None:
    corpus = load_corpus("starter")
    chapters = tell(corpus, corpus.split().test[:3])
    chapter = next(chapter for chapter in chapters if "unlabelled" in chapter.title)
    assert [line.split(" per class")[0] for line in chapter.lines] == ["1 example", "2 examples", "5 examples"]
    examples = {label: list(corpus.examples[label][:1]) for label in corpus.split().test[:3]}
    rest = [(text, label) for label in examples for text in corpus.examples[label][5:]]
    texts, labels = (list(part) for part in zip(*rest, strict=True))
    classifier = FewShotClassifier().fit(examples)
    expected = [100 * classifier.score(texts, labels), 100 * classifier.adapt(texts).score(texts, labels)]
    assert chapter.lines[0].endswith(f"{expected[0]:.1f} % without them, {expected[1]:.1f} % with them")


def _cells(gain: float) -> list[Cell]:
    base = np.random.default_rng(0).uniform(0.4, 0.6, size=50)
    noise = np.random.default_rng(1).normal(0, 0.01, size=50)

    def cell(method: str, values: Any) -> Cell:
        return Cell(method, 5, 1, EpisodeResults(values.tolist(), {}))

    return [cell("dmin-plus", base + gain + noise), cell("nearest", base)]


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (0.1, "better in 1 and significantly worse in 0 of 1"),
        (-0.1, "better in 0 and significantly worse in 1 of 1"),
        (0.0, "better in 0 and significantly worse in 0 of 1"),
    ],
)
def test_the_verdict_on_training_follows_the_cells(gain: float, words: str) -> None:
    assert words in verdict(_cells(gain))
