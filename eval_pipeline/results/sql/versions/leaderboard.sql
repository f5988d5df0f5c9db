-- All entries, of older versions of judges too.
select count(*), bit_xor(hash(leaderboard))
from leaderboard
