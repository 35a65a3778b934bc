"""Only words that occur learn: the embedding table of a tuned encoder, cut to the rows that can have a gradient.

A vocabulary of 30,000 words is half of a small encoder's weights, and a few thousand of them occur in a training set. All
other rows have a gradient of 0 in every update, yet a dense optimizer reads and writes them all, and every backward
pass fills a gradient of the whole table. Leaving them out changes nothing but the weight decay of words that no training
text has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.encoder import EncoderNetwork


class SeenEmbedding(nn.Module):
    """The rows of some words as weights that learn; other words are looked up in the whole table, which rests."""

    places: Tensor

    def __init__(self, whole: nn.Embedding, words: Tensor) -> None:
        super().__init__()
        self._whole = [whole]  # in a list, so that its table is no weight of this module
        self.words = words  # [n], their numbers in the vocabulary
        self.weight = nn.Parameter(whole.weight.detach()[words].clone())  # [n, d]
        places = torch.full((whole.num_embeddings,), -1, dtype=torch.long, device=words.device)
        places[words] = torch.arange(len(words), device=words.device)
        self.register_buffer("places", places, persistent=False)
        self.padding = None if whole.padding_idx is None else int(places[whole.padding_idx])  # gets no gradient

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors of words, [...] -> [..., d]."""
        places = self.places[ids]
        seen = places >= 0
        found = functional.embedding(places.clamp_min(0), self.weight, self.padding)
        if bool(seen.all()):
            return found
        return torch.where(seen.unsqueeze(-1), found, self.whole.weight.detach()[ids])

    @property
    def whole(self) -> nn.Embedding:
        """The table that it stands for."""
        return self._whole[0]

    def write_back(self) -> None:
        """Put what was learned into the whole table."""
        self.whole.weight.data[self.words] = self.weight.data


@contextmanager
def seen_words_learn(network: EncoderNetwork | None, rows: Iterable[Iterable[int]]) -> Iterator[None]:
    """Inside, only the words of these texts (token ids) learn; afterwards the encoder has its own table again.

    An encoder that rests, or whose table rests or is of a kind of its own, is left as it is.
    """
    backbone: Any = network.backbone if network is not None else None
    whole = backbone.get_input_embeddings() if hasattr(backbone, "get_input_embeddings") else None
    if type(whole) is not nn.Embedding or not whole.weight.requires_grad:
        yield
        return
    words = {word for row in rows for word in row} | {whole.padding_idx or 0}
    seen = SeenEmbedding(whole, torch.tensor(sorted(words), device=whole.weight.device))
    backbone.set_input_embeddings(seen)
    try:
        yield
    finally:
        seen.write_back()
        backbone.set_input_embeddings(whole)
