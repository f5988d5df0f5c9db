-- How far verdicts agree that are right or wrong, from their counts. What can not be computed from them is NULL.

-- The share of the commoner verdict: what one agrees with by always giving that verdict.
create or replace temp macro base_rate(wrong, correct) as greatest(wrong, correct) / nullif(wrong + correct, 0);

-- Cohen's kappa, from the replies that both call correct, that only one or the other does, and that neither does:
-- agreement of two judges beyond chance. NULL if both gave one and the same verdict only.
create or replace temp macro cohens_kappa(both_correct, one_correct, other_correct, both_wrong) as
    2 * (both_correct * both_wrong - one_correct * other_correct)
    / nullif(
        (both_correct + one_correct) * (one_correct + both_wrong)
        + (both_correct + other_correct) * (other_correct + both_wrong), 0);

-- The others are aggregates over the counts that occur, each of them in so many replies, all judged at least twice.
-- How many do not always have the same verdict, and their share:
create or replace temp macro flickering(wrong, correct, items) as
    coalesce(sum(items) filter (wrong > 0 and correct > 0), 0);

create or replace temp macro flicker_rate(wrong, correct, items) as flickering(wrong, correct, items) / sum(items);

-- The chance that two verdicts on a reply differ.
create or replace temp macro pairwise_disagreement(wrong, correct, items) as
    sum(items * (2 * wrong * correct / ((wrong + correct) * (wrong + correct - 1))) order by wrong, correct) / sum(items);

-- Krippendorff's alpha: agreement of any number of judges beyond chance. NULL if all verdicts are the same.
create or replace temp macro krippendorffs_alpha(wrong, correct, items) as
    1 - sum(items * (2 * wrong * correct / (wrong + correct - 1)) order by wrong, correct)
    * (sum(items * (wrong + correct)) - 1)
    / nullif(2 * sum(items * wrong) * sum(items * correct), 0)
