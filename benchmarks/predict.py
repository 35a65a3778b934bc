"""256 fresh texts of about 12 tokens: `predict` against encoding alone, with 150 and 1,000 classes of 5 examples.

Encoder `minilm`, default head, two threads, no cache; names take no part, so that each class has 5 rows.
"""

from __future__ import annotations

from functools import partial

from benchmarks.common import Result, middle, ratio, short_texts, spread, take_turns
from dmin import FewShotClassifier

TEXTS, EXAMPLES, REPETITIONS = 256, 5, 9
CLASSES = (150, 1000)
BACKENDS = ("torch", "onnx", "onnx-int8")


def fitted(backend: str, classes: int) -> FewShotClassifier:
    """A classifier of so many classes; what their texts say does not matter for the time."""
    texts = short_texts(classes * EXAMPLES, turn=99)
    examples = {number: texts[number * EXAMPLES : (number + 1) * EXAMPLES] for number in range(classes)}
    return FewShotClassifier(encoder="minilm", backend=backend, use_names=False, device="cpu").fit(examples)


def main() -> Result:
    """One table for all backends."""
    lines = ["| backend | classes | encode, ms (min to max) | predict, ms (min to max) | predict / encode |"]
    lines += ["|---|---|---|---|---|"]
    figures = {}
    for backend in BACKENDS:
        classifiers = {classes: fitted(backend, classes) for classes in CLASSES}
        encoder = classifiers[CLASSES[0]].encoder_
        assert encoder is not None
        forms = {"encode": lambda turn, encoder=encoder: encoder.encode(short_texts(TEXTS, turn))}
        for classes, classifier in classifiers.items():
            forms[str(classes)] = partial(_predict, classifier)
        seconds = take_turns(forms, REPETITIONS)
        for classes in CLASSES:
            values = seconds[str(classes)]
            against = ratio(values, seconds["encode"])
            both = f"{spread(seconds['encode'], 1000, 0)} | {spread(values, 1000, 0)}"
            lines.append(f"| {backend} | {classes:,} | {both} | {against:.3f}x |")
            figures[f"{backend} {classes}"] = {
                "encode_ms": 1000 * middle(seconds["encode"]), "predict_ms": 1000 * middle(values), "ratio": against,
            }  # fmt: skip
    return Result(lines, figures)


def _predict(classifier: FewShotClassifier, turn: int) -> None:
    classifier.predict(short_texts(TEXTS, turn))


if __name__ == "__main__":
    print("\n".join(main().lines))
