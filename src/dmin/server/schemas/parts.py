"""What names, labels and texts must be, and what the models have in common."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_BAD_IN_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def check_label(label: str) -> str:
    """A label that can stand in a list, an address and a file; else a ValueError."""
    if not label or label != label.strip():
        raise ValueError("a label must not be empty, nor begin or end with white space")
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in label):
        raise ValueError("a label must not hold control characters or line breaks")
    if label in (".", ".."):
        raise ValueError("'.' and '..' cannot stand in an address")
    return label


def check_text(text: str) -> str:
    """A text that can be encoded and stored; else a ValueError."""
    if not text.strip():
        raise ValueError("a text must not be empty")
    if _BAD_IN_TEXT.search(text):
        raise ValueError("a text must not hold control characters")
    return text


Name = Annotated[str, Field(pattern=_NAME, description="Letters, digits, dot, dash, underline.")]
Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_label)]
TextLine = Annotated[str, Field(min_length=1), AfterValidator(check_text)]


class Request(BaseModel):
    """What is sent to the service: exact types, no unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """What the service answers; a client ignores fields that it does not know yet."""

    model_config = ConfigDict(extra="ignore")
