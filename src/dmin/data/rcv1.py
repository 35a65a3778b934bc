"""miniRCV1 (Jiang et al., 2018) from a licensed copy of Reuters RCV1: folders of newsML XML, zipped or not.

A document counts when it has exactly one second-level topic (such as C11 or M14: a letter and two digits); of each of the
55 topics with the most documents, 20 are kept. What cannot be used is counted and reported, never fatal.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from dmin.data.corpus import Corpus
from dmin.errors import DataError

TOPICS, DOCUMENTS = 55, 20
MOST_DOCUMENT = 4 << 20  # bytes; the largest documents of RCV1 have some hundred thousand
MOST_GROWTH = 60  # bytes that a byte of a zip may become; documents of RCV1 become about 3 to 10
_SECOND_LEVEL = re.compile(r"[A-Z]\d\d$")
_TOPIC_CLASS = "bip:topics:1.0"
_DECLARED = re.compile(rb"""^(<\?xml[^>]*?encoding=["'])([\w.-]+)(["'])""")


class Rcv1Reader:
    """Reads documents and counts those that cannot be used, by reason.

    Args:
        folder: the copy; every .xml below it is read, also inside .zip files.
        topics: number of topics kept, those with the most documents first.
        documents: documents kept of each topic.
        seed: of the choice among a topic's documents.
    """

    def __init__(self, folder: Path, topics: int = TOPICS, documents: int = DOCUMENTS, seed: int = 0) -> None:
        self.folder, self.topics, self.documents, self.seed = folder, topics, documents, seed
        self.skipped: Counter[str] = Counter()

    def read(self) -> Corpus:
        """The corpus; fewer topics than wanted are taken as they are, none is an error."""
        if not self.folder.is_dir():
            raise DataError(
                f"no RCV1 folder {self.folder}: unpack your licensed copy there (folders of newsML XML or zips)"
            )
        by_topic: dict[str, list[str]] = {}
        for content in self._files():
            found = self.parse(content)
            if found is not None:
                by_topic.setdefault(found[1], []).append(found[0])
        large = {topic: texts for topic, texts in by_topic.items() if len(texts) >= self.documents}
        self.skipped["topic too small"] += sum(len(t) for k, t in by_topic.items() if k not in large)
        chosen = sorted(large, key=lambda topic: (-len(large[topic]), topic))[: self.topics]
        if not chosen:
            raise DataError(f"{self.folder}: no topic has {self.documents} usable documents ({self.report()})")
        random = np.random.default_rng(self.seed)
        examples = {}
        for topic in sorted(chosen):
            picked = random.choice(len(large[topic]), size=self.documents, replace=False)
            examples[topic] = [large[topic][index] for index in sorted(picked)]
        return Corpus.from_mapping(examples, "rcv1")

    def report(self) -> str:
        """What was skipped and why, as one line."""
        return ", ".join(f"{reason}: {count}" for reason, count in self.skipped.most_common()) or "nothing skipped"

    def parse(self, content: bytes) -> tuple[str, str] | None:
        """(text, topic) of one document, or None with the reason counted."""
        root = self._tree(content)
        if root is None:
            return None
        topics = {
            code.get("code", "")
            for codes in root.iter("codes")
            if codes.get("class") == _TOPIC_CLASS
            for code in codes.iter("code")
        }
        second = {topic for topic in topics if _SECOND_LEVEL.match(topic)}
        if len(second) != 1:
            self.skipped["several topics" if second else "no second-level topic"] += 1
            return None
        paragraphs = [root.findtext("title") or "", *("".join(p.itertext()) for p in root.iterfind("text/p"))]
        text = " ".join(" ".join(paragraphs).split())
        if not text:
            self.skipped["no text"] += 1
            return None
        return text, second.pop()

    def _tree(self, content: bytes) -> ElementTree.Element | None:
        """The document's tree; one whose declared encoding is wrong or unknown is read as Latin-1, and counted."""
        for number, version in enumerate((content, _DECLARED.sub(rb"\1utf-8\3", content.decode("latin-1").encode()))):
            if _declares_type(version):  # newsML has no such declaration; its entities could blow up in memory
                self.skipped["document type declaration"] += 1
                return None
            root = _parse(version)
            if root is not None:
                if number:
                    self.skipped["odd encoding, read as Latin-1"] += 1
                return root
        self.skipped["broken XML"] += 1
        return None

    def _files(self) -> Iterator[bytes]:
        for path in sorted(self.folder.rglob("*")):
            try:
                if path.suffix.lower() == ".xml":
                    with path.open("rb") as file:
                        yield from self._document(file)
                elif path.suffix.lower() == ".zip":
                    yield from self._zipped(path)
            except OSError:
                self.skipped["unreadable file"] += 1

    def _document(self, file: IO[bytes]) -> Iterator[bytes]:
        """The content of a document, unless it is too large to be one."""
        content = file.read(MOST_DOCUMENT + 1)
        if len(content) > MOST_DOCUMENT:
            self.skipped["document too large"] += 1
        else:
            yield content

    def _zipped(self, path: Path) -> Iterator[bytes]:
        try:
            with zipfile.ZipFile(path) as archive:
                members = [info for info in archive.infolist() if info.filename.lower().endswith(".xml")]
                if sum(info.file_size for info in members) > MOST_GROWTH * path.stat().st_size + MOST_DOCUMENT:
                    self.skipped["zip that would grow too large"] += 1
                    return
                for info in sorted(members, key=lambda info: info.filename):
                    with archive.open(info) as file:
                        yield from self._document(file)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError):
            self.skipped["unreadable zip"] += 1


class _FoundError(Exception):
    """Ends the parsing of a document's beginning."""


def _declares_type(content: bytes) -> bool:
    """Has the document a type declaration? Asked of the parser itself, whatever the encoding."""
    found = False

    def declaration(*_: object) -> None:
        nonlocal found
        found = True
        raise _FoundError

    def element(*_: object) -> None:
        raise _FoundError  # declarations stand before the first element

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = declaration
    parser.StartElementHandler = element
    try:
        parser.Parse(content, True)
    except (_FoundError, expat.ExpatError, LookupError, ValueError):
        return found
    return found


def _parse(content: bytes) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(content)  # noqa: S314 (entities were refused before)
    except (ElementTree.ParseError, LookupError, ValueError):
        return None
