"""Logs for programs: one JSON object per line, about which run, and never with a key."""

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.cli.output import LastResort
from eval_pipeline.cli.progress import following
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.logs import FACTS, JsonLines, about, write_lines
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.project import call
from eval_pipeline_tests.stand import STRONG, WEAK, Stand

SECRET = 'sk-"quoted"-0123456789'


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_tells_when_who_what_and_of_which_run(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("eval_pipeline.somewhere")
    write_lines(JsonLines(lambda text: text.replace("hush", "[KEY]")))
    write_lines(JsonLines(lambda text: text.replace("hush", "[KEY]")))

    with about(model="demo/strong"), about(run_id="run-1"):
        log.warning("two\nlines, %s", "hush", extra={FACTS: {"done": 3}})
    try:
        raise ValueError("hush")
    except ValueError:
        log.exception("\x1b[31mbroken")

    first, second = lines(written := capsys.readouterr().err)
    assert first == {
        "time": first["time"],
        "level": "WARNING",
        "logger": "eval_pipeline.somewhere",
        "message": "two\nlines, [KEY]",
        "model": "demo/strong",
        "run_id": "run-1",
        "facts": {"done": 3},
    }
    assert first["time"].endswith("Z")
    assert datetime.now(UTC) - datetime.fromisoformat(first["time"]) < timedelta(minutes=5)
    assert "model" not in second and "ValueError: [KEY]" in second["error"]
    assert "hush" not in written and "\x1b" not in written


def test_what_the_stages_say_tells_of_which_model_and_run(
    stand: Stand, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval_pipeline.evaluation.workers.PROGRESS_EVERY_S", 0.01)
    stand.gateway.misbehave(Faults(latency_s=0.1))
    monkeypatch.setenv("EVALS_LOG", "json")
    monkeypatch.chdir(stand.settings.root)

    with following():
        stand.predict(STRONG, WEAK, launch=Launch("run-7"))
        stand.judge("demo/strong")

    told = lines(capsys.readouterr().err)
    stages = [one for one in told if one["logger"].startswith("eval_pipeline.evaluation")]
    assert {one["model"] for one in stages} == {"demo/strong", "demo/weak"}
    assert {one["run_id"] for one in stages if "to ask" in one["message"]} == {"run-7"}
    progress = [one for one in stages if one["message"].startswith("progress")]
    assert {one["facts"]["planned"] for one in progress} == {3}
    assert all(one["run_id"] == "run-7" for one in progress)


@pytest.mark.parametrize(
    ("log", "variables", "command"),
    [
        ("text", {"EVALS_LOG": "json"}, "evals tokens revoke none"),
        ("json", {}, "evals tokens revoke none"),
        # What typer finds out before any settings are read.
        ("text", {"EVALS_LOG": "json"}, "evals tokens revoke --none"),
    ],
)
def test_a_command_complains_in_lines_too(
    tmp_path: Path, log: str, variables: dict[str, str], command: str
) -> None:
    settings_in(tmp_path, log=log)

    done = call(tmp_path, command, variables)

    (told,) = lines(done.stderr)
    assert (done.returncode, done.stdout) == (2, "")
    assert (told["level"], told["logger"]) == ("ERROR", "eval_pipeline.cli")
    assert "none" in told["message"]


def test_what_nobody_follows_is_written_without_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    record = logging.LogRecord("x", logging.WARNING, "", 0, f"key {SECRET}", None, None)

    LastResort().handle(record)
    monkeypatch.setenv("EVALS_LOG", "json")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    LastResort().handle(record)
    (tmp_path / "eval_pipeline.toml").write_text("nonsense")
    LastResort().handle(record)

    plain, redacted, unread = capsys.readouterr().err.splitlines()
    assert plain == f"key {SECRET}"
    assert json.loads(redacted)["message"] == "key [OPENAI_API_KEY]"
    assert json.loads(unread)["level"] == "WARNING"
