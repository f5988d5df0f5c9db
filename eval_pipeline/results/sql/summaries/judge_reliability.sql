-- The measures of judges, with whether a judge is a simulated one, in the order in which they are read.
with simulations as (
    select unnest([model, 'rules+' || model]) as judge
    from model_catalog
    where simulated
)
select
    judge_reliability.*,
    judge in (from simulations) as simulated,
    coalesce(other_judge in (from simulations), false) as other_simulated
from judge_reliability
order by
    list_position(['repeats', 'between judges', 'people', 'own family'], measure),
    judge = 'all judges',
    judge,
    judge_version,
    other_judge,
    labeller nulls first
