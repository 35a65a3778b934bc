"""One measurement of one library, in a process of its own: a JSON job on standard input, a JSON result on standard output.

The job: {"peer", "options", "encoder" (a folder), "examples" [[text, label]], "extra" [[[text, label]]] (classes to add,
one after the other), "test" [[text, label]], "single" (how many of the test texts are asked one by one)}. The result is
what `measure` makes.
It runs in the environment of the library that it measures: nothing but the standard library is imported at the top.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

Labelled = Sequence[Sequence[str]]


class Peer:
    """A library under one interface; the constructor imports it, so that importing is not timed."""

    distribution: ClassVar[str]
    trains: ClassVar[bool] = False  # a class is added by doing everything again
    loads_apart: ClassVar[bool] = True  # the time of loading can be told apart

    def __init__(self, encoder: str, options: dict[str, Any]) -> None:
        # Some import these late, in what is timed as loading.
        from transformers import AutoModel, AutoTokenizer, BertModel, BertTokenizerFast

        del AutoModel, AutoTokenizer, BertModel, BertTokenizerFast
        self.encoder, self.options = encoder, options
        self.prepare()

    def prepare(self) -> None:
        """Import the library."""
        raise NotImplementedError

    def load(self) -> None:
        """Load the encoder."""
        raise NotImplementedError

    def fit(self, examples: Labelled) -> None:
        """From examples to a ready classifier."""
        raise NotImplementedError

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Labels of the texts."""
        raise NotImplementedError

    def add(self, extra: Labelled) -> None:
        """Add one class to the ready classifier; for a library that trains, the least that makes it know the class."""
        raise NotImplementedError


class Dmin(Peer):
    """This library: examples are encoded, nothing is trained."""

    distribution = "dmin"

    def prepare(self) -> None:
        from dmin import FewShotClassifier

        self.classifier = FewShotClassifier(
            encoder=self.options["encoder"], use_names=self.options["names"], device="cpu"
        )

    def load(self) -> None:
        self.classifier.open()  # `fit` does it too: by itself here, so that its time can be told apart

    def fit(self, examples: Labelled) -> None:
        self.classifier.fit([text for text, _ in examples], [label for _, label in examples])

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(label) for label in self.classifier.predict(texts)]

    def add(self, extra: Labelled) -> None:
        self.classifier.add_class(extra[0][1], [text for text, _ in extra])


class Logistic(Peer):
    """sentence-transformers and scikit-learn; the vectors of the examples are kept for the next fit."""

    distribution = "sentence-transformers"

    def prepare(self) -> None:
        from sentence_transformers import SentenceTransformer
        from sklearn.linear_model import LogisticRegression

        self.sentence_transformer = SentenceTransformer
        self.head = LogisticRegression(C=10, max_iter=2000)

    def load(self) -> None:
        self.body = self.sentence_transformer(self.encoder, device="cpu")

    def encode(self, texts: Sequence[str]) -> Any:
        return self.body.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)

    def fit(self, examples: Labelled) -> None:
        self.vectors, self.labels = self.encode([text for text, _ in examples]), [label for _, label in examples]
        self.head.fit(self.vectors, self.labels)

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(label) for label in self.head.predict(self.encode(texts))]

    def add(self, extra: Labelled) -> None:
        import numpy

        self.vectors = numpy.concatenate([self.vectors, self.encode([text for text, _ in extra])])
        self.labels += [label for _, label in extra]
        self.head.fit(self.vectors, self.labels)


