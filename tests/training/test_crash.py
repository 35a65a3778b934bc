"""Real processes that are killed, interrupted, starved of disk, and go on."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dmin.files import read_tensors
from tests.training.runs import command, environment, run, start

pytestmark = pytest.mark.slow


def head(out: Path) -> dict[str, torch.Tensor]:
    return read_tensors(out / "model" / "head.safetensors")[0]


def wait_for(condition, seconds: float = 120) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.parametrize(
    "options",
    [
        ("--tune", "none"),
        ("--tune", "full"),
        ("--tune", "full", "--method", "lwof", "--way", "2"),
        ("--tune", "none", "--set", "options.tune_memory=false"),
        ("--tune", "none", "--method", "prototypical"),
        ("--tune", "none", "--set", "options.share_routing=true"),
    ],
)
def test_killed_and_resumed_ends_bit_identical(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """`kill -9` in stage 2 (dropout is on under `full`), then --resume: the same weights to the last bit."""
    more = (*options, "--episodes", "120")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    code, _, errors = run(command(words_file, tiny_encoder_folder, whole, *more))
    assert code == 0, errors
    process = start(command(words_file, tiny_encoder_folder, broken, *more))
    wait_for(lambda: list((broken / "checkpoints").glob("stage2-00000[246]0.*")) or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (broken / "model").exists()
    code, _, errors = run(["train", "--resume", "--out", str(broken)])
    assert code == 0, errors
    expected, found = head(whole), head(broken)
    assert all(torch.equal(expected[name], found[name]) for name in expected) and set(expected) == set(found)
    one, two = (load_file(out / "model" / "model.safetensors") for out in (whole, broken))
    assert all(torch.equal(one[name], two[name]) for name in one)
    steps = [line for line in (broken / "metrics.jsonl").read_text().splitlines() if "validation" in line]
    assert len(steps) == len(set(steps)) == len((whole / "metrics.jsonl").read_text().split("validation")) - 1


def test_ctrl_c_saves_and_says_how_to_go_on(words_file: Path, tiny_encoder_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(command(words_file, tiny_encoder_folder, out, "--episodes", "100000"))
    wait_for(lambda: list((out / "checkpoints").glob("stage2-*")) or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "everything is saved" in errors and f"dmin train --resume --out {out}" in errors
    assert "Traceback" not in errors
    assert list((out / "checkpoints").glob("stage2-*"))
    code, _, errors = run(["train", "--resume", "--out", str(out), "--episodes", "200"])
    assert code == 2 and "stage2.episodes: 100000 -> 200" in errors  # another configuration: said, not done


def test_a_cut_checkpoint_is_refused_by_name_and_the_one_before_is_used(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    arguments = command(words_file, tiny_encoder_folder, out, "--episodes", "60")
    assert run(arguments)[0] == 0
    expected = head(out)
    newest = sorted((out / "checkpoints").glob("stage2-*"))[-1]
    newest.write_bytes(newest.read_bytes()[:500])
    code, _, errors = run([*arguments, "--resume"])
    assert code == 0 and f"checkpoint {newest.name} is refused" in errors
    found = head(out)
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_a_full_disk_stops_with_a_clear_line_and_keeps_the_last_checkpoint(
    words_file: Path, tiny_encoder_folder: Path, tmp_path: Path
) -> None:
    """A limit on file size stands for the full disk: writing fails in the system, for real."""
    out = tmp_path / "run"
    arguments = command(words_file, tiny_encoder_folder, out, "--episodes", "40")
    assert run(arguments)[0] == 0
    before = {path.name for path in (out / "checkpoints").iterdir()}
    for path in (out / "checkpoints").glob("stage2-0000040*"):
        path.unlink()  # as if stopped before the end

    def starve() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    done = subprocess.run(
        [sys.executable, "-m", "dmin", *arguments, "--resume"],
        capture_output=True, text=True, env=environment(), preexec_fn=starve, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "error: no room left to write" in done.stderr and "Traceback" not in done.stderr
    assert {path.name for path in (out / "checkpoints").iterdir()} <= before
    assert not list(out.rglob("*.part"))
    assert run([*arguments, "--resume"])[0] == 0
