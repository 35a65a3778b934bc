"""`manifest.json`: the SHA-256 of every file of a saved folder, so that no file is changed, lost or exchanged unseen.

Left out on purpose: the card (`README.md`), which people edit, and ONNX exports, which are made later and carry digests of
their own. Of an encoder that a saved classifier carries, every file is listed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dmin.errors import DataError, ModelError
from dmin.files.atomic import file_digest
from dmin.files.documents import read_document, write_json

MANIFEST = "manifest.json"
FORMAT = 1
_LEFT_OUT = (MANIFEST, "README.md", "*.onnx", "*.onnx.sha256")
_LISTED = ("encoder/*",)  # an encoder that the folder carries: all of its files


class Manifest(BaseModel):
    """What `manifest.json` holds; `digest` is that of the other fields."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: int
    kind: str
    files: dict[str, str]
    digest: str

    def expected_digest(self) -> str:
        """The digest that the other fields have."""
        content = json.dumps([self.format, self.kind, sorted(self.files.items())], ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


def write_manifest(folder: Path, kind: str, names: Sequence[str] | None = None) -> None:
    """List every file that is in the folder now, below it too, but for cards and exports; or the given names only."""
    files = {name: file_digest(folder / name) for name in (_names(folder) if names is None else sorted(names))}
    found = Manifest(format=FORMAT, kind=kind, files=files, digest="")
    write_json(folder / MANIFEST, {**found.model_dump(), "digest": found.expected_digest()})


def check_manifest(folder: Path, kind: str, needed: Sequence[str] = (), covered: Sequence[str] = ()) -> None:
    """Raise a `ModelError` that names the first file which is missing, changed, or of another folder.

    Args:
        folder: what is checked.
        kind: what it must hold.
        needed: names that the manifest must list.
        covered: patterns of names that, where such files are there, the manifest must list too.
    """
    try:
        manifest = read_document(folder / MANIFEST, Manifest)
    except DataError as error:
        raise ModelError(f"{folder} cannot be trusted: {error}") from error
    if manifest.digest != manifest.expected_digest():
        raise ModelError(f"{folder / MANIFEST} is damaged: it does not match its own digest")
    if manifest.format != FORMAT or manifest.kind != kind:
        raise ModelError(
            f"{folder} holds a {manifest.kind!r} (manifest format {manifest.format}); a {kind!r} ({FORMAT}) is needed"
        )
    present = [name for name in _names(folder) if any(fnmatch(name, pattern) for pattern in covered)]
    for name in [*needed, *present]:
        if name not in manifest.files:
            raise ModelError(
                f"{folder / name} has no digest in {MANIFEST}: it does not belong to this folder, or was lost"
            )
    for name, digest in manifest.files.items():
        path = _inside(folder, name)
        if not path.is_file():
            raise ModelError(f"{folder} is not whole: {name} is missing")
        if file_digest(path) != digest:
            raise ModelError(f"{path} is damaged, or belongs to another folder: it does not match {MANIFEST}")


def is_whole(folder: Path) -> bool:
    """True for a folder whose manifest is there and fits."""
    try:
        manifest = read_document(folder / MANIFEST, Manifest)
        check_manifest(folder, manifest.kind)
    except (DataError, ModelError):
        return False
    return True


def listed_files(folder: Path) -> list[str] | None:
    """The names that a folder's manifest lists; None where there is no readable manifest."""
    try:
        return list(read_document(folder / MANIFEST, Manifest).files)
    except DataError:
        return None


def foreign_files(folder: Path, own: Sequence[str] = ()) -> list[str]:
    """Files of a folder that its manifest does not list; cards and exports, which are made anew, are not counted.

    Args:
        folder: what is looked at.
        own: patterns of our own files, for a folder that was written before there were manifests. Without a manifest and
            without patterns every file counts as our own.
    """
    listed = listed_files(folder)
    if listed is not None:
        return [name for name in _names(folder) if name not in listed]
    if not own:
        return []
    return [name for name in _names(folder) if not any(fnmatch(name, pattern) for pattern in own)]


def _names(folder: Path) -> list[str]:
    """All files below a folder that a manifest lists, as relative paths with forward slashes."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not _is_left_out(path))


def _is_left_out(path: Path) -> bool:
    if any(fnmatch(path.as_posix(), pattern) for pattern in _LISTED):
        return False
    return any(fnmatch(path.name, pattern) for pattern in _LEFT_OUT)


def _inside(folder: Path, name: str) -> Path:
    """The path of a listed name, which must not lead out of the folder."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise ModelError(f"{folder / MANIFEST} names a file outside of the folder: {name!r}")
    return folder / path
