"""`evals export`: a run as a log that Inspect opens, and tables where no command is named."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import duckdb
import pytest

from eval_pipeline.interop.inspect.convert import sample_id, usage
from eval_pipeline_tests.inspected import TASK, an_inspected_project
from eval_pipeline_tests.project import call
from eval_pipeline_tests.test_completion import offered

Log = Mapping[str, Any]
NEEDED: dict[str, dict[str, type]] = {
    "log": {
        "version": int,
        "status": str,
        "eval": dict,
        "plan": dict,
        "results": dict,
        "stats": dict,
    },
    "eval": {"created": str, "task": str, "dataset": dict, "model": str, "config": dict},
    "sample": {
        **{"id": str, "epoch": int, "input": list, "target": str, "messages": list},
        **{"output": dict, "scores": dict, "metadata": dict},
    },
    "summary": {"id": str, "epoch": int, "input": str, "target": str, "completed": bool},
    "score": {"value": float, "explanation": str, "metadata": dict},
}
"""What Inspect can not do without, as its own logs have it; `make inspect-test` asks itself."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return an_inspected_project(tmp_path_factory.mktemp("inspected"))


@pytest.fixture(scope="module")
def document(project: Path) -> Log:
    assert call(project, "evals export inspect aaaa whole.json").returncode == 0
    found: Log = json.loads((project / "whole.json").read_bytes())
    return found


def sample(log: Log, item_id: str, epoch: int = 1) -> Log:
    (found,) = [
        one
        for one in log["samples"]
        if one["metadata"]["item_id"] == item_id and one["epoch"] == epoch
    ]
    return dict(found)


def has(kind: str, found: Log) -> None:
    for name, of in NEEDED[kind].items():
        assert isinstance(found[name], of), (kind, name, found.get(name))


def test_both_kinds_of_files_say_the_same_and_have_all_that_inspect_needs(
    project: Path, document: Log
) -> None:
    exported = call(project, "evals export inspect demo/strong@aaaa whole.eval --json")

    assert json.loads(exported.stdout)["samples"] == 14
    with ZipFile(project / "whole.eval") as archive:
        read = {name: json.loads(archive.read(name)) for name in archive.namelist()}
    header = read.pop("header.json")
    assert header == {name: one for name, one in document.items() if name != "samples"}
    has("log", header)
    has("eval", header["eval"])
    assert read.pop("_journal/start.json")["eval"] == header["eval"]
    for summary in read.pop("summaries.json"):
        has("summary", summary)
    for one in document["samples"]:
        has("sample", one)
        assert read.pop(f"samples/{one['id']}_epoch_{one['epoch']}.json") == one
        for score in one["scores"].values():
            has("score", score)
    assert not read


def test_a_sample_has_prompt_target_reply_usage_and_times(document: Log) -> None:
    found = sample(document, "right")

    assert [one["role"] for one in found["messages"]] == ["system", "user", "assistant"]
    assert "6 times 7" in found["input"][1]["content"]
    assert found["target"] == "42"
    thought, said = found["messages"][2]["content"]
    assert (thought["reasoning"], said["text"]) == ("Six times seven.", "42")
    assert found["output"]["choices"][0]["stop_reason"] == "stop"
    assert found["model_usage"] == {
        "demo/strong": {
            **{"input_tokens": 70, "input_tokens_cache_read": 30, "output_tokens": 20},
            **{"total_tokens": 120, "reasoning_tokens": 5, "total_cost": 0.25},
        }
    }
    assert found["started_at"] == "2025-01-01T11:59:58+00:00"
    assert (found["completed_at"], found["total_time"]) == ("2025-01-01T12:00:00+00:00", 2.0)
    assert found["metadata"]["prompt_is_exact"] is False  # the journal was made by hand
    score = found["scores"]["demo/judge"]
    assert (score["value"], score["answer"]) == (1.0, "42")
    assert score["explanation"] == "Compared with the reference."
    assert score["metadata"]["confidence"] == 0.9
    picture = sample(document, "wrong")["input"][1]["content"][1]
    assert picture == {"type": "image", "image": "data:image/png;base64,AAAA"}


def test_code_has_its_files_as_target_and_every_step_in_its_score(document: Log) -> None:
    found = sample(document, TASK)

    assert found["target"].startswith("answer.py\ndef total()")
    score = found["scores"]["demo/judge"]
    assert score["value"] == 0.0
    assert "- tests: failed: adds" in score["explanation"]
    assert [one["step"] for one in score["metadata"]["steps"]] == ["filesystem", "tests"]
    assert score["metadata"]["steps"][1]["tests"][0]["message"] == "1 != 2"


