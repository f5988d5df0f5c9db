-- the counts of judges.sql -> judge_reliability
insert into judge_reliability by name
with repeats as (
    select
        'repeats' as measure,
        judge,
        judge_version,
        sum(items) as items,
        sum(items * (wrong + correct)) as verdicts,
        sum(items * correct) / sum(items * (wrong + correct)) as rate_correct,
        base_rate(sum(items * wrong), sum(items * correct)) as base_rate,
        flicker_rate(wrong, correct, items) as flicker_rate,
        wilson_low(flickering(wrong, correct, items), sum(items)) as flicker_low,
        wilson_high(flickering(wrong, correct, items), sum(items)) as flicker_high,
        pairwise_disagreement(wrong, correct, items) as pairwise_disagreement
    from repeat_units
    group by judge, judge_version
),
pairs as (
    select
        'between judges' as measure,
        judge,
        judge_version,
        other_judge,
        other_judge_version,
        both_correct + one_correct + other_correct + both_wrong as items,
        2 * items as verdicts,
        (both_correct + one_correct) / items as rate_correct,
        (both_correct + other_correct) / items as other_rate_correct,
        (both_correct + both_wrong) / items as agreement,
        base_rate(
            2 * both_wrong + one_correct + other_correct, 2 * both_correct + one_correct + other_correct) as base_rate,
        cohens_kappa(both_correct, one_correct, other_correct, both_wrong) as kappa
    from judge_pairs
),
all_judges as (
    select
        'between judges' as measure,
        'all judges' as judge,
        sum(items) as items,
        sum(items * (wrong + correct)) as verdicts,
        sum(items * correct) / sum(items * (wrong + correct)) as rate_correct,
        base_rate(sum(items * wrong), sum(items * correct)) as base_rate,
        krippendorffs_alpha(wrong, correct, items) as alpha
    from judge_units
    having count(*) > 0
),
-- Positive is what is correct.
people as (
    select
        'people' as measure,
        judge,
        judge_version,
        labeller,
        tp + fp + tn + fn as items,
        items as verdicts,
        (tp + fp) / items as rate_correct,
        (tp + fn) / items as other_rate_correct,
        (tp + tn) / items as agreement,
        base_rate(tn + fp, tp + fn) as base_rate,
        cohens_kappa(tp, fn, fp, tn) as kappa,
        tp,
        fp,
        tn,
        fn,
        tp / nullif(tp + fn, 0) as tpr,
        wilson_low(tp, tp + fn) as tpr_low,
        wilson_high(tp, tp + fn) as tpr_high,
        tn / nullif(tn + fp, 0) as tnr,
        wilson_low(tn, tn + fp) as tnr_low,
        wilson_high(tn, tn + fp) as tnr_high
    from people_counts
),
families as (
    select
        'own family' as measure,
        judge,
        judge_version,
        models,
        items,
        items as verdicts,
        correct / items as rate_correct,
        other_rate as other_rate_correct,
        shared_items,
        shared_correct / nullif(shared_items, 0) as shared_rate_correct,
        concat(
            judge, ' grades models of its own family (', array_to_string(models[:5], ', '),
            if(len(models) > 5, format(' and {} more', len(models) - 5), ''),
            if(simulated, '; all simulated', ''), '): ',
            if(
                other_rate is null, 'no judge of another family has graded the same replies',
                format(
                    'on {} replies it says correct in {:.1f}%, judges of other families in {:.1f}%',
                    shared_items, 100 * shared_rate_correct, 100 * other_rate)),
            '.') as warning
    from family_counts
),
measures as (
    from repeats
    union all by name from pairs
    union all by name from all_judges
    union all by name from people
    union all by name from families
)
from measures
order by measure, judge, judge_version, other_judge, labeller nulls first
