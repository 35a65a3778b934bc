"""Token ids to vectors: the network that training tunes and `Encoder` runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dmin.encoder.loading import Pooling


class TokenBatch:
    """Token ids of several texts, padded to the longest: ids [n, t] and mask [n, t] (True = a real token)."""

    def __init__(self, rows: Sequence[Sequence[int]], pad: int) -> None:
        longest = max(len(row) for row in rows)
        self.ids = torch.full((len(rows), longest), pad, dtype=torch.long)
        self.mask = torch.zeros((len(rows), longest), dtype=torch.bool)
        for index, row in enumerate(rows):
            self.ids[index, : len(row)] = torch.as_tensor(row)
            self.mask[index, : len(row)] = True

    def to(self, device: torch.device) -> TokenBatch:
        """Move both tensors and return self."""
        self.ids, self.mask = self.ids.to(device), self.mask.to(device)
        return self


class EncoderNetwork(nn.Module):
    """A Hugging Face encoder with pooling: `[CLS]` hidden state (not the tanh pooler), or the mean over the tokens."""

    def __init__(self, backbone: Any, pooling: Pooling, pad: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
        self.pad = pad
        pooler = getattr(backbone, "pooler", None)
        if isinstance(pooler, nn.Module):
            pooler.requires_grad_(False)  # its output is not used, so it never gets a gradient

    @property
    def width(self) -> int:
        """The width d of a vector."""
        return int(self.backbone.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def token_states(self, batch: TokenBatch) -> Tensor:
        """Last hidden states [n, t, d]."""
        states: Tensor = self.backbone(input_ids=batch.ids, attention_mask=batch.mask.long()).last_hidden_state
        return states

    def forward(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Token ids of n texts -> vectors [n, d]."""
        batch = TokenBatch(rows, self.pad).to(self.device)
        return self.pool(self.token_states(batch), batch.mask)

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """States [n, t, d] with mask [n, t] -> vectors [n, d]."""
        if self.pooling == "cls":
            return states[:, 0]
        weights = mask.unsqueeze(-1).to(states.dtype)  # [n, t, 1]
        return (states * weights).sum(dim=1) / weights.sum(dim=1)

    def fingerprint(self) -> str:
        """SHA-256 of weights and pooling: two encoders with the same fingerprint give the same vectors."""
        digest = hashlib.sha256(self.pooling.encode())
        for name, tensor in sorted(self.backbone.state_dict().items()):
            digest.update(f"{name}{tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()
