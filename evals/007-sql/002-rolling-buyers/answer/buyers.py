"""The statement that counts revenue and buyers over a trailing window of calendar days."""


def rolling_sql(days: int) -> str:
    """One row per shop and calendar day, each looking back over `days` days."""
    if days < 1:
        raise ValueError(f"days must be at least 1, not {days}")
    return f"""
        WITH spans AS (
            SELECT
                shop,
                min(sold_at)::DATE AS first_day,
                max(sold_at)::DATE AS last_day
            FROM sales
            GROUP BY shop
        ),
        calendar AS (
            SELECT
                shop,
                unnest(generate_series(first_day, last_day, INTERVAL 1 DAY))::DATE AS day
            FROM spans
        )
        SELECT
            c.shop,
            c.day,
            coalesce(sum(s.amount), 0) AS revenue,
            count(DISTINCT s.customer) AS buyers
        FROM calendar AS c
        LEFT JOIN sales AS s
            ON s.shop = c.shop
            AND s.sold_at::DATE BETWEEN c.day - {days - 1} AND c.day
        GROUP BY c.shop, c.day
        ORDER BY c.shop, c.day
    """
