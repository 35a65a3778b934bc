"""The encoders by name on one thread of a CPU, same fresh texts, in turns, in processor time.

Short texts have about 12 tokens, mixed ones 5 to about 250.

"one by one" is how bge-small computes: its 8-bit weights are quantised dynamically, so that in a batch a text's vector
depends on the other texts. "in batches" is the same session on batches of texts of similar length, at most 512 tokens.
Long texts have about 600 tokens; in windows they are read whole, cut to 256 tokens not.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import Result, middle, mixed_texts, ratio, short_texts, spread, take_turns, threads
from dmin.encoder import OnnxEncoder, open_encoder
from dmin.encoder.encoder import batches_by_length

NAMES = ("minilm", "bge-small", "static", "bge-small+minilm")
SHORT, MIXED, LONG, REPETITIONS = 128, 32, 12, 5


def main() -> Result:
    """One table for each kind of text, then cutting beside windows."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        with threads(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # texts that are cut
            return _measure()
    finally:
        os.environ.pop("OMP_NUM_THREADS")
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before


def _measure() -> Result:
    encoders = {name: open_encoder(name, device="cpu") for name in NAMES}
    alone = encoders["bge-small"]
    assert isinstance(alone, OnnxEncoder)
    lines: list[str] = []
    figures: dict[str, Any] = {}
    for kind, make, count in (("short", short_texts, SHORT), ("mixed", mixed_texts, MIXED)):
        forms: dict[str, Callable[[int], object]] = {
            name: lambda turn, encoder=encoder, make=make, count=count: encoder.encode(make(count, turn))
            for name, encoder in encoders.items()
        }
        forms["bge-small, in batches"] = lambda turn, make=make, count=count: in_batches(alone, make(count, turn))
        seconds = take_turns(forms, REPETITIONS, time.process_time)
        lines += ["", f"| {kind} texts | texts per processor second (min to max) | against minilm |", "|---|---|---|"]
        for name, values in seconds.items():
            faster = 1 / ratio(values, seconds["minilm"])
            lines.append(f"| {name} | {spread([count / value for value in values], digits=0)} | {faster:.2f}x |")
            figures[f"{kind} {name}"] = {"against_minilm": faster}
        cost = ratio(seconds["bge-small"], seconds["bge-small, in batches"])
        lines += ["", f"One by one takes {cost:.2f} times as long as in batches."]
        figures[f"{kind} one by one"] = {"against_batches": cost}
    cut = open_encoder("bge-small", long_texts="cut")
    seconds = take_turns(
        {"cut": lambda turn: cut.encode(long_texts(turn)), "windows": lambda turn: alone.encode(long_texts(turn))},
        REPETITIONS,
        time.process_time,
    )
    cost = ratio(seconds["windows"], seconds["cut"])
    lines += ["", f"Texts of about 600 tokens: {middle(seconds['windows']) / LONG * 1000:.0f} ms per text in windows, "]
    lines[-1] += f"{cost:.2f} times as long as cut to 256 tokens."
    figures["long texts"] = {"windows_against_cut": cost}
    return Result(lines, figures)


def long_texts(turn: int) -> list[str]:
    """Texts of about 600 tokens."""
    return [" ".join(mixed_texts(6, turn * LONG + number)) for number in range(LONG)]


def in_batches(encoder: OnnxEncoder, texts: list[str]) -> Any:
    """The vectors of `texts` [n, d] in padded batches."""
    rows = encoder.tokenize(texts)
    vectors = np.empty((len(rows), encoder.width), np.float32)

    def fill(batch: list[int]) -> None:
        ids = np.zeros((len(batch), max(len(rows[index]) for index in batch)), np.int64)
        mask = np.zeros_like(ids)
        for place, index in enumerate(batch):
            ids[place, : len(rows[index])] = rows[index]
            mask[place, : len(rows[index])] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        vectors[batch] = encoder._session.run(None, given)[0][:, 0]

    for batch in batches_by_length(rows, 64, 512):
        fill(batch)
    return vectors


if __name__ == "__main__":
    print("\n".join(main().lines))
