"""The errors a user sees: one line that names the wrong thing and the way out."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable

_LONG_WORD = re.compile(r"\S{300,}")


class DminError(Exception):
    """An error in what the user gave. The commands print it as one line and exit with code 2."""

    def __str__(self) -> str:
        return _message(super().__str__())


class DataError(DminError, ValueError):
    """A file, a corpus or a text that cannot be used."""


class ConfigError(DminError, ValueError):
    """A setting that does not exist or does not fit."""


class UnknownNameError(DminError, KeyError):
    """A name (method, data set, split, class) that is not known."""

    def __str__(self) -> str:
        return _message(str(self.args[0]))  # a KeyError would show it in quotes


class ModelError(DminError, ValueError):
    """An encoder, head or run folder that cannot be loaded, or does not fit its partner."""


class CheckpointError(DminError):
    """A checkpoint that cannot be used."""


class StorageError(DminError, OSError):
    """A file that could not be written, for example because the disk is full."""


class TrainingInterruptedError(DminError):
    """Training was stopped on request; everything up to here is saved."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like `name`, or None when nothing is near."""
    by_lower = {str(candidate).lower(): str(candidate) for candidate in known}
    found = difflib.get_close_matches(str(name).lower(), list(by_lower), n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None


def unknown_name(kind: str, name: str, known: Iterable[str], *, most: int = 12) -> UnknownNameError:
    """Build the error for an unknown name: what was given, the nearest known one, what there is."""
    names = [str(candidate) for candidate in known]
    near = nearest_name(name, names)
    hint = f"did you mean {near!r}? " if near else ""
    listed = ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
    return UnknownNameError(f"unknown {kind} {name!r}: {hint}known: {listed or 'none'}")


def one_line(error: BaseException | str, most: int = 300) -> str:
    """The message of a foreign error in one line of at most `most` characters; of a system error, only its reason."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return printable(" ".join(text.split())[:most])


def _message(text: str) -> str:
    """A message that quotes what users gave: without control characters, long words cut so that what follows is seen."""
    return without_long_words(printable(text, keep="\n\t"))


def without_long_words(text: str) -> str:
    """The text with words of hundreds of characters cut in the middle."""
    return _LONG_WORD.sub(lambda word: f"{word[0][:100]} ... {word[0][-50:]}", text)


def counted(number: int, noun: str) -> str:
    """ "1 example", "2 examples", "3 classes"."""
    plural = "classes" if noun == "class" else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def printable(value: object, keep: str = "") -> str:
    """A label or text as it may be printed: control characters are written as escapes, except those in `keep`.

    Otherwise a label could move the cursor, recolour or rewrite a terminal, or reverse what stands behind it. Escaped are
    the Unicode categories Cc (control), Cs (lone surrogates), Zl and Zp (line and paragraph separators), and those
    characters of Cf that change the direction of writing; joiners, which some scripts and emoji need, stay.
    """
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(sign) if _controls(sign) and sign not in keep else sign for sign in text)


def _controls(sign: str) -> bool:
    category = unicodedata.category(sign)
    return category in ("Cc", "Cs", "Zl", "Zp") or (category == "Cf" and sign in _DIRECTIONS)


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape", "surrogatepass").decode("ascii")


_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
