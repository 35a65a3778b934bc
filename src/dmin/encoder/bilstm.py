"""A bidirectional LSTM with self-attention, learned from scratch, as in Induction Networks (Geng et al., 2019).

It shows how much a pretrained encoder contributes. Its weights are random before training, so it needs `tune: full`.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn

from dmin.encoder.encoder import Encoder

EMBEDDING, HIDDEN, ATTENTION = 300, 128, 64


class SelfAttentiveLSTM(nn.Module):
    """Token states of a BiLSTM, each scaled by its attention, so that their mean is the text's vector."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True, bidirectional=True)
        self.inner = nn.Linear(2 * HIDDEN, ATTENTION, bias=False)  # W_a1
        self.outer = nn.Linear(ATTENTION, 1, bias=False)  # W_a2
        self.config = SimpleNamespace(hidden_size=2 * HIDDEN, max_position_embeddings=512)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        """States [n, T, 2u]: softmax(W_a2 tanh(W_a1 H))·H, times the number of tokens."""
        lengths = attention_mask.sum(dim=1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(input_ids), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)  # [n, T, 2u]
        logits = self.outer(torch.tanh(self.inner(states))).squeeze(-1)  # [n, T]
        weights = logits.masked_fill(attention_mask == 0, torch.finfo(logits.dtype).min).softmax(dim=-1)
        return SimpleNamespace(last_hidden_state=states * (weights * lengths.unsqueeze(1)).unsqueeze(-1))


def bilstm_encoder(*, max_length: int = 64, seed: int = 0, device: str | None = None) -> Encoder:
    """An untrained BiLSTM encoder with the tokenizer of the embedded encoder."""
    encoder = Encoder(pooling="mean", max_length=max_length, device=device)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        backbone = SelfAttentiveLSTM(len(encoder.tokenizer))
    encoder.name = "bilstm"
    encoder.network.backbone = backbone.to(encoder.network.device)
    encoder.refresh()
    return encoder
