"""`open_encoder`: from a name to an encoder, whatever computes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmin.encoder.carriers import CARRIED, DEFAULT, NAMES, Carried, carried_folder
from dmin.encoder.joined import JoinedEncoder
from dmin.encoder.onnx_encoder import ENCODER_FILE, OnnxEncoder
from dmin.encoder.portable import open_portable, portable_folder, read_portable
from dmin.encoder.static import StaticEncoder
from dmin.encoder.text_encoder import TextEncoder
from dmin.errors import ConfigError, DataError, ModelError
from dmin.files import read_json, user_path

if TYPE_CHECKING:
    from dmin.encoder.encoder import Encoder

AUTO = "auto"


def open_encoder(
    name: str = DEFAULT,
    *,
    pooling: str = AUTO,
    max_length: int = 256,
    device: str | None = None,
    backend: str = AUTO,
    long_texts: str | None = None,
) -> TextEncoder:
    """Open an encoder by name.

    Args:
        name: "default" (= "bge-small"), "bge-small", "minilm", "static", a folder, a Hugging Face id, or several of these
            side by side: "bge-small+minilm".
        pooling: "cls", "mean", "layers", or "auto": what suits the encoder. Side by side "auto" is "layers" for encoders on
            torch, which is what was measured; otherwise one for each, like "cls+mean".
        max_length: tokens of a text, or of a window of a long one.
        device: for encoders on torch.
        backend: "auto" (ONNX Runtime for "bge-small", torch otherwise), "torch", "onnx" or "onnx-int8".
        long_texts: "windows" or "cut"; without it, windows for the encoders without torch, and cut for those on torch,
            whose heads were trained so.

    Example:
        >>> open_encoder("bge-small").encode(["where is my parcel?"]).shape
        (1, 384)
    """
    if name == "cascade":
        raise ConfigError(
            "'cascade' is no encoder of one kind of vectors: it is for FewShotClassifier and dmin classify"
        )
    if "+" in name and not user_path(name).is_dir():
        parts = name.split("+")
        poolings = [pooling_beside(part) for part in parts] if pooling == AUTO else pooling.split("+")
        if len(poolings) != len(parts):
            raise ConfigError(f"pooling {pooling!r}: for {name} give 'auto', or one for each like 'cls+layers'")
        return JoinedEncoder(
            [
                open_encoder(
                    part, pooling=own, max_length=max_length, device=device, backend=backend, long_texts=long_texts
                )
                for part, own in zip(parts, poolings, strict=True)
            ]
        )
    if (folder := portable_folder(name)) is not None:
        return open_portable(folder, device=device, backend=backend)
    carried = CARRIED.get(NAMES.get(name, name))
    if carried is None or carried.kind == "torch":
        from dmin.encoder.encoder import Encoder

        return Encoder(
            name, pooling=pooling, max_length=max_length, device=device, backend=backend, long_texts=long_texts or "cut"
        )
    if device not in (None, "cpu"):
        raise ConfigError(
            f"no such device: {device!r} for the encoder {carried.name!r}, which computes on the CPU; leave it out, or use "
            "the encoder 'minilm'"
        )
    if backend not in (AUTO, "onnx") and carried.kind == "onnx":
        raise ConfigError(f"backend {backend!r}: the encoder {carried.name!r} computes on ONNX Runtime; leave it out")
    return _open_carried(carried, pooling, max_length, long_texts)


def _open_carried(carried: Carried, pooling: str, max_length: int, long_texts: str | None) -> TextEncoder:
    folder = carried_folder(carried.name)
    package, version = carried.carrier.split("==")
    described: dict[str, Any] = {"title": carried.title, "package": package, "version": version}
    if carried.kind == "static":
        if pooling not in (AUTO, "mean"):
            raise ConfigError(f"pooling {pooling!r}: the encoder {carried.name!r} has 'mean' only")
        return StaticEncoder(
            carried.name, folder / "model.safetensors", folder / "tokenizer.json", description=described
        )
    return OnnxEncoder(
        carried.name, folder / "model_quantized.onnx", folder / "tokenizer.json", description=described,
        pooling="cls" if pooling == AUTO else pooling, max_length=max_length, long_texts=long_texts or "windows",
    )  # fmt: skip


def pooling_beside(name: str) -> str:
    """The pooling of an encoder beside others: two layers where torch computes it."""
    return AUTO if is_frozen(name) else "layers"


def is_frozen(name: str) -> bool:
    """True for an encoder that cannot be tuned, because it has no weights that torch loads."""
    if "+" in name and not user_path(name).is_dir():
        return True
    if (folder := portable_folder(name)) is not None:
        return read_portable(folder).kind != "torch"
    carried = CARRIED.get(NAMES.get(name, name))
    return carried is not None and carried.kind != "torch"


def tunable(encoder: TextEncoder) -> Encoder:
    """The encoder as one on torch, whose network can be tuned and gives states of tokens; a `ConfigError` if it is not."""
    from dmin.encoder.encoder import Encoder

    if not isinstance(encoder, Encoder):
        raise ConfigError(
            f"the encoder {encoder.name!r} is frozen, it has no weights that torch loads: use --tune none and a method "
            "on vectors, or the encoder 'minilm', a folder or a Hugging Face id"
        )
    return encoder


def encoder_beside(folder: Path) -> str:
    """The name of the encoder of a model folder: the folder itself, the one that it records, or "minilm"."""
    if (folder / "config.json").is_file():
        return str(folder)
    if not (folder / ENCODER_FILE).is_file():
        return "minilm"  # a head alone, as version 0.1 knew one embedded encoder only
    try:
        name = read_json(folder / ENCODER_FILE)["name"]
    except (DataError, KeyError, TypeError) as error:
        raise ModelError(f"{folder / ENCODER_FILE} is damaged: it does not name an encoder") from error
    if not isinstance(name, str) or not set(name.split("+")) <= set(CARRIED):
        raise ModelError(f"{folder / ENCODER_FILE} names {name!r}, which is not an encoder of this package")
    return name
