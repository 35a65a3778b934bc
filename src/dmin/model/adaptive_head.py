"""What comes with the package for the adaptive head: constants, general spreads of the named encoders, calibration.

`default_head/` holds one file per encoder and `head.json`, which binds them by digest. Read without torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dmin.adaptive import Recipe, Spread
from dmin.errors import ModelError
from dmin.files import file_digest
from dmin.model.calibration import Calibration

NAME = "adaptive"
FORMAT = 1


@dataclass(frozen=True, eq=False)
class AdaptiveSetup:
    """What the adaptive head needs before it sees a class.

    Args:
        recipe: the constants.
        spreads: the general spread of each encoder side by side; none where nothing is known about the encoder.
        calibration: of the deciding score, and of the cosine for refusal.
        cosine_calibration: the same where the logistic part is left out.
        digest: of all of these.
    """

    recipe: Recipe
    spreads: tuple[Spread, ...]
    calibration: Calibration | None
    cosine_calibration: Calibration | None
    digest: str

    def spreads_for(self, width: int) -> tuple[Spread, ...]:
        """The spreads, or one in which no direction stands out, for vectors of this width."""
        return self.spreads or (Spread.flat(width),)


def default_folder() -> Path:
    """The folder of constants and spreads that comes with the package."""
    return Path(str(resources.files("dmin.model") / "default_head"))


@cache
def adaptive_setup(encoder: str | None, width: int | None) -> AdaptiveSetup:
    """The setup for an encoder by name ("bge-small", "bge-small+minilm") and the width of its vectors.

    For an encoder that none of the stored spreads belongs to, None among them, the examples' own spread is used as it is.
    """
    stored = _read(default_folder())
    spreads = _spreads(stored, encoder, width)
    recipe = Recipe(**stored["recipe"])
    calibration, plain = (Calibration.from_dict(stored[key]) for key in ("calibration", "cosine_calibration"))
    if not spreads:
        recipe = replace(recipe, matching=0.0)
    digest = hashlib.sha256(json.dumps([asdict(recipe), encoder if spreads else None], sort_keys=True).encode())
    for spread in spreads:
        digest.update(spread.values.tobytes() + spread.directions.tobytes())
    return AdaptiveSetup(recipe, spreads, calibration, plain, digest.hexdigest()[:16])


def knows_encoder(encoder: str, width: int) -> bool:
    """Is there a stored spread for this encoder?"""
    return bool(adaptive_setup(encoder, width).spreads)


def _spreads(stored: dict[str, Any], encoder: str | None, width: int | None) -> tuple[Spread, ...]:
    """The spreads of encoders side by side whose widths add up to the width of the vectors."""
    if encoder is None or width is None:
        return ()
    for chosen in _candidates(stored, encoder.split("+")):
        if sum(entry["width"] for entry in chosen) == width:
            return tuple(_read_spread(default_folder(), entry) for entry in chosen)
    return ()


def _candidates(stored: dict[str, Any], names: Sequence[str]) -> Iterator[tuple[dict[str, Any], ...]]:
    known = [[entry for entry in stored["spreads"] if entry["encoder"] == name] for name in names]
    return product(*known)


def _read(folder: Path) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((folder / "head.json").read_text(encoding="utf-8"))
    if stored["format"] != FORMAT:
        raise ModelError(f"{folder}: head format {stored['format']!r}; this version reads format {FORMAT}")
    return stored


def _read_spread(folder: Path, entry: dict[str, Any]) -> Spread:
    from safetensors.numpy import load_file

    path = folder / entry["file"]
    if not path.is_file() or file_digest(path) != entry["sha256"]:
        raise ModelError(f"{path.name} of the default head is missing or damaged: install dmin again")
    tensors = load_file(str(path))
    return Spread(tensors["values"].astype(np.float32), tensors["directions"].astype(np.float32))


def write_setup(
    folder: Path,
    spreads: Sequence[tuple[str, Spread]],
    recipe: Recipe,
    calibrations: tuple[Calibration, Calibration],
    estimated_on: dict[str, Any],
) -> None:
    """Write constants and spreads; directions in half precision, which is half the size."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for encoder, spread in spreads:
        width = len(spread.values)
        path = folder / f"{encoder}-{width}.safetensors"
        directions = np.ascontiguousarray(spread.directions, dtype=np.float16)
        save_file({"values": np.asarray(spread.values, np.float32), "directions": directions}, str(path))
        entries.append({"encoder": encoder, "width": width, "file": path.name, "sha256": file_digest(path)})
    document = {
        "format": FORMAT, "name": NAME, "recipe": asdict(recipe), "spreads": entries,
        "calibration": calibrations[0].as_dict(), "cosine_calibration": calibrations[1].as_dict(),
        "estimated_on": estimated_on,
    }  # fmt: skip
    (folder / "head.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
