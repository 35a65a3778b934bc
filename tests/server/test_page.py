"""The page in a real Chromium: a person's first visit, label mode, undo, evaluation, keys, phone, dark, accessibility."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from dmin.server.keys import create_key
from dmin.server.settings import Settings
from tests.browser import chromium, needs_chromium, serious_faults
from tests.server.conftest import CLASSES, Live

PICTURES = os.environ.get("DMIN_PICTURES")  # a folder for screenshots, to look at

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open the page; whatever the browser complains about fails the test."""
    contexts, complaints = [], []

    def go(live: Live, width: int = 1200, height: int = 900, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: None if request.url.startswith(live.url) else complaints.append(request.url))
        page.goto(live.url)
        return page

    yield go
    for context in contexts:
        context.close()
    # A status that the page asked for and shows in words (401, 409) is in the console too; nothing else may be.
    assert [line for line in complaints if "status of 4" not in line] == []


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def test_a_first_visit_from_nothing_to_an_answer(start: Callable[..., Live], visit: Callable[..., Page]) -> None:
    live = start()
    page = visit(live)
    expect(page.locator("#summary")).to_contain_text("Two classes are needed")
    page.click("#tab-examples")
    for label, texts in list(CLASSES.items())[:2]:
        page.fill("#add-label", label)
        page.fill("#add-texts", "\n".join(texts))
        page.click("#add-form button")
        expect(page.locator("#classes")).to_contain_text(label)
    page.click("#tab-try")
    expect(page.locator("#summary")).to_contain_text("2 classes from 6 examples")
    page.fill("#text", "apple pear plum")
    page.keyboard.press("Enter")
    expect(page.locator("#ranked li").first).to_contain_text("fruit")
    expect(page.locator("#shares")).to_contain_text("cherry grape melon")
    picture(page, "first-visit")


def test_what_is_typed_while_an_answer_is_late_stays(live: Live, visit: Callable[..., Page]) -> None:
    page = visit(live)
    page.click("#tab-examples")
    hold_back = """const fetched = window.fetch; window.fetch = async (path, options) => {
        if (String(path).endsWith("/check")) await new Promise((go) => { window.letGo = go; });
        return fetched(path, options); }"""
    page.evaluate(hold_back)
    page.fill("#add-label", "sea")
    page.fill("#add-texts", "wave shore")
    page.click("#add-form button")
    expect(page.locator("#classes")).to_contain_text("sea")
    page.fill("#add-label", "money")
    page.fill("#add-texts", "coin salary")
    page.locator("#add-label").focus()
    page.evaluate("window.letGo()")
    expect(page.locator("#doctor")).to_contain_text("Few examples: sea")  # the late answer is drawn
    expect(page.locator("#add-label")).to_be_focused()
    expect(page.locator("#add-texts")).to_have_value("coin salary")


def test_put_a_text_right_with_one_click_and_undo(live: Live, visit: Callable[..., Page]) -> None:
    page = visit(live)
    page.fill("#text", "purse coin salary debt")
    expect(page.locator("#ranked li")).to_have_count(3)
    page.fill("#other", "money")
    page.keyboard.press("Enter")
    expect(page.locator("#ranked")).to_contain_text("money")  # a random encoder may rank it second
    page.click("#tab-history")
    expect(page.locator("#changes li").first).to_contain_text("1 example added to money")
    page.click("#undo")
    expect(page.locator("#changes li").first).to_contain_text("undone: 1 example added to money")
    page.click("#tab-try")
    expect(page.locator("#ranked")).not_to_contain_text("money")
    page.locator("#ranked li button").last.click()
    expect(page.locator("#notice")).to_contain_text("Added to")
    picture(page, "put-right")


def test_a_long_name_of_a_class_breaks_between_its_words(live: Live, visit: Callable[..., Page]) -> None:
    page = visit(live)
    page.fill("#text", "purse coin salary debt")
    page.fill("#other", "a_long_name/of-money")
    page.keyboard.press("Enter")
    name = page.locator("#ranked .name").filter(has_text="a_long_name/of-money")
    expect(name).to_have_count(1)
    pieces = name.evaluate("name => [...name.childNodes].map(piece => piece.textContent || piece.tagName)")
    assert pieces == ["a_", "WBR", "long_", "WBR", "name/", "WBR", "of-", "WBR", "money"]


