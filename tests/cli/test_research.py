"""compare, ablate, figure and the presets, as commands."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from matplotlib.image import imread

from dmin.cli.app import run
from dmin.training import load_config, prepare_task
from tests.training.runs import SETTINGS

pytestmark = pytest.mark.slow

SMALL = """
--way 2 --shot 1 --episodes 5 --train-episodes 4 --set queries=4 --set split_seed=1 --set split_sizes=4/2/3
--set stage1.epochs=1 --set stage2.validation_episodes=2 --set device=cpu --set precision=float32
"""
PRESET = """
--episodes 2 --split-sizes 110/20/30 --set stage1.epochs=1 --set stage2.validation_episodes=2
--set test_episodes=3 --set precision=float32
"""


@pytest.fixture
def common(words_file: Path, tiny_encoder_folder: Path, tmp_path: Path) -> list[str]:
    return [
        "--data",
        str(words_file),
        *SMALL.split(),
        "--set",
        f"encoder={tiny_encoder_folder}",
        "--out",
        str(tmp_path / "out"),
    ]


def test_compare_writes_every_form(common: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "--methods", "dmin,nearest,logistic", *common]) == 0
    output = capsys.readouterr().out
    assert "nearest prototype" in output and "±" in output and "permutation" in output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"cells", "episodes", "table.md", "table.tex", "table.csv", "report.html", "raw.jsonl"}
    assert "than the reference row, nearest prototype" in " ".join(output.split())
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()
    with (tmp_path / "out" / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 3


def test_tables_are_made_again_from_raw_results(
    common: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every figure of the tables comes out of raw.jsonl alone, digit for digit."""
    assert run(["compare", "--methods", "dmin,nearest", "--seeds", "2", *common]) == 0
    printed = capsys.readouterr().out.split("written:")[0]
    kept = tmp_path / "kept.jsonl"
    kept.write_bytes((tmp_path / "out" / "raw.jsonl").read_bytes())
    assert run(["compare", "--from-raw", str(kept), "--out", str(tmp_path / "again")]) == 0
    assert capsys.readouterr().out.split("written:")[0] == printed
    first, second = (
        [
            [cell for name, cell in row.items() if name not in ("seconds", "peak_megabytes")]
            for row in csv.DictReader(file)
        ]
        for file in ((tmp_path / name / "table.csv").open() for name in ("out", "again"))
    )
    assert first == second and len(first) == 2
    kept.write_text(kept.read_text().splitlines()[1] + "\n")
    assert run(["compare", "--from-raw", str(kept)]) == 2
    assert "holds no raw results of dmin compare" in capsys.readouterr().err
    kept.write_text(kept.read_text().replace('"right":"', '"right":"x'))
    assert run(["compare", "--from-raw", str(kept)]) == 2


