"""Where a stage's vectors come from: a table that was encoded once, or the encoder itself while it learns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from dmin.data import Corpus
from dmin.encoder import Encoder, EncoderNetwork, VectorCache

Inputs = Tensor | list[list[int]]  # vectors [n, d], or token ids of n texts
CHUNK = 32  # texts in one pass of the encoder while it learns


class TextSource:
    """Gives the texts of a corpus, by index, as a network's inputs.

    Args:
        corpus: the texts.
        rows: indices of the texts that will be asked for.
        encoder: makes the vectors or tokens.
        frozen: True encodes every text once (vectors); False hands out tokens for an encoder that learns.
        cache: where vectors are kept between runs; None keeps nothing.
        show: show progress.
    """

    def __init__(
        self,
        corpus: Corpus,
        rows: Iterable[int],
        encoder: Encoder,
        *,
        frozen: bool,
        cache: VectorCache | None = None,
        show: bool = False,
    ) -> None:
        wanted = sorted(set(rows))
        texts = [corpus.texts[index] for index in wanted]
        self.encoder, self.frozen = encoder, frozen
        self._tokens: dict[int, list[int]] = {}
        self._table = torch.full((len(corpus.texts) if frozen else 0, encoder.width), float("nan"))
        if frozen:
            vectors = (
                cache.encode(encoder, texts, show_progress=show) if cache else encoder.encode(texts, show_progress=show)
            )
            self._table[wanted] = torch.from_numpy(vectors)
        else:
            self._tokens = dict(zip(wanted, encoder.tokenize(texts), strict=True))

    def to(self, device: torch.device) -> TextSource:
        """Move the table and return self."""
        self._table = self._table.to(device)
        return self

    def inputs(self, rows: Tensor) -> Inputs:
        """What a network takes for these texts [n]."""
        return self._table[rows] if self.frozen else [self._tokens[int(index)] for index in rows]

    def vectors(self, rows: Tensor) -> Tensor:
        """Vectors [n, d] of these texts by the encoder as it is now, without gradient."""
        if self.frozen:
            return self._table[rows]
        was_training = self.encoder.network.training
        self.encoder.network.eval()
        with torch.no_grad():
            found = encode_inputs(self.encoder.network, self.inputs(rows))
        self.encoder.network.train(was_training)
        return found.float()


def encode_inputs(network: EncoderNetwork | None, inputs: Inputs, bf16: bool = False) -> Tensor:
    """Inputs -> vectors [n, d] in float32; token ids go through the encoder in chunks of like length."""
    if isinstance(inputs, Tensor):
        return inputs
    if network is None:
        raise TypeError("token ids need an encoder")
    order = sorted(range(len(inputs)), key=lambda index: len(inputs[index]))
    with torch.autocast(network.device.type, dtype=torch.bfloat16, enabled=bf16):
        chunks = [network([inputs[index] for index in order[at : at + CHUNK]]) for at in range(0, len(order), CHUNK)]
    return torch.cat(chunks).float()[_inverse(order, chunks[0].device)]


def _inverse(order: Sequence[int], device: torch.device) -> Tensor:
    return torch.argsort(torch.tensor(order, device=device))
