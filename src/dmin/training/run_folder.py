"""The folder of a training run: what may be put there, and what a new run removes. Files of others are never touched."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from dmin.errors import ConfigError, StorageError, one_line
from dmin.files import write_atomic
from dmin.model.folder import own_files
from dmin.training.config import TrainConfig, differences, load_config

CONFIG = "config.yaml"
CHECKPOINTS, MODEL, EPISODES = "checkpoints", "model", "episodes"
METRICS = "metrics.jsonl"
RESULTS = ("summary.json", "per_class.json", "unknown.json")
# A run makes these; in a folder without a config.yaml they are somebody else's.
OWN = (CHECKPOINTS, MODEL, EPISODES, METRICS, *RESULTS)
_CHECKPOINT = re.compile(r"stage\d-\d+\.best-\d+\.safetensors|best\d-\d+\.safetensors|encoder\.safetensors")
_EPISODES = re.compile(r".+-\d+way-\d+shot-\d+queries-\d+episodes(-[0-9a-f]{8})?\.json")
_UNFINISHED = re.compile(r"\.(?P<name>.+)\.\w+\.part")  # what `write_atomic` leaves behind when it is killed


def check_folder(out: Path, config: TrainConfig, *, resume: bool, overwrite: bool) -> None:
    """Raise a `ConfigError` unless a run may be put into `out`, or resumed there.

    Args:
        out: the run folder.
        config: of the run.
        resume: a run of the same settings must be there.
        overwrite: a run that is there may be replaced.
    """
    stored = out / CONFIG
    if resume:
        if not stored.is_file():
            raise ConfigError(f"nothing to resume: {out} holds no run (no {CONFIG})")
        changed = differences(load_config(stored), config)
        if changed:
            raise ConfigError(
                f"{out} holds a run of another configuration ({'; '.join(changed)}): give the same settings, "
                "or another --out"
            )
        return
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file, not a folder: choose another --out")
    if stored.exists() and not overwrite:
        raise ConfigError(
            f"{out} already holds a run: add --resume to go on, --overwrite to begin anew, or choose another --out"
        )
    if stored.exists():
        try:
            load_config(stored)
        except ConfigError as error:
            raise ConfigError(
                f"{stored} is not that of a run, so {out} is left alone ({error}): choose another --out"
            ) from error
        return
    found = [name for name in OWN if (out / name).exists() and not _is_empty(out / name)]
    if found:
        raise ConfigError(
            f"{out} holds {', '.join(found)}, but no run (no {CONFIG}): it was made by something else; choose another --out"
        )


def begin(out: Path, config: TrainConfig) -> None:
    """Remove what an earlier run wrote, then write the settings: killed in between, the earlier ones are still there."""
    try:
        for folder, own in ((CHECKPOINTS, _CHECKPOINT), (EPISODES, _EPISODES)):
            _remove(out / folder, [path for path in _files(out / folder) if own.fullmatch(_meant(path))])
        _remove(out / MODEL, own_files(out / MODEL))
        for path in _files(out):
            if _meant(path) in (METRICS, *RESULTS) or (_meant(path) == CONFIG and path.name != CONFIG):
                path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot remove the earlier run in {out}: {one_line(error)}") from error
    write_atomic(out / CONFIG, config.to_yaml())


def _meant(path: Path) -> str:
    """The name that a file has, or that a half-written one was to get."""
    unfinished = _UNFINISHED.fullmatch(path.name)
    return unfinished["name"] if unfinished else path.name


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


def _remove(folder: Path, files: list[Path]) -> None:
    for path in files:
        path.unlink(missing_ok=True)
    with suppress(OSError):  # not there, or it holds somebody else's files
        folder.rmdir()


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
