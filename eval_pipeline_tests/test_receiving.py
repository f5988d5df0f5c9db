"""Runs from elsewhere: each record is kept once, by token only, and nothing that could do harm."""

import gzip
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from eval_pipeline.hashing import fingerprint
from eval_pipeline.interop.remote import receive
from eval_pipeline.interop.remote.messages import (
    LINES,
    MOST_BYTES,
    MOST_RECORDS,
    RUNS_PATH,
    VERSIONS_PATH,
    Received,
)
from eval_pipeline.interop.remote.receive import ELSEWHERE, Receiver
from eval_pipeline.journal import ATTEMPTS, JUDGED, PREDICTIONS, RUNS, SIGHTINGS, Journal
from eval_pipeline.journal.files import as_line
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.journal.tokens import TokenScope
from eval_pipeline.records.base import now
from eval_pipeline.records.item import SuiteVersion
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.run import Attempt
from eval_pipeline.suites.benchmark import version_hash
from eval_pipeline.suites.kinds import decisive
from eval_pipeline.web.openapi import describe_writes
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_judgement,
    a_model,
    a_prediction,
    a_task,
)
from eval_pipeline_tests.elsewhere import Deployment, Sent, of_run
from eval_pipeline_tests.kept_files import files_in


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    return Sent(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture
def here(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path / "here")


@pytest.fixture
def begun(here: Deployment, sent: Sent) -> Deployment:
    here.begin(sent)
    return here


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory, sent: Sent) -> Deployment:
    """One for all tests in which nothing is kept: replies are there, verdicts are not."""
    deployment = Deployment(tmp_path_factory.mktemp("here"))
    deployment.begin(sent)
    deployment.predict(sent.predictions[0], sent.predictions[2])
    return deployment


def test_a_run_comes_in_and_is_shown_when_it_is_closed(begun: Deployment, sent: Sent) -> None:
    answers = [begun.predict(*sent.predictions), begun.judge(*sent.judgements)]
    closed = begun.post(f"{of_run()}/close")

    assert [one.json() for one in answers] == [{"received": 3, "new": 3, "known": 0}] * 2
    assert closed.json() == {"planned": 3, "predictions": 3, "judgements": 3}
    with begun.warehouse.reading() as db:
        found = db.sql(
            "select run_id, accuracy, judged from metrics where slice = 'all'"
        ).fetchall()
    assert found == [("run-1", 1.0, 3)]


def test_what_is_posted_again_changes_nothing_and_costs_nothing(
    begun: Deployment, sent: Sent
) -> None:
    one, *rest = sent.predictions
    begun.predict(one)
    begun.judge(sent.judgements[0])

    again = [
        begun.keep(sent.lines()),
        begun.open(sent.run),
        begun.predict(one, one, *rest),
        begun.judge(*sent.judgements, sent.judgements[0]),
        begun.predict(*sent.predictions),
    ]

    assert [answer.status_code for answer in again] == [200] * 5
    assert [answer.json() for answer in again] == [
        {"state": "known", "missing": []},
        {"state": "known"},
        {"received": 4, "new": 2, "known": 2},
        {"received": 4, "new": 2, "known": 2},
        {"received": 3, "new": 0, "known": 3},
    ]
    assert begun.rows("select sum(cost_usd), count(*) from predictions") == [(3.0, 3)]
    assert begun.rows("select sum(cost_usd), count(*) from judged") == [(3.0, 3)]


def test_what_is_posted_again_after_the_run_was_closed_is_still_known(
    begun: Deployment, sent: Sent
) -> None:
    for one in sent.predictions:
        begun.predict(one)
    begun.post(f"{of_run()}/close")

    assert begun.predict(*sent.predictions).json()["known"] == 3
    assert len(begun.journal.files(PREDICTIONS)) == 1


def test_a_reply_that_was_tried_again_is_another_one_and_so_is_a_second_verdict(
    begun: Deployment, sent: Sent
) -> None:
    later: dict[str, Any] = {"finished_at": NOON + timedelta(hours=1)}
    begun.predict(*sent.predictions)
    begun.judge(*sent.judgements)

    tried = a_prediction("q1", prediction_id="again", usage=sent.predictions[0].usage, **later)
    told = a_judgement(sent.predictions[1], **later)

    assert begun.predict(tried).json()["new"] == 1
    assert begun.judge(told, a_judgement(tried)).json()["new"] == 2
    assert begun.rows("select sum(cost_usd), count(*) from predictions") == [(4.0, 3)]


