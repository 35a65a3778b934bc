"""The head that comes with the package."""

from __future__ import annotations

import json

from dmin.encoder import Encoder
from dmin.model import load_model, shipped_head


def test_it_is_small_and_fits_the_embedded_encoder(embedded_encoder: Encoder) -> None:
    folder = shipped_head()
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000
    model = load_model(folder, device="cpu")
    assert model.encoder.fingerprint == Encoder(pooling=model.info.pooling, device="cpu").fingerprint
    assert model.encoder.pooling == "layers" and model.encoder.width == 2 * embedded_encoder.width
    assert model.info.calibration is not None and model.info.method == "dmin-plus"
    assert len(model.info.base_classes) == len(model.method.base_memory)


def test_its_card_says_data_licence_results_and_limits() -> None:
    card = (shipped_head() / "README.md").read_text(encoding="utf-8")
    for part in ("CC BY 4.0", "CC BY 3.0", "sibling head", "SetFit", "## Limits"):
        assert part in card
    stored = json.loads((shipped_head() / "head.json").read_text(encoding="utf-8"))
    assert len(stored["trained_on"]["exclude"]) == 3  # no leaderboard test text was in its training