@pytest.mark.parametrize(
    ("item_id", "says"),
    [
        ("outage", "rate_limited: HTTP 429"),
        ("unasked", "It was not asked."),
        ("unjudged", "demo/judge: The judge's reply is no verdict."),
    ],
)
def test_what_nobody_could_score_is_an_error_and_no_0(
    document: Log, item_id: str, says: str
) -> None:
    found = sample(document, item_id)

    assert found["scores"] == {}
    assert found["error"]["message"] == says


def test_the_numbers_are_those_of_our_tables(project: Path, document: Log) -> None:
    with duckdb.connect(str(project / "data/evals.duckdb"), read_only=True) as db:
        expected = db.sql(
            "select accuracy, standard_error, judged from metrics where slice = 'all'"
        ).fetchall()

    (score,) = document["results"]["scores"]
    numbers = [score["metrics"][name]["value"] for name in ("accuracy", "stderr")]
    assert [(*numbers, score["scored_samples"])] == expected
    assert score["unscored_samples"] == 3
    assert document["results"]["total_samples"] == 14
    assert document["status"] == "cancelled"  # not all was asked
    assert "1 failed (rate_limited)" in score["metadata"]["incomplete_because"]
    spec = document["eval"]
    assert (spec["task"], spec["model"]) == ("sample+coding", "demo/strong")
    assert spec["dataset"]["samples"] == 7
    assert (spec["config"]["epochs"], spec["model_generate_config"]) == (2, {"temperature": 0})


@pytest.mark.parametrize(
    "item_id", ["../x", "a/../../x", "/etc/x", "a\\..\\x", "..", ".", "a\x00b", "a//b", ""]
)
def test_no_id_of_an_item_leads_out_of_the_archive(item_id: str) -> None:
    found = sample_id(item_id)

    assert not {"", ".", ".."} & {*found.split("/")}
    assert found.isprintable()
    assert "\\" not in found
    assert found != sample_id(f"{item_id}.")


@pytest.mark.parametrize("item_id", ["q1", "a b", "001-x/002-y", "a..b", "ä?.json", "..."])
def test_ids_that_can_do_no_harm_stay_as_they_are(item_id: str) -> None:
    assert sample_id(item_id) == item_id


def test_nothing_is_said_of_usage_that_nobody_knows() -> None:
    names = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cost_usd")
    unknown = dict.fromkeys(names)

    assert usage(unknown) is None
    assert usage({**unknown, "output_tokens": 3}) == {
        **{"input_tokens": 0, "output_tokens": 3, "total_tokens": 3}
    }


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("evals export inspect aaaa log.txt", ".eval (an archive) or .json"),
        ("evals export inspect aaaa kept.json", "--force"),
        ("evals export inspect aaaa nowhere/log.eval", "There is no folder"),
        ("evals export inspect zzzz log.eval", "There is no run 'zzzz'"),
    ],
)
def test_wrong_use_is_told_and_changes_nothing(project: Path, command: str, says: str) -> None:
    kept = project / "kept.json"
    kept.write_text("mine")

    refused = call(project, command)

    assert refused.returncode == 2
    assert says in refused.stderr
    assert kept.read_text() == "mine"
    assert not [*project.glob("log.*"), *project.glob(".*unfinished")]


def test_what_is_no_command_is_a_folder_for_all_tables(project: Path, tmp_path: Path) -> None:
    for words in ("one", "two --format csv", "-f csv -- three"):
        folder = tmp_path / words.replace("--format csv", "").split()[-1]
        exported = call(project, f"evals export --json {words.replace(folder.name, str(folder))}")
        assert "runs" in {one["file"].partition(".")[0] for one in json.loads(exported.stdout)}

    (tmp_path / "inspect").mkdir()
    assert call(project, f"evals export --force {tmp_path}/inspect").returncode == 0
    assert (tmp_path / "inspect" / "runs.parquet").exists()


def test_a_folder_named_like_a_command_is_reached_by_its_path(project: Path) -> None:
    assert call(project, "evals export ./inspect").returncode == 0
    assert (project / "inspect" / "runs.parquet").exists()
    assert "RUN" in call(project, "evals export inspect").stderr


def test_help_tells_of_tables_and_of_commands(project: Path) -> None:
    told = call(project, "evals export --help").stdout

    assert "DIR" in told
    assert "--format" in told
    assert "inspect" in told
    assert "Missing argument 'DIR'" in call(project, "evals export").stderr


def test_tab_offers_commands_runs_and_options_of_tables(project: Path) -> None:
    assert offered(project, "evals export in") == ["inspect"]
    assert offered(project, "evals export inspect aa") == ["aaaa-1"]
    assert offered(project, "evals export --format c") == ["csv"]
    assert offered(project, "evals export out --run aa") == ["aaaa-1"]
