"""Encoded texts for the stages: a table that was encoded once, or token ids for the encoder while it learns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from dmin.encoder import EncoderNetwork, TextEncoder, TokenBatch, VectorCache
from dmin.encoder.encoder import batches_by_length
from dmin.encoder.opening import tunable
from dmin.methods import FewShotMethod, TokenStates
from dmin.methods.base import Inputs

Encoded = Tensor | TokenStates  # of n texts: vectors [n, d], or the states of their tokens [n, T, d]
TokenIds = list[list[int]]
# Texts in one pass of the encoder while it learns; on a CPU at most so many tokens, padding counted: the texts of an update
# differ much in length, and what is padded is computed for nothing. The gradient is the same.
CHUNK, CPU_TOKENS = 32, 256


class EncodedTexts(Protocol):
    """Encoded texts of a corpus, by index."""

    def at(self, rows: Tensor) -> Encoded:
        """The texts at `rows` [...], as vectors [..., d] or token states [..., T, d]."""


class VectorTable:
    """Vectors [texts, d]; unencoded texts are NaN, to expose misuse."""

    def __init__(self, size: int, rows: Sequence[int], vectors: Tensor) -> None:
        self.table = torch.full((size, vectors.shape[-1]), float("nan"), device=vectors.device)
        self.table[torch.tensor(rows, dtype=torch.long, device=vectors.device)] = vectors

    def at(self, rows: Tensor) -> Tensor:
        """Vectors [..., d]."""
        return self.table[rows.to(self.table.device)]


class TokenTable:
    """The states of each text's own tokens; padded only as far as a request needs."""

    def __init__(self, states: Mapping[int, Tensor]) -> None:
        self.states = states  # row -> [t, d]

    def at(self, rows: Tensor) -> TokenStates:
        """Token states [..., T, d], T the longest of these texts."""
        picked = [self.states[int(row)] for row in rows.flatten()]
        padded = torch.nn.utils.rnn.pad_sequence(picked, batch_first=True)  # [n, T, d]
        lengths = torch.tensor([len(states) for states in picked], device=padded.device)
        mask = torch.arange(padded.shape[1], device=padded.device) < lengths.unsqueeze(1)  # [n, T]
        return TokenStates(padded.reshape(*rows.shape, *padded.shape[1:]), mask.reshape(*rows.shape, -1))


class TextSource:
    """Gives texts, by index, as a network's inputs.

    Args:
        texts: all of them; indices count in this list.
        rows: indices of the texts that will be asked for.
        encoder: makes the vectors or tokens.
        frozen: True encodes every text once; False hands out token ids for an encoder that learns.
        kind: what the method takes: "vectors" or "tokens".
        cache: where vectors are kept between runs; None keeps nothing.
        show: show progress.
    """

    def __init__(
        self,
        texts: Sequence[str],
        rows: Iterable[int],
        encoder: TextEncoder,
        *,
        frozen: bool,
        kind: Inputs = "vectors",
        cache: VectorCache | None = None,
        show: bool = False,
    ) -> None:
        self.rows = sorted(set(rows))
        self.size = len(texts)
        self.encoder, self.kind = encoder, kind
        chosen = [texts[index] for index in self.rows]
        self._tokens = (
            dict(zip(self.rows, encoder.tokenize(chosen), strict=True)) if not frozen or kind != "vectors" else {}
        )
        self._table: EncodedTexts | None = None
        if frozen and kind == "vectors":
            encode = encoder.encode if cache is None else lambda t, **o: cache.encode(encoder, t, **o)
            vectors = torch.from_numpy(encode(chosen, show_progress=show)).to(encoder.device)
            self._table = VectorTable(self.size, self.rows, vectors)
        elif frozen:
            self._table = self._encode_now(show=show)

    @property
    def frozen(self) -> bool:
        """True when every text is encoded already."""
        return self._table is not None

    def inputs(self, rows: Tensor) -> Encoded | TokenIds:
        """What a network takes for these texts [n]."""
        return self._table.at(rows) if self._table is not None else self.token_ids(rows)

    def token_ids(self, rows: Tensor) -> TokenIds:
        """Token ids of these texts [n]."""
        return [self._tokens[int(index)] for index in rows]

    def all_token_ids(self) -> Iterable[list[int]]:
        """Token ids of every text, where they are kept."""
        return self._tokens.values()

    def snapshot(self, rows: Iterable[int]) -> EncodedTexts:
        """These texts by the encoder as it is now, without gradient, each encoded once."""
        return self._table if self._table is not None else self._encode_now(sorted(set(rows)))

    def vectors(self, rows: Tensor) -> Tensor:
        """Vectors [n, d] of these texts by the encoder as it is now, without gradient."""
        if isinstance(self._table, VectorTable):
            return self._table.at(rows)
        ids = self.token_ids(rows)
        return torch.from_numpy(tunable(self.encoder).encode_ids(ids)).to(self.encoder.device)

    def _encode_now(self, rows: Sequence[int] | None = None, *, show: bool = False) -> EncodedTexts:
        chosen = self.rows if rows is None else rows
        ids = [self._tokens[row] for row in chosen]
        if self.kind == "vectors":
            vectors = torch.from_numpy(tunable(self.encoder).encode_ids(ids, show_progress=show))
            return VectorTable(self.size, chosen, vectors.to(self.encoder.device))
        states = tunable(self.encoder).token_states(ids, show_progress=show)
        return TokenTable(dict(zip(chosen, states, strict=True)))


def source_kind(method: FewShotMethod) -> Inputs:
    """The kind of source that a method is given: states of tokens, or vectors."""
    return "tokens" if method.inputs == "tokens" else "vectors"


def encode_inputs(
    network: EncoderNetwork | None, inputs: Encoded | TokenIds, kind: Inputs = "vectors", bf16: bool = False
) -> Encoded:
    """Inputs as a method takes them, in float32; token ids go through the encoder."""
    if not isinstance(inputs, list):
        return inputs
    if network is None:
        raise TypeError("token ids need an encoder")
    with torch.autocast(network.device.type, dtype=torch.bfloat16, enabled=bf16):
        if kind == "tokens":
            batch = TokenBatch(inputs, network.pad).to(network.device)
            return TokenStates(network.token_states(batch).float(), batch.mask)
        chunks = batches_by_length(inputs, CHUNK, CPU_TOKENS if network.device.type == "cpu" else None)
        vectors = torch.cat([network([inputs[index] for index in chunk]) for chunk in chunks]).float()
    order = torch.tensor([index for chunk in chunks for index in chunk], device=vectors.device)
    return vectors[torch.argsort(order)]


def take(encoded: Encoded, positions: Tensor) -> Encoded:
    """Encoded texts at `positions` of the first axis."""
    if isinstance(encoded, TokenStates):
        return encoded.at(positions.to(encoded.mask.device))
    return encoded[positions.to(encoded.device)]
