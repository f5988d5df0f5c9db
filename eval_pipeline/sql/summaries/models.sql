-- Every model of the catalog with how its latest run went, the selected ones first.
with official as (
    select distinct judge, judge_version, true as is_official
    from leaderboard_entries
    where is_official
),
latest as (
    select run_id, model, runs.experiment, runs.scope, opened_at, judged, accuracy, accuracy_low, accuracy_high
    from runs
    left join (from metrics where slice = 'all') counted using (run_id, model)
    left join official using (judge, judge_version)
    qualify row_number() over (
        partition by model
        order by opened_at desc, run_id, is_official nulls last, judged desc, judged_at desc nulls last) = 1
)
select
    model,
    gateway,
    display_name,
    prompt_price,
    completion_price,
    context_length,
    max_output_tokens,
    sees_images,
    selected and listed as selected,
    listed,
    kept_out_because,
    simulated,
    created_at,
    last_seen_at,
    run_id,
    experiment,
    scope,
    opened_at,
    judged,
    accuracy,
    accuracy_low,
    accuracy_high
from model_catalog
left join latest using (model)
order by selected and listed desc, model
