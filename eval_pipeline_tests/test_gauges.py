"""What Prometheus is told: results, runs at work, and what the server has served."""

import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import dagster as dg
import pytest
from prometheus_client.core import GaugeMetricFamily
from starlette.testclient import TestClient

from eval_pipeline.defs.instance import look_at_queue
from eval_pipeline.journal import ATTEMPTS, Journal
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.journal.tokens import Tokens, TokenScope
from eval_pipeline.records.prediction import Usage
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.app import build_app
from eval_pipeline.web.metrics import DagsterQueue, exposed, of_results
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
from eval_pipeline_tests.dagster_runs import a_dagster_run
from eval_pipeline_tests.project import ROOT

BENCHMARK = a_benchmark(*(a_question(f"q{number}") for number in range(1, 5)))
COST = Usage(input_tokens=100, output_tokens=7, cost_usd=0.25)
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+)\})? (\S+)')
WEAK = {"model": "demo/weak", "run_id": "run-2"}
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Two runs, one of which lacks two replies, and a verdict."""
    settings = settings_in(tmp_path_factory.mktemp("measured"))
    version = BENCHMARK.version.benchmark_version
    runs = [
        a_run(run_id, model, list(BENCHMARK.items), benchmark_version=version)
        for run_id, model in (("run-1", "demo/strong"), ("run-2", "demo/weak"))
    ]
    replies = [a_prediction(f"q{number}", usage=COST) for number in (1, 2)]
    late = a_prediction("q3", outcome="timeout", answer=None, error="late")
    other = a_prediction("q1", usage=COST, **WEAK)
    verdicts = [a_judgement(replies[0]), a_judgement(other, usage=Usage(cost_usd=0.5))]
    journal = a_journal(settings.data, *runs, *replies, late, other, *verdicts, benchmark=BENCHMARK)
    journal.write_whole(ATTEMPTS, "demo/strong", "run-1", records=[an_attempt()])
    Warehouse(settings.database, journal).publish()
    return settings


@pytest.fixture
def web(settings: Settings) -> Iterator[TestClient]:
    with TestClient(build_app(settings), base_url="http://127.0.0.1") as client:
        yield client


def scraped(web: TestClient) -> dict[str, float]:
    """Every number by its name and labels, as they are written; nothing but such lines is there."""
    reply = web.get("/metrics")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = [line for line in reply.text.splitlines() if not line.startswith("# ")]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found) and len({line.rpartition(" ")[0] for line in lines}) == len(lines)
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def named(name: str, **labels: str) -> str:
    """A metric with its labels as they are written."""
    written = ",".join(f'{one}="{text}"' for one, text in sorted(labels.items()))
    return f"{name}{{{written}}}"


def test_results_are_counted_by_model_and_outcome(web: TestClient) -> None:
    told = scraped(web)

    strong, weak = ({"model": name, "simulated": "true"} for name in ("demo/strong", "demo/weak"))
    assert told[named("evals_predictions", **strong, outcome="ok")] == 2
    assert told[named("evals_predictions", **strong, outcome="timeout")] == 1
    assert told[named("evals_predictions", **weak, outcome="ok")] == 1
    assert told['evals_judgements{judge="demo/judge",outcome="ok"}'] == 2
    assert told[named("evals_cost_usd", **strong, purpose="asking")] == 0.5
    assert told[named("evals_cost_usd", **weak, purpose="judging")] == 0.5
    assert told[named("evals_cost_unknown", **strong)] == 0
    assert told[named("evals_tokens", **strong, direction="input")] == 200
    assert told['evals_runs{complete="false",simulated="true"}'] == 2
    assert told["evals_runs_at_work"] == 0
    assert 0 <= told["evals_results_age_seconds"] < 3600 and told["evals_disk_free_bytes"] > 0


def test_runs_at_work_tell_how_far_they_are(settings: Settings, web: TestClient) -> None:
    with hold_run_lock(settings.journal, "run-1"):
        told = scraped(web)

    run = {"run_id": "run-1", "model": "demo/strong", "experiment": "default", "simulated": "true"}
    counts = {
        name: told[named(f"evals_run_{name}", **run)]
        for name in ("planned", "answered", "failed", "judged")
    }
    assert counts == {"planned": 4, "answered": 2, "failed": 1, "judged": 1}
    assert told["evals_runs_at_work"] == 1
    assert told['evals_queue{stage="predictions"}'] == 2
    assert told['evals_queue{stage="judged"}'] == 1


def test_dagsters_queue_is_counted_by_status(settings: Settings, web: TestClient) -> None:
    before = scraped(web)
    home = settings.data / "dagster"
    home.mkdir()
    with dg.DagsterInstance.from_config(str(home)) as instance:
        for status in ("QUEUED", "QUEUED", "STARTED", "SUCCESS"):
            instance.add_run(a_dagster_run(status))
    queue = DagsterQueue(settings, look_at_queue, timeout_s=60)
    told = exposed(queue.families())

    assert before["evals_dagster_up"] == 0
    assert "evals_dagster_up 1.0\n" in told
    statuses = re.findall(r'evals_dagster_runs\{status="(\w+)"\} (\d)\.0', told)
    assert dict(statuses) == {
        "queued": "2",
        "not_started": "0",
        "starting": "0",
        "started": "1",
        "canceling": "0",
    }
    assert 0 < float(told.rpartition(" ")[2]) < 3600
    # What was seen a moment ago is still known.
    assert next(queue.families()).samples[0].value == 1


def test_a_storage_of_dagsters_that_is_down_or_hangs_keeps_nothing_else_from_being_told(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    answered = Event()

    def hang(_: Settings) -> None:
        answered.wait(60)

    def fail(_: Settings) -> None:
        raise OSError("postgresql://evals:secret@nowhere")

    told = [
        exposed(DagsterQueue(settings, look, timeout_s=0.01).families()) for look in (hang, fail)
    ]
    told.append(exposed(DagsterQueue(settings, fail).families()))
    answered.set()

    assert ["evals_dagster_up 0.0" in one for one in told] == [True] * 3
    assert not any("evals_dagster_runs" in one for one in told)
    assert "OSError" in caplog.text and "secret" not in caplog.text


def test_requests_are_counted_by_route_and_not_by_what_anybody_invents(web: TestClient) -> None:
    for path in ("/models/demo=2Fstrong/", "/models/none/", "/made/up/", "/made/too/"):
        web.get(path)

    told = scraped(web)

    route = 'evals_http_requests_total{route="/models/{model}/",status='
    assert (told[f'{route}"200"}}'], told[f'{route}"404"}}']) == (1, 1)
    assert told['evals_http_requests_total{route="other",status="404"}'] == 2
    assert not any("made" in name or "none" in name for name in told)
    took = "evals_http_request_duration_seconds"
    bounds = ("0.005", "0.025", "0.1", "0.3", "1.0", "3.0", "10.0", "+Inf")
    counts = [told[named(f"{took}_bucket", route="/models/{model}/", le=le)] for le in bounds]
    assert counts == sorted(counts) and counts[-1] == 2
    assert told[f'{took}_count{{route="/models/{{model}}/"}}'] == 2
    assert told[f'{took}_sum{{route="/models/{{model}}/"}}'] > 0


def test_what_is_not_public_needs_a_token(settings: Settings) -> None:
    closed = settings.overridden({"web": {"public": False}})
    secret = Tokens(settings.tokens).create("scraper", [TokenScope.READ]).get_secret_value()
    with TestClient(build_app(closed), base_url="http://127.0.0.1") as web:
        refused = web.get("/metrics", follow_redirects=False)
        web.headers["Authorization"] = f"Bearer {secret}"
        told = scraped(web)

    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert told['evals_http_requests_total{route="other",status="401"}'] == 1


def test_models_beyond_the_most_are_counted_together(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval_pipeline.web.metrics.MOST_NAMES", 1)

    with Warehouse(settings.database, Journal(settings.journal)).reading() as db:
        text = exposed(of_results(db))

    assert 'model="demo/strong"' in text and 'model="other"' in text
    assert "demo/weak" not in text


def test_labels_end_neither_their_quotes_nor_their_line(tmp_path: Path) -> None:
    family = GaugeMetricFamily("evals_x", "One.", labels=["name"])
    family.add_metric(['a"b\\c\nd'], 1.5)

    assert exposed([family]) == (
        "# HELP evals_x One.\n# TYPE evals_x gauge\n" + r'evals_x{name="a\"b\\c\nd"} 1.5' + "\n"
    )


def labels_told() -> dict[str, set[str]]:
    """The labels of each metric, as docs/operations.md lists them."""
    found = {}
    for names, labels in re.findall(r"^\| (`evals_[^|]+) \|([^|]*)\|", OPERATIONS, re.M):
        first, *others = re.findall(r"`(\w+)`", names)
        plain = {one.strip() for one in re.sub(r"\([^)]*\)", "", labels).split(",")} - {""}
        beginning = first.rpartition("_")[0]
        for name in (first, *(f"{beginning}{other}" for other in others)):
            found[name] = plain
    return found


def test_alerts_join_only_what_has_the_same_labels() -> None:
    """To Prometheus two that differ in a label never meet, and the alert would never come."""
    known, alerts = labels_told(), re.findall(r"^ +expr: (.*)$", OPERATIONS, re.M)

    for alert in alerts:
        for left, how, right in re.findall(
            r"\b(evals_\w+)[^a-z]*? and (?:(ignoring \(\w+\)) )?(evals_\w+)", alert
        ):
            ignored = set(re.findall(r"\((\w+)\)", how))
            assert known[left] - ignored == known[right] - ignored, alert
    assert len(alerts) == 3
    assert {name for alert in alerts for name in re.findall(r"evals_\w+", alert)} <= {*known}
