-- Models that were selected and are no longer listed, for 30 days from when they were seen last.
with asked as (
    select gateway, max(last_seen_at) as asked_at
    from model_catalog
    group by gateway
)
select model, gateway, last_seen_at
from model_catalog
join asked using (gateway)
where selected and not listed and last_seen_at > asked_at - interval 30 days
order by model
