"""QIM of 150 classes x 5 examples for 64 queries, width 384, one thread: literal broadcasting, einsum, Gram space.

The bare matrix product of queries and examples is the floor. A classifier keeps the support side; "with support side" makes
it anew each time, as an episode of training does. Peak memory is what the process holds at most during one call, above what
it held before, in a process of its own. A classifier scores in blocks of classes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.common import Result, middle, peak_above, ratio, spread, take_turns, threads
from dmin.classifier.knowledge import ClassSupport, Knowledge
from dmin.classifier.scoring import Model
from dmin.methods import create
from dmin.methods.base import cosine
from dmin.routing import DynamicMemoryRouting, pearson, squash
from dmin.routing.gram import gram_cosine, gram_queries, gram_rows

CLASSES, EXAMPLES, QUERIES, WIDTH = 150, 5, 64, 384
REPETITIONS = 15
MANY = 10_000
Form = Callable[[DynamicMemoryRouting, Tensor, Tensor], Tensor]


def literal(routing: DynamicMemoryRouting, memory: Tensor, query: Tensor) -> Tensor:
    """Algorithm 1 as one writes it first: products are broadcast and summed."""
    capsules, width = routing.capsules, WIDTH // routing.capsules
    m_hat = squash(routing.transform(memory).view(1, *memory.shape[:2], capsules, width))
    q_hat = squash(routing.transform(query).view(len(query), 1, 1, capsules, width))
    p = torch.tanh(pearson(m_hat, q_hat))  # [L, C, K, l]
    alpha = torch.zeros_like(p)
    for _ in range(routing.iterations):
        weights = alpha.softmax(dim=-1) + p
        v = squash((weights.unsqueeze(-1) * m_hat).sum(dim=2, keepdim=True))  # [L, C, 1, l, v]
        alpha = alpha + p * (m_hat * v).sum(dim=-1)
        q_hat = (q_hat + v) / 2
        p = torch.tanh(pearson(m_hat, q_hat))
    return cosine(query.unsqueeze(1), v[:, :, 0].flatten(-2))


def einsum(routing: DynamicMemoryRouting, memory: Tensor, query: Tensor) -> Tensor:
    """The plain form of the package."""
    return cosine(query.unsqueeze(1), routing(memory.unsqueeze(0), query.unsqueeze(1)))


def gram(routing: DynamicMemoryRouting, memory: Tensor, query: Tensor) -> Tensor:
    """The Gram form, support side included."""
    return gram_cosine(routing, gram_rows(routing, memory), gram_queries(routing, query))


def bare(routing: DynamicMemoryRouting, memory: Tensor, query: Tensor) -> Tensor:
    """The matrix product alone."""
    del routing
    return query @ memory.reshape(-1, WIDTH).T


FORMS: dict[str, Form] = {
    "literal broadcasting": literal, "einsum": einsum, "Gram, with support side": gram, "bare product": bare,
}  # fmt: skip
SCORED = {"DMIN as a classifier scores": "dmin", "DMIN-plus as a classifier scores": "dmin-plus"}


def inputs(classes: int = CLASSES) -> tuple[DynamicMemoryRouting, Tensor, Tensor]:
    """A routing, examples [C, K, d] and queries [L, d] of a usual size."""
    generator = torch.Generator().manual_seed(0)
    memory = 5 * torch.randn(classes, EXAMPLES, WIDTH, generator=generator) / WIDTH**0.5
    query = 5 * torch.randn(QUERIES, WIDTH, generator=generator) / WIDTH**0.5
    return DynamicMemoryRouting(WIDTH), memory, query


def known(method_name: str, classes: int) -> tuple[Model, Knowledge, Tensor]:
    """A classifier's model and knowledge of random vectors."""
    _, memory, query = inputs(classes)
    method = create(method_name, WIDTH, way=5, shot=5, base_memory=memory[:25, 0], use_memory=False).eval()
    with torch.no_grad():
        prepared = method.prepare(memory)
    texts = tuple(str(row) for row in range(EXAMPLES))
    entries = (ClassSupport(number, texts, False, memory[number], prepared[number]) for number in range(classes))
    return Model(method, None), Knowledge(tuple(entries)), query


@torch.no_grad()
def main() -> Result:
    """Time, memory, many classes."""
    with threads(1):
        routing, memory, query = inputs()
        assert torch.allclose(literal(routing, memory, query), gram(routing, memory, query), atol=1e-5)
        forms: dict[str, Callable[[int], object]] = {
            name: lambda _, form=form: form(routing, memory, query) for name, form in FORMS.items()
        }
        for title, name in SCORED.items():
            model, knowledge, _ = known(name, CLASSES)
            forms[title] = lambda _, model=model, knowledge=knowledge: model.cosines(query, knowledge)
        seconds = take_turns(forms, REPETITIONS)
    measured = [name for name in seconds if name != "bare product"]
    peaks = {name: _measured("peak", SCORED.get(name, name)) for name in measured}
    lines = ["| form | ms (min to max) | literal is slower by | einsum by | peak MB | literal takes more by |"]
    lines += ["|---|---|---|---|---|---|"]
    for name, values in seconds.items():
        literal_by, einsum_by = (ratio(seconds[other], values) for other in ("literal broadcasting", "einsum"))
        peak = f"{peaks[name]:.0f} | {peaks['literal broadcasting'] / peaks[name]:.0f}x" if name in peaks else " | "
        lines.append(f"| {name} | {spread(values, 1000)} | {literal_by:.1f}x | {einsum_by:.1f}x | {peak} |")
    many = {name: _measured("many", name) for name in ("dmin", "dmin-plus")}
    lines += [
        "",
        f"{MANY:,} classes x {EXAMPLES} examples, {QUERIES} queries, above the loaded model (examples, support",
    ]
    lines += [f"side and scoring together): DMIN {many['dmin']:.0f} MB, DMIN-plus {many['dmin-plus']:.0f} MB."]
    figures = {"milliseconds": {name: 1000 * middle(values) for name, values in seconds.items()}}
    return Result(lines, {**figures, "peak_megabytes": peaks, "many_classes_megabytes": many})


def _measured(what: str, name: str) -> float:
    """One measurement of memory in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.routing", what, name]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603 (our own)


@torch.no_grad()
def _memory(what: str, name: str) -> float:
    torch.set_num_threads(1)
    if what == "peak" and name in SCORED.values():
        model, knowledge, query = known(name, CLASSES)
        model.cosines(query[:1], knowledge)  # the support side is made once
        return peak_above(lambda: model.cosines(query, knowledge))
    if what == "peak":
        routing, memory, query = inputs()
        FORMS[name](routing, memory[:8], query[:8])  # so that what is loaded at first use is there
        return peak_above(lambda: FORMS[name](routing, memory, query))
    model, knowledge, query = known(name, 10)
    model.cosines(query, knowledge)

    def score() -> None:
        model, knowledge, query = known(name, MANY)
        model.cosines(query, knowledge)

    return peak_above(score)


if __name__ == "__main__":
    print(_memory(*sys.argv[1:]) if len(sys.argv) > 1 else "\n".join(main().lines))
