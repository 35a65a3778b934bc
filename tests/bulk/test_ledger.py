"""What is answered is known, and what is not whole does not count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="files on other file systems need pyarrow: pip install 'dmin[ray]'")

from dmin.bulk.ledger import Ledger, output_name, stamp
from dmin.bulk.remote import find_files, open_place
from dmin.errors import DataError

SETTINGS = {"classifier": "abc", "text_column": "text", "top_k": 1}


@pytest.fixture(params=["", "memory://"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    books = Ledger(open_place(f"{request.param}{tmp_path}/answers"))
    books.begin(SETTINGS)
    return books


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Any]:
    for name in ("a/x.csv", "b/x.csv"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True)
        path.write_text("text\none\n")
    return dict(find_files(str(tmp_path / "in"), (".csv",)).files)


def answer(ledger: Ledger, name: str, info: Any, content: str = "text,label\none,1\n") -> None:
    (ledger.folder / output_name(name)).write(content)
    ledger.sign(name, stamp(info), 1, len(content))


def test_only_whole_answers_of_the_same_input_count(ledger: Ledger, inputs: dict[str, Any], tmp_path: Path) -> None:
    assert ledger.done(inputs) == {}
    for name, info in inputs.items():
        answer(ledger, name, info)
    assert ledger.done(inputs) == {"a/x.csv": 1, "b/x.csv": 1}
    (ledger.folder / "a/x.csv").write("text,la")  # cut short by someone
    assert ledger.done(inputs) == {"b/x.csv": 1}
    (ledger.folder / "_dmin/done/b/x.csv.yaml").write("input: [half")
    assert ledger.done(inputs) == {}
    answer(ledger, "b/x.csv", inputs["b/x.csv"])
    (tmp_path / "in/b/x.csv").write_text("text\nanother\n")
    assert ledger.done(dict(find_files(str(tmp_path / "in"), (".csv",)).files)) == {}


def test_an_output_without_a_receipt_is_not_trusted(ledger: Ledger, inputs: dict[str, Any]) -> None:
    (ledger.folder / "a/x.csv").write("text,label\none,1\n")
    assert ledger.done(inputs) == {}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"text_column": "body"}, r"other options \(text_column 'text', now 'body'\)"),
        ({"classifier": "def"}, r"another classifier"),
        ({"classifier": "def", "top_k": 2}, r"other options \(top_k 1, now 2\)"),
    ],
)
def test_other_options_are_refused_once_something_is_answered(
    ledger: Ledger, inputs: dict[str, Any], changed: dict[str, Any], message: str
) -> None:
    ledger.begin(SETTINGS | changed)  # nothing is answered: a corrected option is no harm
    ledger.begin(SETTINGS)
    answer(ledger, "a/x.csv", inputs["a/x.csv"])
    with pytest.raises(DataError, match=message):
        ledger.begin(SETTINGS | changed)
    ledger.begin(SETTINGS)


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("mine")
    with pytest.raises(DataError, match="holds something else"):
        Ledger(open_place(str(tmp_path))).begin(SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


def test_half_written_answers_are_cleaned_away(ledger: Ledger) -> None:
    ledger.clean()
    (ledger.scratch / "1234.part").write("half")
    ledger.clean()
    assert [name for name, _ in ledger.folder.files()] == ["_dmin/settings.yaml"]
