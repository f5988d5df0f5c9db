"""The simulated gateway over real HTTP, when it behaves."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from eval_pipeline.gateways.demo.replies import question_hash
from eval_pipeline.gateways.demo.server import LARGEST_BODY, DemoGateway, PortTaken
from eval_pipeline.records.item import ExamQuestion

QUESTION = "What is the capital of France?"


def an_item(question: str = QUESTION, answer: str = "Paris") -> ExamQuestion:
    return ExamQuestion(
        suite="test",
        id=question,
        question=question,
        image=None,
        answer=answer,
        answer_type="exactMatch",
        category="Other",
        rationale="",
        raw_subject="",
    )


def a_body(model: str = "demo/strong", text: str = QUESTION, **more: object) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}]} | more


def ask(gateway: DemoGateway, body: object, key: str | None = None) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    url = f"{gateway.base_url}/chat/completions"
    return httpx.post(url, json=body, headers=headers, timeout=60)


def content(reply: httpx.Response) -> str:
    assert reply.status_code == 200, reply.text
    return str(reply.json()["choices"][0]["message"]["content"])


def events(reply: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in reply.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def gateway() -> Iterator[DemoGateway]:
    with DemoGateway([an_item(), an_item("What is 6 times 7?", "42")]) as gateway:
        yield gateway


def test_the_models_are_listed_as_simulated(gateway: DemoGateway) -> None:
    listed = httpx.get(f"{gateway.base_url}/models").json()["data"]

    assert {entry["id"] for entry in listed} == {
        "demo/strong",
        "demo/average",
        "demo/weak",
        "demo/judge",
    }
    assert all(entry["simulated"] is True for entry in listed)
    assert all("(simulated)" in entry["name"] for entry in listed)


def test_a_reply_has_the_form_that_the_prompt_asks_for(gateway: DemoGateway) -> None:
    reply = ask(gateway, a_body())

    form = r"Explanation: Simulated reply: .+\nAnswer: .+\nConfidence: \d+%"
    assert re.fullmatch(form, content(reply))
    assert reply.json()["system_fingerprint"] == "fp_simulated"
    assert reply.json()["choices"][0]["finish_reason"] == "stop"


def test_the_same_question_gets_the_same_reply_under_another_id(gateway: DemoGateway) -> None:
    first, second = (ask(gateway, a_body()) for _ in range(2))

    assert content(first) == content(second)
    assert first.json()["id"].rpartition("-")[0] == second.json()["id"].rpartition("-")[0]
    assert first.json()["id"] != second.json()["id"]


def test_a_stream_says_what_the_whole_reply_says_in_several_pieces(gateway: DemoGateway) -> None:
    whole = content(ask(gateway, a_body()))

    reply = ask(gateway, a_body(stream=True))

    chunks = events(reply)
    deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert "".join(deltas) == whole
    assert sum(bool(delta) for delta in deltas) > 3
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[-2:]] == [None, "stop"]


def test_usage_comes_last_in_a_stream_that_asks_for_it(gateway: DemoGateway) -> None:
    whole = ask(gateway, a_body()).json()

    reply = ask(gateway, a_body(stream=True, stream_options={"include_usage": True}))

    last = events(reply)[-1]
    assert last["choices"] == []
    assert last["usage"] == whole["usage"]
    assert whole["usage"]["completion_tokens"] > 20
    assert whole["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}
    assert whole["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}


def test_an_image_counts_85_tokens(gateway: DemoGateway) -> None:
    text = {"type": "text", "text": QUESTION}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    plain, seen = (
        ask(gateway, {"model": "demo/strong", "messages": [{"role": "user", "content": parts}]})
        for parts in ([text], [text, image])
    )

    assert content(plain) == content(seen)
    tokens = [reply.json()["usage"]["prompt_tokens"] for reply in (plain, seen)]
    assert tokens == [8, 93]


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_a_reply_is_cut_at_the_token_limit(gateway: DemoGateway, limit: str) -> None:
    whole = content(ask(gateway, a_body()))

    reply = ask(gateway, a_body() | {limit: 5})

    assert content(reply) == whole[:20]
    assert reply.json()["choices"][0]["finish_reason"] == "length"
    assert reply.json()["usage"]["completion_tokens"] == 5


def test_the_weak_model_answers_when_the_prompt_stands_before_the_question(
    gateway: DemoGateway,
) -> None:
    reply = ask(gateway, a_body("demo/weak", f"Be brief.\n\n{QUESTION}"))

    assert content(reply) == content(ask(gateway, a_body("demo/weak")))
    assert "Answer: unknown" not in content(reply)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (a_body("demo/weak", temperature=0), "temperature"),
        (
            {"model": "demo/weak", "messages": [{"role": "system", "content": "Be brief."}]},
            "messages.role",
        ),
        (
            {
                "model": "demo/judge",
                "messages": [{"role": "user", "content": [{"type": "image_url"}]}],
            },
            "messages.content",
        ),
    ],
)
def test_what_a_model_does_not_take_is_refused(
    gateway: DemoGateway, body: object, param: str
) -> None:
    reply = ask(gateway, body)

    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == param


def test_a_question_it_was_not_given_is_unknown(gateway: DemoGateway) -> None:
    reply = ask(gateway, a_body(text="What is the capital of Spain?"))

    assert "Answer: unknown" in content(reply)


def test_the_judge_replies_in_json_and_needs_no_items() -> None:
    prompt = "<reference>Oslo</reference><response>Answer: oslo.\nConfidence: 70%</response>"
    schema = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": {}}}

    with DemoGateway([]) as gateway:
        reply = ask(gateway, a_body("demo/judge", prompt, response_format=schema))

    verdict = json.loads(content(reply))
    assert (verdict["correct"], verdict["confidence"]) == (True, 70)


def test_a_judge_that_finds_nothing_to_judge_does_not_reply_in_json(gateway: DemoGateway) -> None:
    reply = ask(gateway, a_body("demo/judge", "Is this right?"))

    assert content(reply).startswith("Simulated judge: I can not judge this")


def test_an_unknown_model_is_not_found(gateway: DemoGateway) -> None:
    reply = ask(gateway, a_body("demo/none"))

    assert reply.status_code == 404
    assert reply.json()["error"]["code"] == "model_not_found"
    assert "demo/none" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("not an object", "Malformed request, the body"),
        ({"model": "demo/strong"}, "messages"),
        (a_body() | {"messages": []}, "messages"),
        (a_body(max_tokens=0), "max_tokens"),
        (a_body() | {"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
    ],
)
def test_a_malformed_request_is_explained(
    gateway: DemoGateway, body: object, complaint: str
) -> None:
    reply = ask(gateway, body)

    assert reply.status_code == 400
    assert complaint in reply.json()["error"]["message"]


def test_a_body_above_the_limit_is_refused(gateway: DemoGateway) -> None:
    reply = ask(gateway, a_body(text="x" * LARGEST_BODY))

    assert reply.status_code == 413
    assert reply.json()["error"]["code"] == "request_too_large"


def test_a_wrong_key_is_refused_everywhere_it_is_needed() -> None:
    with DemoGateway([an_item()], api_key="right") as gateway:
        asked = [ask(gateway, a_body(), key).status_code for key in (None, "wrong", "right")]
        listed = httpx.get(f"{gateway.base_url}/models").status_code
        healthy = httpx.get(f"{gateway.base_url}/health").json()

    assert asked == [401, 401, 200]
    assert listed == 401
    assert healthy == {"status": "ok"}


@pytest.mark.parametrize("path", ["/", "/v1/health", "/v1/models", "/v1/nothing"])
def test_every_reply_says_that_it_is_simulated(gateway: DemoGateway, path: str) -> None:
    reply = httpx.get(gateway.base_url.removesuffix("/v1") + path)

    assert reply.headers["x-simulated"] == "true"
    assert path != "/" or "SIMULATED" in reply.text
    assert reply.status_code == (404 if path == "/v1/nothing" else 200)


def test_requests_are_counted_by_model_and_question() -> None:
    with DemoGateway([an_item()]) as gateway:
        ask(gateway, a_body())
        ask(gateway, a_body(text=f"Be brief.\n\n{QUESTION}"))
        ask(gateway, a_body("demo/weak", temperature=1))

    assert gateway.requests == {"demo/strong": 2, "demo/weak": 1}
    assert gateway.seen["demo/strong", question_hash(QUESTION)] == 2


def test_a_taken_port_is_named_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with pytest.raises(PortTaken, match=rf"Port {port} .* is in use: .* another port"):
            DemoGateway([], port=port).start()


def test_a_port_is_free_again_after_a_stop() -> None:
    with DemoGateway([an_item()]) as first:
        ask(first, a_body())
        port = int(first.base_url.split(":")[2].removesuffix("/v1"))

    with DemoGateway([an_item()], port=port) as second:
        reply = ask(second, a_body())

    assert reply.status_code == 200
    assert second.base_url == first.base_url


def test_served_in_the_foreground_it_says_where_and_that_it_is_simulated() -> None:
    program = "from eval_pipeline.gateways.demo.server import serve; serve([])"
    arguments = [sys.executable, "-c", program]

    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        health = httpx.get(line.split()[0] + "/health")
        process.send_signal(signal.SIGINT)
        ended = process.wait(timeout=60)

    assert "SIMULATED" in line
    assert health.status_code == 200
    assert ended == 0
