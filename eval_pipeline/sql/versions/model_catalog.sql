-- Who is selected, at which prices and with which abilities; not when they were seen.
select count(*), bit_xor(hash(chosen))
from (select * exclude (first_seen_at, last_seen_at) from model_catalog where selected) chosen
