"""From a name to a tokenizer and a network: the embedded default, a folder, or a Hugging Face id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast, get_args

from dmin.encoder.embedded import embedded_folder
from dmin.errors import ConfigError, ModelError, one_line
from dmin.hub import hub_reachable

Pooling = Literal["cls", "mean", "layers"]
DEFAULT = "default"


def resolve(name: str) -> tuple[str, bool]:
    """Return (folder or hub id, is it a local folder) for an encoder name."""
    if name == DEFAULT:
        return str(embedded_folder()), True
    path = Path(name).expanduser()
    if path.is_dir():
        _check_folder(path)
        return str(path), True
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise ModelError(f"no such encoder folder: {name}")
    return name, False


def choose_pooling(name: str, pooling: str) -> Pooling:
    """Resolve "auto": mean for the embedded encoder, which was trained with it; [CLS], as in the paper, otherwise."""
    if pooling == "auto":
        return "mean" if name == DEFAULT else "cls"
    if pooling not in get_args(Pooling):
        raise ConfigError(f"pooling {pooling!r}: use 'cls', 'mean', 'layers' or 'auto'")
    return cast(Pooling, pooling)


def load(name: str) -> tuple[Any, Any]:
    """Return (tokenizer, network) of an encoder; every way to fail is a `ModelError` that names it."""
    from transformers import AutoModel, AutoTokenizer

    source, local = resolve(name)
    local = local or _in_hub_cache(source)
    if not local and not hub_reachable():
        raise ModelError(
            f"no encoder folder {name!r}, and the Hugging Face hub cannot be reached from here: give a folder"
        )
    try:
        with quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
            # Safetensors only: older weight files are pickles, which can run code.
            network = AutoModel.from_pretrained(source, local_files_only=local, use_safetensors=True)
    except Exception as error:
        raise ModelError(f"cannot load the encoder {name!r}: {type(error).__name__}: {one_line(error)}") from error
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(f"the encoder {name!r} has no fast tokenizer (tokenizer.json)")
    return tokenizer, network.eval().float()


def _in_hub_cache(identifier: str) -> bool:
    """Was this encoder fetched from the hub before?"""
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(identifier, "config.json"), str)


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} is not an encoder folder: it has no config.json")
    if not list(folder.glob("*.safetensors")):
        old = (
            " (pytorch_model.bin is not read: save it as safetensors)"
            if (folder / "pytorch_model.bin").is_file()
            else ""
        )
        raise ModelError(f"{folder} has no weights: a model.safetensors is needed{old}")


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers' loading bars and reports off the user's screen, and give its settings back."""
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
