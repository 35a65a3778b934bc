"""Files and folders on any file system: the local disk, s3://, gs://, hdfs:// and others that pyarrow or fsspec reach."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmin.errors import DataError, StorageError
from dmin.files import sync, user_path, write_atomic

_WILD = re.compile(r"[*?\[]")
_QUERY = re.compile(r"\?\w+=.*$")  # s3://bucket/key?region=...: a setting of the file system, not a wildcard


@dataclass(frozen=True)
class Place:
    """A file or folder on a pyarrow file system; it can be pickled."""

    filesystem: Any
    path: str

    def __str__(self) -> str:
        kind = self.filesystem.type_name.removeprefix("py::fsspec+")
        return self.path if self.is_local else f"{kind}://{self.path}"

    def __truediv__(self, name: str) -> Place:
        return Place(self.filesystem, f"{self.path.rstrip('/')}/{name}")

    @property
    def is_local(self) -> bool:
        """On the local file system (or one that is mounted there)."""
        return bool(self.filesystem.type_name == "local")

    @property
    def is_folder(self) -> bool:
        """A folder exists there."""
        from pyarrow.fs import FileType

        return bool(self.filesystem.get_file_info(self.path).type == FileType.Directory)

    @property
    def parent(self) -> Place:
        """The folder that holds it."""
        return Place(self.filesystem, self.path.rpartition("/")[0] or "/")

    def contains(self, other: Place) -> bool:
        """True where `other` is this folder or lies in it."""
        same = self.filesystem == other.filesystem
        return same and f"{other.path}/".startswith(f"{self.path.rstrip('/')}/")

    def files(self, *, recursive: bool = True) -> Iterator[tuple[str, Any]]:
        """(name below this folder, pyarrow's FileInfo) of each file; nothing where the folder is not there."""
        from pyarrow.fs import FileSelector, FileType

        with storage_errors(f"cannot list {self}"):
            found = self.filesystem.get_file_info(FileSelector(self.path, allow_not_found=True, recursive=recursive))
        for info in found:
            if info.type == FileType.File:
                yield info.path[len(self.path.rstrip("/")) + 1 :], info

    def read(self) -> bytes | None:
        """The content of a file; None where there is none."""
        try:
            with self.filesystem.open_input_stream(self.path, compression=None) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def write(self, content: str) -> None:
        """Write a small file."""
        if self.is_local:
            write_atomic(Path(self.path), content)
            return
        with storage_errors(f"cannot write {self}"):
            self.filesystem.create_dir(self.parent.path, recursive=True)
            with self.filesystem.open_output_stream(self.path, compression=None) as stream:
                stream.write(content.encode())

    def fetch(self, folder: Path) -> Path:
        """A local file with this content: itself, or a copy in `folder`."""
        from pyarrow import fs

        if self.is_local:
            return Path(self.path)
        copy = folder / self.path.rpartition("/")[2]
        with storage_errors(f"cannot read {self}"):
            fs.copy_files(self.path, str(copy), source_filesystem=self.filesystem)
        return copy

    def store(self, source: Path, scratch: Place) -> None:
        """Put a local file here, whole or not at all: under the name `scratch` first, then moved.

        A local `source` must lie on the same disk as this place; it is gone afterwards.
        """
        from pyarrow import fs

        with storage_errors(f"cannot write {self}"):
            self.filesystem.create_dir(self.parent.path, recursive=True)
            if self.is_local:
                sync(source)
                source.replace(self.path)
                sync(Path(self.parent.path))
                return
            # An upload that breaks off may leave a part under its name on some object stores: never under this one.
            scratch.filesystem.create_dir(scratch.parent.path, recursive=True)
            fs.copy_files(str(source), scratch.path, destination_filesystem=self.filesystem)
            self.filesystem.move(scratch.path, self.path)


@contextmanager
def storage_errors(wanted: str) -> Iterator[None]:
    """Turn errors of a file system into a one-line `StorageError` that says what was wanted."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{wanted}: {error.strerror or error}") from error


def open_place(address: str) -> Place:
    """The place of a path or an address like s3://bucket/folder.

    Raises:
        DataError: when neither pyarrow nor fsspec knows that kind of address.
    """
    from pyarrow import ArrowInvalid, fs

    if "://" not in address:
        return Place(fs.LocalFileSystem(), str(Path(os.path.abspath(user_path(address)))))  # noqa: PTH100 (no links)
    try:
        filesystem, path = fs.FileSystem.from_uri(address)
    except ArrowInvalid:
        filesystem, path = _by_fsspec(address)
    except OSError as error:
        raise DataError(f"{address}: the file system cannot be reached: {error}") from error
    return Place(filesystem, path.rstrip("/") or "/")


def _by_fsspec(address: str) -> tuple[Any, str]:
    """File systems that pyarrow does not know itself, by the packages of fsspec."""
    import fsspec
    from pyarrow import fs

    try:
        filesystem, path = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError) as error:
        raise DataError(f"{address}: {error}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), path


@dataclass(frozen=True)
class Found:
    """Files by their name below a root that stays the same when files are added.

    Args:
        root: the folder, or the part of a pattern before its first wildcard.
        files: name below the root -> pyarrow's FileInfo.
        deep: folders below the root were looked through too.
    """

    root: Place
    files: Mapping[str, Any]
    deep: bool


def find_files(address: str, suffixes: Sequence[str]) -> Found:
    """The files of a folder, of a pattern with * ? [] and **, or a single file; hidden ones (. and _) are passed over.

    Raises:
        DataError: when there is none, or one is of another kind than `suffixes`.
    """
    from fsspec.utils import glob_translate
    from pyarrow.fs import FileType

    query = _QUERY.search(address) if "://" in address else None
    plain = address[: query.start()] if query else address
    wild = _WILD.search(plain)
    if wild is None:
        root = open_place(address)
        info = root.filesystem.get_file_info(root.path)
        if info.type == FileType.File:
            return _checked(Found(root.parent, {root.path.rpartition("/")[2]: info}, False), address, suffixes)
        files = {name: info for name, info in root.files() if name.lower().endswith(tuple(suffixes))}
        return _checked(Found(root, _seen(files), True), address, suffixes)
    fixed, slash, _ = plain[: wild.start()].rpartition("/")
    pattern = plain[len(fixed + slash) :]
    root = open_place((fixed or slash or ".") + (query.group() if query else ""))
    deep = "/" in pattern or "**" in pattern
    matches = re.compile(glob_translate(pattern)).match
    files = {name: info for name, info in root.files(recursive=deep) if matches(name)}
    return _checked(Found(root, _seen(files), deep), address, suffixes)


def _seen(files: Mapping[str, Any]) -> dict[str, Any]:
    return {name: files[name] for name in sorted(files) if not any(part[0] in "._" for part in name.split("/"))}


def _checked(found: Found, address: str, suffixes: Sequence[str]) -> Found:
    if not found.files:
        raise DataError(f"no file matches {address!r} (kinds that can be read: {', '.join(suffixes)})")
    for name in found.files:
        if not name.lower().endswith(tuple(suffixes)):
            raise DataError(f"{found.root / name}: unknown kind of file; use {', '.join(suffixes)}")
    return found
