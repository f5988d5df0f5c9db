-- the measures as they were computed from the counts of judges.sql -> judge_reliability
insert into judge_reliability
select *
from judge_measures
order by measure, judge, judge_version, other_judge, labeller nulls first
