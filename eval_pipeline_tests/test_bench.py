"""The benchmarks measure what they say: tiny sizes here, the real ones with `make bench`."""

import asyncio
import http.client
import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pytest
from rich.console import Console

from bench.__main__ import SECTIONS, main
from bench.asking import measure_all, section
from bench.clients import body, with_aiohttp
from bench.contestants import ask_alone
from bench.crash import Crashed, kill_points
from bench.fabricate import fill_warehouse
from bench.growth import Growth, fitted, with_growth
from bench.load import MODEL, Load
from bench.measuring import BenchError, Taken, measured
from bench.options import Options
from bench.project import ROOT, environment, question_id
from bench.replies import JUDGE
from bench.serving import LoadServer, load_server
from bench.statistics import GROUPS, Derived, Size, derive_all, table_of
from bench.statistics import section as statistics
from bench.tables import Table, as_json, print_table
from eval_pipeline.results.build import DERIVED
from eval_pipeline.suites.exam.judge import Verdict
from eval_pipeline_tests.builders import a_prediction

PYTHON = sys.executable


def post(server: LoadServer, **changes: object) -> tuple[int, str | None, str]:
    """Asks the first question; returns status, what is said about simulation, and the reply."""
    connection = http.client.HTTPConnection(urlsplit(server.root_url).netloc, timeout=60)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body(0) | changes))
        response = connection.getresponse()
        return response.status, response.getheader("x-simulated"), response.read().decode()
    finally:
        connection.close()


