"""The statement that counts revenue and buyers over a trailing window of calendar days."""


def rolling_sql(days: int) -> str:
    """One row per shop and calendar day, each looking back over `days` days."""
    if days < 1:
        raise ValueError(f"days must be at least 1, not {days}")
    return f"""
        WITH spans AS (
            SELECT shop, min(sold_at)::DATE AS first_day, max(sold_at)::DATE AS last_day
            FROM sales
            GROUP BY shop
        ),
        calendar AS (
            SELECT
                shop,
                unnest(generate_series(first_day, last_day, INTERVAL 1 DAY))::DATE AS day
            FROM spans
        ),
        per_sale AS (
            SELECT
                c.shop,
                c.day,
                sum(s.amount) OVER lookback AS revenue,
                count(DISTINCT s.customer) OVER lookback AS buyers
            FROM calendar AS c
            LEFT JOIN sales AS s ON s.shop = c.shop AND s.sold_at::DATE = c.day
            WINDOW lookback AS (
                PARTITION BY c.shop ORDER BY c.day ROWS BETWEEN {days - 1} PRECEDING AND CURRENT ROW
            )
        )
        SELECT shop, day, coalesce(max(revenue), 0) AS revenue, max(buyers) AS buyers
        FROM per_sale
        GROUP BY shop, day
        ORDER BY shop, day
    """
