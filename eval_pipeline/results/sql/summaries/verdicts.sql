-- How judging went: the verdicts on the latest run of each model (of $models, if any are named) and experiment, by
-- each judge in the version last at work.
with latest as (
    select run_id, model
    from runs
    join (select distinct benchmark_version from benchmark_versions where is_current) using (benchmark_version)
    where len($models::varchar[]) = 0 or list_contains($models::varchar[], model)
    qualify row_number() over (partition by model, experiment order by opened_at desc) = 1
),
judges as (
    select run_id, model, judge, judge_version
    from latest
    join judged using (run_id, model)
    qualify row_number() over (partition by run_id, model, judge order by finished_at desc, judge_version) = 1
),
verdicts as (
    select judged.*
    from judges
    join judged using (run_id, model, judge, judge_version)
),
ended as (
    select
        outcome,
        count(*) as verdicts,
        array_to_string(min(model || ' ' || suite || '/' || item_id, 3) filter (outcome <> 'ok'), ', ') as examples,
        mode(left(reason, 200) order by reason) filter (outcome <> 'ok') as reason
    from verdicts
    group by outcome
),
outcomes as (
    select
        coalesce(map_from_entries(list((outcome, verdicts) order by outcome)), map {}) as outcomes,
        coalesce(list({outcome: outcome, verdicts: verdicts, examples: examples, reason: reason}
            order by verdicts desc, outcome) filter (outcome <> 'ok'), []) as failures
    from ended
),
counted as (
    select
        count(distinct (run_id, model)) as runs,
        count(score) as scored,
        count(*) - count(score) as unscored,
        -- What failed without a word about what it used is free, as in metrics.
        count(*) filter (
            cost_usd is null and attempts > 0
            and (score is not null or input_tokens is not null or output_tokens is not null)) as costs_unknown,
        coalesce(sum(cost_usd), 0) as cost_known_usd,
        if(costs_unknown = 0, cost_known_usd, null) as cost_usd,
        sum(input_tokens) as input_tokens,
        sum(output_tokens) as output_tokens,
        quantile_cont(latency_s, 0.5) filter (attempts > 0) as latency_p50_s,
        quantile_cont(latency_s, 0.95) filter (attempts > 0) as latency_p95_s
    from verdicts
)
select *
from counted, outcomes
