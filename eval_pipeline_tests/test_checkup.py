"""What a checkup finds: each thing that may be wrong is told, with what to do about it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import duckdb
import pytest
from packaging.requirements import Requirement

from eval_pipeline.defs import instance as of_dagster
from eval_pipeline.defs.instance import HistoryError, dagster_instance
from eval_pipeline.errors import MendableError
from eval_pipeline.evaluation.doctor import checkup, gateways, storage
from eval_pipeline.evaluation.doctor import report as installation
from eval_pipeline.evaluation.doctor import storage as locks
from eval_pipeline.evaluation.doctor.gateways import Offers
from eval_pipeline.evaluation.doctor.report import AGAIN, Check, Finding, State, look_at, ok
from eval_pipeline.journal import PREDICTIONS, Journal
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.results.schema import VERSION
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import (
    a_journal,
    a_judgement,
    a_prediction,
    a_run,
    a_warehouse,
    settings_in,
    write_task,
)
from eval_pipeline_tests.project import ROOT

OK, WARNING, WRONG = State.OK, State.WARNING, State.WRONG
KEY = "sk-planted-0123456789"
REAL = {"prices": {"prompt": 1e-6, "completion": 2e-6}}
ALL: dict[str, object] = {"exclude_models": ()}
CLAIMING = """
import asyncio, sys
from pathlib import Path
from eval_pipeline.journal import PREDICTIONS, Journal
async def hold():
    async with Journal(Path(sys.argv[1])).claim(PREDICTIONS, "demo/strong"):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
asyncio.run(hold())
"""
WRITING = """
import sys, duckdb
with duckdb.connect(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


def states(findings: Iterable[Finding]) -> list[State]:
    return [finding.state for finding in findings]


def found_about(topic: str, settings: Settings, *, offline: bool = True) -> Sequence[Finding]:
    return look_at(topic, checkup.checks_of(settings, offline=offline)[topic]).findings


def listings(asked: Offers) -> list[Check]:
    """The checks of the lists of these gateways alone."""
    named = asked.settings.gateways
    return [Check(one.name, partial(gateways.answer, one, asked)) for one in named]


def described(*models: str, **more: object) -> dict[str, object]:
    """A gateway whose models are in the settings, and where nobody answers."""
    listed = [{"id": model, **REAL} for model in models]
    address = "http://127.0.0.1:9/v1"
    return {"name": "local", "kind": "openai", "base_url": address, "models": listed, **more}


def offers(folder: Path, *models: str, **changes: Any) -> Offers:
    given: dict[str, Any] = {
        "gateways": [described(*models)],
        "judge": {"model": models[0]},
        "budget": {"usd_per_run": 1.0},
        "selection": ALL,
        **changes,
    }
    return Offers(settings_in(folder, **given))


@pytest.fixture
def held() -> Iterator[Callable[[str, Path], int]]:
    """Starts a process that holds something until the test has ended."""
    started: list[subprocess.Popen[str]] = []

    def hold(code: str, path: Path) -> int:
        command = [sys.executable, "-c", code, str(path)]
        process = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process.pid

    yield hold
    for process in started:
        process.communicate("\n", timeout=30)


def test_a_check_that_breaks_is_told_and_the_others_go_on() -> None:
    def breaks() -> Iterator[Finding]:
        yield ok("first", "It is there.")
        raise ZeroDivisionError(f"with {KEY} in it")

    def refuses() -> Iterator[Finding]:
        raise MendableError("Put it right.")

    checks = [Check("broken", breaks), Check("refused", refuses), Check("last", lambda: [])]
    topic = look_at("all", checks, lambda text: text.replace(KEY, "[KEY]"))

    told = [(one.name, one.state, one.found) for one in topic.findings]
    assert told == [
        ("first", OK, "It is there."),
        ("broken", WRONG, "ZeroDivisionError: with [KEY] in it"),
        ("refused", WRONG, "Put it right."),
    ]
    assert all(one.advice for one in topic.findings if one.state is not OK)


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        ("packaging", []),
        ("duckdb>=1", []),
        ("duckdb>=99", ["but >=99 is needed. DuckDB 2 silently loses committed rows"]),
        ("pydantic<1", ["but <1 is needed."]),
        ("there-is-no-such-package", ["It is not installed."]),
    ],
)
def test_a_package_is_told_only_if_it_does_not_fit(requirement: str, words: list[str]) -> None:
    found = list(installation.misfit(Requirement(requirement)))

    assert len(found) == len(words)
    for finding, part in zip(found, words, strict=True):
        assert finding.state is WRONG
        assert part in finding.found
        assert finding.advice == "make setup"


