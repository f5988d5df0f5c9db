"""A split comes from the hub once, by its pinned commit, and each refusal says what to do."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
from huggingface_hub import constants
from pydantic import SecretStr

from eval_pipeline.errors import DatasetError
from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.settings.sections import Hub, Suite
from eval_pipeline.suites.exam.dataset import load_questions
from eval_pipeline.suites.exam.hub import download
from eval_pipeline_tests.test_exam_dataset import some_settings
from eval_pipeline_tests.test_exam_files import a_shard

REPOSITORY = "cais/hle"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_a_secret_that_must_not_be_shown"


@dataclass
class TinyHub:
    """Just enough of the hub: one data set at one commit, public, gated or private."""

    files: dict[str, bytes]
    gated: bool = False
    granted: bool = True
    private: bool = False
    lost: set[str] = field(default_factory=set)
    status: int = 200
    body: bytes | None = None
    address: str = ""
    asked: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)

    def answer(self, path: str, authorization: str | None) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(path)
        self.authorizations.append(authorization)
        allowed = authorization == f"Bearer {TOKEN}"
        if authorization and not allowed:
            return 401, {"X-Error-Message": "Invalid credentials in Authorization header"}, b""
        if self.status != 200 or self.body is not None:
            return self.status, {}, self.body or b""
        if (self.private and not allowed) or REPOSITORY not in path:
            return 401 if not allowed else 404, {"X-Error-Code": "RepoNotFound"}, b""
        if path.startswith("/api/"):
            return self.information(path.rpartition("/")[2])
        if self.gated and not (allowed and self.granted):
            return 403 if allowed else 401, {"X-Error-Code": "GatedRepo"}, b""
        return self.file(path.partition(f"/resolve/{COMMIT}/")[2])

    def information(self, revision: str) -> tuple[int, dict[str, str], bytes]:
        if revision not in (COMMIT, "main"):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        siblings = [{"rfilename": name} for name in self.files]
        return 200, {}, json.dumps({"id": REPOSITORY, "sha": COMMIT, "siblings": siblings}).encode()

    def file(self, name: str) -> tuple[int, dict[str, str], bytes]:
        if name not in self.files or name in self.lost:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, b""
        content = self.files[name]
        headers = {"ETag": f'"{sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
        return 200, headers, content


def a_handler(hub: TinyHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path.partition("?")[0])
            status, headers, body = hub.answer(path, self.headers["Authorization"])
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler


@contextmanager
def served(hub: TinyHub) -> Iterator[TinyHub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), a_handler(hub))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library asks huggingface.co which agents there are, whatever the endpoint."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)


def a_hub(split: str = "test", revision: str = COMMIT, repository: str = REPOSITORY) -> Hub:
    return Hub(repository=repository, split=split, revision=revision)


def two_shards(folder: Path) -> dict[str, bytes]:
    return {
        "README.md": b"# Exam",
        "data/test-00001-of-00002.parquet": a_shard(folder, "q3"),
        "data/test-00000-of-00002.parquet": a_shard(folder, "q1", "q2"),
        "data/train-00000-of-00001.parquet": a_shard(folder, "t1"),
        "test.csv": b"another copy",
    }


def load(server: TinyHub, root: Path, revision: str = COMMIT, **keys: str) -> list[ExamQuestion]:
    suite = Suite(name="hle", hub=a_hub(revision=revision))
    secrets = {name: SecretStr(value) for name, value in keys.items()}
    changes = {"hub_endpoint": server.address, "keys": secrets}
    return [*load_questions(suite, some_settings(root, suite).model_copy(update=changes))]


def refusal(server: TinyHub, hub: Hub, cache: Path, token: str | None = None) -> str:
    with pytest.raises(DatasetError) as raised:
        download(hub, token=token, endpoint=server.address, cache=cache)
    return str(raised.value)


@pytest.mark.parametrize("revision", [COMMIT, "main"])
def test_two_shards_load_in_the_order_of_their_names(tmp_path: Path, revision: str) -> None:
    with served(TinyHub(two_shards(tmp_path))) as server:
        questions = load(server, tmp_path, revision)

    assert [question.id for question in questions] == ["q1", "q2", "q3"]
    assert not any("train" in path for path in server.asked)


def test_a_row_of_a_shard_is_refused_with_the_repository_and_the_file(tmp_path: Path) -> None:
    files = {
        "data/test-0.parquet": a_shard(tmp_path, "q1", "q2"),
        "data/test-1.parquet": a_shard(tmp_path, "q2"),
    }

    with served(TinyHub(files)) as server, pytest.raises(DatasetError) as raised:
        load(server, tmp_path)

    assert str(raised.value) == (
        "cais/hle test-1.parquet: row 1 (id 'q2'): "
        "id is the same as in cais/hle test-0.parquet row 2."
    )


def test_a_pinned_commit_is_loaded_again_without_the_network(tmp_path: Path) -> None:
    with served(TinyHub(two_shards(tmp_path))) as server:
        first = download(a_hub(), token=None, endpoint=server.address, cache=tmp_path / "hub")
    asked = len(server.asked)

    second = download(a_hub(), token=None, endpoint=server.address, cache=tmp_path / "hub")

    assert second == first
    assert len(server.asked) == asked


def test_a_file_that_went_missing_from_the_cache_is_fetched_again(tmp_path: Path) -> None:
    cache = tmp_path / "hub"
    with served(TinyHub(two_shards(tmp_path))) as server:
        first = download(a_hub(), token=None, endpoint=server.address, cache=cache)
        first[1].resolve().unlink()
        first[1].unlink()

        second = download(a_hub(), token=None, endpoint=server.address, cache=cache)

    assert second == first
    assert all(path.is_file() for path in second)


def test_an_interrupted_download_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    cache = tmp_path / "hub"
    with served(TinyHub(two_shards(tmp_path), lost={"data/test-00001-of-00002.parquet"})) as server:
        refusal(server, a_hub(), cache)
        server.lost.clear()

        paths = download(a_hub(), token=None, endpoint=server.address, cache=cache)

    assert len(paths) == 2


def test_only_the_cache_is_written_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    home = Path(constants.HF_HOME)
    before = sorted(home.rglob("*"))
    with served(TinyHub(two_shards(tmp_path))) as server:
        paths = download(a_hub(), token=None, endpoint=server.address, cache=tmp_path / "hub")

    assert all(path.is_relative_to(tmp_path / "hub") for path in paths)
    assert sorted(home.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["hub"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("present", "chosen"),
    [
        (["data/test-b.parquet", "data/test-a.parquet"], ["test-a.parquet", "test-b.parquet"]),
        (["test-0.parquet", "test-0.jsonl"], ["test-0.parquet"]),
        (["test.parquet", "testing.parquet"], ["test.parquet"]),
        (["test/a.parquet", "test/deep/b.parquet"], ["a.parquet"]),
        (["test.csv", "data/test-0.jsonl"], ["test-0.jsonl"]),
        (["test/x.csv", "train/x.csv"], ["x.csv"]),
    ],
)
def test_the_files_of_a_split_are_found_by_convention(
    tmp_path: Path, present: list[str], chosen: list[str]
) -> None:
    with served(TinyHub(dict.fromkeys(present, b"content"))) as server:
        paths = download(a_hub(), token=None, endpoint=server.address, cache=tmp_path / "hub")

    assert [path.name for path in paths] == chosen


def test_an_unknown_split_is_refused_with_the_files_there_are(tmp_path: Path) -> None:
    files = {f"data/part{number:02}-0.parquet": b"" for number in range(12)}
    with served(TinyHub(files | {"README.md": b""})) as server:
        message = refusal(server, a_hub(split="dev"), tmp_path / "hub")

    assert message.startswith(f"cais/hle: there is no file of the split 'dev' at revision {COMMIT}")
    assert message.count(".parquet") == 10
    assert message.endswith("data/part09-0.parquet and 2 more.")


def test_the_token_of_the_settings_opens_a_gated_data_set(tmp_path: Path) -> None:
    with served(TinyHub(two_shards(tmp_path), gated=True, private=True)) as server:
        questions = load(server, tmp_path, HF_TOKEN=TOKEN)

    assert len(questions) == 3
    assert set(server.authorizations) == {f"Bearer {TOKEN}"}


def test_no_token_of_this_machine_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with served(TinyHub(two_shards(tmp_path))) as server:
        download(a_hub(), token=None, endpoint=server.address, cache=tmp_path / "hub")

    assert set(server.authorizations) == {None}


A_GATED_HUB = TinyHub({"test.csv": b""}, gated=True)
A_CLOSED_HUB = TinyHub({"test.csv": b""}, gated=True, granted=False)


@pytest.mark.parametrize(
    ("server", "hub", "token", "advice"),
    [
        (A_GATED_HUB, a_hub(), None, "and put a token into HF_TOKEN"),
        (A_CLOSED_HUB, a_hub(), TOKEN, "has no access to this gated data set; accept"),
        (TinyHub({}, private=True), a_hub(), None, "if it is private, put a token into HF_TOKEN"),
        (TinyHub({}), a_hub(), "hf_wrong", "the hub does not accept the token in HF_TOKEN"),
        (TinyHub({}), a_hub(repository="no/no"), None, "there is no data set at"),
        (TinyHub({}), a_hub(repository="no/no"), TOKEN, "the token in HF_TOKEN must have access"),
        (TinyHub({}), a_hub(revision="v9"), None, "there is no revision 'v9'"),
        (TinyHub({}, status=503), a_hub(), None, "answered with status 503; try again later"),
        (TinyHub({}, status=403), a_hub(), TOKEN, "the hub does not accept the token in HF_TOKEN"),
        (TinyHub({}, body=b"<html>"), a_hub(), None, "does not answer like a Hugging Face hub"),
        (TinyHub({}, body=b"{}"), a_hub(), None, "does not answer like a Hugging Face hub"),
    ],
)
def test_each_refusal_says_what_to_do(
    tmp_path: Path, server: TinyHub, hub: Hub, token: str | None, advice: str
) -> None:
    with served(server):
        message = refusal(server, hub, tmp_path / "hub", token)

    assert message.startswith(f"{hub.repository}: ")
    assert advice in message
    assert "\n" not in message
    assert "hf_" not in message


def test_an_endpoint_that_is_not_there_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"

        message = refusal(TinyHub({}, address=address), a_hub(), tmp_path / "hub", TOKEN)

    assert f"{address} cannot be reached" in message
    assert TOKEN not in message
