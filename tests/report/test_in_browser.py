"""Reports in a real Chromium, opened from the disk: sorting, hostile names, phone, dark, accessibility."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import chromium, needs_chromium, serious_faults
from tests.report.common import SHOWN, full_report

pytestmark = [pytest.mark.slow, needs_chromium]
PICTURES = os.environ.get("DMIN_PICTURES")  # a folder for screenshots, to look at
LONG = "a_label_without_any_space_" * 12


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open a report with some name in all places; whatever the browser complains about or fetches fails the test."""
    complaints: list[str] = []
    contexts = []

    def go(name: str, width: int = 1200, **options: Any) -> Page:
        path = tmp_path / "report.html"
        full_report(name).write(path)
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        page.on(
            "request", lambda sent: None if sent.url.startswith(("file:", "data:")) else complaints.append(sent.url)
        )
        page.goto(path.as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert complaints == []


def test_tables_sort_by_number_and_by_word(opened: Callable[..., Page]) -> None:
    page = opened("x")
    table = page.locator("table.sortable").first
    column = lambda number: [row.strip() for row in table.locator(f"tbody td:nth-child({number})").all_inner_texts()]  # noqa: E731
    assert column(3) == ["10", "9", "100"]
    table.get_by_role("button", name="texts").click()
    assert column(3) == ["100", "10", "9"]
    expect(table.locator("th").nth(2)).to_have_attribute("aria-sort", "descending")
    table.get_by_role("button", name="texts").click()
    assert column(3) == ["9", "10", "100"]
    table.get_by_role("button", name="method").focus()
    page.keyboard.press("Enter")
    assert column(1) == ["alpha", "beta x", "gamma"]
    expect(table.locator("th[aria-sort]")).to_have_count(1)
    table.get_by_role("button", name="x", exact=True).click()
    assert column(2) == ["80.0 ± 1.1**", "9.5 ± 0.3", ""]
    table.get_by_role("button", name="x", exact=True).click()
    assert column(2) == ["9.5 ± 0.3", "80.0 ± 1.1**", ""]  # what is missing stays last


def test_hostile_names_are_shown_as_text(opened: Callable[..., Page]) -> None:
    page = opened(SHOWN.replace("\\x1b", "\x1b"))
    assert page.title() == SHOWN and page.locator("h1").inner_text() == SHOWN
    assert page.locator("main img, main script").count() == 0
    page.locator("details").first.evaluate("element => element.open = true")
    expect(page.locator("table.texts")).to_contain_text(f"reason {SHOWN}")


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (375, "light"), (375, "dark")])
def test_it_fits_a_phone_and_the_dark(opened: Callable[..., Page], width: int, scheme: str) -> None:
    page = opened(LONG, width=width, color_scheme=scheme)
    page.locator("details").first.evaluate("element => element.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        """width => [...document.querySelectorAll('main *')].filter((one) => !one.closest('.scroll')
            && one.getBoundingClientRect().right > width + 0.5).map((one) => one.outerHTML.slice(0, 80))""",
        width,
    )
    assert outside == []  # wide tables scroll inside their own frame
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 150) == (scheme == "dark")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != ground
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"report-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened: Callable[..., Page], scheme: str) -> None:
    page = opened("a name", color_scheme=scheme, bypass_csp=True)
    page.locator("details").first.evaluate("element => element.open = true")
    assert serious_faults(page) == []


def test_a_theme_alone_on_the_map(opened: Callable[..., Page]) -> None:
    page = opened("x")
    page.locator("button.pick").click()
    expect(page.locator("button.pick")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("circle.faded")).to_have_count(0)
    page.locator("button.pick").click()
    expect(page.locator("button.pick")).to_have_attribute("aria-pressed", "false")
