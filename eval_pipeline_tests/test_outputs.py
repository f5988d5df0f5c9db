"""OUTPUT_TEMPDIR: the files that models wrote, for people, and nowhere but in their own folder."""

from pathlib import Path

import pytest

from eval_pipeline.gateways.demo.coder import as_reply
from eval_pipeline.records.coding import Step
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.results.outputs import OutputError, write_outputs
from eval_pipeline.results.runs import find_runs
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
    a_task,
    graded_code,
)

ITEM = "001-words/001-sum"
RUN = "0123456789-run"
BENCHMARK = a_benchmark(a_task(ITEM), a_task("001-words/002-none"), a_question("q1"))
REPLY = as_reply({"answer.py": "print(1)\n", "lib/more.py": "x = 2\n"})
FAILED = graded_code(
    Step(name="filesystem", status="passed"),
    Step(name="tests", status="failed", reason="one of two", output="E  1 != 2"),
)


def a_coding_run(model: str = "demo/strong", run_id: str = RUN) -> Run:
    version = BENCHMARK.version.benchmark_version
    return a_run(run_id, model, list(BENCHMARK.items), benchmark_version=version)


def replied(run: Run, answer: str | None, item_id: str = ITEM, **changes: object) -> Prediction:
    about: dict[str, object] = {"suite": "coding", "run_id": run.run_id, "model": run.model}
    return a_prediction(item_id, **{**about, "answer": answer, **changes})


def published(folder: Path, *records: Run | Prediction | Judgement) -> Warehouse:
    journal = a_journal(folder, *records, benchmark=BENCHMARK)
    warehouse = Warehouse(folder / "evals.duckdb", journal)
    warehouse.publish()
    return warehouse


def write(warehouse: Warehouse, folder: Path, name: str = RUN) -> int:
    with warehouse.reading() as db:
        return write_outputs(db, warehouse.journal, find_runs(db, name), folder)


def below(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def with_reply(folder: Path, answer: str) -> Warehouse:
    run = a_coding_run()
    prediction = replied(run, answer)
    return published(folder, run, prediction, a_judgement(prediction, 0.0, code=FAILED))


def test_every_reply_in_code_is_written_with_its_files_and_steps(tmp_path: Path) -> None:
    run, other = a_coding_run(), a_coding_run("demo/weak")
    first, second = replied(run, REPLY), replied(other, REPLY, prediction_id="other")
    exam = replied(run, "42", suite="sample", item_id="q1", prediction_id="exam")
    silent = replied(
        run, None, item_id="001-words/002-none", outcome="timeout", prediction_id="silent"
    )
    verdict = a_judgement(first, 0.0, code=FAILED, reason="tests: one of two")
    warehouse = published(tmp_path, run, other, first, second, exam, silent, verdict)
    out = tmp_path / "not" / "yet"

    assert write(warehouse, out) == 2

    own, others = f"01234567/demo_strong/{ITEM}", f"01234567/demo_weak/{ITEM}"
    assert below(out) == {
        f"{own}/answer.py": "print(1)\n",
        f"{own}/lib/more.py": "x = 2\n",
        f"{own}/steps.log": f"coding/{ITEM}, sample 0: ok, score 0\ntests: one of two\n\n"
        "## filesystem: passed\n\n## tests: failed\none of two\nE  1 != 2\n",
        f"{others}/answer.py": "print(1)\n",
        f"{others}/lib/more.py": "x = 2\n",
        f"{others}/steps.log": f"coding/{ITEM}, sample 0: ok, no score\n",
    }


@pytest.mark.parametrize(
    "path",
    ["../../escaped.py", "/tmp/escaped.py", "a/../../b.py", "a\\b.py", "c:d.py", "x/\u200by.py"],
)
def test_a_reply_that_wants_out_of_its_folder_is_kept_as_it_came(tmp_path: Path, path: str) -> None:
    reply = f'<file path="{path}">\nprint(1)\n</file>\n'
    warehouse = with_reply(tmp_path / "data", reply)
    out = tmp_path / "out"

    write(warehouse, out)

    written = {Path(name).name: text for name, text in below(out).items()}
    assert set(written) == {"reply.txt", "steps.log"}
    assert written["reply.txt"] == reply
    assert {one.name for one in tmp_path.iterdir()} == {"data", "out"}
    assert [one.name for one in out.iterdir()] == ["01234567"]


def test_a_reply_without_files_is_kept_as_it_came(tmp_path: Path) -> None:
    warehouse = with_reply(tmp_path, "I would rather not.")

    write(warehouse, tmp_path / "out")

    written = below(tmp_path / "out" / "01234567" / "demo_strong" / ITEM)
    assert written["reply.txt"] == "I would rather not."


@pytest.mark.parametrize("name", ["steps.log", "Steps.LOG", "steps.log/inner.py"])
def test_a_file_of_the_models_own_that_is_called_steps_log_stays(tmp_path: Path, name: str) -> None:
    warehouse = with_reply(tmp_path, as_reply({"answer.py": "1\n", name: "all passed\n"}))

    write(warehouse, tmp_path / "out")

    written = below(tmp_path / "out" / "01234567" / "demo_strong" / ITEM)
    assert written[name] == "all passed\n"
    assert "## tests: failed" in written["_steps.log"]


def test_writing_again_replaces_the_reply_and_nothing_of_other_runs(tmp_path: Path) -> None:
    run, later = a_coding_run(), a_coding_run(run_id="later-run")
    warehouse = published(tmp_path, run, replied(run, REPLY), later, replied(later, REPLY))
    out = tmp_path / "out"
    write(warehouse, out)
    mine = out / "later-ru" / "demo_strong" / "notes.txt"
    write(warehouse, out, "later")
    mine.write_text("mine")

    better = replied(
        run,
        as_reply({"answer.py": "print(2)\n"}),
        prediction_id="better",
        finished_at=NOON.replace(hour=13),
    )
    a_journal(tmp_path, better, benchmark=BENCHMARK)
    warehouse.publish()
    write(warehouse, out)

    own = below(out / "01234567" / "demo_strong" / ITEM)
    assert {name: text for name, text in own.items() if name != "steps.log"} == {
        "answer.py": "print(2)\n"
    }
    assert mine.read_text() == "mine"
    assert (out / "later-ru" / "demo_strong" / ITEM / "lib" / "more.py").exists()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_links_on_the_way_are_not_followed(tmp_path: Path, depth: int) -> None:
    warehouse = with_reply(tmp_path / "data", REPLY)
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    parts = ["01234567", "demo_strong", *ITEM.split("/")][:depth]
    link = out.joinpath(*parts)
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)

    with pytest.raises(OutputError, match="is a link or a file: remove it"):
        write(warehouse, out)

    assert list(elsewhere.iterdir()) == []
    assert [one.name for one in out.iterdir()] == ["01234567"]


