"""Takes the pictures of docs/images: `python -m eval_pipeline_tests.pictures ADDRESS FOLDER`.

ADDRESS is where `evals view` serves the results of `make demo`.
"""

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from eval_pipeline_tests.browsing import a_browser

DESKTOP, PHONE = {"width": 1120, "height": 760}, {"width": 390, "height": 760}


def main(address: str, folder: Path) -> None:
    with a_browser() as browser:
        page = _page(browser, address, viewport=DESKTOP)
        page.goto("")
        page.screenshot(path=folder / "web-leaderboard.png")
        page.goto("compare/?m=demo/strong&m=demo/average&m=demo/weak")
        page.screenshot(path=folder / "web-compare.png")
        dark = _page(browser, address, viewport=DESKTOP, color_scheme="dark")
        _open_a_run(dark)
        dark.screenshot(path=folder / "web-run-dark.png")
        dark.locator('a.cell.wrong[title*="math"]').first.click()
        dark.screenshot(path=folder / "web-item-dark.png")
        phone = _page(browser, address, viewport=PHONE)
        phone.goto("")
        phone.screenshot(path=folder / "web-phone.png")


def _page(browser: Browser, address: str, **given: Any) -> Page:
    return browser.new_page(base_url=address, **given)


def _open_a_run(page: Page) -> None:
    page.goto("")
    page.locator("section.board a[href*='runs/']").nth(1).click()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
