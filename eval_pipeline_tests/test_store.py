"""A journal that is shared through an object store: working copies, leases, deletions, trouble."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.benchmark import load_benchmark
from eval_pipeline.checkup.storage import store as look_at_store
from eval_pipeline.environment import SettingsError
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.replies import question_hash
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, BusyError, Journal, ReadOnlyError
from eval_pipeline.journal.compaction import remove_superseded
from eval_pipeline.journal.lines import PARQUET, REPLACES
from eval_pipeline.records import Prediction
from eval_pipeline.settings import Settings
from eval_pipeline.store import courier as courier_module
from eval_pipeline.store import leases
from eval_pipeline.store.names import journal_path, remote_files
from eval_pipeline.store.objects import Found, Objects, StoreError
from eval_pipeline.store.place import Place
from eval_pipeline.viewer import serving
from eval_pipeline.viewer.health import look
from eval_pipeline.warehouse import Warehouse
from eval_pipeline_tests.bucket import BUCKET, SECRET, Bucket, bucket
from eval_pipeline_tests.builders import (
    NOON,
    a_journal,
    a_prediction,
    a_run,
    settings_in,
)
from eval_pipeline_tests.elsewhere import Sent
from eval_pipeline_tests.project import ROOT, call, environment
from eval_pipeline_tests.test_crash import MODEL as ASKED
from eval_pipeline_tests.test_crash import SAMPLE, a_project_with, results_of
from eval_pipeline_tests.webserver import wait_for

MODEL, RUN = "demo/strong", "run-1"
WHERE = (PREDICTIONS, MODEL, RUN)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with bucket(tmp_path_factory.mktemp("bucket")) as found:
        yield found


@pytest.fixture(params=["s3", "file"])
def place(request: pytest.FixtureRequest, served: Bucket, tmp_path: Path) -> Place:
    """A store that nobody has used: of a server, or a folder."""
    return served.place() if request.param == "s3" else Place(f"file://{tmp_path}/store")


def copies(folder: Path, place: Place, *names: str) -> list[Journal]:
    return [Journal(folder / name, store=place) for name in names]


def land(journal: Journal, *items: str, compacting: bool = False, uploaded: bool = True) -> None:
    """Appends answers to these items, as who asks does."""

    async def append() -> None:
        async with journal.writer(*WHERE) as writer:
            for item in items:
                await writer.append(a_prediction(item))

    async def claimed() -> None:
        async with journal.claim(PREDICTIONS, MODEL):
            await append()
            if compacting:
                journal.compact(*WHERE)

    asyncio.run(claimed() if uploaded else append())


def answered(journal: Journal) -> list[str]:
    """Of every line that counts, the item: one that counted twice would be there twice."""
    return sorted(one.item_id for one in journal.read(*WHERE))


def objects_of(place: Place) -> list[str]:
    return [one.name for one in Objects(place).find("journal")]


def test_what_one_copy_has_written_is_in_the_other(tmp_path: Path, place: Place) -> None:
    here, there = copies(tmp_path, place, "here", "there")
    here.write_whole(RUNS, MODEL, RUN, records=[a_run()])
    land(here, "q1", "q2")
    land(there, "q3")

    here.sync()
    before = objects_of(place)
    here.sync()
    there.sync()

    assert answered(here) == answered(there) == ["q1", "q2", "q3"]
    assert [one.run_id for one in there.read(RUNS)] == [RUN]
    assert objects_of(place) == before
    assert here.snapshot(PREDICTIONS, RUNS) == there.snapshot(PREDICTIONS, RUNS)


def test_a_line_that_was_cut_off_stays_where_it_is(tmp_path: Path, place: Place) -> None:
    here, there = copies(tmp_path, place, "here", "there")
    land(here, "q1", uploaded=False)
    (path,) = here.files(PREDICTIONS)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"prediction_id": "half')

    here.sync()
    there.sync()

    (fetched,) = there.files(PREDICTIONS)
    assert fetched.read_bytes() == whole


def test_what_was_compacted_anywhere_counts_once_everywhere(tmp_path: Path, place: Place) -> None:
    first, second, seldom = copies(tmp_path, place, "first", "second", "seldom")
    land(first, "q1", "q2")
    seldom.sync()
    land(first, "q3")
    # What it wrote when it was killed has not been sent.
    (own, *_) = first.files(PREDICTIONS)
    own.write_bytes(own.read_bytes() + a_prediction("q4").model_dump_json().encode() + b"\n")

    land(second, "q5", compacting=True)
    (fresh,) = copies(tmp_path, place, "fresh")
    fresh.sync()

    assert answered(fresh) == answered(second) == ["q1", "q2", "q3", "q5"]
    assert {Path(name).parent.suffix for name in objects_of(place)} == {PARQUET}
    first.sync()
    for journal in (seldom, second, fresh):
        journal.sync()
        assert answered(journal) == answered(first) == ["q1", "q2", "q3", "q4", "q5"]


def test_what_is_compacted_again_leaves_no_trace_in_copies_that_missed_the_first_time(
    tmp_path: Path, place: Place
) -> None:
    first, second, seldom = copies(tmp_path, place, "first", "second", "seldom")
    land(first, "q1")
    seldom.sync()
    land(first, "q2", compacting=True)
    land(second, "q3", compacting=True)
    (compacted, *_) = second.files(PREDICTIONS)
    for old in compacted.parent.iterdir():
        if old != compacted:
            old.unlink()
    land(second, "q4", "q5", compacting=True)

    seldom.sync()

    assert answered(seldom) == answered(second) == ["q1", "q2", "q3", "q4", "q5"]
    assert len(objects_of(place)) == 1


def test_a_deleted_run_does_not_come_back_from_another_copy(tmp_path: Path, place: Place) -> None:
    here, there, late = copies(tmp_path, place, "here", "there", "late")
    here.write_whole(RUNS, MODEL, RUN, records=[a_run()])
    land(here, "q1")
    there.sync()
    land(there, "q2", uploaded=False)

    with here.claim_soon(PREDICTIONS, MODEL):
        here.set_run_aside(MODEL, RUN)
    here.forget_runs_aside()
    there.sync()
    late.sync()
    here.sync()

    for journal in (here, there, late):
        assert not answered(journal) and not list(journal.read(RUNS))
    assert objects_of(place) == []


def test_one_machine_at_a_time_is_at_work_on_a_model(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = copies(tmp_path, place, "here", "there")
    monkeypatch.setattr(courier_module, "ASK_AGAIN_S", 0.05)

    with here.claim_soon(PREDICTIONS, MODEL):
        refused = pytest.raises(BusyError, match=r"process \d+ on .* has the lease")
        with refused, there.claim_soon(PREDICTIONS, MODEL, 0.1):
            pass
        with there.claim_soon(JUDGED, MODEL):
            pass

    with there.claim_soon(PREDICTIONS, MODEL):
        pass


def test_a_copy_takes_back_at_once_what_its_killed_process_has_left(
    tmp_path: Path, place: Place
) -> None:
    objects = Objects(place)
    killed = leases.take(objects, "predictions-x", "this copy")
    assert isinstance(killed, leases.Lease)

    assert isinstance(leases.take(objects, "predictions-x", "another copy"), leases.Held)
    assert isinstance(leases.take(objects, "predictions-x", "this copy"), leases.Lease)
    with pytest.raises(leases.LostError):
        killed.renew()


def test_who_takes_a_lease_late_does_not_have_it(tmp_path: Path, served: Bucket) -> None:
    """Between its look and its attempt others have taken the lease, twice."""
    objects = Objects(served.place())
    first = leases.take(objects, "x", "first")
    assert isinstance(first, leases.Lease)
    first.give_back()

    class Slow(Objects):
        looked = 0

        def find(self, prefix: str) -> Iterator[Found]:
            found = list(super().find(prefix))
            self.looked += 1
            if self.looked == 1:
                second = leases.take(objects, "x", "second")
                assert isinstance(second, leases.Lease)
                second.give_back()
                assert isinstance(leases.take(objects, "x", "third"), leases.Lease)
            return iter(found)

    slow = object.__new__(Slow)
    slow.__dict__.update(objects.__dict__)

    assert isinstance(leases.take(slow, "x", "slow"), leases.Held)
    assert isinstance(leases.take(objects, "x", "fourth"), leases.Held)


def test_who_loses_its_lease_stops_and_keeps_what_it_has(
    tmp_path: Path, served: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = served.place()
    here, there = copies(tmp_path, place, "here", "there")
    monkeypatch.setattr(leases, "RENEW_EVERY_S", 0.05)
    monkeypatch.setattr(leases, "EXPIRES_S", -1.0)
    name = f"predictions-{'demo%2Fstrong'}"
    went_on = False

    async def work() -> None:
        nonlocal went_on
        async with here.claim(PREDICTIONS, MODEL):
            async with here.writer(*WHERE) as writer:
                await writer.append(a_prediction("q1"))
                assert isinstance(leases.take(Objects(place), name, "other"), leases.Lease)
                await asyncio.sleep(30)
            went_on = True

    with pytest.raises(leases.LostError, match="materialize again"):
        asyncio.run(work())

    assert not went_on and answered(here) == ["q1"]
    there.sync()
    assert answered(there) == []
    here.sync()
    there.sync()
    assert answered(there) == ["q1"]


def test_a_store_that_is_down_stops_what_asks_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with bucket(tmp_path) as served:
        (here,) = copies(tmp_path, served.place(), "here")
        here.write_whole(RUNS, MODEL, RUN, records=[a_run()])

        async def work() -> None:
            async with here.claim(PREDICTIONS, MODEL), here.writer(*WHERE) as writer:
                served.process.kill()
                served.process.wait()
                await writer.append(a_prediction("q1"))

        asyncio.run(work())
    warehouse = Warehouse(tmp_path / "evals.duckdb", here)
    caplog.set_level(logging.WARNING)

    with pytest.raises(StoreError, match="can not be used"):
        land(here, "q2")
    with warehouse.reading() as db:
        shown = db.sql("select item_id from predictions").fetchall()

    assert shown == [("q1",)] and "kept on this disk" in caplog.text
    assert SECRET not in caplog.text and "somebody" not in caplog.text


def test_a_bucket_that_is_not_there_is_told_in_a_sentence(tmp_path: Path, served: Bucket) -> None:
    there = served.place()
    (here,) = copies(tmp_path, Place("s3://another-bucket/x", there.options), "here")

    with pytest.raises(StoreError, match=r"another-bucket/x can not be used \(404 Not Found\)"):
        here.sync()


@pytest.mark.parametrize(
    "name",
    [
        "predictions/../../evil.jsonl",
        "predictions/..%2F..%2Fevil.jsonl",
        "predictions/.hidden/evil.jsonl",
        "predictions/m/.evil.jsonl",
        "predictions/m/r/evil.sh",
        "predictions/m\\..\\evil.jsonl",
        "predictions/m/r/x/y/z/evil.jsonl",
        "predictions/a b/evil.jsonl",
        f"predictions/{'m' * 300}/evil.jsonl",
        "locks/predictions-m.jsonl",
        "format",
        "/etc/evil.jsonl",
        "predictions",
    ],
)
def test_a_strange_name_leads_nowhere(name: str) -> None:
    assert journal_path(tuple(name.split("/"))) is None
    found = [Found(f"journal/{name}/w-1-1", 1, NOON)]
    assert remote_files(found) == ({}, 1)


@pytest.mark.parametrize(
    ("piece", "size"), [("g-0-10", 9), ("w-1-10", 9), ("w-1", 1), ("../x", 1), ("g-5-3", 2)]
)
def test_an_object_that_is_not_what_its_name_says_is_left_out(piece: str, size: int) -> None:
    grown = "predictions/m/r/20260101T000000.000000-1-abcdef.jsonl"

    assert remote_files([Found(f"journal/{grown}/{piece}", size, NOON)]) == ({}, 1)


def test_strange_objects_harm_nobody(
    tmp_path: Path, served: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    place = served.place()
    here, there = copies(tmp_path, place, "here", "there")
    land(here, "q1")
    prefix = f"{place.url.removeprefix(f's3://{BUCKET}/')}/journal/predictions"
    for key in ("..%252F..%252Fevil.jsonl/w-1-4", "m/.format/w-1-4", "m/%5C..%5Cx.jsonl/w-1-4"):
        served.put(f"{prefix}/{key}", b"evil")

    there.sync()

    assert answered(there) == ["q1"] and "not ours" in caplog.text
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name]


def test_a_parquet_file_of_others_removes_nothing_outside_its_folder(tmp_path: Path) -> None:
    folder, victim = tmp_path / "predictions" / "m", tmp_path / "victim.jsonl"
    folder.mkdir(parents=True)
    victim.write_bytes(b"12345")
    replaces = '[["../../victim.jsonl", 5]]'
    duckdb.sql(
        f"copy (select 'x' as line) to '{folder}/a.parquet' "
        f"(format parquet, kv_metadata {{{REPLACES}: '{replaces}'}})"
    )
    settled = time.time() - 3600
    os.utime(folder / "a.parquet", (settled, settled))

    remove_superseded(folder)

    assert victim.exists()


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path, place: Place) -> None:
    (here,) = copies(tmp_path, place, "here")
    Objects(place).put("format", b"99\n")

    with pytest.raises(Exception, match="update eval_pipeline"):
        here.sync()


def test_production_is_read_and_not_written(tmp_path: Path, place: Place) -> None:
    writer, other = copies(tmp_path, place, "writer", "other")
    land(writer, "q1")
    land(other, "q2", uploaded=False)
    before = objects_of(place)
    reader = Journal(tmp_path / "other", read_only=True, store=place)

    reader.sync()

    assert answered(reader) == ["q1", "q2"] and objects_of(place) == before
    with pytest.raises(ReadOnlyError), reader.claim_soon(PREDICTIONS, MODEL):
        pass
    with pytest.raises(ReadOnlyError):
        reader.set_run_aside(MODEL, RUN)


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:secret-word@bucket/prefix",
        "s3://secret-word@bucket/prefix",
        "s3://bucket/prefix?X-Amz-Signature=secret-word",
        "https://bucket.example.org/secret-word",
        "file://../secret-word",
        "secret-word",
    ],
)
def test_an_address_with_a_key_in_it_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError) as in_file:
        settings_in(tmp_path, store=url)
    settings_in(tmp_path)
    with pytest.raises(SettingsError) as in_environment:
        Settings.from_env(
            {"EVALS_SETTINGS": str(tmp_path / "eval_pipeline.toml"), "EVALS_STORE": url}
        )

    for error in (in_file, in_environment):
        assert "s3://bucket/prefix" in str(error.value) and "secret-word" not in str(error.value)


def test_keys_of_a_store_are_kept_like_all_keys(tmp_path: Path, served: Bucket) -> None:
    settings_in(tmp_path, store=f"s3://{BUCKET}/x")
    (tmp_path / ".env").write_text("".join(f"{n}={v}\n" for n, v in served.variables.items()))

    settings = Settings.from_env({"EVALS_SETTINGS": str(tmp_path / "eval_pipeline.toml")})

    assert SECRET not in f"{settings!r} {settings.place!r} {settings.model_dump_json()}"
    assert settings.redact(f"it said {SECRET}") == "it said [AWS_SECRET_ACCESS_KEY]"
    assert settings.place is not None
    (finding,) = look_at_store(settings.place)
    assert "takes what is written" in finding.found
    assert look(settings).checks["store"] == "ok"


def test_without_the_extra_it_is_said_which_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)

    with pytest.raises(StoreError, match="install the extra `lake`"):
        Journal(tmp_path, store=Place(f"file://{tmp_path}/store")).sync()


def test_who_has_no_store_loads_nothing_for_it() -> None:
    code = (
        "import sys, eval_pipeline.cli.main, eval_pipeline.deployment, eval_pipeline.warehouse, "
        "eval_pipeline.stages.predict; "
        "sys.exit(any(name in sys.modules for name in ('obstore', 'eval_pipeline.store.courier')))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_results_are_copied_from_a_deployment_that_has_only_a_store(
    tmp_path: Path, served: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = served.place()
    for name, value in served.variables.items():
        monkeypatch.setenv(name, value)
    nowhere = "/nowhere/to/be/found"
    prod = {"data_dir": nowhere, "store": place.url, "production": True}
    settings = settings_in(tmp_path, deployments={"prod": prod})
    sent = Sent(tmp_path / "sent")
    folder, replies, verdicts = tmp_path / "elsewhere", sent.predictions, sent.judgements
    written = a_journal(folder, sent.run, *replies, *verdicts, benchmark=sent.benchmark)
    Journal(written.root, store=place).sync()

    done = call(tmp_path, "evals sync --from prod")
    again = call(tmp_path, "evals sync --from prod")

    assert "3 new answers, 3 new verdicts" in done.stdout, done.stderr
    assert "1 runs of prod, 0 of them with something new" in again.stdout
    assert answered(Journal(settings.journal)) == ["q1", "q2", "q3"]
    monkeypatch.setenv("EVALS_STORE", place.url)
    monkeypatch.setenv("EVALS_DATA_DIR", "never-used")
    assert json.loads(call(tmp_path, "evals runs --json").stdout)[0]["answered"] == 3
    refused = call(tmp_path, "evals --deployment prod delete run-1 --yes")
    assert refused.returncode != 0 and "marked as production" in refused.stderr


def test_a_web_server_shows_what_comes_into_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "RENEW_S", 0.05)
    settings = settings_in(tmp_path, store=f"file://{tmp_path}/store")
    (elsewhere,) = copies(tmp_path, Place(f"file://{tmp_path}/store"), "elsewhere")
    elsewhere.write_whole(RUNS, MODEL, RUN, records=[a_run()])

    def shown() -> bool:
        """Whether this machine's file has it, without anything being done for that."""
        with suppress(duckdb.Error), duckdb.connect(str(settings.database), read_only=True) as db:
            return db.sql("select item_id from predictions").fetchall() == [("q1",)]
        return False

    with serving.renewed(settings):
        land(elsewhere, "q1")
        wait_for(shown)