def test_a_dropped_csv_becomes_classes(live: Live, visit: Callable[..., Page], tmp_path: Path) -> None:
    file = tmp_path / "more.csv"
    file.write_text('text,label\n"wave, shore",sea\nsand tide,sea\n')
    page = visit(live)
    page.click("#tab-examples")
    page.set_input_files("#file-examples", file)
    expect(page.locator("#notice")).to_contain_text("imported 2 examples")
    expect(page.locator("#classes")).to_contain_text("sea")
    bad = tmp_path / "bad.csv"
    bad.write_text("text,label\nonly one column\n")
    page.set_input_files("#file-examples", bad)
    expect(page.locator("#notice")).to_contain_text("1 columns, not 2")
    page.locator("#classes summary", has_text="sea").click()
    page.locator("#classes li ul li", has_text="sand tide").get_by_role("button").click()
    expect(page.locator("#classes summary", has_text="sea")).to_contain_text("1 example")


def test_label_mode_by_keyboard(live: Live, visit: Callable[..., Page]) -> None:
    page = visit(live)
    page.click("#tab-label")
    pile = [f"{one} {two}" for one in ("apple", "wheel", "song") for two in ("plum", "road", "drum")]
    page.fill("#pile", "\n".join(pile))
    page.click("#start-label")
    expect(page.locator("#label-choices button")).to_have_count(3)
    seen = []
    for number in range(4):
        text = page.locator("#label-text").inner_text()
        seen.append(text)
        page.keyboard.press("1")
        expect(page.locator("#label-progress")).to_contain_text(f"{number + 1} labelled")
    assert len(set(seen)) == 4
    expect(page.locator("#label-accuracy")).to_contain_text("Estimated accuracy 100 %")
    page.keyboard.press("u")
    expect(page.locator("#label-progress")).to_contain_text("3 labelled")
    expect(page.locator("#label-text")).to_have_text(seen[-1])
    page.fill("#label-name", "brand new")
    page.keyboard.press("Enter")
    expect(page.locator("#label-progress")).to_contain_text("4 labelled")
    page.locator("#label-text").focus()
    page.keyboard.press("s")
    expect(page.locator("#label-progress")).to_contain_text("left")
    assert "brand new" in [item["label"] for item in live.http.get("/v1/collections/default/classes").json()["classes"]]
    picture(page, "label")


def test_evaluation_shows_matrix_and_wrong_texts(live: Live, visit: Callable[..., Page], tmp_path: Path) -> None:
    rows = "".join(f"{text},{label}\n" for label, texts in CLASSES.items() for text in texts)
    file = tmp_path / "test.csv"
    file.write_text("text,label\n" + rows + "apple pear plum,car\n")
    page = visit(live)
    page.click("#tab-evaluate")
    page.set_input_files("#file-evaluate", file)
    expect(page.locator("#accuracy")).to_contain_text("of 10 texts are right")
    expect(page.locator("table.matrix tbody tr")).to_have_count(3)
    expect(page.locator("#wrong")).to_contain_text("apple pear plum")
    picture(page, "evaluate")


def test_the_map_shows_examples_pile_and_typed_text(live: Live, visit: Callable[..., Page]) -> None:
    page = visit(live)
    page.click("#tab-label")
    page.fill("#pile", "apple road\nsong wheel\ndrum plum\nrain tide")
    page.click("#start-label")
    expect(page.locator("#label-choices button")).to_have_count(3)
    page.click("#tab-try")
    page.fill("#text", "apple plum")
    page.click("#tab-map")
    expect(page.locator("#map .point")).to_have_count(9, timeout=30_000)
    expect(page.locator("#map .pile")).to_have_count(4)
    expect(page.locator("#map .typed")).to_have_count(1)
    expect(page.locator("#map text").first).to_be_visible()
    picture(page, "map")


