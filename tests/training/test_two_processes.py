"""Two real processes (gloo) through torchrun: the same update as one process with twice the episodes."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

from dmin.files import read_tensors
from tests.training.runs import command, run

pytestmark = pytest.mark.slow

TORCHRUN = (str(Path(sys.executable).parent / "torchrun"), "--standalone", "--nproc_per_node", "2")


@pytest.fixture
def still_encoder(tiny_encoder_folder: Path, tmp_path: Path) -> Path:
    """The tiny encoder with dropout off: processes draw different dropout, which is right, but not comparable."""
    folder = Path(shutil.copytree(tiny_encoder_folder, tmp_path / "still"))
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def first_update(out: Path, stage: int) -> dict[str, torch.Tensor]:
    """The gradient of the first update, as AdamW's first moment holds it (a tenth of it)."""
    (path,) = (out / "checkpoints").glob(f"stage{stage}-0000001*")
    tensors, _ = read_tensors(path)
    return {name: tensor for name, tensor in tensors.items() if name.endswith("/exp_avg")}


@pytest.mark.parametrize(("tune", "stage"), [("none", 1), ("none", 2), ("full", 1), ("full", 2), ("lora", 2)])
def test_two_processes_with_n_make_the_update_of_one_with_twice_n(
    words_file: Path, still_encoder: Path, tmp_path: Path, tune: str, stage: int
) -> None:
    """Gradients are compared, not weights: AdamW divides by their size and would blow up rounding near zero."""
    epochs, episodes = ("1", "0") if stage == 1 else ("0", "4")
    common = ("--tune", tune, "--set", f"stage2.episodes={episodes}", "--set", f"stage1.epochs={epochs}")
    one = command(words_file, still_encoder, tmp_path / "one", *common, "--batch", "4", "--set", "stage1.batch=56")
    two = command(words_file, still_encoder, tmp_path / "two", *common, "--batch", "2", "--set", "stage1.batch=28")
    code, _, errors = run(one)
    assert code == 0, errors
    code, _, errors = run(two, TORCHRUN)
    assert code == 0, errors
    first, second = first_update(tmp_path / "one", stage), first_update(tmp_path / "two", stage)
    assert set(first) == set(second) and any("encoder" in name for name in first) == (tune != "none")
    largest = max(gradient.abs().max().item() for gradient in first.values())
    assert largest > 1e-4
    for name, gradient in first.items():
        assert torch.allclose(gradient, second[name], rtol=1e-5, atol=1e-5 * largest), name
    assert (tmp_path / "two" / "model" / "head.json").is_file()
