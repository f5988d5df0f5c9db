-- Every measure; what was judged again but changes none of them does not matter.
select count(*), bit_xor(hash(judge_reliability))
from judge_reliability
