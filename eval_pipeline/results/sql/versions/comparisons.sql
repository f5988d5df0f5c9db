-- All pairs.
select count(*), bit_xor(hash(comparisons))
from comparisons
