-- Errors that several items of a run failed with: the same line but for numbers, quoted names, paths and addresses.
-- What names the answer that was given ("Answered B where E is expected.") is about that item alone.
with failures as (
    select
        suite || '/' || item_id as item,
        rtrim(trim(extracted_answer), '.') as answer,
        split_part(trim(coalesce(error, reason), E' \t\r\n'), E'\n', 1) as line
    from failed_replies([$run_id], [$model])
    where went = 'wrong' and judge = $judge and judge_version = $judge_version
),
unquoted as (
    select item, regexp_replace(line, '(^|\W)(''[^'']*''|"[^"]*"|`[^`]*`)', '\1…', 'g') as line
    from failures
    where
        case
            -- A long one is no part of a line, and makes no pattern that can be compiled.
            when length(answer) between 1 and 300
                then not regexp_matches(line, '(^|\W)' || regexp_escape(answer) || '(\W|$)')
            else true
        end
),
placeless as (
    select
        item,
        regexp_replace(
            regexp_replace(line, '\b0[xX][0-9a-fA-F]+', '…', 'g'),
            '[\w.@~-]*(/[\w.@~-]+)+|\b[\w-]+\.(py|pyi|js|jsx|ts|tsx|mjs|cjs|json|toml|txt|md|csv)\b', '…', 'g') as line
    from unquoted
),
alike as (
    select item, regexp_replace(line, '(^|[^\w.])-?\d+([.,:]\d+)*', '\1N', 'g') as line
    from placeless
    where regexp_matches(line, '\pL')
)
select
    min(line) as subject,
    count(distinct item) as count,
    (select count(distinct item) from failures) as of,
    list_sort(list(distinct item)) as items,
    [$model] as models
from alike
group by lower(line)
having count(distinct item) >= 2
order by count desc, subject
limit $most
