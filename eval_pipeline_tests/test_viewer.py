"""The pages: every link leads somewhere, numbers are those of the results, and attacks are text."""

import re
from collections import deque
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest
from starlette.testclient import TestClient

from eval_pipeline.interop.remote.messages import encode_segment
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.app import build_app
from eval_pipeline.web.routes import item_path, items_path, model_path, reply_path, run_path
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
    settings_in,
)
from eval_pipeline_tests.viewed import (
    BROKEN,
    FIRST,
    OLD,
    OTHER,
    QUESTIONS,
    SECOND,
    STRONG,
    TASK,
    WEAK,
    a_viewed_project,
)

TIMES = "\N{MULTIPLICATION SIGN}"
BASE = "http://testserver/"
LINK = re.compile(r'(?:href|src|action)="([^"]*)"')
ROW = re.compile(r"<tr.*?</tr>", re.DOTALL)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return a_viewed_project(tmp_path_factory.mktemp("viewed"), web={"hosts": ["testserver"]})


@pytest.fixture(scope="module")
def web(settings: Settings) -> Iterator[TestClient]:
    with TestClient(build_app(settings)) as client:
        yield client


def text_of(page: str) -> str:
    """As people read it; what is only coloured is not taken apart."""
    whole = re.sub(r"</?span[^>]*>", "", page)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", whole)))


def row_of(page: str, name: str) -> str:
    """The first row of a table with that name in it, as people read it."""
    return next(text_of(row) for row in ROW.findall(page) if name in row)


def crawl(web: TestClient) -> dict[str, str]:
    """Every page and file that links lead to, from the first page on."""
    found: dict[str, str] = {}
    left = deque([BASE])
    while left:
        address = left.popleft()
        if address in found:
            continue
        reply = web.get(address)
        assert reply.status_code == 200, (address, reply.text)
        found[address] = reply.text if "html" in reply.headers["content-type"] else ""
        for link in LINK.findall(found[address]):
            target = urldefrag(urljoin(address, unescape(link))).url
            # The pages of replies are alike: those of one model are enough.
            if target.startswith(BASE) and (
                "/item/" not in target or encode_segment(WEAK) in target
            ):
                left.append(target)
    return found


@pytest.fixture(scope="module")
def everything(web: TestClient) -> dict[str, str]:
    return crawl(web)


@pytest.mark.slow
def test_every_link_of_every_page_leads_somewhere(everything: dict[str, str]) -> None:
    addresses = "\n".join(everything)

    for path in (
        model_path(OTHER),
        run_path(SECOND, STRONG),
        run_path(FIRST),
        items_path(BROKEN, WEAK, "truncated"),
        *(item_path(one.suite, one.id) for one in QUESTIONS),
        item_path(TASK.suite, TASK.id),
        reply_path(FIRST, WEAK, TASK.suite, TASK.id),
        f"{run_path(FIRST, WEAK)}report/",
        f"versions/{OLD.version.benchmark_version}/",
        "image.png",
        "api/v1/openapi.json",
    ):
        assert path in addresses


def test_no_attack_is_more_than_text_on_any_page(everything: dict[str, str]) -> None:
    assert sum("window.owned" in page for page in everything.values()) > 30
    for address, page in everything.items():
        # What is ours has no such tag, attribute or address at all.
        tags = re.findall(r"<[^>]*>", page)
        assert not [tag for tag in tags if "owned" in tag and "data-" not in tag], address
        assert not re.search(
            r"<(script(?! src=\"[./]*static/viewer.js\" defer>)|style|iframe)", page
        )
        assert not re.search(r"<[^>]* (on\w+|style)=", page), address
        assert "javascript:" not in "".join(LINK.findall(page))
        assert not re.search(r'(src|action)="http', page), address


@pytest.mark.parametrize(
    "where",
    [
        *("question", "rationale", "reply", "reasoning", "reason", "extracted", "raw reply"),
        *("finish reason", "served by", "generation id"),
    ],
)
def test_what_was_said_of_a_question_is_shown(web: TestClient, where: str) -> None:
    page = web.get("/" + reply_path(FIRST, WEAK, "sample", "q1")).text

    assert f"{where}</pre>" in text_of(page)


