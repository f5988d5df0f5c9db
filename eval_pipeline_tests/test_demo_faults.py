"""Faults as decisions: how often, for whom, how many times, and what is said about coming again."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from eval_pipeline.gateways.demo.faults import SERVER_ERRORS, FaultKind, Faults

SHARES = (
    "rate_limited",
    "server_error",
    "cut_stream",
    "invalid_json",
    "hang",
    "reset",
    "empty",
    "context_too_long",
)


def kinds(faults: Faults, requests: int = 2000) -> Counter[str | None]:
    decided = (faults.decide("demo/strong", f"content {n}", 0) for n in range(requests))
    return Counter(fault.kind.value if fault else None for fault in decided)


@pytest.mark.parametrize("name", SHARES)
def test_a_fault_happens_in_its_share_of_the_requests(name: str) -> None:
    faults = Faults.model_validate({name: 0.3})

    counted = kinds(faults)

    assert set(counted) == {name, None}
    assert counted[name] / 2000 == pytest.approx(0.3, abs=0.04)


def test_several_shares_add_up() -> None:
    faults = Faults.model_validate(dict.fromkeys(SHARES, 1 / len(SHARES)))

    counted = kinds(faults)

    assert set(counted) == set(SHARES)
    assert min(counted.values()) > 200


def test_shares_above_one_together_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"must not exceed 1 together, got 1\.2"):
        Faults(hang=0.6, reset=0.6)


def test_the_seed_alone_decides_which_requests_fail() -> None:
    def failing(seed: int) -> list[bool]:
        faults = Faults(seed=seed, reset=0.5)
        return [faults.decide("demo/strong", str(n), 0) is not None for n in range(200)]

    assert failing(1) == failing(1)
    assert failing(1) != failing(2)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_server_behaves_after_so_many_faults_for_one_content(share: float) -> None:
    faults = Faults(hang=share, times=2)

    for content in map(str, range(50)):
        decided = [faults.decide("demo/strong", content, attempt) for attempt in range(60)]
        assert sum(fault is not None for fault in decided) == 2
        if share == 1:
            assert [fault is not None for fault in decided[:3]] == [True, True, False]


def test_faults_are_for_the_named_models_only() -> None:
    faults = Faults(hang=1, latency_s=2, drip_s=3, models=("demo/weak",))

    assert faults.decide("demo/strong", "content", 0) is None
    assert faults.delay_s("demo/strong", "content", 0) == 0
    assert faults.decide("demo/weak", "content", 0) == (FaultKind.HANG, None)
    assert faults.delay_s("demo/weak", "content", 0) == 2
    assert (faults.drip("demo/strong"), faults.drip("demo/weak")) == (0, 3)


def test_a_fixed_status_comes_before_everything_else() -> None:
    faults = Faults(hang=1, times=1, models=("demo/strong",), status={"demo/weak": 402})

    decided = [faults.decide("demo/weak", "content", attempt) for attempt in range(5)]

    assert decided == [(FaultKind.STATUS, 402)] * 5


def test_server_errors_take_turns() -> None:
    faults = Faults(server_error=1)

    decided = [faults.decide("demo/strong", "content", attempt) for attempt in range(8)]

    statuses = [fault.status for fault in decided if fault]
    assert statuses[:4] == statuses[4:]
    assert sorted(filter(None, statuses[:4])) == list(SERVER_ERRORS)


def test_jitter_lengthens_the_delay_by_up_to_its_size() -> None:
    faults = Faults(latency_s=1, latency_jitter_s=0.5)

    delays = [faults.delay_s("demo/strong", str(n), 0) for n in range(200)]

    assert min(delays) >= 1
    assert max(delays) < 1.5
    assert max(delays) - min(delays) > 0.4


@pytest.mark.parametrize(
    ("faults", "status", "header"),
    [
        (Faults(), 429, None),
        (Faults(retry_after="seconds", retry_after_s=0.25), 429, "0.25"),
        (Faults(retry_after="seconds", retry_after_s=3), 503, "3"),
        (Faults(retry_after="seconds"), 500, None),
        (
            Faults(retry_after="date", retry_after_s=1.5),
            429,
            "Wed, 01 Jan 2025 00:00:02 GMT",
        ),
    ],
)
def test_retry_after_is_written_as_told(faults: Faults, status: int, header: str | None) -> None:
    now = datetime(2025, 1, 1, tzinfo=UTC)

    assert faults.retry_after_header(status, now).get("retry-after") == header


def test_mixed_retry_after_is_written_in_every_way_and_the_same_for_one_content() -> None:
    faults, now = Faults(retry_after="mixed", retry_after_s=3), datetime(2025, 1, 1, tzinfo=UTC)

    first, second = (
        [faults.retry_after_header(429, now, f"content {n}").get("retry-after") for n in range(60)]
        for _ in range(2)
    )

    counted = Counter(first)
    assert first == second
    assert set(counted) == {None, "3", "Wed, 01 Jan 2025 00:00:03 GMT"}
    assert min(counted.values()) > 8
