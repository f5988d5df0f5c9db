-- The suites of the leaderboard and their categories.
select suite, category, max(judged) as judged
from leaderboard_slices
where is_official
group by suite, category
order by suite, category nulls first
