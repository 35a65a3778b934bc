"""Names that come from files or users, made into parts of paths."""

from __future__ import annotations

import hashlib
import re

MOST_BYTES = 180  # of a name: temporary names and suffixes must fit beside it into the 255 of common file systems
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f\ud800-\udfff/\\:*?"<>|]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # devices of Windows


def safe_name(name: object) -> str:
    """A name as one part of a path: it cannot lead into another folder, be hidden, or be too long for a file system.

    Plain names stay as they are. In others what is not safe becomes `_`, and a digest keeps different names different.

    Example:
        >>> safe_name("banking77+clinc150"), safe_name("../../x")
        ('banking77+clinc150', '_.._x-9cdf6a50')
    """
    text = str(name)
    plain = _UNSAFE.sub("_", text).lstrip(".").rstrip(". ")
    if len(plain.encode()) > MOST_BYTES:
        plain = plain.encode()[: MOST_BYTES - 9].decode(errors="ignore")
    if plain == text and plain and not _RESERVED.fullmatch(plain):
        return plain
    if _RESERVED.fullmatch(plain):
        plain = f"_{plain}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest
