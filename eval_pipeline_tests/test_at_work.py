"""Runs at work, as the journal tells it: every line is read once, and none is counted twice."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from eval_pipeline.journal import ATTEMPTS, PREDICTIONS, Journal
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.app import build_app
from eval_pipeline.web.live import JournalTail
from eval_pipeline.web.routes import run_path
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
    an_attempt,
    settings_in,
)

QUESTIONS = [a_question(f"q{number}") for number in range(1, 5)]
BENCHMARK = a_benchmark(*QUESTIONS)
RUN = a_run(plan=list(BENCHMARK.items), benchmark_version=BENCHMARK.version.benchmark_version)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = settings_in(tmp_path, questions=QUESTIONS)
    journal = a_journal(settings.data, RUN, benchmark=BENCHMARK)
    journal.write_whole(ATTEMPTS, "demo/strong", "run-1", records=[an_attempt()])
    return settings


def add(journal: Journal, name: str, *item_ids: str, torn: bytes = b"", **changes: object) -> Path:
    """More lines at the end of a file."""
    records = [a_prediction(item_id, **changes) for item_id in item_ids]
    folder = journal.root / "lines"
    other = Journal(folder)
    other.write_whole(PREDICTIONS, "demo/strong", "run-1", name, records=records)
    (written,) = other.files(PREDICTIONS, "demo/strong", "run-1")
    path = journal.root / written.relative_to(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(written.read_bytes() + torn)
    written.unlink()
    return path


def test_replies_are_counted_as_they_come(settings: Settings) -> None:
    journal = Journal(settings.journal)
    follower = JournalTail(journal)
    add(journal, "p", "q1", "q2", torn=b'{"half')
    first = follower.of("run-1", "demo/strong")
    path = add(journal, "p", "q3")
    path.write_bytes(path.read_bytes().replace(b'{"half', b""))
    before = follower.of("run-1", "demo/strong")
    a_journal(settings.data, a_judgement(a_prediction("q1")), benchmark=BENCHMARK)
    judged = follower.of("run-1", "demo/strong")

    assert first is not None and before is not None and judged is not None
    assert (first.planned, first.answered, first.judged) == (4, 2, 0)
    assert (judged.answered, judged.judged, judged.at_work) == (3, 1, False)


def test_the_last_word_on_a_reply_counts(settings: Settings) -> None:
    journal = Journal(settings.journal)
    follower = JournalTail(journal)
    add(journal, "a", "q1", outcome="timeout", answer=None, error="late")
    failed = follower.of("run-1", "demo/strong")
    add(journal, "b", "q1")
    mended = follower.of("run-1", "demo/strong")

    assert failed is not None and mended is not None
    assert (failed.answered, failed.failed) == (0, 1)
    assert (mended.answered, mended.failed) == (1, 0)


def test_a_run_at_work_is_followed_before_it_is_published(settings: Settings) -> None:
    path = run_path("run-1", "demo/strong")
    web = TestClient(build_app(settings), base_url="http://localhost")
    add(Journal(settings.journal), "p", "q1")

    with hold_run_lock(settings.journal, "run-1"):
        listed = web.get("/runs/").text
        page = web.get(f"/{path}").text
        progress = web.get(f"/{path}progress.json").json()

    assert f'data-progress="{path.removeprefix("runs/")}progress.json"' in listed
    assert "1 of 4 answered" in listed and 'data-progress="progress.json"' in page
    assert (progress["answered"], progress["planned"], progress["at_work"]) == (1, 4, True)
    assert web.get("/runs/none/demo=2Fstrong/progress.json").status_code == 404
