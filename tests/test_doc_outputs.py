"""Every output that a page shows is what its command prints; sessions that train are run under DMIN_STRESS=1."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.doc_outputs import PAGES, ROOT, agrees, check_page, renewed, steps

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_output_is_stale(page: Path) -> None:
    assert list(check_page(page, slow=os.environ.get("DMIN_STRESS") == "1", write=False)) == []


def test_sessions_are_found() -> None:
    assert {page.name for page in PAGES} >= {"inbox.md", "explanations.md", "your-own-data.md", "training.md"}
    (one, two) = steps("$ dmin a \\\n    --b\nprinted\n$ dmin c\n")
    assert (one.command, one.told) == ("dmin a \\\n    --b", "printed\n") and (two.command, two.told) == ("dmin c", "")


def test_a_stale_output_is_seen_and_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert agrees("accuracy 96.0 %\n", "accuracy 96.1 %\n") and not agrees("accuracy 96.0 %\n", "accuracy 90.1 %\n")
    assert agrees("a\n...\nd\n", "a\nb\nc\nd\n") and not agrees("a\nd\n", "a\nb\nd\n")
    assert renewed("x 1.0\n...\ny 2.0\n", "x 5.0\nz\ny 7.0\n") == "x 5.0\n...\ny 7.0\n"
    monkeypatch.setattr("tools.doc_outputs.ROOT", tmp_path)
    monkeypatch.setattr("tools.doc_outputs.prepare", lambda folder: None)
    page = tmp_path / "page.md"
    page.write_text("text\n```console\n$ echo new\nold\n```\n")
    assert len(list(check_page(page, slow=False, write=True))) == 1
    assert page.read_text() == "text\n```console\n$ echo new\nnew\n```\n"
    assert list(check_page(page, slow=False, write=False)) == [] and ROOT.is_dir()