def test_what_is_installed_here_fits() -> None:
    assert states(look_at("installation", installation.installation_checks()).findings) == [OK, OK]


class Listing:
    """A gateway that lists a model if as many are asked at once as there are to be."""

    def __init__(self, together: Barrier, status: int = 200) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                try:
                    together.wait(timeout=20)
                    self.send_response(status)
                except BrokenBarrierError:
                    self.send_response(503)
                self.end_headers()
                self.wfile.write(b'{"data": [{"id": "x/a"}]}')

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_gateways_are_asked_all_at_once(tmp_path: Path) -> None:
    together = Barrier(2)
    servers = [Listing(together), Listing(together)]
    named = [
        {"name": f"g{n}", "kind": "openai", "base_url": one.url} for n, one in enumerate(servers)
    ]

    looked = look_at("gateways", listings(Offers(settings_in(tmp_path, gateways=named))))

    for server in servers:
        server.close()
    assert [one.found for one in looked.findings] == ["It lists 1 model."] * 2


def test_a_gateway_that_does_not_answer_in_time_keeps_nobody_waiting(tmp_path: Path) -> None:
    never = Barrier(2)
    server = Listing(never)
    named = [{"name": "slow", "kind": "openai", "base_url": server.url}, described("x/b")]

    asked = Offers(settings_in(tmp_path, gateways=named), longest_s=2)
    looked = look_at("gateways", listings(asked))

    never.abort()
    server.close()
    slow, local = looked.findings
    assert (slow.state, local.state) == (WRONG, WRONG)
    assert "Nobody answers (" in local.found
    assert "did not list its models within 2 s" in slow.found
    assert "its address is base_url under [[gateways]]" in slow.advice


@pytest.mark.parametrize(
    ("status", "more", "state", "words"),
    [
        (200, {}, OK, "It answers; 1 model in the settings."),
        (404, {}, OK, "It answers; 1 model in the settings."),
        (502, {}, WARNING, "Somebody answers, but with status 502."),
        (401, {}, WRONG, "It wants a key (status 401)."),
        (
            403,
            {"api_key_variable": "SHOP_KEY"},
            WRONG,
            "It answers that the key is wrong or missing (status 403).",
        ),
    ],
)
def test_a_gateway_whose_models_stand_in_the_settings_is_knocked_at(
    tmp_path: Path, status: int, more: dict[str, object], state: State, words: str
) -> None:
    server = Listing(Barrier(1), status)
    named = [described("x/a", base_url=server.url, **more)]

    looked = look_at("gateways", listings(Offers(settings_in(tmp_path, gateways=named))))

    server.close()
    assert [(one.state, one.found) for one in looked.findings] == [(state, words)]


@pytest.mark.parametrize(
    ("key", "state", "advice"),
    [(KEY, OK, ""), (None, WRONG, "Put SHOP_KEY=… into .env or into the environment.")],
)
def test_of_a_key_only_whether_it_is_there_is_told(
    tmp_path: Path, key: str | None, state: State, advice: str
) -> None:
    settings_in(tmp_path, gateways=[described("x/a", api_key_variable="SHOP_KEY")])
    given = {"EVALS_SETTINGS": str(tmp_path / "eval_pipeline.toml")}
    settings = Settings.from_env(given | ({"SHOP_KEY": key} if key else {}))

    (found,) = found_about("gateways", settings)

    assert (found.state, found.advice) == (state, advice)
    assert KEY not in str(found)
    assert str(len(KEY)) not in found.found


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"selection": [OK], "judge": [OK], "budget": [OK]}),
        ({"selection": {"models": ("x/z",), **ALL}}, {"selection": [WRONG, WARNING]}),
        ({"selection": {"models": ("x/a", "x/z"), **ALL}}, {"selection": [OK, WARNING]}),
        ({"judge": {"model": "x/z"}}, {"judge": [WRONG]}),
        ({"judge": {"rules": "only"}}, {"judge": []}),
        ({"judge": {"model": "x/a", "also": ["x/z"]}}, {"judge": [OK, WRONG]}),
        ({"coding": {"reviewer": "x/z"}}, {"reviewer": [WRONG]}),
        ({"coding": {"reviewer": "x/b"}}, {"reviewer": [OK]}),
        ({"overrides": {"x/z": {"temperature": True}}}, {"overrides": [WARNING]}),
        ({"overrides": {"x/a": {"temperature": True}}}, {"overrides": []}),
        ({"overrides": {"x/b": {"prices": {}}}}, {"budget": [WARNING]}),
    ],
)
def test_models_that_are_named_must_be_listed(
    tmp_path: Path, changes: dict[str, Any], expected: dict[str, list[State]]
) -> None:
    asked = offers(tmp_path, "x/a", "x/b", **changes)

    found = found_about("models", asked.settings, offline=False)

    for name, wanted in expected.items():
        assert states(one for one in found if one.name == name) == wanted
    assert all(one.advice for one in found if one.state is not OK)