@pytest.mark.parametrize(
    "where",
    ["task", "gaps", "reference", "grader", "file", "test", "message", "step", "output", "backend"],
)
def test_what_was_said_of_code_is_shown(web: TestClient, where: str) -> None:
    page = web.get("/" + reply_path(FIRST, WEAK, TASK.suite, TASK.id)).text

    assert f"{where}</pre>" in text_of(page)


def test_why_an_item_failed_is_shown_with_who_says_so(web: TestClient) -> None:
    page = text_of(web.get("/" + reply_path(FIRST, WEAK, "sample", QUESTIONS[3].id)).text)

    assert "AMBIGUOUS_TASK (said by a person, the analyst: MODEL_FAULT)" in page
    for where in ("note", "model_snippet", "expected_snippet"):
        assert f"{where}</pre>" in page


def test_the_leaderboard_has_intervals_runs_and_what_is_preliminary(web: TestClient) -> None:
    page = web.get("/").text

    strong, weak = row_of(page, STRONG), row_of(page, WEAK)
    # Of its two runs, 6 and 4 of 6 are right.
    assert "83.3%" in strong and "preliminary" in strong and f"2{TIMES}6" in strong
    assert "33.3%" in weak and f"1{TIMES}6" in weak and "2025-01-01" in weak
    assert f'href="./{run_path(FIRST, WEAK)}"' in page
    left_out = row_of(page.partition("Left out")[2], BROKEN[:8])
    assert WEAK in left_out
    assert page.count('class="dot') == 3 and 'class="dot best' in page


def test_a_slice_has_the_scores_of_its_items_alone(web: TestClient) -> None:
    whole = web.get("/leaderboard/sample/").text
    physics = web.get("/leaderboard/sample/Physics/").text

    assert "40.0%" in row_of(whole, WEAK) and f"{TIMES}5" in row_of(whole, WEAK)
    assert "0.0%" in row_of(physics, WEAK) and f"{TIMES}2" in row_of(physics, WEAK)
    # One of them is right in one of its two runs.
    assert "75.0%" in row_of(physics, STRONG)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("?sort=accuracy&order=desc", STRONG),
        ("?sort=accuracy&order=asc", WEAK),
        ("?sort=model&order=asc", OTHER),
        ("?sort=nonsense", STRONG),
    ],
)
def test_the_server_sorts_for_who_has_no_script(web: TestClient, asked: str, first: str) -> None:
    page = web.get(f"/{asked}").text

    assert first in ROW.findall(page)[1]


def test_the_server_filters_for_who_has_no_script(web: TestClient) -> None:
    page = web.get("/?vendor=acme").text

    hidden = [row for row in ROW.findall(page) if " hidden" in row]
    assert len(hidden) == 3
    assert not any(OTHER in row for row in hidden)


def test_an_older_version_is_kept_with_its_runs(web: TestClient) -> None:
    page = web.get(f"/versions/{OLD.version.benchmark_version}/").text

    assert "50.0%" in row_of(page, WEAK)
    assert STRONG not in page
    assert "2024.1" in page


def test_a_model_has_its_history_profile_failures_and_reports(web: TestClient) -> None:
    page = web.get("/" + model_path(STRONG)).text
    weak = web.get("/" + model_path(WEAK)).text

    assert re.findall("<h2>(.*?)</h2>", page) == [
        *("On the leaderboard", "History", "Category profile", "Runs"),
    ]
    assert "Failures that recur" in weak and "11111111_2025-01-01.md" in weak
    assert "100.0%" in row_of(page.partition("Category profile")[2], "Math")


