"""miniRCV1 from newsML files written here: the real parser on small documents, good and bad."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path

import pytest

from dmin.data import load_corpus
from dmin.data.rcv1 import Rcv1Reader
from dmin.errors import DataError


def document(text: str, *topics: str, encoding: str = "iso-8859-1", head: str = "") -> bytes:
    codes = "".join(f'<code code="{topic}"><editdetail attribution="x"/></code>' for topic in topics)
    return (
        f'<?xml version="1.0" encoding="{encoding}" ?>{head}<newsitem itemid="1"><title>A title</title>'
        f"<headline>h</headline><text><p>{text}</p><p>Second   paragraph.</p></text>"
        '<metadata><codes class="bip:countries:1.0"><code code="USA"/></codes>'
        f'<codes class="bip:topics:1.0">{codes}</codes>'
        "</metadata></newsitem>"
    ).encode("latin-1")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "rcv1"
    (folder / "disk1").mkdir(parents=True)
    for number in range(6):
        (folder / "disk1" / f"c{number}.xml").write_bytes(document(f"company {number}", "C11", "CCAT"))
        (folder / "disk1" / f"small{number}.xml").write_bytes(document(f"rare {number}", "E99")) if number < 2 else None
    with zipfile.ZipFile(folder / "day.zip", "w") as archive:
        for number in range(5):
            archive.writestr(f"m{number}.xml", document(f"market {number}", "M14", "M141", "MCAT"))
        archive.writestr("readme.txt", "not a document")
    bad = {
        "two.xml": document("both", "C11", "M14"),
        "none.xml": document("top only", "CCAT"),
        "broken.xml": b"<newsitem><title>cut",
        "entity.xml": document("x", "C11", head='<!DOCTYPE a [<!ENTITY b "c">]>'),
        "empty.xml": b"",
        "odd.xml": document("caf\xe9", "C11", encoding="utf-8"),  # Latin-1 bytes that claim to be UTF-8
    }
    for name, content in bad.items():
        (folder / name).write_bytes(content)
    (folder / "damaged.zip").write_bytes(b"PK not really")
    return folder


def test_topics_documents_and_what_was_skipped(copy: Path) -> None:
    reader = Rcv1Reader(copy, topics=5, documents=5)
    corpus = reader.read()
    assert corpus.classes == ("C11", "M14")
    assert [len(rows) for rows in corpus.by_class.values()] == [5, 5]
    assert all(text.startswith("A title") and text.endswith("Second paragraph.") for text in corpus.texts)
    assert reader.skipped == {
        "several topics": 1, "no second-level topic": 1, "broken XML": 2, "document type declaration": 1,
        "unreadable zip": 1, "odd encoding, read as Latin-1": 1, "topic too small": 2,
    }  # fmt: skip
    assert "broken XML: 2" in reader.report()
    assert Rcv1Reader(copy, topics=1, documents=5).read().classes == ("C11",)  # the larger one
    assert corpus.texts == Rcv1Reader(copy, topics=5, documents=5).read().texts


def test_text_of_an_odd_document_is_right(copy: Path) -> None:
    found = Rcv1Reader(copy).parse((copy / "odd.xml").read_bytes())
    assert found == ("A title café Second paragraph.", "C11")


def test_nothing_usable_is_an_error_that_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="no RCV1 folder"):
        Rcv1Reader(tmp_path / "gone").read()
    (tmp_path / "rcv1").mkdir()
    (tmp_path / "rcv1" / "x.xml").write_bytes(b"<broken")
    monkeypatch.setenv("DMIN_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"no topic has 20 usable documents .broken XML: 1"):
        load_corpus("rcv1")
    monkeypatch.delenv("DMIN_DATA")
    with pytest.raises(DataError, match="set DMIN_DATA"):
        load_corpus("rcv1")


def test_odic_joins_intent_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DMIN_DATA", str(tmp_path))
    with pytest.raises(DataError, match="odic is private data"):
        load_corpus("odic")
    folder = tmp_path / "odic"
    folder.mkdir()
    (folder / "train.tsv").write_text("text\tlabel\nhello\tgreet\nbye\tleave\n")
    (folder / "test.jsonl").write_text('{"text": "thanks", "label": "thank"}\n')
    corpus = load_corpus("odic")
    assert corpus.name == "odic" and corpus.classes == ("thank", "greet", "leave")


def test_a_type_declaration_is_found_in_every_encoding(copy: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]>'
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-8", "latin-1"):
        declared = "utf-16" if encoding.startswith("utf-16") else encoding
        content = document("x", "C11", encoding=declared, head=bomb).decode("latin-1").encode(encoding)
        reader = Rcv1Reader(copy)
        assert reader.parse(content) is None
        assert set(reader.skipped) <= {"document type declaration", "broken XML"}, encoding
        if encoding in ("utf-16", "utf-8", "latin-1"):
            assert reader.skipped == {"document type declaration": 1}


def test_a_zip_cannot_fill_the_memory(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmin.data.rcv1.MOST_DOCUMENT", 1 << 20)
    with zipfile.ZipFile(copy / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(f"{number}.xml", document("x" * (900 << 10), "C11"))
    assert (copy / "bomb.zip").stat().st_size < 1 << 17
    with zipfile.ZipFile(copy / "one.zip", "w") as archive:
        archive.writestr("large.xml", document("x" * (2 << 20), "C11"))
    (copy / "large.xml").write_bytes(document("x" * (2 << 20), "C11"))
    reader = Rcv1Reader(copy, topics=5, documents=5)
    tracemalloc.start()
    try:
        assert reader.read().classes == ("C11", "M14")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert reader.skipped["zip that would grow too large"] == 1
    assert reader.skipped["document too large"] == 2


def test_a_size_that_a_zip_understates_does_not_help_it(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmin.data.rcv1.MOST_DOCUMENT", 1 << 16)
    with zipfile.ZipFile(copy / "lie.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.xml", document("x" * (1 << 20), "C11"))
    content = (copy / "lie.zip").read_bytes()
    real = len(document("x" * (1 << 20), "C11")).to_bytes(4, "little")
    assert content.count(real) == 2
    (copy / "lie.zip").write_bytes(content.replace(real, (100).to_bytes(4, "little")))
    reader = Rcv1Reader(copy, topics=5, documents=5)
    reader.read()
    assert reader.skipped["unreadable zip"] + reader.skipped["document too large"] >= 2


def test_odic_has_the_class_split_that_its_files_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DMIN_DATA", str(tmp_path))
    folder = tmp_path / "odic"
    folder.mkdir()
    lines = ["text\tlabel"] + [f"text {number}\tclass{number}" for number in range(10)]
    (folder / "train.tsv").write_text("\n".join(lines) + "\n")
    (folder / "test-1.tsv").write_text("text\tlabel\nx\tnew1\ny\tnew2\n")
    corpus = load_corpus("odic")
    split = corpus.split("paper")
    assert corpus.default_split == "paper" and split.test == ("new1", "new2")
    assert len(split.train) == 8 and len(split.valid) == 2
    assert set(split.train) | set(split.valid) == {f"class{number}" for number in range(10)}
    (folder / "dev.tsv").write_text("text\tlabel\nz\tother\n")
    split = load_corpus("odic").split("paper")
    assert len(split.train) == 10 and split.valid == ("other",)
    (folder / "more.tsv").write_text("text\tlabel\nz\tthing\n")
    assert load_corpus("odic").default_split is None  # what this file is, its name does not tell
    (folder / "more.tsv").unlink()
    (folder / "test-2.tsv").write_text("text\tlabel\nz\tclass1\n")
    with pytest.raises(DataError, match="class split 'paper' has classes in two parts: class1"):
        load_corpus("odic")
