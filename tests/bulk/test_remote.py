"""Files wherever they are: found by folder, pattern or name, and stored whole."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="files on other file systems need pyarrow: pip install 'dmin[ray]'")

from dmin.bulk.remote import Place, find_files, open_place
from dmin.errors import DataError, StorageError

KINDS = (".csv", ".jsonl")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a/x.csv", "b/x.csv", "b/deep/y.jsonl", "top.csv", "_work/no.csv", "b/.hidden.csv", "notes.md"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("", ["a/x.csv", "b/deep/y.jsonl", "b/x.csv", "top.csv"]),
        ("/*.csv", ["top.csv"]),
        ("/*/x.csv", ["a/x.csv", "b/x.csv"]),
        ("/**/*.csv", ["a/x.csv", "b/x.csv", "top.csv"]),
        ("/[ab]/x.cs?", ["a/x.csv", "b/x.csv"]),
        ("/b/**", ["deep/y.jsonl", "x.csv"]),
        ("/top.csv", ["top.csv"]),
    ],
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files_are_found_with_names_that_do_not_collide(
    tree: Path, pattern: str, names: list[str], scheme: str
) -> None:
    found = find_files(f"{scheme}{tree}{pattern}", KINDS)
    assert list(found.files) == names
    assert all((found.root / name).read() for name in names)


def test_relative_paths_and_the_home_folder(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert list(find_files("*.csv", KINDS).files) == ["top.csv"] and find_files("*.csv", KINDS).root.path == str(tree)
    assert list(find_files("b/x.csv", KINDS).files) == ["x.csv"]
    monkeypatch.setenv("HOME", str(tree))
    assert open_place("~/b").path == str(tree / "b")


def test_addresses_without_readable_files_are_named(tree: Path) -> None:
    with pytest.raises(DataError, match=r"no file matches .*gone.*\.csv, \.jsonl"):
        find_files(str(tree / "gone"), KINDS)
    with pytest.raises(DataError, match="notes.md: unknown kind of file; use .csv, .jsonl"):
        find_files(str(tree / "*.md"), KINDS)
    with pytest.raises(DataError, match="nowhere://bucket"):
        open_place("nowhere://bucket/folder")


def test_places_know_what_lies_in_them(tree: Path) -> None:
    root = open_place(str(tree))
    assert root.contains(root) and root.contains(root / "a") and not (root / "a").contains(root)
    assert not root.contains(open_place(f"{tree}-other"))
    assert not root.contains(open_place(f"memory://{tree}/a"))


@pytest.mark.parametrize("scheme", ["", "memory://"])
def test_a_file_is_stored_whole_read_and_fetched(tmp_path: Path, scheme: str) -> None:
    """`memory` is known to fsspec alone: what holds for it holds for any other file system that is not a disk."""
    folder = open_place(f"{scheme}{tmp_path}/answers")
    assert (folder / "one").read() is None and not list(folder.files()) and not folder.is_folder
    made = tmp_path / "made"
    for content in ("first", "second"):  # also over what is there
        made.write_text(content)
        (folder / "sub" / "one").store(made, folder / "scratch" / "part")
        assert (folder / "sub" / "one").read() == content.encode()
    (folder / "two").write("small")
    assert sorted(name for name, _ in folder.files()) == ["sub/one", "two"] and folder.is_folder
    (tmp_path / "copies").mkdir()
    assert (folder / "sub" / "one").fetch(tmp_path / "copies").read_text() == "second"
    assert ("copies" in str((folder / "sub" / "one").fetch(tmp_path / "copies"))) == bool(scheme)


@pytest.mark.parametrize("scheme", ["", "memory://"])
def test_a_place_can_be_sent_to_another_process(tree: Path, scheme: str) -> None:
    place = open_place(f"{scheme}{tree}") / "sent.csv"
    place.write("sent")
    arrived: Place = pickle.loads(pickle.dumps(place))  # noqa: S301 (our own)
    assert arrived.read() == b"sent" and arrived == place


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "made").write_text("")
    with pytest.raises(StorageError, match="cannot write .*file/one"):
        (open_place(str(tmp_path)) / "file" / "one").store(tmp_path / "made", open_place(str(tmp_path)) / "part")
