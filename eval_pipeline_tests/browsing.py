"""A real browser for the tests of pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

# Within a container there is no sandbox; what pages fetch from elsewhere must fail.
_ELSEWHERE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
_QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", _ELSEWHERE]


@contextmanager
def a_browser() -> Iterator[Browser]:
    """Chromium; where there is none, the test is skipped and says so."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("There is no chromium to look at pages with: apt-get install chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_QUIET)
        yield browser
        browser.close()


def listen(page: Page) -> list[str]:
    """Whatever the page complains about from now on."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda message: complaints.append(message.text) if message.type == "error" else None,
    )
    return complaints
