"""Errors name the wrong thing and the way out."""

from __future__ import annotations

from dmin.errors import DataError, DminError, UnknownNameError, nearest_name, one_line, printable, unknown_name


def test_nearest_name() -> None:
    assert nearest_name("Banking7", ["clinc150", "banking77"]) == "banking77"
    assert nearest_name("xyz", ["clinc150", "banking77"]) is None


def test_unknown_name_says_what_there_is() -> None:
    error = unknown_name("method", "dmim", ["dmin", "lwof"])
    assert isinstance(error, UnknownNameError) and isinstance(error, DminError)
    assert str(error) == "unknown method 'dmim': did you mean 'dmin'? known: dmin, lwof"
    assert "and 8 more" in str(unknown_name("class", "zzz", map(str, range(20))))


def test_a_foreign_error_becomes_one_line() -> None:
    assert one_line(ValueError("first\n  second\tthird")) == "first second third"
    assert one_line("x" * 500) == "x" * 300 and one_line("x" * 500, 10) == "x" * 10
    assert one_line(FileNotFoundError(2, "No such file or directory", "secret/path")) == "No such file or directory"


def test_control_characters_are_written_as_escapes() -> None:
    assert printable("a\x1b[2Jb\x07\x9b\n\t") == r"a\x1b[2Jb\x07\x9b\n\t"
    assert printable("a\n\tb\r", keep="\n\t") == "a\n\tb\\r"
    assert printable("left\u202eright\u2066\u2028\ud800") == r"left\u202eright\u2066\u2028\ud800"
    for plain in ("", "café", "日本語", "👩\u200d👧", "می\u200cخواهم", "a b"):  # joiners are part of writing
        assert printable(plain) == plain


def test_an_error_prints_no_control_characters() -> None:
    for error in (DataError("label \x1b[31m is empty"), unknown_name("class", "x", ["\x1b[2J"])):
        assert "\x1b" not in str(error) and "\\x1b" in str(error)
    assert one_line("a\x1b\nb") == "a\\x1b b"
