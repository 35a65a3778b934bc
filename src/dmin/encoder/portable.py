"""An encoder as a folder of its own, with all that it needs: for saved classifiers that carry their encoder.

`encoder.json` says what computes it. Encoders without torch are copied as they are (weights, and the JSON of the
tokenizer); those on torch become a folder that `AutoModel` and `AutoTokenizer` load.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dmin.encoder.carriers import CARRIED
from dmin.encoder.joined import JoinedEncoder
from dmin.encoder.onnx_encoder import ENCODER_FILE, OnnxEncoder
from dmin.encoder.static import StaticEncoder
from dmin.encoder.text_encoder import TextEncoder
from dmin.errors import ConfigError, DataError, ModelError
from dmin.files import read_document, read_json, user_path, write_json

FORMAT = 1
ONNX, TABLE, TOKENIZER = "weights.onnx", "weights.safetensors", "tokenizer.json"


class PortableDocument(BaseModel):
    """The fields of `encoder.json` in a folder that holds the encoder."""

    model_config = ConfigDict(strict=True)

    portable: int
    kind: Literal["onnx", "static", "torch", "joined"]
    name: str
    pooling: str
    max_length: int = Field(ge=1)
    long_texts: str
    parts: int = Field(default=0, ge=0, le=9)


def save_portable(encoder: TextEncoder, folder: Path) -> None:
    """Write an encoder of this package with its weights into a new folder."""
    folder.mkdir()
    parts: tuple[TextEncoder, ...] = ()
    if isinstance(encoder, JoinedEncoder):
        kind, parts = "joined", encoder.parts
        for number, part in enumerate(parts):
            save_portable(part, folder / str(number))
    elif isinstance(encoder, OnnxEncoder | StaticEncoder):
        kind = "onnx" if isinstance(encoder, OnnxEncoder) else "static"
        weights, tokenizer = encoder.files
        shutil.copyfile(weights, folder / (ONNX if kind == "onnx" else TABLE))
        shutil.copyfile(tokenizer, folder / TOKENIZER)
    elif hasattr(encoder, "network"):
        kind = "torch"
        encoder.save(str(folder))
        for path in folder.iterdir():
            path.chmod(0o644)  # safetensors writes for the owner alone
    else:
        raise ConfigError(f"the encoder {encoder.name!r} cannot be written into a folder: save without it")
    document: dict[str, Any] = {
        "portable": FORMAT, "kind": kind, "name": encoder.name, "pooling": encoder.pooling,
        "max_length": encoder.max_length, "long_texts": getattr(encoder, "long_texts", "cut"), "parts": len(parts),
    }  # fmt: skip
    write_json(folder / ENCODER_FILE, document)


def portable_folder(name: str) -> Path | None:
    """The folder of a name, if `save_portable` wrote it."""
    folder = user_path(name)
    if not (folder / ENCODER_FILE).is_file():
        return None
    try:
        stored = read_json(folder / ENCODER_FILE)
    except DataError:
        return None
    return folder if isinstance(stored, dict) and "portable" in stored else None


def read_portable(folder: Path) -> PortableDocument:
    """The content of `encoder.json`, checked."""
    try:
        stored = read_document(folder / ENCODER_FILE, PortableDocument)
    except DataError as error:
        raise ModelError(str(error)) from error
    if stored.portable != FORMAT:
        raise ModelError(f"{folder}: encoder format {stored.portable}; this version reads format {FORMAT}")
    return stored


def open_portable(folder: Path, *, device: str | None = None, backend: str = "auto") -> TextEncoder:
    """Open an encoder from its folder alone; no package that carries weights is looked for."""
    stored = read_portable(folder)
    name = stored.name if stored.name in CARRIED else str(folder)
    if stored.kind == "joined":
        return JoinedEncoder(
            [open_portable(folder / str(part), device=device, backend=backend) for part in range(stored.parts)]
        )
    if stored.kind == "torch":
        from dmin.encoder.encoder import Encoder

        opened = Encoder(
            str(folder), pooling=stored.pooling, max_length=stored.max_length, device=device, backend=backend,
            long_texts=stored.long_texts,
        )  # fmt: skip
        opened.name = name
        return opened
    if device not in (None, "cpu") or backend not in ("auto", "onnx"):
        raise ConfigError(
            f"the encoder in {folder} computes on the CPU, with ONNX Runtime: leave out device and backend"
        )
    if stored.kind == "static":
        return StaticEncoder(name, folder / TABLE, folder / TOKENIZER)
    return OnnxEncoder(
        name, folder / ONNX, folder / TOKENIZER, pooling=stored.pooling, max_length=stored.max_length,
        long_texts=stored.long_texts,
    )  # fmt: skip
