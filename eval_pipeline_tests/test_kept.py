"""Answers that are kept: made once for all who ask, and never for long."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from eval_pipeline.web import cache
from eval_pipeline.web.cache import Answer, ResponseCache


def an_answer(text: str = "x", size: int = 1) -> Answer:
    return Answer.of((text * size).encode(), "text/plain")


def test_who_asks_the_same_at_the_same_time_waits_for_one_answer() -> None:
    answers, made, go = ResponseCache(), [], Event()

    def make() -> Answer:
        made.append(1)
        go.wait(10)
        return an_answer()

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(answers.get, "page", make, 5) for _ in range(8)]
        go.set()
        found = {one.result(10).body for one in asked}

    assert (found, made) == ({b"x"}, [1])


def test_an_answer_gets_old(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ResponseCache()
    first = answers.get("page", lambda: an_answer("a"), 5)
    same = answers.get("page", lambda: an_answer("b"), 5)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 6)

    new = answers.get("page", lambda: an_answer("c"), 5)

    assert [one.body for one in (first, same, new)] == [b"a", b"a", b"c"]


def test_a_failure_is_told_and_not_kept() -> None:
    answers = ResponseCache()

    with pytest.raises(ZeroDivisionError):
        answers.get("page", lambda: an_answer(size=1 // 0), 5)

    assert answers.get("page", an_answer, 5).body == b"x"


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_CACHED", 2_500)
    answers, made = ResponseCache(), []

    def make(name: str) -> Answer:
        made.append(name)
        return an_answer(name, 900)

    for name in ("a", "b", "c", "a", "c"):
        answers.get(name, lambda name=name: make(name), 5)  # type: ignore[misc]

    assert made == ["a", "b", "c", "a"]


def test_while_a_run_is_at_work_answers_are_made_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(cache, "BACKOFF_FACTOR", 10_000)
    busy = [False]
    answers = ResponseCache(lambda: busy[0])

    def work() -> Answer:
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        return an_answer()

    answers.get("first", work, 5)
    answers.get("second", work, 5)
    busy[0] = True
    answers.get("third", work, 5)

    (pause,) = slept
    assert pause > 100