def test_another_run_under_the_same_id_is_a_conflict(begun: Deployment, sent: Sent) -> None:
    before = files_in(begun.settings.journal)

    answer = begun.open(sent.a_run(experiment="web_search"))

    assert answer.status_code == 409
    assert "same id" in answer.json()["error"]
    assert files_in(begun.settings.journal) == before


def test_many_who_post_the_same_at_once_write_it_once(begun: Deployment, sent: Sent) -> None:
    # Each with a memory of its own, as processes have.
    receivers = [Receiver(begun.warehouse) for _ in range(8)]

    def post(receiver: Receiver) -> Received:
        receiver.take_predictions("run-1", "demo/strong", sent.predictions)
        return receiver.take_judgements("run-1", "demo/strong", sent.judgements)

    with ThreadPoolExecutor(8) as threads:
        received = list(threads.map(post, receivers))

    assert sum(one.new for one in received) == 3
    assert len(list(begun.journal.read(PREDICTIONS))) == 3
    assert len(list(begun.journal.read(JUDGED))) == 3


PATHS = [
    *(VERSIONS_PATH, RUNS_PATH),
    *(f"{of_run()}/{end}" for end in ("predictions", "judgements", "close")),
]


@pytest.mark.parametrize("said", ["", "Bearer", "Bearer evals_wrong", "Basic evals_wrong"])
def test_nobody_comes_in_without_a_token(here: Deployment, said: str) -> None:
    for path in PATHS:
        answer = here.post(path, b"{", Authorization=said)

        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert not here.settings.journal.exists()


def test_a_token_that_was_revoked_is_none(here: Deployment, sent: Sent) -> None:
    here.tokens.revoke("tests")

    assert here.keep(sent.lines()).status_code == 401


@pytest.mark.parametrize(
    ("scope", "production", "status"),
    [
        ("read", False, 403),
        ("write", False, 201),
        ("production", False, 403),
        ("read", True, 403),
        ("write", True, 403),
        ("production", True, 201),
    ],
)
def test_writing_needs_the_scope_of_the_deployment(
    tmp_path: Path, sent: Sent, scope: str, *, production: bool, status: int
) -> None:
    marked = {"deployments": {"dev": {"production": production}}}
    deployment = Deployment(tmp_path / "here", scope=TokenScope(scope), **marked)

    answer = deployment.keep(sent.lines())

    assert answer.status_code == status
    assert deployment.settings.journal.exists() is (status == 201)


HOSTILE = ["../../x", "a/b", "..", "", "nul\x00", "x" * 5_000, "line\nbreak", "\u202e\u2028"]


@pytest.mark.parametrize("run_id", HOSTILE)
def test_a_run_with_a_hostile_id_is_refused(here: Deployment, sent: Sent, run_id: str) -> None:
    here.keep(sent.lines())
    before = files_in(here.settings.root)

    answer = here.open(sent.a_run(run_id=run_id))

    assert answer.status_code == 422
    assert answer.json()["error"] == "run.run_id: no run_id is written like this."
    assert files_in(here.settings.root) == before


@pytest.mark.parametrize("part", ["..=2F..", "=00", "%2e%2e", "x" * 5_000, "=FF", "=-" + "0" * 32])
def test_a_hostile_path_leads_nowhere(untouched: Deployment, part: str) -> None:
    good = of_run().removeprefix(f"{RUNS_PATH}/").split("/")
    for run_id, model in ((part, good[1]), (good[0], part)):
        answer = untouched.post(f"{RUNS_PATH}/{run_id}/{model}/close")

        assert answer.status_code == 404


def test_a_model_whose_name_is_too_long_for_a_path_is_found_by_its_hash(
    here: Deployment, sent: Sent
) -> None:
    model = "demo/" + "a+" * 55
    here.keep(sent.lines())
    here.open(sent.a_run(model=model))
    path = of_run(model=model)

    assert "=-" in path
    assert here.post(f"{path}/close").json()["planned"] == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"benchmark_version": "0" * 16}, "send the version first"),
        ({"scope": "text"}, "run.scope: by its plan it is full"),
        ({"plan": (("sample", "q1"),)}, "run.scope: by its plan it is filtered"),
        ({"plan": (("sample", "q1"), ("sample", "q9"))}, "run.plan[1]: the benchmark version"),
        ({"plan": (("sample", "q1"),) * 2}, "run.plan[0]: an item is planned once"),
        ({"plan": ()}, "run.plan: it has to be of 1"),
        ({"samples": 10**9}, "run.plan: it has to be of 1"),
        ({"samples": 10**18}, "run.samples: must be a number"),
        ({"opened_at": NOON.replace(year=1970)}, "run.opened_at: must be between"),
        ({"opened_at": now() + timedelta(days=1)}, "run.opened_at: must be between"),
        ({"parameters": {"deep": json.loads("[" * 40 + "]" * 40)}}, "nested too deeply"),
        ({"carry_from": ("../x",)}, "run.carry_from[0]: no carry_from"),
    ],
)
def test_a_run_that_does_not_fit_is_refused(
    here: Deployment, sent: Sent, changes: dict[str, object], words: str
) -> None:
    here.keep(sent.lines())

    answer = here.open(sent.a_run(**changes))

    assert answer.status_code == 422
    assert words in answer.json()["error"]
    assert not here.journal.files(RUNS)