class SemanticRouter(Peer):
    """semantic-router with its encoder for local Hugging Face models, its local index and its other defaults."""

    distribution = "semantic-router"

    def prepare(self) -> None:
        from semantic_router import Route
        from semantic_router.encoders import HuggingFaceEncoder
        from semantic_router.routers import IndexedRouter
        from semantic_router.routers.base import run

        self.route, self.make_encoder, self.make_router, self.run = Route, HuggingFaceEncoder, IndexedRouter, run

    def load(self) -> None:
        self.body = self.make_encoder(name=self.encoder, device="cpu")

    def fit(self, examples: Labelled) -> None:
        groups: dict[str, list[str]] = {}
        for text, label in examples:
            groups.setdefault(label, []).append(text)
        routes = [self.route(name=label, utterances=texts) for label, texts in groups.items()]
        self.router = self.make_router(encoder=self.body, routes=routes, **self.options)

    def predict(self, texts: Sequence[str]) -> list[str]:
        if len(texts) == 1:
            return [str(self.router(texts[0]).name)]
        # What its `evaluate` does; nothing public answers many texts at once.
        return [str(self.router._choose(found, 1, None).name) for found in self.run(self.router._scores_many(texts))]

    def add(self, extra: Labelled) -> None:
        self.router.add(self.route(name=extra[0][1], utterances=[text for text, _ in extra]))


class SetFit(Peer):
    """SetFit: the encoder is tuned on pairs, then a logistic regression is fitted."""

    distribution = "setfit"
    trains = True

    def prepare(self) -> None:
        from datasets import Dataset
        from setfit import SetFitModel, Trainer, TrainingArguments

        self.dataset, self.make_model, self.make_trainer, self.arguments = (
            Dataset, SetFitModel, Trainer, TrainingArguments,
        )  # fmt: skip

    def load(self) -> None:
        self.model = self.make_model.from_pretrained(self.encoder, device="cpu")

    def fit(self, examples: Labelled) -> None:
        self.examples = [{"text": text, "label": label} for text, label in examples]
        with tempfile.TemporaryDirectory() as folder:
            quiet = {"report_to": "none", "save_strategy": "no", "show_progress_bar": False, "output_dir": folder}
            arguments = self.arguments(**self.options, **quiet)
            self.make_trainer(self.model, args=arguments, train_dataset=self.dataset.from_list(self.examples)).train()

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(label) for label in self.model.predict(list(texts), show_progress_bar=False)]

    def add(self, extra: Labelled) -> None:
        # The head alone, on the encoder as it was tuned without the new class: the trainer does not offer this.
        self.examples += [{"text": text, "label": label} for text, label in extra]
        texts, labels = ([row[name] for row in self.examples] for name in ("text", "label"))
        self.model.fit(texts, labels, num_epochs=1)


ACCURACY_METRIC = '''"""Accuracy, as a file: the library fetches its own from an address that is not asked here."""
import datasets

class Accuracy(datasets.Metric):
    def _info(self):
        whole = datasets.Value("int32")
        features = datasets.Features({"predictions": whole, "references": whole})
        return datasets.MetricInfo(description="accuracy", citation="", features=features)

    def _compute(self, predictions, references):
        return {"accuracy": sum(p == r for p, r in zip(predictions, references)) / len(references)}
'''


class FastFit(Peer):
    """FastFit: the encoder is tuned to bring texts and the names of their classes together, token by token."""

    distribution = "fast-fit"
    trains = True
    loads_apart = False

    def prepare(self) -> None:
        os.environ["HF_DATASETS_TRUST_REMOTE_CODE"] = "1"  # for the metric below, which is no remote code
        import torch
        from datasets import Dataset
        from fastfit import FastFitTrainer
        from transformers import AutoTokenizer

        self.torch, self.dataset, self.make_trainer, self.tokenizers = torch, Dataset, FastFitTrainer, AutoTokenizer

    def load(self) -> None:
        """Nothing: its trainer loads the encoder itself."""

    def fit(self, examples: Labelled) -> None:
        rows = self.dataset.from_list([{"text": text, "label": label} for text, label in examples])
        with tempfile.TemporaryDirectory() as folder:
            metric = Path(folder) / "accuracy.py"
            metric.write_text(ACCURACY_METRIC)
            trainer = self.make_trainer(
                model_name_or_path=self.encoder, train_dataset=rows, validation_dataset=rows, test_dataset=rows,
                text_column_name="text", label_column_name="label", metric_name=str(metric),
                output_dir=f"{folder}/run", save_strategy="no", report_to="none", disable_tqdm=True,
                **self.options,
            )  # fmt: skip
            self.model = trainer.train().eval()
        self.labels = trainer.labels
        self.tokenizer = self.tokenizers.from_pretrained(self.encoder)

    def predict(self, texts: Sequence[str]) -> list[str]:
        # Its way through save_pretrained and a pipeline fails with the transformers that it imports with.
        found: list[str] = []
        for first in range(0, len(texts), 32):
            batch = list(texts[first : first + 32])
            tokens = self.tokenizer(batch, padding=True, truncation=True, return_tensors="pt")
            with self.torch.inference_mode():
                scores = self.model.inference_forward(tokens["input_ids"], tokens["attention_mask"])
            found += [self.labels[column] for column in scores.argmax(dim=-1).tolist()]
        return found


