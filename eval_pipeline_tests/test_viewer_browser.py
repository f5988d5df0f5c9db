"""The web in a real browser: what people click, and what attackers hope for."""

import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Thread

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect

from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.app import build_app
from eval_pipeline.web.routes import item_path, model_path, reply_path, run_path
from eval_pipeline.web.serve import listen as listen_at
from eval_pipeline.web.static_site import build
from eval_pipeline_tests.browsing import a_browser, listen
from eval_pipeline_tests.project import running
from eval_pipeline_tests.viewed import (
    BROKEN,
    FIRST,
    OTHER,
    QUESTIONS,
    STRONG,
    TASK,
    WEAK,
    a_viewed_project,
)

BOARD = "section.board:first-of-type tbody tr:visible"
LEAST_CONTRAST = 4.5
CONTRAST = """
() => {
  const shine = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((one) => one / 255)
      .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!colour.endsWith(", 0)")) return colour;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  let least = 21;
  for (const one of document.querySelectorAll("main *")) {
    const words = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!words || !one.checkVisibility() || one.closest("svg, math, button:disabled")) continue;
    const [a, b] = [shine(getComputedStyle(one).color), shine(ground(one))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
}
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return a_viewed_project(tmp_path_factory.mktemp("viewed"))


@pytest.fixture(scope="module")
def address(settings: Settings) -> Iterator[str]:
    """A real server."""
    listener = listen_at("127.0.0.1", 0)
    config = uvicorn.Config(build_app(settings), log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """An empty page; whatever is then opened in it must not complain."""
    page = browser.new_page(base_url=address, viewport={"width": 1280, "height": 900})
    complaints = listen(page)
    yield page
    page.close()
    assert complaints == []


def models_of(page: Page) -> list[str]:
    """The first leaderboard from top to bottom, as far as it is shown."""
    return [row.locator("a").first.inner_text() for row in page.locator(BOARD).all()]


def test_the_leaderboard_is_sorted_by_click_and_by_address(page: Page) -> None:
    page.goto("")
    accuracy = page.get_by_role("button", name="accuracy").first
    by_rank = models_of(page)
    accuracy.click()
    descending = models_of(page)
    accuracy.click()
    ascending, address = models_of(page), page.url
    header = page.get_by_role("columnheader", name="accuracy").first
    expect(header).to_have_attribute("aria-sort", "ascending")
    page.goto(address)

    assert by_rank == descending == [STRONG, OTHER, WEAK]
    assert ascending == models_of(page) == [WEAK, OTHER, STRONG]
    assert address.endswith("?sort=accuracy&order=asc")
    expect(header).to_have_attribute("aria-sort", "ascending")


def test_the_links_to_categories_are_as_wide_as_their_names(page: Page) -> None:
    page.goto("")

    links = page.locator(".slices a.category").all()
    widths = [box["width"] for link in links if (box := link.bounding_box())]

    assert len(widths) == len(links) > 1
    assert min(widths) < 120  # as wide as the column of a run page's categories, each took a line


def test_the_leaderboard_is_filtered_by_choice_and_by_address(page: Page) -> None:
    page.goto("")
    page.get_by_label("vendor").select_option("acme")
    chosen, address = models_of(page), page.url
    expect(page.get_by_role("status")).to_have_text("1 shown")
    page.goto(address)
    again = models_of(page)
    page.get_by_label("vendor").select_option("")
    page.get_by_label("experiment").select_option("no_guidelines")
    expect(page.locator("section.board:visible")).to_have_count(1)

    assert chosen == again == [OTHER]
    assert address.endswith("?vendor=acme")
    assert page.url.endswith("?experiment=no_guidelines")


def test_all_of_it_can_be_done_with_the_keyboard(page: Page) -> None:
    page.goto("")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    page.get_by_role("button", name="model").first.focus()
    page.keyboard.press("Enter")
    first = models_of(page)
    page.locator("input[name=m]").nth(0).focus()
    page.keyboard.press("Space")
    page.locator("input[name=m]").nth(1).focus()
    page.keyboard.press("Space")
    compare = page.get_by_role("button", name="Compare the chosen models")
    expect(compare).to_be_enabled()
    compare.focus()
    page.keyboard.press("Enter")

    assert first == [OTHER, STRONG, WEAK]
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{OTHER} and {STRONG}")


def test_from_a_score_to_its_run_to_an_item_and_to_the_others(page: Page) -> None:
    page.goto("")
    page.locator(BOARD).filter(has_text=WEAK).get_by_role("link", name="33.3%").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Run {FIRST[:8]} of {WEAK}")
    page.locator('a.cell[title^="q2"]').click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sample/q2")
    shown = page.locator("main img")
    expect(shown).to_be_visible()
    assert shown.evaluate("image => image.naturalWidth") == 1
    page.get_by_role("link", name="All models side by side").click()

    expect(page.locator("section.card")).to_have_count(4)


@pytest.mark.parametrize(
    "path",
    [
        *("", "models/", model_path(WEAK), run_path(FIRST, WEAK)),
        f"{run_path(FIRST, WEAK)}items/failed/1/",
        f"{run_path(FIRST, WEAK)}report/",
        reply_path(FIRST, WEAK, "sample", "q1"),
        reply_path(FIRST, WEAK, "sample", QUESTIONS[3].id),
        reply_path(BROKEN, WEAK, "sample", "q2"),
        reply_path(FIRST, WEAK, TASK.suite, TASK.id),
        item_path("sample", "q1"),
        item_path(TASK.suite, TASK.id),
        "compare/?m=demo/strong&m=demo/weak",
        "compare/?m=%3Cscript%3Ewindow.owned=1%3C/script%3E&m=x",
        "?vendor=%22%3E%3Cscript%3Ewindow.owned=1%3C/script%3E",
        "models/%3Cscript%3Ewindow.owned=1%3C/script%3E/",
    ],
)
def test_no_attack_does_anything(browser: Browser, address: str, path: str) -> None:
    asked: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    complaints = listen(page)
    page.goto(address + path)
    for closed in page.locator("details:not([open]) > summary").all():
        if closed.is_visible():
            closed.click()

    owned = page.evaluate(
        "[window.owned, document.scripts.length, document.querySelectorAll("
        "'main style, main iframe, main [onload], main [onerror]').length]"
    )
    hrefs = page.locator("a[href^='javascript:'], a[href^='data:']").count()
    page.close()
    assert (owned, hrefs) == ([None, 1, 0], 0)
    assert not [url for url in asked if not url.startswith(address)]
    assert not [one for one in complaints if "404" not in one]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["", reply_path(FIRST, WEAK, TASK.suite, TASK.id)])
def test_everything_can_be_read_by_day_and_night(
    browser: Browser, address: str, scheme: str, path: str
) -> None:
    page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(address + path)

    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    contrast = page.evaluate(CONTRAST)
    page.close()
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 22, 29)")
    assert contrast >= LEAST_CONTRAST


@pytest.mark.parametrize("path", ["", run_path(BROKEN, WEAK), item_path("sample", "q1")])
def test_pages_fit_a_phone(browser: Browser, address: str, path: str) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.goto(address + path)

    width = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert width == 360


def test_a_run_at_work_is_followed_as_it_goes_on(page: Page, settings: Settings) -> None:
    with hold_run_lock(settings.journal, BROKEN):
        told = page.locator("[data-told]")
        # Who is at work, and what others looked at, is kept in mind for a moment.
        for number in count():
            page.goto(f"{run_path(BROKEN, WEAK)}?{number}")
            if told.count():
                break
            page.wait_for_timeout(200)
        expect(told).to_have_text("2 of 6 answered, 1 judged, 1 without an answer yet")
        with page.expect_response("**/progress.json"):
            pass
        expect(told).to_be_visible()
    # When it has ended, the page says so by itself.
    expect(told).to_have_count(0, timeout=60_000)


def test_static_pages_work_without_a_server(
    browser: Browser, settings: Settings, tmp_path: Path
) -> None:
    build(settings, tmp_path, with_items=False)
    page = browser.new_page()
    complaints = listen(page)
    page.goto(f"file://{tmp_path}/index.html?sort=accuracy&order=asc&vendor=demo")
    sorted_and_filtered = models_of(page)
    page.get_by_role("link", name="Models").click()
    page.get_by_label("Find").fill("acme")

    expect(page.get_by_role("status")).to_have_text("1 shown")
    page.close()
    assert sorted_and_filtered == [WEAK, STRONG]
    assert complaints == []


def test_the_command_serves_until_it_is_interrupted(settings: Settings, tmp_path: Path) -> None:
    log = tmp_path / "log"
    evals = Path(sys.executable).parent / "evals"
    with running(settings.root, str(evals), "view", "--port", "0", log=log) as process:
        while "Results: http://127.0.0.1:" not in log.read_text():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