PREDICTION_FAULTS: list[tuple[dict[str, object], str]] = [
    ({"run_id": "run-2"}, "names another run"),
    ({"model": "demo/weak"}, "names another run or another model"),
    ({"item_id": "q9"}, "no such item or sample"),
    ({"suite": "other"}, "no such item or sample"),
    ({"sample": 1}, "no such item or sample"),
    ({"sample": -1}, "sample: must be a number from 0"),
    ({"sample": 10**30}, ""),
    ({"prediction_id": "run-1 demo/strong sample q1"}, "is that of another reply"),
    ({"prediction_id": "a\x00"}, "no prediction_id is written like this"),
    ({"prediction_id": "p" * 201}, "no prediction_id is written like this"),
    ({"usage": {"cost_usd": -1}}, "usage.cost_usd: must be a number from 0"),
    ({"usage": {"input_tokens": 2**62}}, "usage.input_tokens: must be a number from 0"),
    ({"latency_s": float("nan")}, "no JSON"),
    ({"latency_s": float("inf")}, "no JSON"),
    ({"answer": "\ud800"}, "no JSON"),
    ({"outcome": "splendid"}, "outcome: Input should be"),
    ({"finished_at": "9999-12-31T00:00:00Z"}, "finished_at: must be between"),
    ({"finished_at": "2025-01-01T00:00:00+05:30"}, "finished_at: must be in UTC"),
    ({"finished_at": "2025-01-01T00:00:00"}, "finished_at: Input should have timezone info"),
    ({"surprise": 1}, "surprise: Extra inputs are not permitted"),
    ({"x\x1b[31m" + "y" * 999: 1}, "Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("changes", "words"), PREDICTION_FAULTS)
def test_one_bad_prediction_refuses_its_batch_and_nothing_is_written(
    untouched: Deployment, sent: Sent, changes: dict[str, object], words: str
) -> None:
    before = files_in(untouched.settings.journal)

    answer = untouched.predict(*sent.predictions, **changes)

    said = answer.json()["error"]
    assert answer.status_code == 422
    assert words in said
    assert "no JSON" in said or said.startswith("predictions[2]")
    assert len(said) < 500
    assert said.isprintable()
    assert files_in(untouched.settings.journal) == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run_id": "run-2"}, "names another run"),
        ({"item_id": "q9"}, "no such item"),
        ({"item_id": "q1"}, "no such prediction of this reply"),
        ({"prediction_id": "unheard of"}, "no such prediction of this reply"),
        ({"score": 1.5}, "score: Input should be less than or equal to 1"),
        ({"repeat": 1}, "Extra inputs are not permitted"),
        ({"judge": ""}, "no judge is written like this"),
        ({"usage": {"cost_usd": -1}}, "must be a number from 0"),
    ],
)
def test_one_bad_judgement_refuses_its_batch_and_nothing_is_written(
    untouched: Deployment, sent: Sent, changes: dict[str, object], words: str
) -> None:
    answer = untouched.judge(sent.judgements[0], sent.judgements[2], **changes)

    assert answer.status_code == 422
    assert answer.json()["error"].startswith("judgements[1]")
    assert words in answer.json()["error"]
    assert not untouched.journal.files(JUDGED)


