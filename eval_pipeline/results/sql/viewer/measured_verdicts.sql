-- Verdicts by judge and outcome; judges beyond the $most with the most verdicts are one.
with names as (
    select judge, if(row_number() over (order by count(*) desc, judge) <= $most, judge, 'other') as name
    from judged
    group by judge
)
select name as judge, outcome, count(*) as value
from judged
join names using (judge)
group by all
order by all
