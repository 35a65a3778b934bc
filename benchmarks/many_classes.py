"""10,000 and 100,000 classes of 5 examples: exact search, and an index that finds 32 candidates which are scored exactly.

Encoder `static`, one thread, in turns, in processor time; names take no part. Each class is a text of its own, put
together from the built-in ones; its examples and queries are that text with a third of its words left out, so that most
classes have close neighbours. Recall: texts whose answer by the index is that of exact search, which goes through all rows
in blocks; above 1,000 classes the logistic part of the head is left out. Memory is what the process holds more after the
fit, examples as texts included.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import Result, middle, ratio, resident, spread, starter_texts, take_turns, threads
from dmin import FewShotClassifier

CLASSES, EXAMPLES, QUERIES, RECALL, REPETITIONS = (10_000, 100_000), 5, 64, 256, 3
ADDED = 20


def main() -> Result:
    """One table."""
    lines = [
        "| classes | search | fit, s | memory, MB | ms per text, 64 at once | ms, one text | `add_class`, ms | recall |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|"]
    figures: dict[str, Any] = {}
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (the logistic part is left out)
        for classes in CLASSES:
            lines += _measure(classes, figures)
    return Result(lines, figures)


def _measure(classes: int, figures: dict[str, Any]) -> list[str]:
    random = np.random.default_rng(0)
    own = [class_text(number, random) for number in range(classes)]
    examples = {number: [variant(text, random) for _ in range(EXAMPLES)] for number, text in enumerate(own)}
    before, start = resident(), time.process_time()
    exact = FewShotClassifier(encoder="static", use_names=False).fit(examples)
    seconds, memory = [time.process_time() - start], [resident() - before]
    exact.predict(["warm"])
    before, start = resident(), time.process_time()
    index = FewShotClassifier(encoder="static", use_names=False, search="index").fit(examples)
    seconds, memory = [*seconds, time.process_time() - start], [*memory, resident() - before]
    asked = [variant(own[number], random) for number in random.integers(0, classes, max(RECALL, 8 * QUERIES))]
    recall = float(np.mean(exact.predict(asked[:RECALL]) == index.predict(asked[:RECALL])))
    forms: dict[str, Callable[[int], object]] = {}
    for name, classifier in (("exact", exact), ("index", index)):
        forms[name] = lambda turn, c=classifier: c.predict(asked[turn * QUERIES : (turn + 1) * QUERIES])
        forms[f"{name}, one"] = lambda turn, c=classifier: c.predict(asked[turn : turn + 1])
    found = take_turns(forms, REPETITIONS, time.process_time)
    lines = []
    for place, name in enumerate(("exact", "index")):
        added = _added((exact, index)[place])
        one = found[f"{name}, one"]
        lines.append(
            f"| {classes:,} | {name} | {seconds[place]:.0f} | {memory[place]:.0f} | "
            f"{spread(found[name], 1000 / QUERIES, 2)} | {spread(one, 1000, 1)} | {spread(added, 1000, 1)} | "
            f"{'' if name == 'exact' else f'{recall:.3f}'} |"
        )
    faster = [ratio(found[f"exact{kind}"], found[f"index{kind}"]) for kind in ("", ", one")]
    lines[-1] = lines[-1][:-1] + f" {faster[0]:.0f}x and {faster[1]:.0f}x faster |"
    figures[f"{classes}"] = {"faster": faster[0], "one_text_faster": faster[1], "recall": recall,
                             "index_add_class_ms": 1000 * middle(_added(index, 100))}  # fmt: skip
    return lines


def _added(classifier: FewShotClassifier, first: int = 0) -> list[float]:
    """Processor seconds of each `add_class`; the first, which makes tables that later ones extend, is not counted."""
    seconds = []
    for number in range(first, first + ADDED + 1):
        start = time.process_time()
        classifier.add_class(-1 - number, [f"an unheard of thing number {number}", f"thing {number} again"])
        seconds.append(time.process_time() - start)
    return seconds[1:]


def class_text(number: int, random: np.random.Generator) -> str:
    """A text of its own for each class: halves of two built-in texts."""
    texts = starter_texts()
    one, two = (texts[place].split() for place in random.integers(0, len(texts), 2))
    return " ".join([*one[: 1 + len(one) // 2], *two[len(two) // 2 :], str(number % 97)])


def variant(text: str, random: np.random.Generator) -> str:
    """The text with a third of its words left out."""
    words = text.split()
    kept = random.random(len(words)) < 2 / 3
    kept[random.integers(len(words))] = True
    return " ".join(word for word, stays in zip(words, kept, strict=True) if stays)


if __name__ == "__main__":
    print("\n".join(main().lines))
