-- A published formula cuts bins between equal confidences, in the order of the data set. What older files have of that
-- order is that their rows were written in it.
alter table plans add column position bigint;
comment on column plans.position is 'The place of the item in the order of the data set, from 1.';
update plans
set position = placed.position
from (select rowid as row, row_number() over (partition by run_id, model order by rowid) as position from plans) as placed
where plans.rowid = placed.row;
