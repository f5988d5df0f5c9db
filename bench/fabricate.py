"""Finished work that nobody did: results of a size that would take hours to ask for.

Run in a project: `python -m bench.fabricate answers MODEL COUNT` fills the model's open run,
`python -m bench.fabricate judged MODEL…` gives each model a run that is answered and judged.
Anywhere: `python -m bench.fabricate warehouse FILE MODELS ITEMS SAMPLES [RUNS]` makes a DuckDB file
that has everything but what is derived.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.records.base import now
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import PlanFilter, Run, Scope
from eval_pipeline.results import build as building
from eval_pipeline.results.schema import create_schema
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark, current

_USAGE = Usage(input_tokens=120, output_tokens=60, cost_usd=3.6e-5)
_THOUGHTS = "First what is given, then what is asked, then how one leads to the other. " * 8

# Every number follows from what it belongs to, so that the same sizes give the same rows. A model
# has a skill, an item a difficulty, and a reply is as likely right, and as sure, as both make it.
_WAREHOUSE = """
create temp macro chance(what, model, item, sample) as hash(what, model, item, sample) / 2.0 ** 64;
create temp macro spread(what, model, item) as
    chance(what, model, item, 1) + chance(what, model, item, 2) + chance(what, model, item, 3)
        - 1.5;
create temp macro share(logit) as 1 / (1 + exp(-(logit)));