def test_a_model_that_states_its_confidence_has_a_calibration_chart(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    benchmark = a_benchmark(*(a_question(f"q{number}") for number in range(100)))
    version = benchmark.version.benchmark_version
    run = a_run(plan=list(benchmark.items), benchmark_version=version, simulated=True)
    replies = [a_prediction(key.item_id) for key in run.plan]
    verdicts = [a_judgement(one, confidence=0.9) for one in replies]
    journal = a_journal(settings.data, run, *replies, *verdicts, benchmark=benchmark)
    Warehouse(settings.database, journal).publish()

    with TestClient(build_app(settings), base_url="http://localhost") as web:
        page = web.get("/" + model_path(run.model))

    assert page.status_code == 200
    chart = page.text.partition("<h2>Calibration</h2>")[2]
    assert "SIMULATED" in chart and "90%" in row_of(chart, run.model)


@pytest.mark.parametrize(
    ("show", "number"),
    [("all", 6), ("failed", 6), ("infrastructure", 1), ("disagreed", 1), ("truncated", 1)],
)
def test_a_run_lists_its_items_by_how_they_went(web: TestClient, show: str, number: int) -> None:
    run = web.get("/" + run_path(BROKEN, WEAK)).text
    listed = web.get("/" + items_path(BROKEN, WEAK, show)).text

    assert f"items/{show}/1/" in run
    assert re.search(rf"items/{show}/1/\">[^<]*\({number}\)", run)
    assert len(ROW.findall(listed)) - 1 == number


def test_an_outage_is_never_called_wrong(web: TestClient) -> None:
    page = web.get("/" + run_path(BROKEN, WEAK)).text

    assert "infrastructure: not a wrong answer" in row_of(page, "timeout")
    assert page.count('class="cell no-answer"') == 2  # the legend has one
    assert page.count('class="cell not-asked"') == 4


def test_two_models_are_compared_item_by_item(web: TestClient) -> None:
    page = text_of(web.get("/compare/", params={"m": [STRONG, WEAK]}).text)
    several = web.get("/compare/", params={"m": [STRONG, WEAK, OTHER]}).text

    assert "over the 6 items" in page and "McNemar" not in page  # one has two runs
    assert f"Gained: {STRONG} is better (4)" in page and "(0)" in page
    assert "-50.0" in row_of(several, f'"row"><a href="../{model_path(WEAK)}')


def test_more_names_than_can_be_compared_are_cut_first(web: TestClient) -> None:
    names = [STRONG, WEAK, *(f"no/body-{number}" for number in range(1_500))]

    page = web.get("/compare/", params={"m": names})

    assert page.status_code == 200 and len(page.text) < 50_000
    assert "The first 12 of 1502 models are compared; choose at most 12." in text_of(page.text)
    assert "Not on the leaderboard: no/body-0, no/body-1," in text_of(page.text)
    assert page.text.count('scope="row"') == 12 and "no/body-10" not in page.text


def test_simulated_models_are_marked_where_models_are_chosen(web: TestClient) -> None:
    page = text_of(web.get("/compare/").text)

    assert f"{STRONG} simulated" in page and f"{WEAK} simulated" in page


def test_who_can_not_be_compared_is_told_why(web: TestClient) -> None:
    nobody = web.get("/compare/", params={"m": [STRONG, "no/body"]})

    assert nobody.status_code == 200
    assert "There is no judged run of 'no/body'" in text_of(nobody.text)


@pytest.mark.parametrize(
    "path",
    [
        *("/models/demo=2Fnobody/", "/runs/none/", "/runs/none/demo=2Fweak/", "/history/9/"),
        *("/history/x/", "/history/0/", "/history/-1/", "/history/99999999999999999999/"),
        *("/items/sample/q99/", f"/{run_path(FIRST, WEAK)}items/all/9/"),
        *(f"/{run_path(FIRST, WEAK)}items/x/1/", "/versions/none/", "/leaderboard/none/"),
        *(
            "/models/demo%2Fweak/",
            "/models/=41/",
            "/models/=ZZ/",
            "/models/=C3/",
            "/items/=-x/=-y/",
        ),
        *(
            "/static/../app.py",
            "/static/..%2fapp.py",
            "/static/none.css",
            "/items/sample/q1/image.png",
        ),
        *("/items/sample/q2/image.svg", "/models/'%20or%201=1--/", "/nothing/"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(web: TestClient, path: str) -> None:
    reply = web.get(path)

    assert reply.status_code == 404
    assert "evals" in reply.text and "Traceback" not in reply.text


def test_an_image_is_a_file_of_its_own(web: TestClient) -> None:
    reply = web.get("/items/sample/q2/image.png")

    assert reply.headers["content-type"] == "image/png"
    assert reply.content.startswith(b"\x89PNG")


def test_an_empty_project_says_what_to_do(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with TestClient(build_app(settings), base_url="http://localhost") as web:
        pages = {
            path: web.get(path) for path in ("/", "/models/", "/runs/", "/compare/", "/versions/")
        }

    assert {page.status_code for page in pages.values()} == {200}
    assert all(
        "evals run" in pages[path].text for path in ("/", "/models/", "/runs/", "/versions/")
    )
