"""Twelve models on two workers, one of which is killed: make cluster-test, docs/scale.md."""

import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import pytest
from rich.console import Console

from bench.tables import Cell, Table, print_table
from eval_pipeline.defs.partitions import ONE
from eval_pipeline.gateways.demo.replies import JUDGE, question_hash
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.journal.locks import dead_run_ids
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import load_benchmark
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.cluster import PLACES, Cluster, cluster
from eval_pipeline_tests.crowd import MODELS, Crowd
from eval_pipeline_tests.project import ROOT, environment
from eval_pipeline_tests.webserver import Run, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

SAMPLE = ROOT / "data" / "sample" / "questions.jsonl"
LATENCY_S = 0.2
AT_ONCE, MODELS_AT_ONCE = 4, 4
"""Requests per model, and models per gateway over all workers, which have places for more."""
PER_S, BUSY_S = 20, 10
"""What the judge lets through, over all workers, who would ask it two or three times as much."""
KILLED, LEFT = "first", "second"
MIDDLE = range(20, 125)
"""So many answers of a model are known when its worker is killed."""
FEW, MANY = 10, 100
RESULTS = (
    "from leaderboard select * exclude "
    "(latency_p50_s, mean_latency_s, mean_generation_s, run_id, run_ids, opened_at)",
    "from metrics select * exclude "
    "(run_id, latency_p50_s, latency_p95_s, first_token_p50_s, output_tokens_per_s, judged_at, "
    "bootstrap_low, bootstrap_high)",  # the dice are thrown by the id of the run
    "select predictions.model, predictions.item_id, answer, score "
    "from judged join predictions using (prediction_id)",
)
Rows = list[str]


@dataclass(frozen=True)
class Kill:
    """What there was when the worker was gone."""

    run_ids: list[str]
    models: list[str]
    known: Mapping[str, set[str]]
    """By model, the ids of the predictions that are in the journal."""
    asked: Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Proof:
    """What was seen in the cluster, and in one process."""

    items: Mapping[ItemKey, Item]
    predictions: list[Prediction]
    judgements: list[Judgement]
    opened: Counter[str]
    """How many runs of ours each model has."""
    kill: Kill
    runs: list[Run]
    workers: Mapping[str, str]
    asked: Mapping[tuple[str, str], int]
    judge_requests: int
    most_models: int
    most_requests: int
    busiest: int
    results: list[Rows]
    results_of_one_process: list[Rows]
    events: Mapping[int, int]
    seconds: float

    def times(self, model: str) -> Counter[int]:
        """How many items of a model were asked once, twice and so on."""
        return Counter(self.asked[model, key] for key in self.questions.values())

    @cached_property
    def questions(self) -> dict[str, str]:
        """What an item's question is called in the counts."""
        return {key.item_id: question_hash(item.question) for key, item in self.items.items()}


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Proof:
    folder = tmp_path_factory.mktemp("cluster")
    items = load_benchmark(settings_in(folder, suites=[_sample()])).items
    with (
        Crowd(tuple(items.values())) as undisturbed,
        Crowd(tuple(items.values()), latency_s=LATENCY_S, at_least=MODELS_AT_ONCE) as gateway,
        ThreadPoolExecutor(1) as beside,
    ):
        alone = _project(folder / "alone", undisturbed)
        shared = _project(folder / "shared", gateway, requests_per_minute=60 * PER_S)
        # While the cluster starts.
        done = beside.submit(_evaluated_alone, alone.root)
        with cluster(shared.root, folder, KILLED, LEFT) as running:
            assert done.result().returncode == 0, done.result().stderr
            seen = _evaluated(running, gateway, shared, items, _results(alone))
    print_table(_table(seen), Console(width=120))
    return seen


