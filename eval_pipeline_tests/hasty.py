"""The stages of `child`, with leases that expire within seconds: python -m …hasty MODEL RUN."""

import sys

from eval_pipeline.store import courier, leases
from eval_pipeline_tests import child

leases.EXPIRES_S, leases.GIVE_UP_S, leases.RENEW_EVERY_S = 4.0, 3.0, 0.3
courier.UPLOAD_EVERY_S = courier.ASK_AGAIN_S = 0.2

if __name__ == "__main__":
    child.main(*sys.argv[1:])