insert into items by name
select
    'bench' as suite,
    'fabricated' as suite_version,
    md5('item' || item)[:24] as item_id,
    'What is ' || item || '?' as question,
    if(item % 7 = 3, 'data:image/png;base64,', null) as image,
    '42' as answer,
    if(item % 4 = 1, 'multipleChoice', 'exactMatch') as answer_type,
    'Category ' || (1 + floor(8 * chance('category', 0, item // 5, 0) ** 2)::integer) as category,
    '' as rationale,
    '' as raw_subject,
    'Source ' || item // 5 as cluster
from range(getvariable('items')) numbers(item);

insert into benchmark_versions by name
select
    'fabricated' as benchmark_version, 'bench' as suite, 'fabricated' as suite_version,
    getvariable('items') as items,
    '' as answer_prompt_hash, '' as judge_prompt_hash, 1 as protocol,
    timestamp '2026-01-01' as first_loaded_at, first_loaded_at as last_loaded_at,
    true as is_current, true as is_published;

insert into model_catalog by name
select
    format('vendor{:02}/m{:02}', number % 12 + 1, number) as model, 'bench' as gateway,
    model as request_name, split_part(model, '/', 1) as vendor, split_part(model, '/', 2) as name,
    'Simulated ' || name as display_name,
    true as sees_images, ['text', 'image'] as input_modalities,
    number * 1e-7 as prompt_price, number * 4e-7 as completion_price,
    true as system_role, true as temperature, true as json_schema, true as streaming,
    true as simulated, true as selected, true as listed,
    timestamp '2026-01-01' as first_seen_at, first_seen_at as last_seen_at
from range(1, getvariable('models') + 1) numbers(number);

create temp table repetitions as
select model, number, md5(concat_ws(' ', model, nullif(number, 0)))::uuid::varchar as run_id
from model_catalog
cross join range(getvariable('runs')) numbers(number);

insert into runs by name
select
    run_id, model, 'default' as experiment,
    'fabricated' as benchmark_version, 'full' as scope,
    getvariable('items') as planned, getvariable('samples') as samples,
    '{}' as plan_filter, '{"temperature": 0.7}' as parameters, true as simulated,
    timestamp '2026-01-02' + interval (hash(model) % 86400) second + interval (number) day
        as opened_at
from repetitions;

insert into plans
select
    run_id, model, suite, item_id,
    row_number() over (partition by run_id, model order by item_id) as position
from runs cross join items order by model, item_id;

create temp view replies as
select
    run_id, model, suite, item_id, sample, opened_at, prompt_price, completion_price,
    -- Every further run is as if it were of further samples.
    sample + 100 * number as draw,
    md5(concat_ws(' ', model, item_id, draw))[:16] as prediction_id,
    share(4 * spread('skill', model, 0) - 1 - 3 * spread('difficulty', 0, item_id)
        + 2 * spread('taste', model, item_id)) as likely,
    chance('luck', model, item_id, draw) < likely as is_right,
    chance('fate', model, item_id, draw) < 0.005 as is_refused,
    100 + (400 * chance('asked', 0, item_id, 0))::bigint as input_tokens,
    50 + (3000 * chance('said', model, item_id, draw) ** 3)::bigint as output_tokens,
    0.3 + chance('wait', model, item_id, draw) as first_token_s,
    first_token_s + output_tokens / (40 + 60 * chance('speed', model, '', 0)) as latency_s,
    opened_at + interval (hash(item_id, sample) % 36000) second as finished_at
from runs
join repetitions using (run_id, model)
join model_catalog using (model)
cross join items
cross join range(getvariable('samples')) samples(sample);

insert into predictions by name
select
    prediction_id, run_id, model, suite, item_id, sample,
    if(is_refused, 'refused', 'ok') as outcome,
    true as is_result,
    if(is_right, '42', '41') as answer,
    'stop' as finish_reason,
    input_tokens, output_tokens, output_tokens // 2 as reasoning_tokens,
    round(input_tokens * prompt_price + output_tokens * completion_price, 9) as cost_usd,
    false as cost_estimated,
    latency_s, first_token_s, latency_s - first_token_s as generation_s,
    output_tokens / 2 / (latency_s - first_token_s) as output_tokens_per_s,
    1 as attempts,
    prediction_id as request_hash,
    finished_at
from replies;

insert into judged by name
select
    prediction_id, run_id, model, suite, item_id, sample,
    'vendor01/judge' as judge,
    'fabricated' as judge_version,
    'ok' as outcome,
    (is_right and not is_refused)::integer as score,
    'Compared with the reference.' as reason,
    case when not is_refused and chance('states', model, item_id, sample) < 0.98 then
        round(share(2 * likely - 0.5 + spread('sure', model, item_id || sample)), 2)
    end as confidence,
    input_tokens + 300 as input_tokens,
    60 as output_tokens,
    2e-5 as cost_usd,
    false as cost_estimated,
    1.0 as latency_s,
    (not is_refused)::integer as attempts,
    if(is_refused, null, 'vendor01/judge') as graded_by,
    finished_at + interval 1 minute as finished_at
from replies
"""


def fill_run(journal: Journal, model: str, count: int) -> None:
    """Answers the first items of the plan of the model's only run."""
    (run,) = journal.read(RUNS, model)
    predictions = _predictions(run, run.plan[:count])
    journal.write_whole(PREDICTIONS, model, run.run_id, "fabricated", records=predictions)


def add_judged_run(journal: Journal, benchmark: Benchmark, model: str) -> None:
    """A run over everything, with an answer and a verdict for each item."""
    run = Run(
        run_id=f"fabricated-{fingerprint(model)}",
        model=model,
        experiment="default",
        benchmark_version=benchmark.version.benchmark_version,
        plan=tuple(benchmark.items),
        plan_filter=PlanFilter(),
        scope=Scope.FULL,
        parameters={},
        simulated=True,
        opened_at=now(),
    )
    journal.write_whole(RUNS, model, run.run_id, records=[run])
    name, answers = "fabricated", _predictions(run, run.plan)
    journal.write_whole(PREDICTIONS, model, run.run_id, name, records=answers)
    verdicts = map(_judgement, _predictions(run, run.plan))
    journal.write_whole(JUDGED, model, run.run_id, name, records=verdicts)


def fill_warehouse(path: Path, *, models: int, items: int, samples: int, runs: int = 1) -> None:
    """A new DuckDB file in which every model has answered everything so often, and was judged."""
    sizes = {"models": models, "items": items, "samples": samples, "runs": runs}
    with building._new_file(path, {}) as connection:
        create_schema(connection)
        for name, size in sizes.items():
            connection.execute(f"set variable {name} = {size}")
        connection.execute(_WAREHOUSE)
        connection.execute("checkpoint")


def _predictions(run: Run, plan: Sequence[ItemKey]) -> Iterator[Prediction]:
    finished_at = now()
    for key in plan:
        yield Prediction(
            prediction_id=fingerprint(run.run_id, key.suite, key.item_id),
            run_id=run.run_id,
            model=run.model,
            suite=key.suite,
            item_id=key.item_id,
            outcome=Outcome.OK,
            answer=f"{key.item_id}: {_THOUGHTS} Answer: 42",
            reasoning=_THOUGHTS,
            finish_reason="stop",
            usage=_USAGE,
            latency_s=0.2,
            first_token_s=0.1,
            attempts=1,
            request_hash=fingerprint(key.item_id),
            finished_at=finished_at,
        )


def _judgement(prediction: Prediction) -> Judgement:
    return Judgement(
        prediction_id=prediction.prediction_id,
        run_id=prediction.run_id,
        model=prediction.model,
        suite=prediction.suite,
        item_id=prediction.item_id,
        judge="bench/judge",
        judge_version="fabricated",
        outcome=Outcome.OK,
        score=float(prediction.item_id[-1] in "02468"),
        reason="Compared with the reference.",
        extracted_answer="42",
        confidence=0.8,
        raw_reply=_THOUGHTS,
        usage=_USAGE,
        latency_s=0.2,
        attempts=1,
        finished_at=prediction.finished_at,
    )


def _main(what: str, *rest: str) -> None:
    if what == "warehouse":
        path, *sizes = rest
        models, items, samples, *runs = map(int, sizes)
        fill_warehouse(Path(path), models=models, items=items, samples=samples, runs=(*runs, 1)[0])
        return
    settings = Settings.from_env()
    journal = Journal(settings.journal)
    if what == "answers":
        model, count = rest
        fill_run(journal, model, int(count))
    else:
        benchmark = current(journal, settings)
        for model in rest:
            add_judged_run(journal, benchmark, model)


if __name__ == "__main__":
    _main(*sys.argv[1:])
