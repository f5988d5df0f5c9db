"""Answers of an older benchmark version that need not be asked again, taken over into a new run."""

import logging
from collections.abc import Iterator, Mapping

from eval_pipeline.benchmark import past_items
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, VERSIONS, Journal
from eval_pipeline.records import ItemKey, Judgement, Prediction, Run, fingerprint
from eval_pipeline.runs import latest

log = logging.getLogger(__name__)


def carry_over(
    journal: Journal, run: Run, request_hashes: Mapping[ItemKey, str]
) -> frozenset[ItemKey]:
    """Takes over what was asked in exactly the same way before; says for which items."""
    earlier = next(
        (one for one in journal.read(RUNS, run.model) if one.run_id == run.carry_from), None
    )
    if earlier is None:
        return frozenset()
    known = latest(journal.read(PREDICTIONS, earlier.model, earlier.run_id))
    same = [
        known[key]
        for key, request_hash in request_hashes.items()
        if key in known and known[key].outcome.is_result and known[key].request_hash == request_hash
    ]
    if same:
        _write(journal, run, earlier, same)
        log.info("%s: %d answers are those of run %s", run.model, len(same), earlier.run_id[:8])
    return frozenset(prediction.key for prediction in same)


def _write(journal: Journal, run: Run, earlier: Run, same: list[Prediction]) -> None:
    # The same names and ids each time, so that doing it again after a crash changes nothing.
    name = f"carried-from-{earlier.run_id}"
    ids = {one.prediction_id: fingerprint(one.prediction_id, run.run_id) for one in same}
    journal.write_whole(
        JUDGED,
        run.model,
        run.run_id,
        name,
        records=[
            verdict.model_copy(
                update={"run_id": run.run_id, "prediction_id": ids[verdict.prediction_id]}
            )
            for verdict in _valid_verdicts(journal, run, earlier)
            if verdict.prediction_id in ids
        ],
    )
    journal.write_whole(
        PREDICTIONS,
        run.model,
        run.run_id,
        name,
        records=[
            one.model_copy(
                update={
                    "run_id": run.run_id,
                    "prediction_id": ids[one.prediction_id],
                    "carried_from": one.carried_from or earlier.run_id,
                }
            )
            for one in same
        ],
    )


def _valid_verdicts(journal: Journal, run: Run, earlier: Run) -> Iterator[Judgement]:
    """Scores that would be asked for in the same way: same judge prompt, question and reference."""
    prompts = {one.benchmark_version: one.judge_prompt_hash for one in journal.read(VERSIONS)}
    if prompts[run.benchmark_version] != prompts[earlier.benchmark_version]:
        return
    before = past_items(journal, earlier.benchmark_version)
    unchanged = {
        key
        for key, item in past_items(journal, run.benchmark_version).items()
        if key in before
        and (item.question, item.answer) == (before[key].question, before[key].answer)
    }
    for verdict in journal.read(JUDGED, earlier.model, earlier.run_id):
        if verdict.score is not None and ItemKey(verdict.suite, verdict.item_id) in unchanged:
            yield verdict
