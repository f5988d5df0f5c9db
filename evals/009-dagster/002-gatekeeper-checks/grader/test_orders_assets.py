"""Assets and checks are run together in process, on a file of the test."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from orders_assets import Inbox, amounts_are_known, order_ids_are_unique, orders, revenue

INSTANCE = dg.DagsterInstance.ephemeral()
ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


def run(folder: Path, content: list[dict[str, Any]]) -> dg.ExecuteInProcessResult:
    path = folder / "orders.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return dg.materialize(
        [orders, revenue, order_ids_are_unique, amounts_are_known],
        instance=INSTANCE,
        resources={"inbox": Inbox(path=str(path)), "io_manager": dg.mem_io_manager},
        raise_on_error=False,
    )


def order(id: int, cents: int | None = 100) -> dict[str, Any]:
    return {"id": id, "cents": cents}


def evaluations(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {found.check_name: found for found in result.get_asset_check_evaluations()}


def materialized(result: dg.ExecuteInProcessResult) -> set[str]:
    events = result.get_asset_materialization_events()
    return {event.asset_key.to_user_string() for event in events if event.asset_key}


def number(evaluation: dg.AssetCheckEvaluation, name: str) -> Any:
    return evaluation.metadata[name].value


def test_good_orders_pass_both_checks_and_make_revenue(tmp_path: Path) -> None:
    result = run(tmp_path, [order(1, 1250), order(2, 50)])

    assert result.success
    assert result.output_for_node("revenue") == 1300
    assert {name: found.passed for name, found in evaluations(result).items()} == {
        "order_ids_are_unique": True,
        "amounts_are_known": True,
    }


def test_duplicated_ids_keep_revenue_from_being_computed(tmp_path: Path) -> None:
    result = run(tmp_path, [order(1), order(2), order(1)])

    assert not result.success
    assert materialized(result) == {"orders"}


def test_duplicated_ids_are_reported_as_a_failed_check(tmp_path: Path) -> None:
    result = run(tmp_path, [order(1), order(2), order(1)])

    found = evaluations(result)["order_ids_are_unique"]
    assert not found.passed
    assert found.severity == ERROR
    assert number(found, "duplicated") == 1


@pytest.mark.parametrize(
    ("ids", "duplicated"),
    [([1, 1, 1], 1), ([1, 2, 1, 2, 3], 2), ([5, 5, 5, 6, 6, 7], 2)],
)
def test_each_duplicated_id_counts_once(tmp_path: Path, ids: list[int], duplicated: int) -> None:
    found = evaluations(run(tmp_path, [order(id) for id in ids]))["order_ids_are_unique"]

    assert number(found, "duplicated") == duplicated


def test_unknown_amounts_warn_and_revenue_goes_on(tmp_path: Path) -> None:
    result = run(tmp_path, [order(1, 300), order(2, None), order(3, None)])

    found = evaluations(result)["amounts_are_known"]
    assert result.success
    assert result.output_for_node("revenue") == 300
    assert (found.passed, found.severity, number(found, "unknown")) == (False, WARN, 2)


def test_an_amount_of_zero_is_known(tmp_path: Path) -> None:
    found = evaluations(run(tmp_path, [order(1, 0)]))["amounts_are_known"]

    assert found.passed
    assert number(found, "unknown") == 0


def test_checks_that_pass_have_severity_and_metadata_too(tmp_path: Path) -> None:
    found = evaluations(run(tmp_path, [order(1), order(2)]))

    unique, known = found["order_ids_are_unique"], found["amounts_are_known"]
    assert (unique.severity, number(unique, "duplicated")) == (ERROR, 0)
    assert (known.severity, number(known, "unknown")) == (WARN, 0)


def test_both_checks_report_where_both_fail(tmp_path: Path) -> None:
    result = run(tmp_path, [order(1, None), order(1, 5)])

    found = evaluations(result)
    assert not result.success
    assert "revenue" not in materialized(result)
    assert {name: check.passed for name, check in found.items()} == {
        "order_ids_are_unique": False,
        "amounts_are_known": False,
    }


def test_no_orders_are_no_problem(tmp_path: Path) -> None:
    result = run(tmp_path, [])

    assert result.success
    assert result.output_for_node("revenue") == 0
    assert all(found.passed for found in evaluations(result).values())


def test_checks_are_about_orders(tmp_path: Path) -> None:
    result = run(tmp_path, [order(1)])

    assert {found.asset_key for found in evaluations(result).values()} == {dg.AssetKey("orders")}
