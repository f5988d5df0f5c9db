-- For each model and task, the scores with the guidelines (usual) and under a variation of them (varied), and why
-- there are none to compare. A run is known by all that was asked in it, so that nothing else is mixed in.
with planned as (
    select run_id, model, list_sort(list(concat_ws('/', suite, item_id))) as plan
    from plans
    where list_contains($models, model)
    group by run_id, model
),
asked as (
    select
        run_id, model, opened_at,
        experiment = $usual_experiment and json_extract_string(parameters, 'coding_prompt_hash') = $usual_hash as is_usual,
        experiment = $varied_experiment and json_extract_string(parameters, 'coding_prompt_hash') = $varied_hash as is_varied,
        json_merge_patch(parameters, '{"coding_prompt_hash": null}') as otherwise
    from runs
    join planned using (run_id, model)
    where plan = $plan
        and samples = $samples
        and benchmark_version in (select benchmark_version from benchmark_versions where is_current)
),
pairs as (
    select model, usual.run_id as usual_run, varied.run_id as varied_run
    from (from asked where is_usual) usual
    -- Asked differently in any other way too, they could differ for that reason.
    left join (from asked where is_varied) varied using (model, otherwise)
    qualify row_number() over (
        partition by model
        order by usual.opened_at desc, usual.run_id, varied.opened_at desc nulls last, varied.run_id) = 1
),
replies as (
    select run_id, model, concat_ws('/', suite, item_id) as item, sample, is_result, attempts, input_tokens
    from predictions
    where list_contains($models, model) and sample < $samples
),
answered as (
    select run_id, model, item, bool_or(is_result) as is_result
    from replies
    group by run_id, model, item
),
scored as (
    select
        run_id, model, concat_ws('/', suite, item_id) as item, judge, judge_version,
        (sum(score::decimal(18, 12)) / count(*))::double as score,
        max(finished_at) as judged_at
    from judged
    where list_contains($models, model) and score is not null and sample < $samples
    group by all
),
-- Both by the same judge in the same version; of several, by the one last at work.
scores as (
    select pairs.model, usual.item, usual.score as usual_score, varied.score as varied_score
    from pairs
    join scored usual on usual.run_id = usual_run and usual.model = pairs.model
    join scored varied on varied.run_id = varied_run and varied.model = pairs.model
        and varied.item = usual.item
        and varied.judge = usual.judge
        and varied.judge_version = usual.judge_version
    qualify row_number() over (
        partition by pairs.model, usual.item
        order by greatest(usual.judged_at, varied.judged_at) desc, usual.judge, usual.judge_version) = 1
),
-- A request that was repeated has the tokens of all attempts.
tokens as (
    select pairs.model, usual.item, avg(usual.input_tokens - varied.input_tokens) as tokens
    from pairs
    join replies usual on usual.run_id = usual_run and usual.model = pairs.model
    join replies varied on varied.run_id = varied_run and varied.model = pairs.model
        and varied.item = usual.item
        and varied.sample = usual.sample
    where usual.is_result and varied.is_result and usual.attempts = 1 and varied.attempts = 1
    group by all
),
wanted as (
    select model, unnest($plan) as item
    from (select unnest($models) as model)
)
select
    wanted.model,
    wanted.item,
    usual_run,
    varied_run,
    case
        when usual_score is not null then 'compared'
        when usual.is_result is null or varied.is_result is null then 'not asked'
        when not usual.is_result or not varied.is_result then 'no answer'
        else 'not graded'
    end as state,
    usual_score,
    varied_score,
    tokens
from wanted
left join pairs using (model)
left join answered usual on usual.run_id = usual_run and usual.model = wanted.model and usual.item = wanted.item
left join answered varied on varied.run_id = varied_run and varied.model = wanted.model and varied.item = wanted.item
left join scores on scores.model = wanted.model and scores.item = wanted.item
left join tokens on tokens.model = wanted.model and tokens.item = wanted.item
order by wanted.model, wanted.item