def hasty(
    settings: Settings, run_id: str, variables: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Asks and judges in a process of its own, whose leases expire soon; its log is beside it."""
    with log_of(settings).open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "eval_pipeline_tests.hasty", ASKED, run_id],
            cwd=settings.root,
            env={**environment(), **variables, "PYTHONPATH": str(ROOT)},
            stderr=log,
        )


def log_of(settings: Settings) -> Path:
    return settings.root / "log"


def lines(journal: Journal) -> list[Prediction]:
    """What has come into the store by now."""
    journal.sync()
    return list(journal.read(PREDICTIONS))


@pytest.mark.slow
def test_another_machine_goes_on_where_a_killed_one_was(tmp_path: Path, served: Bucket) -> None:
    sample = load_benchmark(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]))
    place = served.place()
    variables = {**served.variables, "EVALS_STORE": place.url}
    watching, first_again = copies(tmp_path, place, "watching", "first/data/journal")
    with DemoGateway(tuple(sample.items.values()), faults=Faults(latency_s=0.1)) as gateway:
        first, second, alone = (
            a_project_with(gateway, tmp_path / name) for name in ("first", "second", "alone")
        )
        killed = hasty(first, "run-1", variables)
        wait_for(lambda: len(lines(watching)) >= 30)
        heir = hasty(second, "run-2", variables)
        wait_for(lambda: "has the lease" in log_of(second).read_text())
        assert killed.poll() is None, log_of(first).read_text()

        killed.kill()
        killed.wait()
        uploaded = lines(watching)
        gateway.misbehave(Faults())
        assert heir.wait(120) == 0, log_of(second).read_text()
        asked = dict(gateway.seen)
        assert hasty(alone, "run-3", {}).wait(120) == 0, log_of(alone).read_text()

    questions = {key.item_id: item.question for key, item in sample.items.items()}
    assert {asked[ASKED, question_hash(questions[one.item_id])] for one in uploaded} == {1}
    results = lines(watching)
    assert results_of(watching) == results_of(Journal(alone.journal))
    assert {run.run_id for run in watching.read(RUNS)} == {"run-1"}
    assert not any(SECRET in log_of(one).read_text() for one in (first, second))
    # The disk of the killed one is back: the rest of what it paid for is sent, each line once.
    unsent = {one.prediction_id for one in first_again.read(PREDICTIONS)}
    first_again.sync()
    ids = [one.prediction_id for one in lines(watching)]
    assert sorted(ids) == sorted(unsent | {one.prediction_id for one in results})
