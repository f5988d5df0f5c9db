"""`evals site build`: pages that need no server, and a folder in which nothing else is touched."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.routes import reply_path, run_path
from eval_pipeline.web.static_site import SiteError, build
from eval_pipeline_tests.builders import a_warehouse, settings_in
from eval_pipeline_tests.project import call
from eval_pipeline_tests.viewed import FIRST, QUESTIONS, WEAK, a_viewed_project

LINK = re.compile(r'(?:href|src)="([^"]*)"')


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return a_viewed_project(tmp_path_factory.mktemp("viewed"))


@pytest.fixture(scope="module")
def site(viewed: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(viewed, folder)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = settings_in(tmp_path)
    a_warehouse(settings.data)
    return settings


def pages(folder: Path) -> list[Path]:
    return list(folder.rglob("*.html"))


@pytest.mark.slow
def test_every_link_leads_to_a_file(site: Path) -> None:
    for page in pages(site):
        for link in LINK.findall(page.read_text("utf-8")):
            if not link.startswith(("http", "#")):
                target = unescape(link).partition("?")[0].partition("#")[0]
                assert (page.parent / target).is_file(), (page, link)


def test_an_attack_in_a_name_stays_in_the_folder_and_in_its_page(site: Path) -> None:
    hostile = QUESTIONS[3].id
    page = site / reply_path(FIRST, WEAK, "sample", hostile) / "index.html"

    assert page.is_file()
    assert not any("owned" in tag for tag in re.findall(r"<[^>]*>", page.read_text("utf-8")))


def test_pages_carry_the_policy_that_no_server_sends(site: Path) -> None:
    for page in pages(site):
        assert 'http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;' in (
            page.read_text("utf-8")
        )


def test_there_is_nothing_on_them_that_needs_a_server(site: Path) -> None:
    for page in pages(site):
        text = page.read_text("utf-8")
        assert "<form action" not in text and "data-progress" not in text and "/api/" not in text


def test_without_items_no_link_leads_to_one(viewed: Settings, tmp_path: Path) -> None:
    built = build(viewed, tmp_path / "site", with_items=False)

    run = (tmp_path / "site" / run_path(FIRST, WEAK) / "index.html").read_text("utf-8")
    assert not built.with_items
    assert 'class="cell right"' in run
    assert not any(
        "/item" in link for page in pages(tmp_path) for link in LINK.findall(page.read_text())
    )


def test_a_second_build_removes_what_the_first_wrote_and_nothing_else(
    settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    first = build(settings, folder)
    (folder / "CNAME").write_text("example.org")

    second = build(settings, folder, with_items=False)

    files = {path for path in folder.rglob("*") if path.is_file()}
    assert second.files < first.files
    assert len(files) == second.files + 2  # the list of files, and what is somebody else's
    assert (folder / "CNAME").read_text() == "example.org"


def test_a_file_of_somebody_else_is_never_replaced(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("mine")

    with pytest.raises(SiteError, match=r"index.html is in the way"):
        build(settings, tmp_path / "site")

    assert (tmp_path / "site" / "index.html").read_text() == "mine"


def test_a_page_of_an_item_with_dots_in_its_name_gives_way_too(
    settings: Settings, tmp_path: Path
) -> None:
    old = tmp_path / "site" / "items" / "a..b" / "index.html"
    old.parent.mkdir(parents=True)
    old.write_text("of an earlier build")
    (tmp_path / "site" / ".evals-site").write_text("items/a..b/index.html\n")

    build(settings, tmp_path / "site", with_items=False)

    assert not old.exists()


def test_a_list_that_leads_out_of_the_folder_removes_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / ".evals-site").write_text(f"../victim\n{victim}\n")

    build(settings, folder)

    assert victim.read_text() == "mine"


def test_the_command_says_what_it_wrote(settings: Settings, tmp_path: Path) -> None:
    told = call(settings.root, f"evals site build {tmp_path / 'site'}")
    as_json = call(settings.root, f"evals site build {tmp_path / 'site'} --no-items --json")
    (tmp_path / "file").write_text("x")
    refused = call(settings.root, f"evals site build {tmp_path / 'file'}")

    assert (told.returncode, "index.html" in told.stdout) == (0, True)
    assert json.loads(as_json.stdout)["items"] is False
    assert refused.returncode == 2 and "can not be written" in refused.stderr
