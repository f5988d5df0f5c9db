-- What went wrong with one item in one run, sample by sample.
select *
from failed_replies([$run_id], [$model])
where suite = $suite and item_id = $item_id
order by sample