def test_what_people_typed_is_never_markup(live: Live, visit: Callable[..., Page]) -> None:
    bad = '<img src=x onerror="document.title=1"><b>bold</b>'
    live.http.put("/v1/collections/default/classes/%3Cb%3Ex", json={"examples": [bad]})
    page = visit(live)
    page.fill("#text", bad)
    page.keyboard.press("Enter")
    expect(page.locator("#shares")).to_contain_text("<b>bold</b>")
    page.click("#tab-map")
    expect(page.locator("#map .point").first).to_be_attached(timeout=30_000)
    page.click("#tab-history")
    assert page.title() == "dmin: classes from a few examples"
    assert page.locator("main b, main img").count() == 0


def test_a_service_with_keys_asks_for_one(live: Live, visit: Callable[..., Page]) -> None:
    secret, _ = create_key(live.service.database, "ann", "write")
    live.service.ring.refresh()
    page = visit(live)
    expect(page.locator("#key-panel")).to_be_visible()
    page.fill("#key", secret)
    page.keyboard.press("Enter")
    expect(page.locator("#key-panel")).to_be_hidden()
    expect(page.locator("#summary")).to_contain_text("3 classes")


def test_tabs_work_by_arrow_keys_and_tell_the_screen_reader(live: Live, visit: Callable[..., Page]) -> None:
    page = visit(live)
    page.locator("#tab-try").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-examples")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#tab-examples")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Examples")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_role("tabpanel", name="History")).to_be_visible()
    expect(page.locator("#panel-try")).to_be_hidden()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (360, "light")])
def test_it_fits_a_phone_and_the_dark(live: Live, visit: Callable[..., Page], width: int, scheme: str) -> None:
    page = visit(live, width=width, height=760, color_scheme=scheme)
    page.fill("#text", "apple plum")
    page.keyboard.press("Enter")
    expect(page.locator("#ranked li")).to_have_count(3)
    for tab in ("try", "examples", "label", "map", "evaluate", "history"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        picture(page, f"{tab}-{width}-{scheme}")
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 150) == (scheme == "dark")
    page.click("#theme")
    other = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert other != ground


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(live: Live, visit: Callable[..., Page], scheme: str, tmp_path: Path) -> None:
    page = visit(live, color_scheme=scheme, bypass_csp=True)
    page.fill("#text", "apple plum")
    page.keyboard.press("Enter")
    expect(page.locator("#ranked li")).to_have_count(3)
    file = tmp_path / "test.csv"
    file.write_text("text,label\napple,fruit\nwheel,car\napple,car\n")
    for tab in ("try", "examples", "label", "map", "evaluate", "history"):
        page.click(f"#tab-{tab}")
        if tab == "evaluate":
            page.set_input_files("#file-evaluate", file)
            expect(page.locator("#accuracy")).to_be_visible()
        if tab == "map":
            expect(page.locator("#map .point").first).to_be_attached(timeout=30_000)
        assert serious_faults(page) == [], tab
    page.goto(f"{live.url}/docs")
    assert serious_faults(page) == []


def test_the_whole_way_with_the_default_encoder(settings: Settings, visit: Callable[..., Page], tmp_path: Path) -> None:
    """Real weights: an answer that is right, a refusal, and a class that is learned at once."""
    live = Live(Settings(store=settings.store, workers=1))
    try:
        classes = {
            "refund": ["I want my money back", "please return what I paid", "can I get a refund"],
            "parcel": ["where is my order", "has my parcel been sent", "track my delivery"],
            "password": ["I forgot my password", "cannot log in to my account", "reset my login"],
        }
        live.http.post("/v1/collections", json={"name": "default", "classes": classes})
        page = visit(live)
        page.fill("#text", "my package has not arrived")
        page.keyboard.press("Enter")
        expect(page.locator(".verdict strong")).to_have_text("parcel")
        page.fill("#text", "the weather in Lisbon is lovely in spring")
        page.keyboard.press("Enter")
        expect(page.locator(".verdict .badge")).to_contain_text("refused")
        page.fill("#other", "smalltalk")
        page.keyboard.press("Enter")
        expect(page.locator(".verdict strong")).to_have_text("smalltalk")
    finally:
        live.close()
