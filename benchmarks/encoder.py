"""Texts a second: sentence-transformers' `encode` and ours, same weights, same fresh texts, in turns.

Short texts have about 12 tokens, mixed ones 5 to about 250. sentence-transformers has its defaults (batches of 32). The
share of tokenising is that of our torch encoder. Accuracy: see the table of backends on the leaderboard sets.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.common import Result, middle, mixed_texts, ratio, short_texts, spread, take_turns
from dmin.encoder import Encoder
from dmin.encoder.backends import FILES
from dmin.encoder.pretrained import embedded_folder

SHORT, MIXED, REPETITIONS = 256, 64, 7


def main() -> Result:
    """One table for each kind of text."""
    from sentence_transformers import SentenceTransformer

    peer = SentenceTransformer(str(embedded_folder()), device="cpu")
    peer.max_seq_length = 256
    ours = {backend: Encoder(device="cpu", backend=backend) for backend in ("torch", *FILES)}
    lines, figures = [], {}
    for kind, make, count in (("short", short_texts, SHORT), ("mixed", mixed_texts, MIXED)):
        forms: dict[str, Callable[[int], object]] = {
            "sentence-transformers": lambda turn, make=make, count=count: peer.encode(make(count, turn))
        }
        for backend, encoder in ours.items():
            forms[f"dmin, {backend}"] = lambda turn, encoder=encoder, make=make, count=count: encoder.encode(
                make(count, turn)
            )
        seconds = take_turns(forms, REPETITIONS)
        lines += ["", f"| {kind} texts | texts/s (min to max) | against sentence-transformers |", "|---|---|---|"]
        for name, values in seconds.items():
            rates = [count / value for value in values]
            faster = 1 / ratio(values, seconds["sentence-transformers"])
            lines.append(f"| {name} | {spread(rates, digits=0)} | {faster:.2f}x |")
            figures[f"{kind} {name}"] = {"texts_per_second": middle(rates), "against_peer": faster}
        texts, start = make(count), time.perf_counter()
        ours["torch"].tokenize(texts)
        share = (time.perf_counter() - start) / middle(seconds["dmin, torch"])
        lines += ["", f"Tokenising takes {100 * share:.1f} % of our time on torch."]
        figures[f"{kind} tokenising"] = {"share": share}
    return Result(lines, figures)


if __name__ == "__main__":
    print("\n".join(main().lines))
