-- Rules that the code of several items of a run breaks, by the codes and names that checkers print: ruff and TypeScript
-- (F401, TS2345), mypy (arg-type), eslint (no-debugger, @typescript-eslint/no-explicit-any).
with failures as (
    select run_id, model, prediction_id, judge, judge_version, suite || '/' || item_id as item, failed_step, reason
    from failed_replies([$run_id], [$model])
    where went = 'wrong' and judge = $judge and judge_version = $judge_version
),
said as (
    select item, reason as text from failures where failed_step in ('deploy', 'typecheck', 'lint')
    union all
    select item, concat_ws(E'\n', steps.reason, output)
    from steps
    join failures using (run_id, model, prediction_id, judge, judge_version)
    where status = 'failed' and step in ('deploy', 'typecheck', 'lint')
),
broken as (
    select distinct item, unnest(list_concat(
        regexp_extract_all(text, '(?m)(?:^|:\d+:\d+: )([A-Z]{1,6}\d{3,4})\b', 1),
        regexp_extract_all(text, '\berror (TS\d{3,5})\b', 1),
        regexp_extract_all(text, '(?m)\berror: .*\[([a-z][a-z-]*)\]\s*$', 1),
        regexp_extract_all(text, '(?m):\d+:\d+: .*\((@?[a-z][\w-]*(?:/[\w-]+)*)\)\s*$', 1)
    )) as rule
    from said
)
select
    rule as subject,
    count(*) as count,
    (select count(distinct item) from failures) as of,
    list(item order by item) as items,
    [$model] as models
from broken
where rule <> 'syntax'
group by rule
having count(*) >= 2
order by count desc, subject
limit $most