def changed_line(lines: bytes, number: int, **changes: object) -> bytes:
    """The version's lines, one of them changed."""
    values = [json.loads(line) for line in lines.splitlines()]
    values[number].update(changes)
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@pytest.mark.parametrize(
    ("number", "changes", "words"),
    [
        (0, {"protocol": 7}, "benchmark_version is not the hash"),
        (0, {"benchmark_version": "0" * 16}, "benchmark_version is not the hash"),
        (0, {"benchmark_version": "../../x"}, "no benchmark_version is written like this"),
        (0, {"suites": []}, "a version has suites"),
        (1, {"answer": "43"}, "do not make up its suite_version"),
        (1, {"id": "q2"}, "line 3: there is an item of this id"),
        (1, {"suite": "other"}, "line 2: the version has no such suite"),
        (1, {"suite": "../x"}, "line 2.suite: no suite is written like this"),
        (1, {"surprise": 1}, "Extra inputs are not permitted"),
        (1, {"kind": "k" * 9_999}, "line 2: Input tag"),
    ],
)
def test_a_benchmark_version_that_is_not_what_it_claims_is_refused(
    here: Deployment, sent: Sent, number: int, changes: dict[str, object], words: str
) -> None:
    answer = here.keep(changed_line(sent.lines(), number, **changes))

    assert answer.status_code == 422
    assert words in answer.json()["error"]
    assert not here.settings.journal.exists()


def test_a_task_whose_files_would_lead_elsewhere_is_refused(here: Deployment) -> None:
    for files in ({"../x": ""}, {"/etc/x": ""}, {"a\x00": ""}):
        for changes in ({"answer": files}, {"grader": files}, {"wrong": {"one": files}}):
            task = a_task(**changes)
            suite = SuiteVersion(
                suite="coding", suite_version=fingerprint(decisive(task)), items=1, kind="coding"
            )
            version = a_benchmark().version.model_copy(update={"suites": (suite,)})
            version = version.model_copy(update={"benchmark_version": version_hash(version)})

            answer = here.keep(as_line(version) + as_line(task))

            assert answer.status_code == 422
            assert answer.json()["error"].startswith("line 2: The path")


def test_a_version_needs_its_items_unless_they_are_here(here: Deployment, sent: Sent) -> None:
    version = sent.benchmark.version
    later = version.model_copy(update={"loaded_at": NOON + timedelta(hours=1), "minted_as": "v1"})

    alone = here.keep(as_line(version))
    some = here.keep(b"".join(sent.lines().splitlines(keepends=True)[:-1]))
    here.keep(sent.lines())
    published = here.keep(as_line(later))

    assert alone.json() == {"state": "incomplete", "missing": ["sample"]}
    assert some.status_code == 422
    assert published.json() == {"state": "new", "missing": []}
    assert here.rows("select name, is_published from benchmark_versions") == [("v1", True)]


def bomb(size: int) -> bytes:
    return gzip.compress(b" " * size)


def test_more_than_is_taken_at_once_is_refused_before_it_is_read(untouched: Deployment) -> None:
    path = f"{of_run()}/predictions"
    parts = iter([b" " * 1024 * 1024] * 17)
    headers = {"Authorization": f"Bearer {untouched.secret.get_secret_value()}"}
    headers["Content-Type"] = "application/json"

    announced = untouched.post(path, b"{}", content_length=str(MOST_BYTES + 1))
    streamed = untouched.client.post(path, content=parts, headers=headers)
    packed = untouched.post(path, bomb(MOST_BYTES + 1), content_encoding="gzip")

    assert [one.status_code for one in (announced, streamed, packed)] == [413] * 3
    assert "16777216 bytes" in packed.json()["error"]


def test_a_line_of_a_version_is_no_longer_than_a_request(here: Deployment, sent: Sent) -> None:
    content = gzip.compress(sent.lines() + b" " * (MOST_BYTES + 1))

    answer = here.post(VERSIONS_PATH, content, LINES, content_encoding="gzip")

    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (gzip.compress(b"{}", mtime=0)[:-9], {"content_encoding": "gzip"}, 422),
        (gzip.compress(b"{}", mtime=0) + b"more", {"content_encoding": "gzip"}, 422),
        (b"no gzip", {"content_encoding": "gzip"}, 422),
        (b"{}", {"content_encoding": "br"}, 415),
        (b"{}", {"media_type": "text/plain"}, 415),
        (b"", {}, 422),
        (b"\xff", {}, 422),
        (b"[" * 100_000, {}, 422),
        (b'{"predictions": []}', {}, 422),
        (b'{"predictions": [' + b",".join([b"1"] * (MOST_RECORDS + 1)) + b"]}", {}, 422),
    ],
)
def test_a_body_that_can_not_be_read_is_refused(
    untouched: Deployment, content: bytes, headers: dict[str, Any], status: int
) -> None:
    answer = untouched.post(f"{of_run()}/predictions", content, **headers)

    assert answer.status_code == status
    assert answer.json()["error"]


