-- The benchmark versions that the chosen runs measure.
from benchmark_versions
semi join chosen using (benchmark_version)