def test_a_link_in_the_place_of_a_task_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    warehouse = with_reply(tmp_path / "data", REPLY)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "answer.py").write_text("mine")
    place = tmp_path / "out" / "01234567" / "demo_strong" / ITEM
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)

    write(warehouse, tmp_path / "out")

    assert below(elsewhere) == {"answer.py": "mine"}
    assert not place.is_symlink()
    assert (place / "answer.py").read_text() == "print(1)\n"


def test_samples_stand_beside_each_other(tmp_path: Path) -> None:
    run = a_coding_run().model_copy(update={"samples": 2})
    first, second = (
        replied(run, as_reply({"answer.py": f"{n}\n"}), sample=n, prediction_id=str(n))
        for n in range(2)
    )
    warehouse = published(tmp_path, run, first, second)

    assert write(warehouse, tmp_path / "out") == 2

    words = tmp_path / "out" / "01234567" / "demo_strong" / "001-words"
    assert (words / "001-sum" / "answer.py").read_text() == "0\n"
    assert (words / "001-sum-sample-1" / "answer.py").read_text() == "1\n"


def test_samples_of_a_task_with_a_long_name_do_not_share_a_folder(tmp_path: Path) -> None:
    long = f"001-words/{'x' * 120}"
    benchmark = a_benchmark(a_task(long))
    version = benchmark.version.benchmark_version
    run = a_run(RUN, "demo/strong", list(benchmark.items), benchmark_version=version)
    run = run.model_copy(update={"samples": 3})
    replies = [
        replied(run, as_reply({"answer.py": f"{n}\n"}), long, sample=n, prediction_id=str(n))
        for n in range(3)
    ]
    journal = a_journal(tmp_path, run, *replies, benchmark=benchmark)
    warehouse = Warehouse(tmp_path / "evals.duckdb", journal)
    warehouse.publish()

    assert write(warehouse, tmp_path / "out") == 3

    answers = (tmp_path / "out").rglob("answer.py")
    assert {path.read_text() for path in answers} == {"0\n", "1\n", "2\n"}


ALIKE = ("x/y_z", "x_y/z", "x/y/z", "x/y:z", "x/y~z")


def test_models_that_are_spelled_almost_alike_have_folders_of_their_own(tmp_path: Path) -> None:
    runs = [a_coding_run(model) for model in ALIKE]
    replies = [replied(run, REPLY, prediction_id=run.model) for run in runs]
    warehouse = published(tmp_path, *runs, *replies)

    assert write(warehouse, tmp_path / "together") == len(ALIKE)
    for model in ALIKE:
        assert write(warehouse, tmp_path / "alone", f"{model}@{RUN}") == 1

    together = below(tmp_path / "together")
    assert len({name.split("/")[1] for name in together}) == len(ALIKE)
    assert below(tmp_path / "alone") == together
    assert "01234567/x_y_z" in {"/".join(name.split("/")[:2]) for name in together}
