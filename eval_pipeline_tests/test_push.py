"""`evals push`: a run arrives as it is, however often it is sent; production refuses the rest."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.automation import build_schedules
from eval_pipeline.defs.sensors import build_discovery
from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.gateways.limits import RetryPolicy
from eval_pipeline.interop.remote import messages, transfer
from eval_pipeline.interop.remote.messages import MOST_RECORDS, ClosedRun, Received
from eval_pipeline.interop.remote.transfer import (
    Pushed,
    PushError,
    Sent,
    Server,
    WrongAddressError,
    batches,
    checked_address,
    chosen_runs,
    push_run,
)
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, SIGHTINGS, Journal, ReadOnlyError
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.records.model import Sighting
from eval_pipeline.results.runs import FoundRun
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import TOKEN, Settings
from eval_pipeline.suites.benchmark import keep, mint
from eval_pipeline_tests.builders import (
    NOON,
    a_judgement,
    a_prediction,
    a_warehouse,
    settings_in,
)
from eval_pipeline_tests.elsewhere import Deployment, batch, of_run, served
from eval_pipeline_tests.elsewhere import Sent as SentRun
from eval_pipeline_tests.kept_files import files_in
from eval_pipeline_tests.project import call
from eval_pipeline_tests.stand import STRONG, WEAK, Stand

AT_ONCE = RetryPolicy(attempts=3, first_wait_s=0, longest_wait_s=0, total_s=60)
SHOWN = ("metrics", "leaderboard", "predictions", "judged", "benchmark_versions", "runs", "plans")


@pytest.fixture
def there(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path / "there")


@pytest.fixture
def source(tmp_path: Path) -> Journal:
    """A journal with one run of three replies."""
    sent = SentRun(tmp_path / "source")
    journal = Journal(tmp_path / "source" / "data" / "journal")
    keep(sent.benchmark, journal)
    where = ("demo/strong", "run-1")
    journal.write_whole(RUNS, *where, records=[sent.run])
    journal.write_whole(PREDICTIONS, *where, "one", records=sent.predictions)
    journal.write_whole(JUDGED, *where, "one", records=sent.judgements)
    return journal


@pytest.fixture
def server(there: Deployment) -> Iterator[Server]:
    with served(there.app) as address, server_at(address, there.secret) as server:
        yield server


def server_at(address: str, token: SecretStr) -> Server:
    return Server(address, token, redact=lambda text: text, retries=AT_ONCE)


def shown(warehouse: Warehouse) -> dict[str, list[tuple[Any, ...]]]:
    warehouse.publish()
    with warehouse.reading() as db:
        return {name: db.sql(f"from {name} order by all").fetchall() for name in SHOWN}


def test_a_run_that_was_pushed_shows_the_same_numbers_in_both_places(
    stand: Stand, there: Deployment
) -> None:
    for model in (STRONG, WEAK):
        seen = Sighting(model=model, selected=True, seen_at=NOON)
        stand.journal.write_whole(SIGHTINGS, model.id, records=[seen])
    stand.predict(STRONG, WEAK, launch=Launch("aaaa-1"))
    stand.judge("demo/strong", "demo/weak")
    mint(stand.journal, stand.settings, "v1")
    here = Warehouse(stand.settings.database, stand.journal)
    token = {TOKEN: there.secret.get_secret_value()}

    with served(there.app) as address:
        done = call(stand.settings.root, f"evals push aaaa --to {address}", token)
        again = call(stand.settings.root, f"evals push latest --to {address}/ --json", token)

    assert done.returncode == 0, done.stderr
    told = "(opened there): 3 answers to 3 planned, 3 of them new; 3 verdicts, 3 of them new."
    assert [line.partition("aaaa-1 ")[2] for line in done.stdout.splitlines()] == [told, told]
    assert [one["predictions"] for one in json.loads(again.stdout)] == [
        {"records": 3, "new": 0}
    ] * 2
    assert shown(there.warehouse) == shown(here)
    assert (
        there.rows("select name from leaderboard join benchmark_versions using (benchmark_version)")
        != []
    )


def test_what_was_interrupted_half_way_is_continued(
    source: Journal, there: Deployment, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MOST_RECORDS", 1)
    posts, post = [], Server.post

    def until_killed(self: Server, path: str, *rest: Any) -> Any:
        posts.append(path)
        if len([one for one in posts if one.endswith("predictions")]) == 3:
            raise KeyboardInterrupt
        return post(self, path, *rest)

    with pytest.MonkeyPatch.context() as killing, pytest.raises(KeyboardInterrupt):
        killing.setattr(Server, "post", until_killed)
        push_run(source, server, "demo/strong", "run-1")
    pushed = push_run(source, server, "demo/strong", "run-1")

    assert pushed == Pushed("run-1", "demo/strong", False, 3, Sent(3, 1), Sent(3, 3))
    assert there.rows("select sum(cost_usd) from predictions") == [(3.0,)]


def test_who_is_killed_while_sending_leaves_nothing_behind(
    source: Journal, there: Deployment
) -> None:
    there.begin(SentRun(there.settings.root / "sent"))
    replies = list(source.read(PREDICTIONS))
    body = batch("predictions", tuple(replies), {})
    head = (
        f"POST {of_run()}/predictions HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {there.secret.get_secret_value()}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )

    with served(there.app) as address:
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(head.encode() + body[: len(body) // 2])
    left = there.journal.files(PREDICTIONS)

    assert left == []
    assert there.predict(*replies).json()["new"] == 3


def test_verdicts_on_replies_that_a_killed_launch_did_not_carry_over_stay_behind(
    source: Journal, server: Server
) -> None:
    (verdict, *_) = source.read(JUDGED)
    orphan = verdict.model_copy(update={"prediction_id": "not carried over yet"})
    source.write_whole(JUDGED, "demo/strong", "run-1", "carried", records=[orphan])

    assert push_run(source, server, "demo/strong", "run-1").judgements == (3, 3)


def test_a_large_run_goes_in_batches() -> None:
    half = "x" * (transfer.BATCH_BYTES // 2 - 1000)

    many = list(batches([a_prediction()] * (2 * MOST_RECORDS + 1)))
    long = list(batches([a_prediction(answer=half)] * 5))

    assert [len(batch) for batch in many] == [MOST_RECORDS, MOST_RECORDS, 1]
    assert [len(batch) for batch in long] == [2, 2, 1]
    assert list(batches([])) == []


@pytest.mark.parametrize(
    ("answers", "posts", "words"),
    [
        ([503, 429, 200], 3, ""),
        ([500] * 3, 3, "The server says (500): no"),
        ([401, 200], 1, "The server says (401): no"),
        ([302, 200], 1, "status 302: is that its address"),
        ([409, 200], 1, "The server says (409): no"),
        ([-409, 200], 2, ""),
    ],
)
def test_what_may_help_is_tried_again(answers: list[int], posts: int, words: str) -> None:
    """A negative status is one that says when to come back."""
    heard: list[str] = []

    async def answer(request: Request) -> Response:
        heard.append(request.headers["authorization"])
        status = answers[len(heard) - 1]
        if status == 200:
            return JSONResponse({"received": 1, "new": 1, "known": 0})
        headers = {"Retry-After": "0"} if status < 0 else {}
        if status == 302:
            return Response(status_code=302, headers={"Location": "/elsewhere"})
        return JSONResponse({"error": "no"}, abs(status), headers)

    app = Starlette(routes=[Route("/x", answer, methods=["POST"])])
    with served(app) as address, server_at(address, SecretStr("evals_x")) as server:
        try:
            said = str(server.post("/x", Received, [b"{}"], "application/json").new)
        except PushError as error:
            said = str(error)

    assert len(heard) == posts
    assert words in said if words else said == "1"


def test_a_server_that_is_none_of_ours_is_not_believed() -> None:
    app = Starlette(routes=[Route("/x", lambda _: Response("<html>"), methods=["POST"])])
    with (
        served(app) as address,
        server_at(address, SecretStr("evals_x")) as server,
        pytest.raises(PushError, match="is that its address"),
    ):
        server.post("/x", ClosedRun)


def test_a_server_that_is_not_there_is_said_to_be_so() -> None:
    with served(Starlette()) as address:
        pass
    with (
        server_at(address, SecretStr("evals_x")) as server,
        pytest.raises(PushError, match="cannot be reached"),
    ):
        server.post("/x", ClosedRun)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://example.com", "unencrypted"),
        ("http://127.0.0.1.example.com", "unencrypted"),
        ("http://localhost.example.com", "unencrypted"),
        ("http://user:secret@127.0.0.1", "without user"),
        ("https://example.com?x=1", "without user, query"),
        ("ftp://example.com", "https://"),
        ("example.com", "https://"),
        ("https://", "https://"),
        ("http://a:b", "no address"),
    ],
)
def test_a_token_is_not_sent_to_such_an_address(address: str, words: str) -> None:
    with pytest.raises(WrongAddressError, match=words):
        checked_address(address)


@pytest.mark.parametrize(
    ("address", "insecure"),
    [
        ("https://example.com/evals", False),
        ("http://127.0.0.1:8000", False),
        ("http://[::1]:8000", False),
        ("http://localhost:8000", False),
        ("http://example.com", True),
    ],
)
def test_a_token_may_be_sent_there(address: str, *, insecure: bool) -> None:
    assert checked_address(f"{address}/", insecure_http=insecure) == address


def test_nothing_is_sent_without_a_token_or_for_a_model_that_the_run_has_not(
    tmp_path: Path,
) -> None:
    settings_in(tmp_path)
    a_warehouse(tmp_path / "data")
    to = "--to http://127.0.0.1:9"

    tokenless = call(tmp_path, f"evals push run-1 {to}")
    modelless = call(tmp_path, f"evals push run-1 -m demo/none {to}", {TOKEN: "evals_secret"})

    assert (tokenless.returncode, modelless.returncode) == (2, 2)
    assert TOKEN in tokenless.stderr
    assert "has no model demo/none" in modelless.stderr


def test_of_a_run_of_several_models_some_may_be_chosen() -> None:
    found = [FoundRun("run-1", model, "default", NOON) for model in ("a/x", "a/y")]

    assert chosen_runs(found, ["a/y"]) == found[1:]
    assert chosen_runs(found, []) == found
    with pytest.raises(RunError, match="no model a/z"):
        chosen_runs(found, ["a/z"])


def test_the_token_is_a_key_like_others(tmp_path: Path) -> None:
    settings_in(tmp_path)
    path = str(tmp_path / "eval_pipeline.toml")

    settings = Settings.from_env({"EVALS_SETTINGS": path, TOKEN: "evals_secret"})

    assert "evals_secret" not in repr(settings)
    assert settings.redact("it is evals_secret") == f"it is [{TOKEN}]"


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A production deployment with one run in it, to which nothing is ever done."""
    folder = tmp_path_factory.mktemp("production")
    settings = settings_in(folder, deployments={"dev": {"production": True}})
    a_warehouse(folder / "data")
    return settings


