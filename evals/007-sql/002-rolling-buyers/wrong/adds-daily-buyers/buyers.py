"""The statement that counts revenue and buyers over a trailing window of calendar days."""


def rolling_sql(days: int) -> str:
    """One row per shop and calendar day, each looking back over `days` days."""
    if days < 1:
        raise ValueError(f"days must be at least 1, not {days}")
    return f"""
        WITH daily AS (
            SELECT
                shop,
                sold_at::DATE AS day,
                sum(amount) AS revenue,
                count(DISTINCT customer) AS buyers
            FROM sales
            GROUP BY shop, sold_at::DATE
        ),
        calendar AS (
            SELECT shop, unnest(generate_series(min(day), max(day), INTERVAL 1 DAY))::DATE AS day
            FROM daily
            GROUP BY shop
        )
        SELECT
            c.shop,
            c.day,
            coalesce(sum(d.revenue) OVER lookback, 0) AS revenue,
            coalesce(sum(d.buyers) OVER lookback, 0)::BIGINT AS buyers
        FROM calendar AS c
        LEFT JOIN daily AS d ON d.shop = c.shop AND d.day = c.day
        WINDOW lookback AS (
            PARTITION BY c.shop ORDER BY c.day ROWS BETWEEN {days - 1} PRECEDING AND CURRENT ROW
        )
        ORDER BY c.shop, c.day
    """
