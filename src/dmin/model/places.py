"""Where a trained model lies, and which files of its folder are its own. No torch here."""

from __future__ import annotations

import shutil
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path

from dmin.encoder.backends import EXPORTS
from dmin.errors import DataError, ModelError
from dmin.files import MANIFEST, listed_files, read_json, user_path, write_manifest
from dmin.hub import fetch_folder, is_hub_id
from dmin.model.head_file import ENCODER_FILES, HEAD, KIND, WEIGHTS

OWN_FILES = (HEAD, WEIGHTS, "README.md", *ENCODER_FILES, *EXPORTS)  # of a model folder, where no manifest lists them


def copy_model(source: Path, target: Path) -> None:
    """Copy a model's own files into a new folder that carries a manifest; what others put beside them stays behind."""
    listed = listed_files(source)
    if listed is None:  # saved by version 0.1
        listed = [path.name for path in source.iterdir() if _is_listed(path)]
    target.mkdir()
    for name in dict.fromkeys([*listed, "README.md", *EXPORTS]):
        if Path(name).name != name:
            raise ModelError(f"{source}: its manifest names {name!r}, which is not a file of a model folder")
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    write_manifest(target, KIND)


def own_files(folder: Path) -> list[Path]:
    """The files of a model folder that this package wrote, its card and exports too."""
    names = (*(listed_files(folder) or OWN_FILES), "README.md", *EXPORTS, MANIFEST)
    files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return [path for path in files if any(fnmatch(path.name, name) for name in names)]


def _is_listed(path: Path) -> bool:
    return path.is_file() and any(fnmatch(path.name, pattern) for pattern in (HEAD, WEIGHTS, *ENCODER_FILES))


def shipped_head() -> Path:
    """The folder of the head that comes with the package, for the embedded encoder."""
    return Path(str(resources.files("dmin.model") / "shipped"))


def model_folder(model: str | Path) -> Path:
    """The folder of a trained model: of a run, of its `model/`, or fetched from the Hugging Face hub by id."""
    folder = user_path(model)
    if not folder.is_dir():
        if not is_hub_id(model):
            raise ModelError(f"no such run or model folder: {folder}")
        folder = fetch_folder(str(model))
    return folder / "model" if (folder / "model").is_dir() else folder


def answers_own_classes(model: str | Path) -> bool:
    """True where a folder or hub id holds a model that was trained with all_classes: it needs no examples."""
    if not user_path(model).is_dir() and not is_hub_id(model):
        return False
    path = model_folder(model) / HEAD
    if not path.is_file():
        return False
    try:
        return bool(read_json(path).get("trained_on", {}).get("all_classes"))
    except (DataError, AttributeError):
        return False  # loading it says what is wrong
