"""A real Chromium by Playwright, and axe-core, for the tests of pages."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None,
    reason="Chromium is not installed here (Debian: apt-get install chromium): the page was NOT tested",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; its profile is gone at the end."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield found
        found.close()


def axe_file() -> Path:
    """axe-core, which a Python package carries as a file."""
    found = importlib.util.find_spec("axe_playwright_python")
    assert found is not None and found.submodule_search_locations, (
        "axe-playwright-python is missing: make lint installs it"
    )
    return Path(found.submodule_search_locations[0]) / "axe.min.js"


def serious_faults(page: Page) -> list[tuple[Any, ...]]:
    """What axe-core calls serious or critical on the page as it is now; the page's own policy must be bypassed."""
    page.add_script_tag(path=axe_file())
    found = page.evaluate("axe.run(document)")["violations"]
    return [(item["id"], item["nodes"][0]["html"][:200]) for item in found if item["impact"] in ("serious", "critical")]
