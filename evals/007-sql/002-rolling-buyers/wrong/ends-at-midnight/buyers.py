"""The statement that counts revenue and buyers over a trailing window of calendar days."""


def rolling_sql(days: int) -> str:
    """One row per shop and calendar day, each looking back over `days` days."""
    if days < 1:
        raise ValueError(f"days must be at least 1, not {days}")
    return f"""
        WITH calendar AS (
            SELECT
                shop,
                unnest(generate_series(min(sold_at)::DATE, max(sold_at)::DATE, INTERVAL 1 DAY))
                    ::DATE AS day
            FROM sales
            GROUP BY shop
        )
        SELECT
            c.shop,
            c.day,
            coalesce(sum(s.amount), 0) AS revenue,
            count(DISTINCT s.customer) AS buyers
        FROM calendar AS c
        LEFT JOIN sales AS s
            ON s.shop = c.shop
            AND s.sold_at BETWEEN c.day - INTERVAL {days - 1} DAY AND c.day
        GROUP BY c.shop, c.day
        ORDER BY c.shop, c.day
    """