def test_what_is_packed_is_unpacked(begun: Deployment, sent: Sent) -> None:
    content = b'{"predictions": [%s]}' % b",".join(map(as_line, sent.predictions))

    answer = begun.post(f"{of_run()}/predictions", gzip.compress(content), content_encoding="gzip")

    assert answer.json()["new"] == 3


@pytest.mark.parametrize("launch", ["run-1", "a-launch-that-asks-it"])
def test_what_a_launch_here_is_at_work_on_is_left_to_it(
    begun: Deployment, sent: Sent, launch: str
) -> None:
    attempt = Attempt(
        run_id=launch,
        model="demo/strong",
        experiment="default",
        filtered=False,
        repair=False,
        began_at=NOON,
    )
    begun.journal.write_whole(ATTEMPTS, "demo/strong", launch, records=[attempt])
    with hold_run_lock(begun.journal.root, launch):
        answers = [
            begun.open(sent.run),
            begun.predict(*sent.predictions),
            begun.judge(*sent.judgements),
            begun.post(f"{of_run()}/close"),
        ]

    assert [one.status_code for one in answers] == [409] * 4
    assert {one.headers["Retry-After"] for one in answers} == {"5"}
    assert begun.predict(*sent.predictions).status_code == 200


def test_a_model_that_somebody_judges_here_takes_no_verdicts_meanwhile(
    begun: Deployment, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "PATIENCE_S", 0.05)
    begun.predict(*sent.predictions)

    with begun.journal.claim_soon(JUDGED, "demo/strong"):
        answer = begun.judge(*sent.judgements)

    assert answer.status_code == 409
    assert "process" not in answer.json()["error"]


def sightings(journal: Journal) -> list[tuple[str, str, str | None]]:
    found = sorted(journal.read(SIGHTINGS), key=lambda one: one.seen_at)
    return [(one.model.id, one.model.request_name, one.kept_out) for one in found]


def test_what_gateways_here_say_of_a_model_is_not_for_others_to_change(
    here: Deployment, sent: Sent
) -> None:
    seen = Sighting(model=a_model(), selected=True, seen_at=NOON)
    here.journal.write_whole(SIGHTINGS, "here", records=[seen])
    here.keep(sent.lines())
    forged = a_model(request_name="dear/model")
    new = a_model("demo/new")
    later = {"selected": True, "seen_at": NOON + timedelta(days=1)}

    here.open(sent.run, sighting=Sighting(model=forged, **later))
    here.open(sent.a_run(model="demo/new"), sighting=Sighting(model=new, **later))

    assert sightings(here.journal) == [
        ("demo/new", "demo/new", ELSEWHERE),
        ("demo/strong", "demo/strong", None),
    ]
    listed = "select model, selected, listed from model_catalog order by all"
    assert here.rows(listed) == [("demo/new", False, False), ("demo/strong", True, True)]


def test_a_sighting_of_another_model_is_refused(here: Deployment, sent: Sent) -> None:
    here.keep(sent.lines())
    other = Sighting(model=a_model("demo/weak"), selected=True, seen_at=NOON)

    assert here.open(sent.run, sighting=other).status_code == 422
    assert not here.journal.files(SIGHTINGS)


@pytest.fixture
def quiet() -> Iterator[None]:
    """The log is told of what goes wrong; nobody has to read it here."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("quiet")
def test_trouble_on_the_server_is_told_without_files_and_secrets(
    begun: Deployment, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(f"{begun.settings.data} {begun.secret.get_secret_value()}")

    secret, root = begun.secret.get_secret_value(), str(begun.settings.root)
    (begun.settings.journal / "format").write_text("99")
    spoilt = begun.predict(*sent.predictions)
    monkeypatch.setattr(receive.Receiver, "open_run", fail)
    unforeseen = begun.open(sent.run)
    begun.settings.tokens.write_text("{")
    damaged = begun.open(sent.run)

    answers = [spoilt, unforeseen, damaged]
    assert [one.status_code for one in answers] == [503, 500, 503]
    for one in answers:
        assert root not in one.text
        assert secret not in one.text


def test_the_api_is_described_as_openapi_demands() -> None:
    about = {"openapi": "3.1.0", "info": {"title": "evals", "version": "1"}}

    validate({**about, **describe_writes()})

    assert len(describe_writes()["paths"]) == 5
    assert {"Prediction", "Judgement", "Run", "Refusal"} <= describe_writes()["components"][
        "schemas"
    ].keys()


def test_other_methods_are_not_taken(untouched: Deployment) -> None:
    assert untouched.client.get(RUNS_PATH).status_code == 405
