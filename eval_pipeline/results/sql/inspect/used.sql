-- When one run was at work and what it has used.
select
    min(finished_at - to_microseconds((coalesce(latency_s, 0) * 1e6)::bigint)) as began_at,
    greatest(max(finished_at), (
        select max(finished_at) from judged where run_id = $run_id and model = $model)) as ended_at,
    coalesce(sum(input_tokens), 0)::bigint as input_tokens,
    coalesce(sum(output_tokens), 0)::bigint as output_tokens,
    sum(reasoning_tokens)::bigint as reasoning_tokens,
    sum(cached_tokens)::bigint as cached_tokens,
    case when count(*) filter (is_result and cost_usd is null) = 0 then sum(cost_usd) end as cost_usd
from predictions
where run_id = $run_id and model = $model