def events(reply: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in reply.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def text_of(reply: str) -> str:
    return str(json.loads(reply)["choices"][0]["message"]["content"])


def options_in(folder: Path, **changes: Any) -> Options:
    return Options(folder=folder, repetitions=1, console=Console(file=io.StringIO()), **changes)


def test_a_stream_and_a_whole_reply_say_the_same_and_that_they_are_simulated() -> None:
    with load_server() as server:
        status, simulated, streamed = post(server)
        _, also_simulated, whole = post(server, stream=False)

    choices = [event["choices"][0] for event in events(streamed) if event["choices"]]
    assert (status, simulated, also_simulated) == (200, "true", "true")
    assert "".join(one["delta"].get("content", "") for one in choices) == text_of(whole)
    assert text_of(whole).startswith(f"{question_id(0)}. This reply is SIMULATED.")
    assert choices[-1]["finish_reason"] == "stop"
    assert events(streamed)[-1]["usage"]["completion_tokens"] == 60


@pytest.mark.parametrize("stream", [True, False])
def test_the_judge_replies_with_a_verdict(stream: bool) -> None:
    with load_server() as server:
        _, _, reply = post(server, model=JUDGE, stream=stream)

    if stream:
        parts = [event["choices"][0]["delta"] for event in events(reply) if event["choices"]]
        reply_text = "".join(part.get("content", "") for part in parts)
    else:
        reply_text = text_of(reply)
    assert Verdict.model_validate_json(reply_text).correct


def test_a_failing_model_fails_and_the_others_do_not() -> None:
    with load_server(models=2, failing=["bench/m02=503"]) as server:
        well, failing = post(server), post(server, model="bench/m02")

    assert (well[0], failing[0], failing[1]) == (200, 503, "true")
    assert "SIMULATED failure 503" in failing[2]


def test_a_slow_model_keeps_only_its_own_callers_waiting() -> None:
    with load_server(models=2, slow=["bench/m02=0.3"]) as server:
        post(server, model="bench/m02")
        post(server)
        seen = server.seen()

    slow, well = (seen[model].last_at - seen[model].first_at for model in ("bench/m02", MODEL))
    assert slow >= 0.25
    assert well < slow


def test_the_server_counts_every_question_of_every_model() -> None:
    with load_server(models=2) as server:
        post(server)
        post(server)
        post(server, model="bench/m02")

        assert server.total() == 3
        assert server.seen()[MODEL].counts == {question_id(0): 2}
        assert server.seen()["bench/m02"].counts == {question_id(0): 1}
        assert server.seen()[MODEL].replies == 2


def test_a_request_that_arrives_in_pieces_is_one_request() -> None:
    with load_server() as server:
        host, _, port = urlsplit(server.root_url).netloc.partition(":")
        whole = json.dumps(body(0)).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(whole)
        reply = asyncio.run(send_in_pieces(host, int(port), head + whole))

        assert server.seen()[MODEL].counts == {question_id(0): 1}
    assert reply.startswith(b"HTTP/1.1 200 OK")


async def send_in_pieces(host: str, port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    for start in range(0, len(request), 100):
        writer.write(request[start : start + 100])
        await writer.drain()
        await asyncio.sleep(0)
    reply = await reader.readuntil(b"0\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return reply


def test_the_server_ends_with_its_block() -> None:
    with load_server() as server:
        post(server)

    with pytest.raises(ConnectionRefusedError):
        post(server)


def test_the_raw_client_asks_every_question_once_and_so_many_at_a_time() -> None:
    with load_server(latency_s=0.05) as server:
        taken = asyncio.run(with_aiohttp(server.base_url, questions=40, at_once=8))
        seen = server.seen()[MODEL]

    assert seen.counts == {question_id(number): 1 for number in range(40)}
    assert seen.most_at_once == 8
    assert taken.wall_s >= Load(40, 0.05, 8).ideal_s * 0.9


def test_the_raw_client_does_not_take_an_error_for_a_reply() -> None:
    with load_server(failing=[f"{MODEL}=500"]) as server, pytest.raises(ExceptionGroup):
        asyncio.run(with_aiohttp(server.base_url, questions=1, at_once=1))


@pytest.mark.slow
def test_the_engine_is_measured_asking_everything_once(tmp_path: Path) -> None:
    load, options = Load(30, 0.01, 10), options_in(tmp_path)

    found, failed = measure_all({"engine": ask_alone}, load, options)

    assert failed == {}
    assert found["engine"][0].taken.wall_s >= load.ideal_s * 0.9
    assert found["engine"][0].taken.cpu_s > 0


@pytest.mark.parametrize("asked", [9, 11])
def test_who_asks_too_little_or_too_much_is_not_ranked(tmp_path: Path, asked: int) -> None:
    def careless(load: Load, server: LoadServer, options: Options) -> Taken:
        for number in range(asked):
            post(server, **body(number % load.questions))
        return Taken(wall_s=1, cpu_s=1, peak_mb=1)

    found, failed = measure_all({"careless": careless}, Load(10, 0.0, 1), options_in(tmp_path))

    assert found == {"careless": []}
    assert failed == {"careless": f"it made {asked} requests for 10 questions"}


def test_a_command_is_measured_without_the_memory_of_who_started_it(tmp_path: Path) -> None:
    ballast = b"x" * (300 * 1024 * 1024)
    busy = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"

    taken = measured([PYTHON, "-c", busy], tmp_path, environment())

    assert len(ballast) > 0
    assert taken.peak_mb < 100
    assert taken.wall_s >= 0.2
    assert taken.cpu_s >= 0.2


def test_what_a_command_takes_is_its_memory_too(tmp_path: Path) -> None:
    taken = measured([PYTHON, "-c", "b'x' * 150_000_000"], tmp_path, environment())

    assert taken.peak_mb > 140


def test_a_command_that_fails_is_not_measured_but_quoted(tmp_path: Path) -> None:
    code = "import sys; print('out of luck'); sys.exit(3)"

    with pytest.raises(BenchError, match=r"(?s)out of luck.*ended with 3"):
        measured([PYTHON, "-c", code], tmp_path, environment())


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(60)"
    )

    with pytest.raises(BenchError, match="ended with -9"):
        measured([PYTHON, "-c", code], tmp_path, environment(), longest_s=1.0)

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_a_developer_has_set_does_not_reach_what_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted")
    monkeypatch.setenv("NUM_WORKERS", "1")

    assert not {"OPENAI_API_KEY", "NUM_WORKERS"} & environment().keys()


ASKED = {"q1": 1, "q2": 1, "q3": 1}
ROWS: list[tuple[object, ...]] = [("q1", "42", "ok")]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, (3, 2, 2, 0, 0, 1, 0, "yes")),
        ({"after": [a_prediction("q2"), a_prediction("q3")]}, (3, 2, 2, 1, 0, 1, 0, "yes")),
        ({"asked_after": {"q1": 2, "q2": 1, "q3": 2}}, (3, 2, 2, 0, 1, 1, 0, "yes")),
        (
            {"after": [a_prediction(one) for one in ("q1", "q1", "q2", "q3")]},
            (3, 2, 2, 0, 0, 1, 1, "yes"),
        ),
        ({"rows": []}, (3, 2, 2, 0, 0, 1, 0, "NO")),
    ],
    ids=["as it should be", "lost", "repeated", "journalled twice", "another result"],
)
def test_the_crash_table_tells_what_went_wrong(
    change: dict[str, Any], expected: tuple[object, ...]
) -> None:
    well: dict[str, Any] = {
        "before": [a_prediction("q1"), a_prediction("q2")],
        "replies_before": 2,
        "asked_before": ASKED,
        "after": [a_prediction(one) for one in ("q1", "q2", "q3")],
        "asked_after": {"q1": 1, "q2": 1, "q3": 2, "q4": 1},
        "rows": ROWS,
    }

    crashed = Crashed(**{**well, **change})

    assert crashed.cells(undisturbed=ROWS) == expected


