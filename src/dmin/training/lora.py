"""Low-rank adapters in place of full fine-tuning, through peft (extra)."""

from __future__ import annotations

import torch

from dmin.encoder import EncoderNetwork
from dmin.errors import ConfigError

RANK, ALPHA = 8, 16


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
    """Fold the adapters into the encoder's own weights, so that it is a plain encoder again."""
    network.backbone = network.backbone.merge_and_unload()