def test_without_a_budget_that_is_said(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, gateways=[described("x/a")], judge={"model": "x/a"})

    (found,) = gateways.prices(Offers(settings))

    assert found.state is WARNING
    assert "asking does not stop for money" in found.found


def test_a_simulated_judge_can_not_judge_real_models(tmp_path: Path) -> None:
    both = [{"name": "demo", "kind": "demo"}, described("x/a")]

    found = list(gateways.graders(Offers(settings_in(tmp_path, gateways=both))))

    assert states(found) == [WRONG]
    assert "demo/judge is simulated" in found[0].found


def test_nobody_can_say_whether_a_silent_gateway_has_the_judge(tmp_path: Path) -> None:
    silent = {"name": "silent", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"}

    found = list(gateways.graders(offers(tmp_path, "x/z", gateways=[described("x/a"), silent])))

    assert states(found) == [WARNING]


def test_a_suite_that_can_not_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    there, gone = (
        {"name": "here", "path": "questions.jsonl"},
        {"name": "gone", "path": "gone.jsonl"},
    )
    hub = {"repository": "a/b", "revision": "main"}
    settings = settings_in(tmp_path, suites=[gone, there, {"name": "far", "hub": hub}])

    found = found_about("suites", settings)

    assert [(one.name, one.state) for one in found] == [
        ("gone", WRONG),
        ("here", OK),
        ("far", OK),
        ("prompts", OK),
    ]
    assert "gone.jsonl" in found[0].found
    assert found[1].found == "3 questions."
    assert found[2].found == "Not looked at: a/b is on the hub."


def test_a_prompt_that_is_missing_is_named(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, experiments={"ours": {"system_prompt": "ours.txt"}})

    found = found_about("suites", settings)

    assert [(one.name, one.state) for one in found] == [("sample", OK), ("prompts", WRONG)]
    assert "ours.txt" in found[1].found


def test_code_needs_a_sandbox_and_toolchains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task(tmp_path / "tasks", "001-words/001-one", 1)
    coding = {"name": "coding", "kind": "coding", "path": "tasks"}
    changes: dict[str, Any] = {"suites": [coding], "coding": {"isolation": "container"}}
    settings = settings_in(tmp_path, **changes)
    monkeypatch.setenv("PATH", str(tmp_path))

    found = found_about("code", settings)

    assert [(one.name, one.state) for one in found] == [
        ("sandbox", WRONG),
        ("toolchain python", WRONG),
    ]
    assert found[1].advice == "evals toolchain prepare python"


def test_a_sandbox_that_holds_is_told() -> None:
    (found,) = checkup.sandbox(
        Settings.from_env({"EVALS_SETTINGS": str(ROOT / "eval_pipeline.toml")})
    )

    assert (found.state, found.advice) == (OK, "")


def test_without_code_nobody_looks_for_a_sandbox(tmp_path: Path) -> None:
    assert not found_about("code", settings_in(tmp_path))


def test_a_line_that_was_spoilt_is_told_and_half_a_line_at_the_end_is_not(tmp_path: Path) -> None:
    journal = a_journal(tmp_path, a_run(), a_prediction("q1"), a_prediction("q2"))
    (path,) = journal.files(PREDICTIONS)
    lines = path.read_bytes()
    path.write_bytes(lines + lines[:50])
    (torn,) = storage.journal(journal)

    path.write_bytes(lines.replace(b'"q1"', b"\x00\x00\x00\x00"))
    (spoilt,) = storage.journal(journal)

    assert torn.state is OK
    assert spoilt.state is WARNING
    assert f"left out: 1. The first is line 1 of {path}." in spoilt.found


def test_a_folder_that_can_not_be_written_is_wrong(tmp_path: Path) -> None:
    here, there = tmp_path / "new", Path("/proc/new")

    assert states(storage.writing(here)) == [OK]
    assert states(storage.writing(there)) == [WRONG]
    assert states(storage.writing(here, there)) == [WRONG]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("free", "state"), [(10, WRONG), (500 * storage.MEGABYTE, WARNING), (2**40, OK)]
)
def test_little_room_is_told_before_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: State
) -> None:
    class Usage:
        def __init__(self) -> None:
            self.free = free

    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage())

    assert states(storage.room("data", tmp_path / "not" / "yet")) == [state]


