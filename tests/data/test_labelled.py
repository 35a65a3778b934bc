"""Files of labelled texts: each kind, and each way it can be broken."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from dmin.data import Corpus
from dmin.data.labelled import read_corpus
from dmin.errors import DataError

ROWS = [("where is it", "parcel"), ('say "hi", please', "greeting"), ("ünïcode 你好", "greeting")]


def write(folder: Path, kind: str) -> Path:
    path = folder / f"data.{kind}"
    if kind == "parquet":
        columns = {"text": [text for text, _ in ROWS], "label": [label for _, label in ROWS]}
        parquet.write_table(pyarrow.table(columns), path)
        return path
    content = {
        "jsonl": '{"text": "where is it", "label": "parcel"}\n\n'
        '{"text": "say \\"hi\\", please", "label": "greeting"}\n{"text": "ünïcode 你好", "label": "greeting"}\n',
        "csv": 'text,label\nwhere is it,parcel\n"say ""hi"", please",greeting\nünïcode 你好,greeting\n',
        "tsv": 'label\ttext\nparcel\twhere is it\ngreeting\t"say ""hi"", please"\ngreeting\tünïcode 你好\n',
        "yaml": 'parcel:\n  - where is it\ngreeting:\n  - say "hi", please\n  - ünïcode 你好\n',
        "json": '{"parcel": ["where is it"], "greeting": ["say \\"hi\\", please", "ünïcode 你好"]}',
    }[kind]
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "yaml", "json", "parquet"])
def test_every_kind_gives_the_same_corpus(tmp_path: Path, kind: str) -> None:
    corpus = read_corpus(write(tmp_path, kind))
    assert isinstance(corpus, Corpus)
    assert list(zip(corpus.texts, corpus.labels, strict=True)) == ROWS
    assert corpus.name == "data"


def test_a_byte_order_mark_and_other_columns_are_taken_in_stride(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("\ufefftext,label,more\nhello,a,1\n", encoding="utf-8")
    assert read_corpus(path).texts == ("hello",)
    assert read_corpus(path, text_column="label", label_column="more").labels == ("1",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "txt,x,label\nhi,1,a\n", "no column 'text' .did you mean 'txt'.*it has txt, x, label.*--text-column"),
        ("x.csv", "text,kind\nhi,a\n", "no column 'label'; it has text, kind.*--label-column"),
        ("x.csv", "text,intent,topic\nhi,a,b\n", "no column 'label'; it has text, intent, topic"),
        ("x.csv", "text,label\nhi\n", "row 2: 1 columns, not 2"),
        ("x.csv", "text,label\nhi,a,b\n", "row 2: 3 columns, not 2"),
        ("x.csv", "text,label,label\nhi,a,b\n", "'label' is there 2 times"),
        ("x.json", '{"a": {"texts": ["x"]}}', "class 'a' holds .* a list of texts is needed"),
        ("x.yaml", "a: [x]\na: [y]\n", "the key 'a' is there twice"),
        ("x.xlsx", "PK", "save it as CSV"),
        ("x.csv", 'text,label\n"hi,a\n', "line 2"),
        ("x.csv", "text,label\n  ,a\n", "row 2: text is empty"),
        ("x.csv", "text,label\n", "holds no rows"),
        ("x.jsonl", '{"text": "a", "label": "b"}\n{"text": "a", "lab', "row 2: not valid JSON"),
        ("x.jsonl", "[1]\n", "row 1: an object"),
        ("x.jsonl", '{"text": null, "label": "b"}\n', "row 1: text is missing"),
        ("x.jsonl", '{"text": NaN, "label": "b"}\n', "row 1: text is missing"),
        ("x.jsonl", '{"text": "a", "label": ["b", "c"]}\n', "label is a list; one string is needed"),
        ("x.yaml", "a: [unclosed", "x.yaml is not valid YAML"),
        ("x.yaml", "a: []\n", "'a' has no example"),
        ("x.yaml", "just text\n", "mapping of labels"),
        ("x.json", "{", "x.json is not valid JSON"),
        ("x.parquet", "not parquet", "not a readable Parquet file"),
        ("x.docx", "", "unknown kind of file"),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_corpus(path)


def test_other_encodings_are_named_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("text,label\ncafé,a\n".encode("latin-1"))
    with pytest.raises(DataError, match="row 2: text holds bytes that are not text in this encoding: see --encoding"):
        read_corpus(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_corpus(tmp_path / "gone.csv")


def test_load_examples_reads_what_the_commands_read(tmp_path: Path) -> None:
    import dmin

    path = tmp_path / "tickets.csv"
    path.write_text("ticket;intent;note\n where is it ; parcel ;x\nmy money;refund;y\nlate;parcel;z\n")
    expected = {"parcel": ["where is it", "late"], "refund": ["my money"]}  # white space around them is dropped
    assert dmin.load_examples(f"{path}:text=ticket,label=intent") == expected
    assert dmin.load_examples(path, text_column="ticket", label_column="intent") == expected
    with pytest.warns(UserWarning, match="read from the column '(ticket|intent)'"):
        assert dmin.load_examples(path) == expected
    assert dir(dmin) == ["FewShotClassifier", "__version__", "load_examples", "suggest"]


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16", "latin-1"])
def test_other_encodings_are_read_when_they_are_given(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("text,label\ncafé,a\n".encode(encoding))
    assert read_corpus(path, encoding=encoding).texts == ("café",)
    assert read_corpus(f"{path}:encoding={encoding}").texts == ("café",)


def test_bytes_matter_only_in_the_columns_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"text": ["a"], "label": ["b"], "picture": [b"\xff"]}), path)
    assert read_corpus(path).texts == ("a",)
    with pytest.raises(DataError, match="row 1: picture holds bytes, not text"):
        read_corpus(path, label_column="picture")


def test_numbers_of_thousands_of_digits_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: [" + "9" * 5000 + "]\n")
    with pytest.raises(DataError, match=r"x\.yaml"):
        read_corpus(path)
