-- scores -> pass_at_k: chances of k out of the scored samples of an item, over all items.
-- Products of shares and not quotients of factorials, which would overflow.
insert into pass_at_k by name
with drawn as (
    select slice_id, scored, passed, mean_score, items, unnest(range(1, scored + 1)) as k
    from score_counts
    join slices using (slice_id)
    join gradings using (grading)
    where samples > 1 and slice <> 'input'
),
chances as (
    select
        *,
        1 - list_product([greatest(scored - passed - earlier, 0) / (scored - earlier) for earlier in range(k)])
            as at_k,
        list_product([greatest(passed - earlier, 0) / (scored - earlier) for earlier in range(k)]) as hat_k
    from drawn
),
means as (
    select
        slice_id,
        k,
        sum(items)::bigint as items,
        sum(items * at_k order by scored, passed, mean_score) / sum(items) as pass_at_k,
        sum(items * hat_k order by scored, passed, mean_score) / sum(items) as pass_hat_k
    from chances
    group by slice_id, k
),
spreads as (
    select
        slice_id,
        k,
        sum(chances.items * (at_k - pass_at_k) ** 2 order by scored, passed, mean_score) as at_k_squares,
        sum(chances.items * (hat_k - pass_hat_k) ** 2 order by scored, passed, mean_score) as hat_k_squares
    from chances
    join means using (slice_id, k)
    group by slice_id, k
)
select
    run_id,
    model,
    judge,
    judge_version,
    slice,
    suite,
    category,
    k,
    items,
    pass_at_k,
    case when items > 1 then sqrt(at_k_squares / (items - 1) / items) end as pass_at_k_se,
    pass_hat_k,
    case when items > 1 then sqrt(hat_k_squares / (items - 1) / items) end as pass_hat_k_se
from means
join spreads using (slice_id, k)
join slices using (slice_id)
join gradings using (grading)
order by slice_id, k
