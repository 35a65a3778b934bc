"""`head.json`: what it holds, checked field by field when it is read."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from dmin.errors import DataError, ModelError
from dmin.files import MANIFEST, check_document, check_manifest, read_json
from dmin.model.calibration import Calibration

FORMAT = 2  # 1 is that of version 0.1, without a manifest
KIND = "model"
HEAD = "head.json"
WEIGHTS = "head.safetensors"
# What transformers reads of an encoder's folder: each such file that is there must have its digest in the manifest.
ENCODER_FILES = (
    "config.json", "encoder.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json",
    "tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model", "adapter_*",
    "chat_template*",
)  # fmt: skip
_MOST = 1 << 16  # of sizes and options: larger numbers are damage, and would ask for memory before any check of shapes

Number = Annotated[float, Field(allow_inf_nan=False)]
Size = Annotated[int, Field(ge=0, le=_MOST)]


@dataclass(frozen=True)
class HeadInfo:
    """What `head.json` says about a head."""

    method: str
    options: dict[str, Any]
    way: int
    shot: int
    dim: int
    base_classes: tuple[str, ...]
    pooling: str
    max_length: int
    trained_on: dict[str, Any] = field(default_factory=dict)
    calibration: dict[str, Any] | None = None


class HeadDocument(BaseModel):
    """The fields of `head.json`; those that a later version may add are ignored."""

    model_config = ConfigDict(strict=True)

    format: int
    method: str
    options: dict[str, Any]
    way: Size
    shot: Size
    dim: Size
    encoder_fingerprint: str
    pooling: Annotated[str, Field(pattern=r"^(cls|mean|layers)(\+(cls|mean|layers))*$")]  # one per encoder side by side
    max_length: Annotated[int, Field(ge=1)]
    base_classes: list[str]
    trained_on: dict[str, Any]
    calibration: dict[str, int | Number] | None

    def info(self) -> HeadInfo:
        """The document as the rest of the package uses it."""
        return HeadInfo(
            method=self.method, options=self.options, way=self.way, shot=self.shot, dim=self.dim,
            base_classes=tuple(self.base_classes), pooling=self.pooling, max_length=self.max_length,
            trained_on=self.trained_on, calibration=self.calibration,
        )  # fmt: skip


def read_head(folder: Path) -> HeadDocument:
    """Read and check `head.json` and, through the manifest, every file beside it.

    Folders of version 0.1 have no manifest: they are read with a warning.

    Raises:
        ModelError: one line that names what is missing or wrong.
    """
    try:
        stored = read_json(folder / HEAD)
        version = stored.get("format") if isinstance(stored, dict) else None
        if version not in (1, FORMAT) or isinstance(version, bool):
            raise ModelError(f"{folder}: head format {version!r}; this version reads formats 1 and {FORMAT}")
        if version == FORMAT or (folder / MANIFEST).exists():
            check_manifest(folder, KIND, (HEAD, WEIGHTS), ENCODER_FILES)
        else:
            warnings.warn(
                f"{folder} was saved by version 0.1, without digests of its files: a damaged file may go unseen",
                stacklevel=3,
            )
        head = check_document(stored, HeadDocument, str(folder / HEAD))
    except DataError as error:
        raise ModelError(str(error)) from error
    if any(isinstance(value, int) and abs(value) > _MOST for value in head.options.values()):
        raise ModelError(f"{folder / HEAD}: an option of {head.method!r} is too large to be real")
    if head.calibration is not None:
        Calibration.from_dict(head.calibration)
    return head
