"""Pretrained encoders: from a name to a tokenizer and a network.

A name is "minilm" (all-MiniLM-L6-v2, embedded), a folder, or a Hugging Face id. No code that comes with a model is run:
`trust_remote_code=False`, and weights are safetensors only. Encoders without torch are opened by `dmin.encoder.opening`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast, get_args

from dmin.encoder.carriers import NAMES, carried_folder
from dmin.errors import ConfigError, DataError, ModelError, nearest_name, one_line
from dmin.files import check_finite, home_cache, read_json, short, user_path
from dmin.hub import hub_reachable, may_be_encoder_id

Pooling = Literal["cls", "mean", "layers"]
CACHE_VARIABLE = "DMIN_CACHE"
TUNABLE = "minilm"  # the embedded encoder that torch loads


def load(name: str) -> tuple[Any, Any]:
    """Return (tokenizer, network) of an encoder; every failure is a `ModelError` that names the encoder."""
    from transformers import AutoModel, AutoTokenizer

    source, local = resolve(name)
    local = local or _in_hub_cache(source)
    if not local and not hub_reachable():
        near = nearest_name(name, NAMES)
        hint = f"did you mean {near!r}? " if near else ""
        raise ModelError(
            f"no encoder folder {name!r}, and the Hugging Face hub cannot be reached from here: {hint}give a folder, "
            f"or one of {', '.join(NAMES)}"
        )
    try:
        with quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local, trust_remote_code=False)
            # Safetensors only: older weight files are pickles, which can run code.
            network = AutoModel.from_pretrained(
                source, local_files_only=local, trust_remote_code=False, use_safetensors=True
            )
    except BaseException as error:  # (a damaged tokenizer.json can panic in Rust, which is no Exception)
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelError(f"cannot load the encoder {name!r}: {type(error).__name__}: {one_line(error)}") from error
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(f"the encoder {name!r} has no fast tokenizer (tokenizer.json)")
    network = network.eval().float()
    check_finite(network.state_dict(), f"the encoder {name!r}")
    return tokenizer, network


def resolve(name: str) -> tuple[str, bool]:
    """Return (folder or hub id, is it a local folder) for an encoder name."""
    if name == TUNABLE:
        return str(embedded_folder()), True
    if name in NAMES:
        raise ConfigError(
            f"the encoder {NAMES[name]!r} has no weights that torch loads: use dmin.encoder.open_encoder, or 'minilm'"
        )
    path = user_path(name)
    if path.is_dir():
        _check_folder(path)
        return str(path), True
    if not may_be_encoder_id(name):
        raise ModelError(f"no such encoder folder: {name}")
    return name, False


def choose_pooling(name: str, pooling: str) -> Pooling:
    """Resolve "auto": mean for the embedded encoder, which was trained with it; [CLS], as in the paper, otherwise."""
    if pooling == "auto":
        return "mean" if name == TUNABLE else "cls"
    if pooling not in get_args(Pooling):
        raise ConfigError(f"pooling {pooling!r}: use 'cls', 'mean', 'layers' or 'auto'")
    return cast(Pooling, pooling)


def embedded_folder() -> Path:
    """Return the folder of the embedded encoder that torch loads; its files are checked once per process."""
    return carried_folder(TUNABLE)


def cache_folder() -> Path:
    """Folder of what can be made again (vectors, exported encoders): $DMIN_CACHE, else the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return user_path(chosen)
    return home_cache() / "dmin" / "vectors"


def _in_hub_cache(identifier: str) -> bool:
    """Was this encoder fetched from the hub before?"""
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(identifier, "config.json"), str)


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} is not an encoder folder: it has no config.json")
    if not list(folder.glob("*.safetensors")):
        pickled = (folder / "pytorch_model.bin").is_file()
        hint = " (pytorch_model.bin is not read: save it as safetensors)" if pickled else ""
        raise ModelError(f"{folder} has no weights: a model.safetensors is needed{hint}")
    if (folder / "adapter_config.json").exists():  # transformers would fetch the model that it names
        raise ModelError(f"{folder} holds an adapter for another model: merge the two, and give the merged folder")
    for index in folder.glob("*.index.json"):
        _check_shards(index)


def _check_shards(index: Path) -> None:
    """Refuse an index of divided weights that names a file outside of its folder."""
    try:
        stored = read_json(index)
    except DataError as error:
        raise ModelError(str(error)) from error
    shards = stored.get("weight_map") if isinstance(stored, dict) else None
    if not isinstance(shards, dict):
        raise ModelError(f"{index} lacks its 'weight_map'")
    for name in shards.values():
        if not isinstance(name, str) or Path(name).name != name or "\\" in name or not name.endswith(".safetensors"):
            raise ModelError(f"{index} names {short(name)}, which is not a safetensors file of its folder")


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' progress bars and reports while loading or saving, then restore its settings."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
