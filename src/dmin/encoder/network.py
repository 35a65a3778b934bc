"""Token ids to vectors: the network that training tunes and `Encoder` runs."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dmin.encoder.pretrained import Pooling


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


# Norm of the half-depth layer's part in a vector of pooling "layers", relative to the last layer's part.
HALF_DEPTH = 0.5
_HOOKED = "_output_capturing_hooks_installed"  # where transformers notes that a network has its hooks


class EncoderNetwork(nn.Module):
    """A Hugging Face encoder with pooling.

    Args:
        backbone: the network from `AutoModel`.
        pooling: "cls" (the hidden state of `[CLS]`, not the tanh pooler), "mean" (over all tokens), or "layers": means over
            the words alone (without special tokens), of the last layer and of the one at half depth, concatenated.
        pad: the padding id.
        marks: ids of special tokens such as `[CLS]` and `[SEP]`.
    """

    marks: Tensor

    def __init__(self, backbone: Any, pooling: Pooling, pad: int, marks: Sequence[int] = ()) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
        self.pad = pad
        self.register_buffer("marks", torch.tensor(sorted(marks), dtype=torch.long), persistent=False)
        pooler = getattr(backbone, "pooler", None)
        if isinstance(pooler, nn.Module):
            pooler.requires_grad_(False)  # its output is not used, so it never gets a gradient

    @property
    def width(self) -> int:
        """The width d of a vector."""
        return self.state_width * (2 if self.pooling == "layers" else 1)

    @property
    def state_width(self) -> int:
        """The width of a token's state."""
        return int(self.backbone.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def token_states(self, batch: TokenBatch) -> Tensor:
        """Last hidden states [n, t, d]."""
        return self._last_states(batch.ids, batch.mask)

    def forward(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Token ids of n texts -> vectors [n, d]."""
        batch = TokenBatch(rows, self.pad).to(self.device)
        return self.vectors(batch.ids, batch.mask)

    def vectors(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Token ids [n, t] with mask [n, t] -> vectors [n, d]."""
        if self.pooling == "layers":
            return self._two_layers(ids, mask)
        states = self._last_states(ids, mask)  # [n, t, d]
        return states[:, 0] if self.pooling == "cls" else mean_state(states, mask)

    def _last_states(self, ids: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.backbone(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        return states

    def _two_layers(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Mean states of the last layer and of the one at half depth, whose norm is fixed relative to the last layer's."""
        found = self.backbone(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True)
        words = mask.bool() & ~(ids.unsqueeze(-1) == self.marks).any(dim=-1)  # [n, t]
        words = words | (mask.bool() & ~words.any(dim=-1, keepdim=True))  # a text of special tokens alone: all of them
        last = mean_state(found.last_hidden_state, words)  # [n, d]
        half = mean_state(found.hidden_states[(len(found.hidden_states) - 1) // 2], words)
        share = HALF_DEPTH * last.norm(dim=-1, keepdim=True) / half.norm(dim=-1, keepdim=True).clamp_min(1e-8)
        return torch.cat([last, share * half], dim=-1)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies: without the local functions that transformers hooks on layers whose states are asked for.

        A copy gets hooks of its own when its states are asked for.
        """
        backbone = copy.deepcopy(self.backbone)
        for module in backbone.modules():
            for number, hook in list(module._forward_hooks.items()):
                if getattr(hook, "__module__", "").startswith("transformers."):
                    del module._forward_hooks[number]
            if hasattr(module, _HOOKED):
                setattr(module, _HOOKED, False)
        return {**self.__dict__, "_modules": {**self._modules, "backbone": backbone}}

    def fingerprint(self) -> str:
        """SHA-256 of weights and pooling: two encoders with the same fingerprint give the same vectors."""
        digest = hashlib.sha256(self.pooling.encode())
        for name, tensor in sorted(self.backbone.state_dict().items()):
            digest.update(f"{name}{tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """The mean [n, d] of the states [n, t, d] where the mask [n, t] is True."""
    weights = mask.unsqueeze(-1).to(states.dtype)  # [n, t, 1]
    return (states * weights).sum(dim=1) / weights.sum(dim=1)
