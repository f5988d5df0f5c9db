import warnings

import dagster as dg

# Single-run backfills are in beta since years; the versions are pinned.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
