"""A run folder: what is not a run's own is neither removed nor replaced."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from dmin.cli.app import run
from dmin.errors import ConfigError
from dmin.files import MANIFEST
from dmin.training import load_config
from dmin.training.run_folder import OWN, begin, check_folder
from tests.training.runs import command

FIXTURES = Path(__file__).parents[1] / "fixtures" / "version-0.1"


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", OWN)
def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path, name: str, overwrite: bool) -> None:
    precious = tmp_path / name if "." in name else tmp_path / name / "precious.txt"
    precious.parent.mkdir(exist_ok=True)
    precious.write_text("mine")
    with pytest.raises(ConfigError, match=f"holds {name}, but no run .*choose another --out"):
        check_folder(tmp_path, load_config(), resume=False, overwrite=overwrite)
    assert precious.read_text() == "mine"


def test_the_command_refuses_it_and_changes_nothing(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("model", "checkpoints", "episodes"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "precious.txt").write_text("mine")
    (tmp_path / "mine" / "summary.json").write_text("{}")
    before = content(tmp_path / "mine")
    for more in ((), ("--overwrite",)):
        assert run([*command(words_file, tiny_encoder_folder, tmp_path / "mine"), *more]) == 2
        assert "made by something else" in capsys.readouterr().err
    assert content(tmp_path / "mine") == before


@pytest.mark.parametrize("words", [["--out", ""], ["--out="]])
def test_an_empty_name_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for verb in ("train", "demo", "compare", "evaluate"):
        assert run([verb, *words]) == 2
        assert capsys.readouterr().err == "error: --out is empty: name a file or a folder\n"
    assert not list(tmp_path.iterdir())


def test_settings_of_something_else_are_no_run(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("services: {web: {image: x}}\n")
    (tmp_path / "model").mkdir()
    with pytest.raises(ConfigError, match="is not that of a run"):
        check_folder(tmp_path, load_config(), resume=False, overwrite=True)
    assert (tmp_path / "config.yaml").read_text().startswith("services")


def test_other_files_beside_a_run_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "model").mkdir()
    check_folder(tmp_path, load_config(), resume=False, overwrite=False)
    begin(tmp_path, load_config())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "notes.txt"]


@pytest.mark.parametrize("with_manifest", [False, True])
def test_a_new_run_removes_the_old_one_and_nothing_else(tmp_path: Path, with_manifest: bool) -> None:
    out = tmp_path / "run"
    shutil.copytree(FIXTURES / "run-dmin", out)
    if with_manifest:
        from dmin.files import write_manifest

        write_manifest(out / "model", "model")
    mine = ["model/notes.txt", "checkpoints/best.txt", "episodes/own.json", "plot.png", "model/deep/er.txt"]
    for name in mine:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("mine")
    (out / "checkpoints" / ".stage2-0000040.best-0000020.safetensors.x1_y.part").write_text("left by a kill")
    (out / ".config.yaml.abc.part").write_text("left by a kill")
    config = load_config(overrides={"seed": 7})
    check_folder(out, config, resume=False, overwrite=True)
    begin(out, config)
    assert set(content(out)) == {*mine, "config.yaml"}
    assert load_config(out / "config.yaml").seed == 7


def test_a_trained_model_takes_its_place_beside_foreign_files(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    arguments = command(words_file, tiny_encoder_folder, out, "--episodes", "4")
    assert run(arguments) == 0
    (out / "model" / "notes.txt").write_text("mine")
    assert run([*arguments, "--overwrite"]) == 0
    assert (out / "model" / "notes.txt").read_text() == "mine"
    assert (out / "model" / MANIFEST).is_file() and "notes.txt" not in (out / "model" / MANIFEST).read_text()