@pytest.mark.parametrize(
    "command",
    [
        "run",
        "run --resume run-1",
        "fix",
        "analyze",
        "job evaluate_all",
        "job refresh_catalog",
        "delete run-1 --yes",
        "delete nothing",
        "classify run-1 q1 MODEL_FAULT --note why",
        "benchmark mint",
    ],
)
def test_commands_that_write_refuse_production_before_they_do_anything(
    production: Settings, command: str
) -> None:
    before = files_in(production.root)

    done = call(production.root, f"evals {command}")

    assert done.returncode == 2
    assert "marked as production" in done.stderr
    assert files_in(production.root) == before


@pytest.mark.parametrize("command", ["runs", "status", "leaderboard", "list", "show run-1 q1"])
def test_commands_that_read_work_in_production(production: Settings, command: str) -> None:
    before = files_in(production.journal)

    done = call(production.root, f"evals {command}")

    assert done.returncode == 0, done.stderr
    assert files_in(production.journal) == before


def test_what_dagster_materializes_in_production_fails_before_it_writes(
    production: Settings,
) -> None:
    before = files_in(production.data)
    job = build_graph(production).resolve_implicit_global_asset_job_def()

    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey("dataset")], raise_on_error=False
        )

    assert not done.success
    assert files_in(production.data) == before


