"""Reading piles: every kind of file, rows without text, samples of what is too large, and the digest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmin.errors import DataError
from dmin.labelling import pile_of, read_pile


def test_kinds_of_files_give_the_same_pile(tmp_path: Path) -> None:
    texts = ["where is my parcel", "a, comma", "ünïcode ✓"]
    (tmp_path / "a.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (tmp_path / "a.csv").write_text('id,text\n1,where is my parcel\n2,"a, comma"\n3,ünïcode ✓\n', encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    piles = [read_pile(tmp_path / name) for name in ("a.txt", "a.csv", "a.jsonl")]
    assert [list(pile.texts) for pile in piles] == [texts] * 3
    assert len({pile.digest for pile in piles}) == 1
    assert piles[1].rows == (2, 3, 4) and piles[2].rows == (1, 2, 3)


def test_rows_without_readable_text_are_left_out_and_named() -> None:
    pile = pile_of(["hello", "", None, "  \n", 3, "\ud800 broken", "\x00\x01", "bye"])
    assert pile.texts == ("hello", "bye") and pile.rows == (0, 7)
    assert pile.unreadable == (1, 2, 3, 4, 5, 6)
    assert pile.notes == ["6 rows hold no readable text and are left out: 1, 2, 3, 4, 5, ..."]


def test_a_pile_larger_than_memory_is_sampled_while_it_is_read() -> None:
    seen = 0

    def many() -> object:
        nonlocal seen
        for number in range(5000):
            seen += 1
            yield f"text {number}"

    pile = pile_of(many(), most=100)  # type: ignore[arg-type]
    assert seen == 5000 and len(pile.texts) == 100 and pile.total == 5000
    assert list(pile.rows) == sorted(set(pile.rows)) and all(
        pile.texts[i] == f"text {row}" for i, row in enumerate(pile.rows)
    )
    assert 1500 < sum(pile.rows) / 100 < 3500  # from everywhere, not the beginning
    whole = pile_of(f"text {number}" for number in range(5000))
    assert whole.digest == pile.digest and pile_of(many(), most=100) == pile  # type: ignore[arg-type]
    assert pile.notes == ["5000 texts are more than --most 100: a seeded sample is used"]


def test_the_digest_tells_where_texts_end() -> None:
    assert pile_of(["ab", "c"]).digest != pile_of(["a", "bc"]).digest


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id,text\n", "the pile is empty: it holds no texts"),
        ("a.csv", 'id,text\n1,""\n2,"  "\n', "none of its 2 rows holds a readable text"),
        ("a.csv", "id,notes,more\n1,hello,x\n", "no column 'text'"),
        ("a.doc", "hello", "unknown kind of file"),
        ("a.txt", "\udcff", "none of its 1 rows holds a readable text"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        read_pile(path)
    assert message in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_and_a_string_in_place_of_a_list(tmp_path: Path) -> None:
    for name in ("a.txt", "a.csv"):
        with pytest.raises(DataError, match="a\\.(txt|csv)"):
            read_pile(tmp_path / name)
    with pytest.raises(DataError, match="one string"):
        pile_of("hello")
    with pytest.raises(DataError, match="--most 0"):
        pile_of(["hello"], most=0)
