"""Errors name the wrong thing and the way out."""

from __future__ import annotations

from dmin.errors import DminError, UnknownNameError, nearest_name, one_line, unknown_name


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
