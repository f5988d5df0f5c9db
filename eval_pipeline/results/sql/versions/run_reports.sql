-- What is known of every failure, and whose word it is.
select count(*), bit_xor(hash(failure_analysis))
from failure_analysis
