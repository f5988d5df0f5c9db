"""Records come back from either kind of file as they were: any text, in order, in little memory."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.journal import JUDGED, PREDICTIONS, Journal, JournalError
from eval_pipeline.journal.files import FileCompactedError
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline_tests.builders import a_prediction

MODEL, RUN = "demo/strong", "run-1"
TEXTS = st.text() | st.sampled_from(
    [
        "",
        "\0",
        "a\0b",
        "😀",
        "\u2028\u2029\x85",
        '"',
        "'",
        "\\",
        "\r\n",
        "\x1f",
        "null",
        "x" * 70_000,
    ]
)
FLOATS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
COUNTS = st.none() | st.integers(-(2**70), 2**70)

PREDICTED = st.builds(
    Prediction,
    prediction_id=TEXTS,
    run_id=st.just(RUN),
    model=st.just(MODEL),
    suite=TEXTS,
    item_id=TEXTS,
    outcome=st.sampled_from(Outcome),
    answer=st.none() | TEXTS,
    error=st.none() | TEXTS,
    usage=st.builds(Usage, input_tokens=COUNTS, cost_usd=FLOATS, cost_estimated=st.booleans()),
    latency_s=FLOATS,
    attempts=st.integers(),
    request_hash=TEXTS,
    finished_at=MOMENTS,
)
GRADED = st.builds(
    Judgement,
    prediction_id=TEXTS,
    run_id=st.just(RUN),
    model=st.just(MODEL),
    suite=TEXTS,
    item_id=TEXTS,
    judge=TEXTS,
    judge_version=TEXTS,
    outcome=st.sampled_from(Outcome),
    score=st.none() | st.floats(0, 1),
    reason=TEXTS,
    raw_reply=st.none() | TEXTS,
    finished_at=MOMENTS,
)

# Compacts a small run, so that DuckDB is there; then a large one, and says by how much it grew.
GROWING = """
import resource, sys
from pathlib import Path
from eval_pipeline.journal import PREDICTIONS, Journal
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
journal = Journal(Path(sys.argv[1]))
journal.compact(PREDICTIONS, "demo/strong", "run-1")
before = peak()
journal.compact(PREDICTIONS, "demo/strong", "run-2")
assert sum(1 for _ in journal.read(PREDICTIONS, "demo/strong", "run-2")) == 20_000
print((peak() - before) // 1024)
"""


def a_journal_of_two_files(folder: Path) -> Journal:
    journal = Journal(folder)
    for name, item_ids in (("a", ("q1", "q2")), ("b", ("q3",))):
        records = map(a_prediction, item_ids)
        journal.write_whole(PREDICTIONS, MODEL, RUN, name, records=records)
    return journal


@given(
    records=st.lists(PREDICTED, min_size=1, max_size=5),
    verdicts=st.lists(GRADED, min_size=1, max_size=5),
)
@settings(max_examples=25, deadline=None)
def test_every_record_comes_back_as_it_was_and_in_its_place(
    records: list[Prediction], verdicts: list[Judgement]
) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder))
        for name, half in (("a", slice(None, 2)), ("b", slice(2, None))):
            journal.write_whole(PREDICTIONS, MODEL, RUN, name, records=records[half])
            journal.write_whole(JUDGED, MODEL, RUN, name, records=verdicts[half])

        journal.compact(PREDICTIONS, MODEL, RUN)
        journal.compact(JUDGED, MODEL, RUN)

        files = [*journal.files(PREDICTIONS), *journal.files(JUDGED)]
        assert [path.suffix for path in files] == [".parquet", ".parquet"]
        assert list(journal.read(PREDICTIONS)) == records
        assert list(journal.read(JUDGED)) == verdicts


def test_many_records_of_all_lengths_keep_their_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    lengths = [0, 10, 3_000_000, *(n % 5000 for n in range(9000)), 6_000_000]
    records = [a_prediction(f"q{n}", answer="x" * length) for n, length in enumerate(lengths)]
    journal.write_whole(PREDICTIONS, MODEL, RUN, "a", records=records[:5000])
    journal.write_whole(PREDICTIONS, MODEL, RUN, "b", records=records[5000:])

    journal.compact(PREDICTIONS, MODEL, RUN)

    assert list(journal.read(PREDICTIONS)) == records


@pytest.mark.slow
def test_a_large_run_is_compacted_and_read_in_little_memory(tmp_path: Path) -> None:
    journal = a_journal_of_two_files(tmp_path)
    many = (a_prediction(f"q{n}", answer=f"{n} " * 1000) for n in range(20_000))
    journal.write_whole(PREDICTIONS, MODEL, "run-2", "a", records=many)
    command = [sys.executable, "-c", GROWING, str(tmp_path)]

    grown_by = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert int(grown_by) < 60


def test_a_spoilt_parquet_file_is_named(tmp_path: Path) -> None:
    journal = a_journal_of_two_files(tmp_path)
    journal.compact(PREDICTIONS, MODEL, RUN)
    (compacted,) = journal.files(PREDICTIONS)
    compacted.write_bytes(compacted.read_bytes()[:-10])

    with pytest.raises(JournalError, match=r"run-1/.*parquet: DuckDB gives up"):
        list(journal.read(PREDICTIONS))


def test_a_reader_whose_file_went_away_is_told_to_try_again(tmp_path: Path) -> None:
    journal = a_journal_of_two_files(tmp_path)
    reading = journal.read(PREDICTIONS)
    next(reading)

    for path in journal.files(PREDICTIONS):
        path.unlink()

    with pytest.raises(FileCompactedError, match="try again"):
        list(reading)