def test_a_disk_without_room_for_temporary_files_hides_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_usable() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    settings = settings_in(tmp_path)
    monkeypatch.setattr("tempfile.gettempdir", none_usable)

    found = {one.name: one.state for one in found_about("disk", settings)}

    assert found["temporary files"] is WRONG
    assert found.keys() == {"room for data", "temporary files", "writing"}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results to copy, for to publish them takes a moment."""
    folder = tmp_path_factory.mktemp("evaluated")
    a_warehouse(folder)
    return folder


@pytest.fixture
def with_results(tmp_path: Path, evaluated: Path) -> Settings:
    settings = settings_in(tmp_path)
    shutil.copytree(evaluated, settings.data)
    return settings


def results(settings: Settings) -> Sequence[Finding]:
    return found_about("results", settings)


def test_results_that_are_up_to_date_are_ok(with_results: Settings) -> None:
    found = results(with_results)

    assert states(found) == [OK, OK]
    assert "up to date with the journal" in found[1].found


def test_before_the_first_run_nothing_is_missing_and_nothing_is_made(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)

    found = [*results(settings), *found_about("locks", settings)]

    assert set(states(found)) == {OK}
    assert not settings.journal.exists()
    assert not settings.database.exists()


def _behind(settings: Settings) -> None:
    answer = a_prediction(run_id="run-2")
    a_journal(settings.data, a_run("run-2"), answer, a_judgement(answer))


def _spoilt(settings: Settings) -> None:
    settings.database.write_text("nothing of the kind" * 500)


def _newer(settings: Settings) -> None:
    with duckdb.connect(str(settings.database)) as db:
        db.execute("update schema_version set version = version + 1")


def _otherwise_made(settings: Settings) -> None:
    with duckdb.connect(str(settings.database)) as db:
        db.execute("update published set snapshot = 'another' where part = 'sql'")


def _foreign(settings: Settings) -> None:
    settings.database.unlink()
    with duckdb.connect(str(settings.database)) as db:
        db.execute("create table mine (a int)")


@pytest.mark.parametrize(
    ("change", "state", "words"),
    [
        (_behind, WARNING, "The journal has more: runs, predictions, judged."),
        (_spoilt, WRONG, "cannot be opened"),
        (_newer, WRONG, f"(schema {VERSION + 1}, here {VERSION})"),
        (_otherwise_made, WARNING, "made by another version of this code"),
        (_foreign, WRONG, "cannot be opened"),
    ],
)
def test_a_file_that_does_not_show_the_journal_is_told(
    with_results: Settings, change: Callable[[Settings], None], state: State, words: str
) -> None:
    change(with_results)

    _, found = results(with_results)

    assert found.state is state
    assert words in found.found
    assert "evals rebuild" in found.advice


def test_whoever_holds_the_file_is_named(
    with_results: Settings, held: Callable[[str, Path], int]
) -> None:
    process = held(WRITING, with_results.database)

    _, found = results(with_results)

    assert found.state is WARNING
    assert found.found.startswith(f"Process {process} has it open for writing")


def test_a_journal_of_a_later_version_is_wrong(with_results: Settings) -> None:
    (with_results.journal / "format").write_text("999\n")

    found = results(with_results)

    assert states(found) == [WRONG, WRONG]
    assert "update eval_pipeline" in found[0].found


def test_a_lock_that_can_not_be_taken_is_no_fault_of_ours(tmp_path: Path) -> None:
    database = tmp_path / "evals.duckdb"
    database.with_suffix(".lock").mkdir()

    (found,) = look_at("locks", [Check("lock", partial(locks.publishing, database))]).findings

    assert (found.state, found.advice) == (WRONG, AGAIN)
    assert found.found == f"{tmp_path}/evals.lock cannot be written: Is a directory."


@pytest.mark.parametrize(
    ("in_the_way", "reason"),
    [
        (lambda data: (data / "dagster").touch(), "File exists"),
        (
            lambda data: (data / "dagster" / "history" / "runs.db").mkdir(parents=True),
            "unable to open database file",
        ),
    ],
)
def test_a_history_that_can_not_be_written_is_told_in_a_sentence(
    tmp_path: Path, in_the_way: Callable[[Path], None], reason: str
) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    settings.data.mkdir(exist_ok=True)
    in_the_way(settings.data)

    *_, found = look_at("Dagster", of_dagster.dagster_checks(settings)[:1]).findings

    assert (found.state, found.advice) == (WRONG, AGAIN)
    assert found.found == f"{settings.data}/dagster cannot be written: {reason}."
    with pytest.raises(HistoryError, match=reason), dagster_instance(settings):
        pass


def test_who_is_at_work_is_told(tmp_path: Path, held: Callable[[str, Path], int]) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    before = list(locks.claims(journal.root))
    process = held(CLAIMING, journal.root)

    (found,) = locks.claims(journal.root)

    assert [one.found for one in before] == ["Nobody is asking or judging."]
    assert found.state is OK
    assert found.found.startswith(f"predictions of demo/strong: process {process} on ")


def test_what_killed_processes_left_is_told_and_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(tmp_path)
    settings.data.mkdir()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    mine = settings.data / f".evals-{os.getpid()}-abcdef.new"
    dead = settings.data / ".evals-999999999-abcdef.new"
    aside = settings.data / "evals.duckdb.wal.20250101T120000.000000"
    recent, old = temporary / "evals-recent", temporary / "evals-old"
    for path in (mine, dead, aside, recent, old):
        path.touch()
    os.utime(old, (0, time.time() - 2 * locks.DAY_S))

    left, set_aside = locks.leftovers(settings)

    assert states([left, set_aside]) == [WARNING, WARNING]
    assert left.found == f"Left by killed processes: {dead.name}, evals-old."
    assert left.advice == f"rm -r {dead} {old}"
    assert aside.name in set_aside.found
    assert all(path.exists() for path in (mine, dead, aside, recent, old))


def test_runs_that_live_and_runs_that_died_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    (folder / "run-dead0000-1.lock").write_text("process 1 on here")

    with hold_run_lock(tmp_path, "live0000-2"):
        dead, living = of_dagster.runs(tmp_path)

    assert (dead.state, living.state) == (WARNING, OK)
    assert dead.found.startswith("dead0000 has died")
    assert living.found.startswith(f"live0000 is under way: process {os.getpid()} on ")
    assert (folder / "run-dead0000-1.lock").exists()


@pytest.mark.parametrize(
    ("there", "home", "expected"),
    [
        (["dagster.yaml"], None, [OK]),
        ([], None, [WARNING, OK]),
        (["dagster.yaml"], "nowhere", [WRONG]),
        (["dagster.yaml", "elsewhere/dagster.yaml"], "elsewhere", [WARNING, OK, OK]),
        (["data/dagster/x"], None, [WARNING, OK, OK]),
        # As in the image, where the project has no instance of its own.
        (["elsewhere/dagster.yaml"], "elsewhere", [OK, OK]),
    ],
)
def test_where_the_history_is_kept_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: Sequence[str],
    home: str | None,
    expected: Sequence[State],
) -> None:
    settings = settings_in(tmp_path)
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / "dagster.yaml").read_text())
    if home:
        monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / home))

    assert states(of_dagster.history(settings)) == expected


def test_the_history_of_a_deployment_is_looked_for_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployments = {"prod": {"dagster_home": "home"}}
    settings = settings_in(tmp_path, deployment="prod", deployments=deployments)
    (gone,) = look_at("Dagster", of_dagster.dagster_checks(settings)[:1]).findings[1:]
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")

    assert (gone.state, "there is no such folder" in gone.found) == (WRONG, True)
    assert states(of_dagster.history(settings)) == [OK, OK]
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    assert states(of_dagster.history(settings)) == [OK, OK]


def test_a_history_at_a_relative_path_is_refused_as_dagster_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", ".")

    assert states(of_dagster.history(settings)) == [WRONG]


def test_where_notifications_go_is_a_secret(tmp_path: Path) -> None:
    settings_in(tmp_path)
    given = {"EVALS_SETTINGS": str(tmp_path / "eval_pipeline.toml")}
    hook = {"EVALS_WEBHOOK_URL": "https://hooks.example/T0/secret"}
    with_hook, without = Settings.from_env(given | hook), Settings.from_env(given)

    told = [*of_dagster.notifications(with_hook), *of_dagster.notifications(without)]

    assert ["is set" in told[0].found, "is not set" in told[1].found] == [True, True]
    assert "hooks.example" not in str(told)
