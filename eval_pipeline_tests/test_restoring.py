"""Backup and restore, as docs/operations.md has it: who has the journal has the results."""

import shutil
from pathlib import Path
from typing import Any

from eval_pipeline.journal import PREDICTIONS, Journal
from eval_pipeline.journal.tokens import Tokens, TokenScope
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import a_prediction, a_warehouse, settings_in

COMPARED = ("runs", "predictions", "judged", "metrics", "leaderboard")


def shown(settings: Settings) -> dict[str, list[Any]]:
    """Every row of what people look at."""
    with Warehouse(settings.database, Journal(settings.journal)).reading() as db:
        return {name: db.sql(f"from {name} order by all").fetchall() for name in COMPARED}


def test_results_are_as_they_were_once_the_journal_is_back(tmp_path: Path) -> None:
    lost, restored = (settings_in(tmp_path / name) for name in ("lost", "restored"))
    warehouse = a_warehouse(lost.data, a_prediction("q1"), a_prediction("q2"))
    secret = Tokens(lost.tokens).create("ci", [TokenScope.WRITE]).get_secret_value()
    before = shown(lost)
    # A run was just writing when the copy was made.
    (written,) = warehouse.journal.files(PREDICTIONS)
    with written.open("ab") as file:
        file.write(b'{"prediction_id": "half')

    shutil.copytree(lost.journal, restored.journal)
    shutil.copy(lost.tokens, restored.tokens)
    shutil.rmtree(lost.data)

    assert shown(restored) == before and len(before["metrics"]) > 0
    assert Tokens(restored.tokens).check(secret) is not None