def test_in_production_dagster_starts_nothing_by_itself(production: Settings) -> None:
    (schedule,) = build_schedules(production).schedules or ()
    (sensor,) = build_discovery(production).sensors or ()
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert isinstance(sensor, dg.SensorDefinition)

    with dg.DagsterInstance.ephemeral() as instance:
        ticked = schedule(dg.build_schedule_context(instance, scheduled_execution_time=NOON))
        sensed = sensor(dg.build_sensor_context(instance))

    for skipped in (ticked, sensed):
        assert isinstance(skipped, dg.SkipReason)
        assert "marked as production" in str(skipped.skip_message)


def test_the_journal_of_production_can_only_be_read(production: Settings) -> None:
    journal = open_journal(production)
    verdict = a_judgement(next(journal.read(PREDICTIONS)))
    writing: list[Callable[[], Any]] = [
        lambda: journal.write_whole(JUDGED, "a", "b", "c", records=[verdict]),
        lambda: journal.writer(JUDGED, "a", "b"),
        lambda: journal.compact(PREDICTIONS, "demo/strong", "run-1"),
        lambda: journal.trash_run("demo/strong", "run-1"),
        journal.empty_trash,
        journal.claim_soon(RUNS, "demo/strong").__enter__,
    ]
    before = files_in(production.journal)

    for write in writing:
        with pytest.raises(ReadOnlyError):
            write()

    assert files_in(production.journal) == before
