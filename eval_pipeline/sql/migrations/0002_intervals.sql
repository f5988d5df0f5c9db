-- 95 % intervals for a share, as functions anybody can use in their own queries.
-- Rounding must not put the share itself outside of its interval.
create macro wilson_center(hits, n) as (hits + 1.959963984540054 ** 2 / 2) / (n + 1.959963984540054 ** 2);
create macro wilson_half(hits, n) as
    1.959963984540054 / (n + 1.959963984540054 ** 2) * sqrt(hits * (n - hits) / n + 1.959963984540054 ** 2 / 4);
create macro wilson_low(hits, n) as
    case when n > 0 then greatest(0, least(hits / n, wilson_center(hits, n) - wilson_half(hits, n))) end;
create macro wilson_high(hits, n) as
    case when n > 0 then least(1, greatest(hits / n, wilson_center(hits, n) + wilson_half(hits, n))) end;
create macro wald_half_width(share, n) as
    case when n > 0 then 1.959963984540054 * sqrt(share * (1 - share) / n) end;
