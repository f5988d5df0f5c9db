import warnings

import dagster as dg

# Dagster warns that `backfill_policy` may change in a later version; ours is pinned.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
