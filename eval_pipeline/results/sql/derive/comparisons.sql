-- entries -> comparisons: one row per pair of entries that can be compared.
insert into comparisons by name
select
    benchmark_version,
    a.judge,
    a.judge_version,
    if(a.experiment = b.experiment, 'models', 'experiments') as family,
    a.experiment as experiment_a,
    b.experiment as experiment_b,
    a.model as model_a,
    b.model as model_b,
    a.run_ids as run_ids_a,
    b.run_ids as run_ids_b,
    items,
    accuracy_a,
    accuracy_b,
    difference,
    difference_low,
    difference_high,
    bootstrap_low,
    bootstrap_high,
    standard_error,
    standard_error_clustered,
    better,
    worse,
    if(exact_mcnemar, 'mcnemar', 'sign_flip') as test,
    p_value,
    p_adjusted,
    p_adjusted < 0.05 as significant,
    pairs,
    detectable
from compared
join entries a on a.entry = entry_a
join entries b on b.entry = entry_b
cross join (select distinct benchmark_version from benchmark_versions where is_published)
order by entry_a, entry_b
