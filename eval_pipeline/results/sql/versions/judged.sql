-- Every verdict that stands, by whom, and what it says.
select count(*), bit_xor(hash(run_id, prediction_id, judge, judge_version, outcome, score))
from judged