@pytest.mark.parametrize(
    ("count", "points"), [(1, [0.5]), (2, [0.25, 0.75]), (5, [0.1, 0.3, 0.5, 0.7, 0.9])]
)
def test_kill_points_are_spread_over_a_run(count: int, points: list[float]) -> None:
    assert kill_points(count) == points


def test_a_fabricated_warehouse_is_complete_and_its_statistics_are_derived_in_a_copy(
    tmp_path: Path,
) -> None:
    file, copy = tmp_path / "fabricated.duckdb", tmp_path / "derived.duckdb"
    fill_warehouse(file, models=4, items=250, samples=2)

    derived = derive_all(file, copy, weight=0)

    assert list(derived.seconds) == list(DERIVED)
    assert all(seconds > 0 for seconds in derived.seconds.values())
    assert derived.peak_mb > 0
    with duckdb.connect(file, read_only=True) as before:
        assert before.table("judged").count("*").fetchone() == (4 * 250 * 2,)
        assert before.table("metrics").fetchall() == []
    with duckdb.connect(copy, read_only=True) as after:
        runs = after.table("metrics").filter("slice = 'all'")
        assert runs.project("judged, complete, simulated").fetchall() == [(500, True, True)] * 4
        assert after.table("comparisons").count("*").fetchone() == (4 * 3 / 2,)
        assert after.table("pass_at_k").filter("pass_at_k < pass_hat_k").fetchall() == []
        # Neither all right nor all wrong nor all the same, and confidence tells something.
        ranked = after.table("leaderboard").project("accuracy, calibration_error").fetchall()
        assert len(set(ranked)) == 4
        assert all(0.01 < accuracy < 0.99 and error > 0 for accuracy, error in ranked)


def test_every_derived_table_is_in_a_column_of_the_statistics() -> None:
    assert [table for tables in GROUPS.values() for table in tables] == list(DERIVED)


def test_the_statistics_table_says_how_time_grows() -> None:
    small, large = (
        Derived(dict.fromkeys(DERIVED, seconds), cpu_s=seconds, peak_mb=100)
        for seconds in (0.5, 2.0)
    )

    table = table_of([(Size(250), small), (Size(2_500), large)])

    assert table.column("in all s") == {"30,000": 3.5, "300,000": 14.0}
    assert table.column("pass@k, bins s") == {"30,000": 1.0, "300,000": 4.0}
    assert table.column("x row before") == {"30,000": None, "300,000": 4.0}
    assert "simulated" in table.note


