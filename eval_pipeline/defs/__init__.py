import warnings

import dagster as dg

# Dagster warns of what may change in a later version; ours is pinned.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
