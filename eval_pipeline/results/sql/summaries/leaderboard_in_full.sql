-- The leaderboard with all its columns, of each judge the official version, in the order in which it is printed.
select *
from leaderboard
where is_official
order by judge, experiment, scope, rank, model