@pytest.mark.slow
def test_statistics_are_measured_in_a_process_of_their_own(tmp_path: Path) -> None:
    (table,) = statistics(options_in(tmp_path), [Size(20, models=2)])

    assert list(table.column("in all s")) == ["80"]
    assert all(isinstance(cell, float) and cell > 0 for cell in table.rows[0][1:-1])
    assert list(tmp_path.iterdir()) == []


def test_a_table_is_plain_text_and_markdown_at_once() -> None:
    table = Table("Speed", ("", "wall s", "times"), (("ours", 1.234, 1000), ("theirs", None, 2)))
    console = Console(file=io.StringIO(), width=80)

    print_table(table, console)

    printed = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert printed[:3] == ["", "### Speed", ""]
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed[3:7]] == [
        ["", "wall s", "times"],
        ["-" * len(cell) for cell in printed[4].split("|")[1:-1]],
        ["ours", "1.23", "1,000"],
        ["theirs", "-", "2"],
    ]
    assert as_json([table])[0]["rows"] == [
        {"": "ours", "wall s": 1.234, "times": 1000},
        {"": "theirs", "wall s": None, "times": 2},
    ]


def test_an_unknown_section_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["asking", "flying"])

    assert ended.value.code == 2
    assert "no such section: flying" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ended_in_the_middle_it_leaves_nothing_behind(tmp_path: Path, how: signal.Signals) -> None:
    command = [PYTHON, "-m", "bench", "crash", "--quick", "--folder", str(tmp_path)]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True
    )
    end = time.monotonic() + 100
    while not list(tmp_path.rglob("questions.jsonl")):
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < end, "it has begun nothing"
        time.sleep(0.02)

    process.send_signal(how)
    process.wait(60)

    assert list(tmp_path.iterdir()) == []
    end = time.monotonic() + 60
    while left := [*of_group(process.pid), *working_in(tmp_path)]:
        assert time.monotonic() < end, f"still there: {left}"
        time.sleep(0.02)


def of_group(leader: int) -> list[int]:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return []
    return [leader]


def working_in(folder: Path) -> list[int]:
    """The processes whose folder it is, even if it has been removed."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str((process / "cwd").readlink()).startswith(str(folder)):
                found.append(int(process.name))
    return found


@pytest.mark.slow
def test_the_asking_table_has_everybody(tmp_path: Path) -> None:
    (table,) = section(options_in(tmp_path, scale=0.1), [Load(300, 0.05, 10)])

    assert not table.failed, table.note
    assert list(table.column("wall s"))[:2] == ["ideal", "raw aiohttp"]
    assert table.column("x ideal")["ideal"] == 1.0
    assert table.column("share of raw")["raw aiohttp"] == 1.0
    whole, alone = (
        table.column("wall s")[f"this engine, {what}"] for what in ("whole command", "asking")
    )
    assert isinstance(whole, float) and isinstance(alone, float)
    assert whole > alone


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_section_runs_at_a_tenth_of_its_size(tmp_path: Path) -> None:
    kept = tmp_path / "tables.json"
    (work := tmp_path / "work").mkdir()

    main(["--quick", "--folder", str(work), "--json", str(kept)])

    tables = {table["title"]: table["rows"] for table in json.loads(kept.read_text())}
    (crash,) = (rows for title, rows in tables.items() if title.startswith("Killed"))
    assert len(tables) >= len(SECTIONS)
    assert all(tables.values())
    assert [(row["lost"], row["repeated"], row["equal result"]) for row in crash] == [(0, 0, "yes")]
    assert list(work.iterdir()) == []


def test_growth_is_told_as_a_power() -> None:
    found = fitted([(10, 5), (100, 500), (1_000, 50_000)])
    table = with_growth("", ("size", "square", "even"), [("1,000", 4, 7), ("2,000", 16, 7)])

    assert found == pytest.approx(Growth(2, 0.05))
    assert found.at(50) == pytest.approx(125)
    assert table.rows[-1][1:] == pytest.approx((2, 0))