def test_the_reference_is_the_nearest_prototype_or_the_first_row(
    common: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", "--methods", "logistic,prototypical", *common]) == 0
    assert "than the reference row, logistic regression" in " ".join(capsys.readouterr().out.split())


def test_compare_with_a_bilstm(words_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    arguments = [
        "compare",
        "--data",
        str(words_file),
        *SMALL.split(),
        "--methods",
        "induction,relation",
        "--out",
        str(out),
    ]
    assert run([*arguments, "--encoder", "bilstm"]) == 2
    assert "use --tune full" in capsys.readouterr().err
    assert run([*arguments, "--encoder", "bilstm", "--tune", "full"]) == 0
    assert len(list((out / "cells").iterdir())) == 2


def test_ablate_takes_seeds_and_presets(
    tiny_encoder_folder: Path, words_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [part for part in SMALL.replace("--train-episodes 4", "").split() if part not in ("--episodes", "5")]
    tiny = ["--data", str(words_file), *small, "--set", f"encoder={tiny_encoder_folder}", "--set", "base_classes=all"]
    tiny += [
        "--set",
        "tune=none",
        "--set",
        "stage2.episodes=2",
        "--set",
        "test_episodes=3",
        "--out",
        str(tmp_path / "out"),
    ]
    assert run(["ablate", "--preset", "paper-rcv1", "--seeds", "2", "--no-readings", *tiny]) == 0
    cells = [json.loads(path.read_text()) for path in (tmp_path / "out" / "cells").iterdir()]
    assert len(cells) == 12 and {cell["seed"] for cell in cells} == {0, 1}
    assert {cell["config"]["pooling"] for cell in cells} == {"cls"}  # from the preset
    assert {len(cell["accuracies"]) for cell in cells} == {3}
    assert "seeds: 2" in " ".join(capsys.readouterr().out.split())
    assert run(["ablate", "--preset", "paper-odik"]) == 2


def test_ablate(common: list[str], tmp_path: Path) -> None:
    assert run(["ablate", "--no-readings", *common]) == 0
    text = (tmp_path / "out" / "table.md").read_text()
    for title in ("w/o DMM", "w/o QIM", "1 iteration", "2 iterations", "3 iterations", "static memory"):
        assert title in text


def test_options_of_an_ablation_are_those_of_all_its_rows(
    common: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ablate", *common, "--set", "options.query_capsules=2", "--set", "options.iterations=2"]) == 0
    assert "one capsule" not in capsys.readouterr().err
    cells = [json.loads(path.read_text()) for path in (tmp_path / "out" / "cells").iterdir()]
    options = {cell["row"]: cell["config"]["options"] for cell in cells}
    assert options["dmin"]["query_capsules"] == 2 and options["dmin"]["iterations"] == 2
    assert options["iterations-1"]["iterations"] == 1  # what a row is about stays
    assert options["capsules-4"]["capsules"] == 4 and "query_capsules" not in options["capsules-4"]
    assert run(["ablate", "--data", "starter", "--set", "way=3"]) == 2 and "use --way" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "--methods", "dmin,lwff"], "unknown method 'lwff': did you mean 'lwof'"),
        (["compare", "--start", "middle"], "use stage1 or raw"),
        (["compare", "--set", "options.capsules=2"], "options belong to one method"),
        (["compare", "--set", "way=7"], "use --way"),
        (["compare", "--methods", "nearest", "--reference", "lwof"], "unknown --reference 'lwof'"),
        (["compare", "--seeds", "0"], "--seeds must be at least 1"),
        (["compare", "--data", "starter", "--shot", "2", "--methods", "hatt"], "K=2"),
        (["compare", "--data", "starter", "--split", "x"], "unknown split"),
        (["compare", "--preset", "paper-odik"], "did you mean 'paper-odic'"),
        (["figure", "tsne", "nowhere"], "no such run or model folder"),
        (["figure", "curves", "nowhere"], "no metrics.jsonl"),
        (["figure", "tsne", "nowhere", "--shot", "1"], "at least 2 classes of 2 texts"),
    ],
)
def test_an_error_is_one_line_and_writes_nothing(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.startswith("error: ") and errors.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_figures(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    arguments = ["train", "--data", str(words_file), "--encoder", str(tiny_encoder_folder), "--out", str(out)]
    assert run([*arguments, *SETTINGS.split(), "--episodes", "20"]) == 0
    assert run(["figure", "tsne", str(out), "--way", "2", "--shot", "5"]) == 0
    output = capsys.readouterr().out
    assert "before DMM" in output and "mean over 100 support sets" in output
    assert run(["figure", "curves", str(out)]) == 0
    assert run(["figure", "confusion", str(out), "--way", "2", "--shot", "2", "--episodes", "5"]) == 0
    for name in ("tsne.png", "curves.png", "confusion-2way-2shot.png"):
        assert imread(out / name).std() > 0.05
    other = [*arguments[:-1], str(tmp_path / "other"), *SETTINGS.split(), "--method", "prototypical", "--episodes", "2"]
    assert run(other) == 0
    capsys.readouterr()
    assert run(["figure", "tsne", str(tmp_path / "other")]) == 2
    assert "no memory module" in capsys.readouterr().err


def test_presets_are_the_papers_settings() -> None:
    odic, rcv1 = load_config(preset_name="paper-odic"), load_config(preset_name="paper-rcv1")
    assert (odic.base_classes, odic.test_episodes, rcv1.base_classes, rcv1.test_episodes) == (100, 300, 20, 100)
    for config in (odic, rcv1):
        assert config.method == "dmin"
        assert (config.encoder, config.pooling, config.tune, config.queries) == ("bert-base-uncased", "cls", "full", 10)
    assert load_config(overrides={"way": 10, "tune": "none"}, preset_name="paper-odic").tune == "none"


def test_the_preset_runs_end_to_end_with_a_tiny_bert(
    tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paper's command on made-up intents, a tiny BERT in place of BERT-base."""
    folder = tmp_path / "data" / "odic"
    folder.mkdir(parents=True)
    lines = [
        f"intent {label} number {n} words {n * label % 7}\tintent{label}" for label in range(160) for n in range(12)
    ]
    (folder / "intents.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n")
    monkeypatch.setenv("DMIN_DATA", str(tmp_path / "data"))
    out = tmp_path / "run"
    tiny = ["--encoder", str(tiny_encoder_folder), "--out", str(out)]
    assert run(["train", "--preset", "paper-odic", *tiny, *PRESET.split()]) == 0
    head = json.loads((out / "model" / "head.json").read_text())
    assert len(head["base_classes"]) == 100 and head["trained_on"]["tune"] == "full"


def test_the_preset_takes_the_classes_of_odics_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files named train and test give the paper's classes; none is drawn by a seed."""
    folder = tmp_path / "odic"
    folder.mkdir()
    for name, labels in (("train", range(130)), ("test", range(130, 160))):
        lines = [f"intent {label} number {n}\tintent{label}" for label in labels for n in range(12)]
        (folder / f"{name}.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n")
    monkeypatch.setenv("DMIN_DATA", str(tmp_path))
    task = prepare_task(load_config(preset_name="paper-odic"), pytest.fail)
    assert task.split_name == "paper" and set(task.split.test) == {f"intent{label}" for label in range(130, 160)}
    assert len(task.base_classes) == 100 and not set(task.split.test) & {*task.split.train, *task.split.valid}
