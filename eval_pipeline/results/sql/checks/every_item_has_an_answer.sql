-- Items of the current data set that can not be graded.
select suite, item_id, 'no reference answer' as problem
from dataset
where trim(answer) = ''
union all
select suite, item_id, 'the reference is no option letter'
from dataset
where answer_type = 'multipleChoice' and not regexp_matches(trim(answer), '^[A-Z]$')
order by suite, item_id
