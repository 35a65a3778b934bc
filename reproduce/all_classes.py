"""Models of all classes of a set beside logistic regression on the same vectors: rows for all-classes.md.

    python reproduce/all_classes.py banking77 frozen OUT
    python reproduce/all_classes.py banking77 full OUT       fine-tuning of the encoder: minutes to hours on a CPU
    python reproduce/all_classes.py banking77 beside OUT     a fifth of the classes comes later, with five examples each
    python reproduce/all_classes.py banking77 beside-0 OUT   the same without stage 2

Trained on the texts of the set without the leaderboard's test texts, of which a tenth is held out to choose the epoch;
measured on the leaderboard's test texts ($DMIN_DATA). Logistic regression learns from the held-out texts too.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dmin import FewShotClassifier
from dmin.data import Corpus, leave_out, load_corpus
from dmin.data.labelled import read_corpus
from dmin.evaluation import mean_interval
from dmin.evaluation.own_classes import logistic_answers
from dmin.training import Trainer, load_config
from dmin.training.own_classes import LabelledVectors

FULL: dict[str, Any] = {"tune": "full", "stage2.episodes": 0, "stage1.epochs": 6, "stage1.encoder_learning_rate": 5e-5}
LATER, EXAMPLES = 5, 5  # every fifth class comes later, with so many examples


def main(name: str, kind: str, out: Path) -> None:
    """Train, measure and print one row for each method."""
    board = Path(os.environ["DMIN_DATA"]) / name / "leaderboard"
    test = read_corpus(board / "test.jsonl")
    corpus = leave_out(load_corpus(name), test.texts)
    later = corpus.classes[::LATER] if kind.startswith("beside") else ()
    data = out / "data.jsonl"
    write_texts(data, corpus, set(later))
    settings: dict[str, Any] = {"data": str(data), "all_classes": True, "shot": 5, "device": "cpu"}
    started = time.perf_counter()
    more: dict[str, Any] = {"full": FULL, "beside-0": {"stage2.episodes": 0}}.get(kind, {})
    trainer = Trainer(load_config(overrides=settings | more), out / "run", overwrite=True)
    trainer.run()
    seconds = time.perf_counter() - started
    classifier = FewShotClassifier(out / "run", use_names=False, device="cpu")
    rows: dict[str, Any] = {"set": name, "kind": kind, "classes": len(corpus.classes), "seconds": round(seconds)}
    if later:
        few = read_corpus(board / "train_5.jsonl").examples
        rows |= beside(classifier, trainer, test, {label: few[label][:EXAMPLES] for label in later})
    else:
        rows["own classes"] = interval(classifier.predict(test.texts) == np.array(test.labels))
        rows["logistic regression"] = interval(logistic(trainer, test, {}) == np.array(test.labels))
    print(json.dumps(rows), flush=True)


def beside(
    classifier: FewShotClassifier, trainer: Trainer, test: Corpus, examples: dict[str, list[str]]
) -> dict[str, Any]:
    """Accuracy on texts of own classes and of those that came later, all answered at once."""
    truth = np.array(test.labels)
    of_later = np.isin(truth, list(examples))
    answers = {
        "own classes and later ones": classifier.fit(examples).predict(test.texts),
        "logistic regression": logistic(trainer, test, examples),
    }
    rows = {}
    for title, found in answers.items():
        right = found == truth
        own, novel = float(right[~of_later].mean()), float(right[of_later].mean())
        rows[title] = {"own": own, "later": novel, "harmonic": 2 * own * novel / (own + novel)}
    return rows


def logistic(trainer: Trainer, test: Corpus, examples: dict[str, list[str]]) -> np.ndarray[Any, Any]:
    """Answers of logistic regression on all texts of the run, and on the examples of later classes."""
    task = trainer.task
    texts = [*task.base_texts.train, *task.base_texts.held_out]
    known = LabelledVectors.of(task.corpus, texts, trainer.encode)
    names = [*task.base_classes, *examples]
    vectors, labels = [known.vectors], [known.labels]
    for number, few in enumerate(examples.values(), start=len(task.base_classes)):
        vectors.append(trainer.encode(few))
        labels.append(torch.full((len(few),), number))
    every = LabelledVectors(torch.cat(vectors), torch.cat(labels))
    answers: np.ndarray[Any, Any] = np.array(names)[logistic_answers(every, trainer.encode(test.texts))]
    return answers


def interval(right: np.ndarray[Any, Any]) -> str:
    """Accuracy in % with its 95 % confidence interval over texts."""
    return mean_interval(right.astype(float).tolist()).percent()


def write_texts(path: Path, corpus: Corpus, without: set[str]) -> None:
    """Write the texts of a corpus as JSON lines, without some classes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pairs = zip(corpus.texts, corpus.labels, strict=True)
    lines = [json.dumps({"text": text, "label": label}) for text, label in pairs if label not in without]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
