"""Loading: every item of every suite or none, never all in memory, under the same version."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import JsonValue

from eval_pipeline.errors import DatasetError
from eval_pipeline.hashing import RunningFingerprint, fingerprint
from eval_pipeline.journal import ITEMS, VERSIONS, Journal, JournalError
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current, keep, load_benchmark, past_items
from eval_pipeline_tests.builders import a_benchmark, a_question, a_task, settings_in

SAMPLE = Path(__file__).parent.parent / "data" / "sample" / "questions.jsonl"

values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


def write_questions(settings: Settings, name: str, *item_ids: str) -> None:
    rows = (a_question(one).model_dump(mode="json", exclude={"suite"}) for one in item_ids)
    (settings.root / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


@hypothesis_settings(max_examples=60, deadline=None, database=None)
@given(parts=st.lists(values, max_size=4))
def test_parts_that_come_one_by_one_have_the_same_fingerprint(parts: list[JsonValue]) -> None:
    running = RunningFingerprint()

    for part in parts:
        running.add(part)

    assert running.value() == fingerprint(*parts)


def test_the_bundled_questions_have_the_version_they_always_had(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}])

    version = load_benchmark(settings).version

    # Earlier results are compared by these: if one changes here, everything is asked anew.
    assert [suite.suite_version for suite in version.suites] == ["d9c59886e2147ed7"]
    assert version.benchmark_version == "d9c2482af34aa37a"


@pytest.mark.parametrize(
    ("cluster", "version"),
    [
        (None, "730b55537a60a580"),
        ("raw_subject", "893d51fe33bee17f"),
        ("category", "ced60066d11de9aa"),
    ],
)
def test_clusters_are_part_of_the_version_only_where_they_are_named(
    tmp_path: Path, cluster: str | None, version: str
) -> None:
    named = {} if cluster is None else {"cluster": cluster}
    suite = {"name": "sample", "path": "questions.jsonl", **named}

    loaded = load_benchmark(settings_in(tmp_path, suites=[suite]))

    assert [one.suite_version for one in loaded.version.suites] == [version]
    of_item = {"raw_subject": "Arithmetic", "category": "Math"}.get(cluster or "")
    assert next(iter(loaded.items.values())).cluster == of_item


def test_what_was_loaded_is_what_is_read_from_the_journal(tmp_path: Path) -> None:
    suites = [{"name": "sample", "path": SAMPLE}, {"name": "ours", "path": "questions.jsonl"}]
    settings = settings_in(tmp_path, suites=suites)
    journal = Journal(settings.journal)

    loaded = load_benchmark(settings)
    keep(loaded, journal)

    assert current(journal, settings).version == loaded.version
    assert list(current(journal, settings).items.items()) == list(loaded.items.items())
    assert len(loaded.items) == 143


def test_a_wrong_row_in_one_suite_leaves_nothing_of_the_others(tmp_path: Path) -> None:
    suites = [{"name": "good", "path": "questions.jsonl"}, {"name": "bad", "path": "bad.jsonl"}]
    settings = settings_in(tmp_path, suites=suites)
    write_questions(settings, "bad.jsonl", "q1", "q2", "q1")

    with pytest.raises(DatasetError, match=r"bad\.jsonl: row 3 .* the same as in bad\.jsonl row 1"):
        current(Journal(settings.journal), settings)

    assert [path for path in settings.data.rglob("*") if path.is_file()] == []


def test_loading_the_same_again_writes_nothing(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    keep(load_benchmark(settings), journal)
    before = journal.snapshot()

    keep(load_benchmark(settings), journal)

    assert journal.snapshot() == before


def test_the_items_of_an_older_version_stay(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    older = current(journal, settings).version.benchmark_version
    write_questions(settings, "questions.jsonl", "new")

    keep(load_benchmark(settings), journal)

    assert [key.item_id for key in past_items(journal, older)] == ["q1", "q2", "q3"]
    assert [key.item_id for key in current(journal, settings).items] == ["new"]


def test_known_faults_of_tasks_are_kept_as_they_are_now_under_the_same_version(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "journal")
    before = a_benchmark(a_task(gaps="The first test is wrong."))
    keep(before, journal)
    published = journal.snapshot(ITEMS)

    keep(
        replace(a_benchmark(a_task(gaps="The third test is wrong.")), version=before.version),
        journal,
    )

    (task,) = past_items(journal, before.version.benchmark_version).values()
    assert isinstance(task, CodingTask) and task.gaps == "The third test is wrong."
    assert journal.snapshot(ITEMS) != published
    assert len(list(journal.read(VERSIONS))) == 1


def test_a_version_whose_items_are_gone_says_what_to_do(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    keep(load_benchmark(settings), journal)
    for path in journal.files(ITEMS):
        path.unlink()

    with pytest.raises(JournalError, match="of the suite sample, but not its items"):
        current(journal, settings)


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = settings_in(tmp_path, data_dir=tmp_path / "file" / "data")

    with pytest.raises(JournalError, match="It cannot be written"):
        load_benchmark(settings)


def test_loading_and_reading_never_have_all_questions_in_memory(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    row = a_question(question="long " * 4000).model_dump(mode="json", exclude={"suite"})
    with (tmp_path / "questions.jsonl").open("w") as file:
        file.writelines(json.dumps({**row, "id": f"q{n}"}) + "\n" for n in range(400))
    keep(load_benchmark(settings_in(tmp_path / "warm")), Journal(tmp_path / "warm" / "journal"))
    tracemalloc.start()

    keep(load_benchmark(settings), journal)
    texts = sum(len(item.question) for item in current(journal, settings).items.values())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert texts == 400 * 20_000
    assert peak < texts / 8
    assert len(list(journal.read(VERSIONS))) == 1
