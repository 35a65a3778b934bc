"""Full fine-tuning, texts per second: a plain loop against stage 1 of `dmin train --tune full`, on the same batches of 32.

The plain loop pads to the batch's longest text and moves all weights by a dense AdamW in float32. Ours passes a batch
through the encoder in chunks of like length, lets only words that occur learn, and has a fused AdamW. Both learn the same
weights: accuracy on texts kept aside, after the same updates from the same start, stands beside. banking77 (25 classes)
where the public sets are at hand, else the built-in set.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.common import Result, middle, ratio, spread, take_turns
from dmin.data import Corpus, load_corpus
from dmin.encoder import Encoder
from dmin.training.loop import LoopSettings, make_optimizer
from dmin.training.sources import encode_inputs
from dmin.training.stage1 import BaseClassifier
from dmin.training.task import hold_out
from dmin.training.tuning import seen_words_learn

BATCH, UPDATES, REPETITIONS = 32, 4, 7
LEARNED_UPDATES = 120
RATES = LoopSettings(5e-3, 2e-5, 0.01, 0.1, 1.0, 0)


def corpus() -> tuple[Corpus, list[str]]:
    """Texts and the classes to learn."""
    found = load_corpus("banking77" if os.environ.get("DMIN_DATA") else "starter")
    return found, list(found.by_class)[:25]


class Trial:
    """Batches of texts, the same for every loop."""

    def __init__(self) -> None:
        found, classes = corpus()
        self.name, self.encoder, self.classes = found.name, Encoder(max_length=64, device="cpu"), len(classes)
        divided = hold_out(found, classes, 0.1, 0)
        train, held = divided.train, divided.held_out
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0)).tolist()
        self.rows = self.encoder.tokenize([found.texts[train[at][0]] for at in order])
        self.labels = torch.tensor([train[at][1] for at in order])
        self.held_rows = self.encoder.tokenize([found.texts[row] for row, _ in held])
        self.held_labels = torch.tensor([label for _, label in held])

    def batch(self, number: int) -> tuple[list[list[int]], Tensor]:
        """Batch `number` of an endless stream."""
        at = number * BATCH % (len(self.rows) - BATCH)
        return self.rows[at : at + BATCH], self.labels[at : at + BATCH]

    def network(self) -> BaseClassifier:
        """A classifier at the start."""
        return BaseClassifier(copy.deepcopy(self.encoder.network), self.classes, self.encoder.width)

    @torch.no_grad()
    def accuracy(self, network: BaseClassifier) -> float:
        """On the texts kept aside."""
        network.eval()
        scores = torch.cat([network(self.held_rows[at : at + 64]) for at in range(0, len(self.held_rows), 64)])
        return float((scores.argmax(-1) == self.held_labels).double().mean())


def plain_updates(trial: Trial, network: BaseClassifier) -> Callable[[int], None]:
    """The loop one writes first."""
    groups = [
        {"params": list(network.encoder.parameters()) if network.encoder else [], "lr": RATES.encoder_learning_rate},
        {"params": [network.weight, network.scale], "lr": RATES.learning_rate, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=RATES.weight_decay)

    def update(number: int) -> None:
        network.train()
        rows, labels = trial.batch(number)
        assert network.encoder is not None
        vectors = network.encoder(rows)  # padded to the longest
        scores = network.scale * functional.normalize(vectors) @ functional.normalize(network.weight).T
        _learn(network, optimizer, functional.cross_entropy(scores, labels))

    return update


def our_updates(trial: Trial, network: BaseClassifier) -> Callable[[int], None]:
    """What the training loop of the package does in an update."""
    optimizer = make_optimizer(network, RATES)

    def update(number: int) -> None:
        network.train()
        rows, labels = trial.batch(number)
        vectors = encode_inputs(network.encoder, rows)
        assert isinstance(vectors, Tensor)
        _learn(network, optimizer, functional.cross_entropy(network(vectors), labels))

    return update


def _learn(network: nn.Module, optimizer: Any, loss: Tensor) -> None:
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), RATES.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def main() -> Result:
    """Speed in turns, then accuracy after more updates."""
    trial = Trial()
    plain, ours = trial.network(), trial.network()
    accuracies = {}
    with seen_words_learn(ours.encoder, trial.rows):
        loops = {"plain loop": (plain, plain_updates(trial, plain)), "dmin": (ours, our_updates(trial, ours))}
        seconds = take_turns({name: _turn(update) for name, (_, update) in loops.items()}, REPETITIONS)
        done = (REPETITIONS + 1) * UPDATES
        for name, (network, update) in loops.items():
            for number in range(done, max(done, LEARNED_UPDATES)):
                torch.manual_seed(number)
                update(number)
            accuracies[name] = trial.accuracy(network)
        shares = profile(loops["dmin"][1])
    lines = ["| loop | texts/s (min to max) | against the plain loop | accuracy, % |", "|---|---|---|---|"]
    figures: dict[str, Any] = {"data": trial.name}
    for name, values in seconds.items():
        rates = [UPDATES * BATCH / value for value in values]
        faster = ratio(seconds["plain loop"], values)
        lines.append(f"| {name} | {spread(rates, digits=0)} | {faster:.2f}x | {100 * accuracies[name]:.1f} |")
        figures[name] = {"texts_per_second": middle(rates), "faster": faster, "accuracy": accuracies[name]}
    lengths = torch.tensor([float(len(row)) for row in trial.rows])
    counts = f"{len(trial.rows)} texts of {lengths.mean():.1f} tokens, {len(trial.held_rows)} kept aside"
    lines += ["", f"{trial.name}: {counts}; accuracy after {max(done, LEARNED_UPDATES)} updates."]
    told = ", ".join(f"{kind} {100 * share:.0f} %" for kind, share in shares.items())
    lines += ["", f"Profile of an update of ours: {told}; the rest is element by element (norms, activations, copies)."]
    figures["profile"] = shares
    return Result(lines, figures)


def profile(update: Callable[[int], None], updates: int = 4) -> dict[str, float]:
    """The shares of an update's processor time, by kind of operation."""
    kinds = {
        "matrix products": ("aten::mm", "aten::addmm", "aten::bmm", "aten::_scaled_dot_product_flash_attention_for_cpu"),
        "optimizer and clipping": ("aten::_fused_adamw_", "aten::_foreach_norm", "aten::linalg_vector_norm", "aten::mul_"),
        "dropout": ("aten::bernoulli_", "aten::native_dropout", "aten::dropout"),
    }  # fmt: skip
    with torch.profiler.profile() as seen:
        for number in range(updates):
            update(number)
    events = {event.key: event.self_cpu_time_total for event in seen.key_averages()}
    total = sum(events.values())
    return {kind: sum(events.get(name, 0.0) for name in names) / total for kind, names in kinds.items()}


def _turn(update: Callable[[int], None]) -> Callable[[int], None]:
    def turn(number: int) -> None:
        for step in range(number * UPDATES, (number + 1) * UPDATES):
            torch.manual_seed(step)
            update(step)

    return turn


if __name__ == "__main__":
    print("\n".join(main().lines))
