"""Inspect itself reads what `evals export inspect` writes, and its viewer shows it in a browser.

Needs inspect-ai in an environment of its own: `make inspect-test`.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from eval_pipeline_tests.browsing import a_browser, listen
from eval_pipeline_tests.inspected import TASK, an_inspected_project
from eval_pipeline_tests.project import ROOT, call
from eval_pipeline_tests.webserver import a_free_port, wait_for

pytestmark = pytest.mark.inspect
INSPECT = ROOT / ".venv-inspect" / "bin"
READ = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries, read_eval_log_samples
log = read_eval_log(sys.argv[1])
found = log.model_dump(mode="json", exclude={"samples"})
found["samples"] = [one.model_dump(mode="json") for one in log.samples]
short = read_eval_log_sample_summaries(sys.argv[1])
found["summaries"] = [one.model_dump(mode="json") for one in short]
found["streamed"] = len(list(read_eval_log_samples(sys.argv[1], all_samples_required=False)))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same run as both kinds of files."""
    project = an_inspected_project(tmp_path_factory.mktemp("inspected"), finished=True)
    (project / "logs").mkdir()
    for kind in ("eval", "json"):
        assert call(project, f"evals export inspect aaaa logs/run.{kind}").returncode == 0
    return project / "logs"


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_inspect_reads_every_sample(logs: Path, kind: str) -> None:
    read = subprocess.run(
        [INSPECT / "python", "-c", READ, logs / f"run.{kind}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    found = json.loads(read.stdout)
    assert len(found["samples"]) == len(found["summaries"]) == found["streamed"] == 14
    by_name = {(one["id"], one["epoch"]): one for one in found["samples"]}
    assert by_name["sample/right", 1]["scores"]["demo/judge"]["value"] == 1
    assert by_name["sample/right", 1]["output"]["usage"]["total_tokens"] == 120
    assert by_name["sample/outage", 1]["error"]["message"] == "rate_limited: HTTP 429"
    assert by_name[f"coding/{TASK}", 1]["scores"]["demo/judge"]["metadata"]["steps"]
    (score,) = found["results"]["scores"]
    assert {*score["metrics"]} == {"accuracy", "stderr"}


def test_the_viewer_shows_it(logs: Path, tmp_path: Path) -> None:
    with viewing(logs) as address, a_browser() as browser:
        page = browser.new_page()
        complaints = listen(page)
        page.goto(f"{address}/#/logs/run.eval")
        page.get_by_text("sample+coding").first.wait_for()
        page.get_by_text("0.857").first.wait_for()
        page.get_by_text("3 of 14 samples (21%) had errors and were not scored").wait_for()
        page.screenshot(path=tmp_path / "samples.png")
        page.get_by_text("Write a function.").first.click()
        page.get_by_role("tab", name="Scoring").click()
        page.get_by_text("filesystem: passed").first.wait_for()
        page.screenshot(path=tmp_path / "scoring.png")

    assert not complaints


@contextmanager
def viewing(logs: Path) -> Iterator[str]:
    port = a_free_port()
    words = ["view", "--log-dir", str(logs), "--host", "127.0.0.1", "--port", str(port)]
    viewer = subprocess.Popen([INSPECT / "inspect", *words], env={**os.environ, "HOME": str(logs)})
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: _answers(address))
        yield address
    finally:
        viewer.terminate()
        viewer.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.get(address).is_success
    except httpx.TransportError:
        return False
