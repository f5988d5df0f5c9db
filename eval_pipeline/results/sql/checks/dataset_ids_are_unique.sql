-- Items of the current data set whose id is not unique in its suite.
select suite, item_id, count(*) as times
from dataset
group by suite, item_id
having count(*) > 1
order by suite, item_id
