-- How often runs failed in which way: by how a reply went wrong, and of those that are wrong by the step at which code
-- failed and by what the failure was classified as. The runs are named by $run_ids and, in the same order, $models; one
-- without failures has no row.
select
    run_id,
    model,
    {
        'no answer': count(*) filter (went = 'no answer'),
        'no verdict': count(*) filter (went = 'no verdict'),
        'wrong': count(*) filter (went = 'wrong')
    } as failed,
    coalesce(histogram(failed_step) filter (went = 'wrong' and failed_step is not null), map {}) as steps,
    coalesce(histogram(classification) filter (classification is not null), map {}) as classifications,
    count(*) filter (went = 'wrong' and classification is null) as unclassified,
    count(*) filter (overridden) as overridden
from failed_replies($run_ids::varchar[], $models::varchar[])
group by run_id, model