PEERS: dict[str, type[Peer]] = {
    "dmin": Dmin, "logistic": Logistic, "semantic-router": SemanticRouter, "setfit": SetFit, "fastfit": FastFit,
}  # fmt: skip


class Stopwatch:
    """Seconds of the clock and of the processor; beside other jobs, the second are the steadier ones."""

    def __init__(self) -> None:
        self.started = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """(clock, processor) since the start."""
        return time.perf_counter() - self.started[0], time.process_time() - self.started[1]


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Load, fit, answer the test texts once each, add classes; times, memory and accuracy."""
    peer = PEERS[job["peer"]](job["encoder"], job["options"])
    watch = Stopwatch()
    peer.load()
    loading, _ = watch.read()
    peer.fit(job["examples"])
    ready, processor = watch.read()
    peer.predict([text for text, _ in job["examples"][:8]])  # the first call of anything is slower
    result = {
        "seconds_ready": ready - loading if peer.loads_apart else None,
        "seconds_ready_with_loading": ready,
        "processor_seconds_ready_with_loading": processor,
        "seconds_add_class": ready if peer.trains else None,
        "examples": len(job["examples"]),
        **measure_answers(peer, job["test"], job["single"]),
        "peak_megabytes": peak_megabytes(),
        "load_average": os.getloadavg()[0],
        "versions": versions(peer),
    }
    if type(peer).add is not Peer.add:
        result |= measure_adding(peer, job["extra"])
    return result


def measure_answers(peer: Peer, test: Labelled, single: int) -> dict[str, Any]:
    """Every test text is asked once: the first ones one by one, the others together."""
    texts = [text for text, _ in test]
    answers, times = [], []
    for text in texts[:single]:
        watch = Stopwatch()
        answers += peer.predict([text])
        times.append(watch.read()[0])
    watch = Stopwatch()
    answers += peer.predict(texts[single:])
    seconds, processor = watch.read()
    return {
        "texts_per_second": len(texts[single:]) / seconds,
        "texts_per_processor_second": len(texts[single:]) / processor,
        "milliseconds_one_text": 1000 * statistics.median(times),
        "accuracy": sum(answer == label for answer, (_, label) in zip(answers, test, strict=True)) / len(test),
        "tests": len(test),
    }


def measure_adding(peer: Peer, classes: Sequence[Labelled]) -> dict[str, Any]:
    """The median time to add a class; the share of the new examples that are then found again."""
    times, right = [], 0
    for extra in classes:
        watch = Stopwatch()
        peer.add(extra)
        times.append(watch.read())
        answers = peer.predict([text for text, _ in extra])
        right += sum(answer == label for answer, (_, label) in zip(answers, extra, strict=True))
    name = "seconds_add_class_head_only" if peer.trains else "seconds_add_class"
    return {
        name: statistics.median(clock for clock, _ in times),
        f"processor_{name}": statistics.median(processor for _, processor in times),
        "new_examples_found": right / sum(len(extra) for extra in classes),
    }


def peak_megabytes() -> float:
    """The most memory that this process held so far."""
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def versions(peer: Peer) -> dict[str, str]:
    """What was measured, and on what."""
    import torch

    names = (peer.distribution, "torch", "transformers")
    found = {name: importlib.metadata.version(name) for name in names}
    return {**found, "python": platform.python_version(), "threads": str(torch.get_num_threads())}


def main() -> None:
    """Read the job, print the result; whatever a library prints goes to standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        result = measure(json.load(sys.stdin))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