def _evaluated_alone(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["evals", "run"],
        cwd=project,
        env=environment() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def _sample() -> dict[str, object]:
    return {"name": "sample", "path": SAMPLE}


def _project(folder: Path, gateway: Crowd, **limits: int) -> Settings:
    folder.mkdir()
    return settings_in(
        folder,
        suites=[_sample()],
        gateways=[{"name": "demo", "kind": "demo", "base_url": gateway.base_url}],
        concurrency={"num_workers": AT_ONCE, "max_concurrent_models": MODELS_AT_ONCE},
        judge={"num_workers": AT_ONCE},
        overrides={JUDGE.id: limits} if limits else {},
        # To try whether a new model answers, all are asked at once.
        automation={"preflight": False},
    )


def _evaluated(
    running: Cluster,
    gateway: Crowd,
    settings: Settings,
    items: Mapping[ItemKey, Item],
    results_of_one_process: list[Rows],
) -> Proof:
    web, journal, workers = running.webserver, Journal(settings.journal), dict[str, str]()
    assert web.materialize("dataset", "model_catalog") == "SUCCESS"
    began = time.monotonic()
    for model in MODELS:
        web.start("evaluate", model)
    kill = _kill(running, gateway, journal, workers)
    wait_for(lambda: _all_done(running, workers), 600)
    seconds, asked, runs = time.monotonic() - began, Counter(gateway.seen), web.runs()
    return Proof(
        items=items,
        predictions=list(journal.read(PREDICTIONS)),
        judgements=list(journal.read(JUDGED)),
        opened=Counter(run.model for run in journal.read(RUNS)),
        kill=kill,
        runs=[run for run in runs if run.job == "evaluate"],
        workers=workers,
        asked=asked,
        judge_requests=gateway.requests[JUDGE.id],
        most_models=gateway.most_models,
        most_requests=gateway.most_requests,
        busiest=gateway.busiest(BUSY_S),
        results=_results(settings),
        results_of_one_process=results_of_one_process,
        events=_events(running, FEW, MANY),
        seconds=seconds,
    )


def _kill(running: Cluster, gateway: Crowd, journal: Journal, workers: dict[str, str]) -> Kill:
    """Kills the worker when all its places are taken and it is in the middle of a model."""
    models: dict[str, str] = {}

    def in_the_middle() -> bool:
        workers.update(at_work := running.at_work())
        models.update({run.run_id: run.tags.get(ONE, "") for run in running.webserver.runs()})
        at_risk = [models[run_id] for run_id, worker in at_work.items() if worker == KILLED]
        known = [len(list(journal.read(PREDICTIONS, model))) for model in at_risk]
        return len(at_risk) == PLACES and any(count in MIDDLE for count in known)

    wait_for(in_the_middle, 300)
    running.kill(KILLED)
    dead = dead_run_ids(running.journal)
    # What the dead had asked is still being answered for a moment, and not to be counted as asked
    # at the same time as what others ask in their place.
    peak = gateway.most_models, gateway.most_requests
    time.sleep(2 * LATENCY_S)
    gateway.most_models, gateway.most_requests = peak
    hit = [models[run_id] for run_id in dead]
    known = {
        model: {one.prediction_id for one in journal.read(PREDICTIONS, model)} for model in hit
    }
    return Kill(dead, hit, known, Counter(gateway.seen))


def _all_done(running: Cluster, workers: dict[str, str]) -> bool:
    time.sleep(1)  # the webserver needs the processors too
    workers.update(running.at_work())
    done = [run for run in running.webserver.runs() if run.status == "SUCCESS"]
    return {run.tags.get(ONE) for run in done} >= set(MODELS)


def _results(settings: Settings) -> list[Rows]:
    """What people read, but for ids of runs and seconds; sums may differ in their last digits."""
    with duckdb.connect(str(settings.database), read_only=True) as db:
        tables = [db.sql(query).fetchall() for query in RESULTS]
    return [sorted(str([_rounded(cell) for cell in row]) for row in rows) for rows in tables]


def _rounded(cell: object) -> object:
    return round(cell, 9) if isinstance(cell, float) else cell


def _events(running: Cluster, *counts: int) -> dict[int, int]:
    """The rows that runs over so many items leave in Dagster's event log."""
    web = running.webserver
    runs = {
        count: web.start("evaluate", model, mode="FRESH", max_samples=count)
        for count, model in zip(counts, MODELS, strict=False)
    }
    assert [web.ended(run_id) for run_id in runs.values()] == ["SUCCESS"] * len(counts)
    return {
        count: running.count(f"select count(*) from event_logs where run_id = '{run_id}'")
        for count, run_id in runs.items()
    }


def _table(proof: Proof) -> Table:
    kill, planned = proof.kill, len(MODELS) * len(proof.items)
    asked = sum(proof.asked[model, key] for model in MODELS for key in proof.questions.values())
    per_worker = Counter(proof.workers[run.run_id] for run in proof.runs)
    rows: tuple[tuple[Cell, ...], ...] = (
        ("models x items", f"{len(MODELS)} x {len(proof.items)}"),
        ("seconds from the first launch to the last result", proof.seconds),
        *((f"runs on worker {name}", per_worker[name]) for name in (KILLED, LEFT)),
        ("runs killed with their worker", len(kill.run_ids)),
        ("answers of theirs journalled at the kill", sum(map(len, kill.known.values()))),
        ("answers lost", _lost(proof)),
        ("requests to models", asked),
        ("of which asked again, under way at the kill", asked - planned),
        ("of which asked again, answer known", len(_repeated(proof))),
        ("requests to the judge", proof.judge_requests),
        (f"models asked at once, limit {MODELS_AT_ONCE}", proof.most_models),
        (f"requests at once, limit {MODELS_AT_ONCE * AT_ONCE}", proof.most_requests),
        (f"requests to the judge in the busiest {BUSY_S} s, limit {BUSY_S * PER_S}", proof.busiest),
        ("results equal to one process", "yes" if _equal(proof) else "NO"),
        *(
            (f"rows in event_logs of a run over {n} items", rows)
            for n, rows in proof.events.items()
        ),
    )
    return Table("Twelve models, two workers, one killed", ("", "seen"), rows)


def _lost(proof: Proof) -> int:
    kept = {one.prediction_id for one in proof.predictions}
    return sum(len(known - kept) for known in proof.kill.known.values())


def _repeated(proof: Proof) -> list[tuple[str, str]]:
    """Items that were asked again although their answer was known."""
    kill = proof.kill
    known = [
        (one.model, proof.questions[one.item_id])
        for one in proof.predictions
        if one.prediction_id in kill.known.get(one.model, ())
    ]
    return [key for key in known if proof.asked[key] != kill.asked[key]]


def _equal(proof: Proof) -> bool:
    return proof.results == proof.results_of_one_process


def test_no_answer_is_lost_with_its_worker(proof: Proof) -> None:
    answered = Counter((one.model, one.item_id) for one in proof.predictions)
    judged = Counter((one.model, one.item_id) for one in proof.judgements)

    everything = {(model, key.item_id): 1 for model in MODELS for key in proof.items}
    assert _lost(proof) == 0
    assert answered == judged == everything


def test_the_other_worker_goes_on_with_the_runs_of_the_killed_one(proof: Proof) -> None:
    again = {run.tags.get("dagster/parent_run_id"): run for run in proof.runs}

    for run_id in proof.kill.run_ids:
        assert again[run_id].status == "SUCCESS"
        assert proof.workers[again[run_id].run_id] == LEFT
    # Of ours, each model has one run: that which was killed went on.
    assert proof.opened == dict.fromkeys(MODELS, 1)


def test_nothing_is_asked_twice_but_what_was_under_way(proof: Proof) -> None:
    undisturbed = set(MODELS) - set(proof.kill.models)

    assert {count for model in undisturbed for count in proof.times(model)} == {1}
    assert _repeated(proof) == []
    # What was on its way at the kill, or came in the tenth of a second before: no more than two
    # replies of each worker.
    again = [times for model in proof.kill.models for times in proof.times(model).elements()]
    assert sum(again) - len(again) <= 2 * AT_ONCE * len(proof.kill.models)
    verdicts = len(MODELS) * len(proof.items)
    assert 0 <= proof.judge_requests - verdicts <= 2 * AT_ONCE * len(proof.kill.models)


def test_results_are_those_of_a_single_process(proof: Proof) -> None:
    assert all(proof.results_of_one_process)
    for ours, theirs in zip(proof.results, proof.results_of_one_process, strict=True):
        assert ours == theirs


def test_a_gateways_limit_holds_across_workers(proof: Proof) -> None:
    assert proof.most_models == MODELS_AT_ONCE
    assert proof.most_requests <= MODELS_AT_ONCE * AT_ONCE
    # Requests arrive a little earlier or later after each other than they were sent.
    assert proof.busiest <= 1.1 * BUSY_S * PER_S


def test_dagsters_event_log_does_not_grow_with_items(proof: Proof) -> None:
    # A long run tells a few times how far it is.
    assert proof.events[MANY] - proof.events[FEW] <= FEW
