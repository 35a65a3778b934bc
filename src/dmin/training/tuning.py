"""How the encoder learns: all of it or low-rank adapters, in which precision, and which rows of its embedding table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dmin.encoder import EncoderNetwork, TextEncoder
from dmin.errors import ConfigError
from dmin.training.config import TrainConfig

RANK, ALPHA = 8, 16  # of the adapters
_PROBE = """
import torch
with torch.autocast("cpu", dtype=torch.bfloat16):
    torch.nn.Linear(64, 64)(torch.ones(64, 64)).sum().backward()
"""


def add_lora(network: EncoderNetwork, seed: int) -> None:
    """Freeze the encoder and add adapters to its linear maps."""
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise ConfigError("tune lora needs an extra: pip install 'dmin[peft]'") from error
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        settings = LoraConfig(
            r=RANK, lora_alpha=ALPHA, target_modules="all-linear", exclude_modules=r".*pooler.*", lora_dropout=0.0
        )
        network.backbone = get_peft_model(network.backbone, settings)


def merge_lora(network: EncoderNetwork) -> None:
    """Add the adapters to the encoder's own weights, so that it is a plain encoder again."""
    network.backbone = network.backbone.merge_and_unload()


def wants_bf16(config: TrainConfig, encoder: TextEncoder) -> bool:
    """Should the encoder learn in bfloat16? Raises a `ConfigError` where the settings ask for it and it cannot work."""
    if config.tune == "none" or config.precision == "float32":
        return False
    if config.precision == "auto":
        return pays_bf16(torch.device(encoder.device))
    if breaks_on_bf16(torch.device(encoder.device)):
        raise ConfigError(
            "precision bf16: this CPU announces matrix tiles that this system does not allow; use precision=float32, or "
            "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
        )
    return True


def pays_bf16(device: torch.device) -> bool:
    """Does the device compute in bfloat16, and faster than in float32?

    On a CPU only the matrix tiles (AMX) are faster, and some virtual machines announce tiles that they do not allow:
    the first use ends the process. So it is tried in a process of its own.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return device.type == "cpu" and _announces_tiles() and _bf16_works()


def breaks_on_bf16(device: torch.device) -> bool:
    """Would bfloat16 end the process, because the tiles that the CPU announces are not allowed?"""
    return device.type == "cpu" and _announces_tiles() and not _bf16_works()


def _announces_tiles() -> bool:
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", bool)())


@cache
def _bf16_works() -> bool:
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, check=False)  # noqa: S603 (our own text)
    return probe.returncode == 0


class SeenEmbedding(nn.Module):
    """An embedding table of which only the rows of some words learn; the other words keep their frozen rows.

    A vocabulary of 30,000 words is half of a small encoder's weights, and a few thousand of them occur in a training
    set. All other rows have a gradient of 0 in every update, yet a dense optimizer reads and writes them all, and every
    backward pass fills a gradient of the whole table. Leaving them out changes nothing but the weight decay of words that
    no training text has.
    """

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

    A frozen encoder, or one whose table is frozen or not a plain `nn.Embedding`, is left as it is.
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
