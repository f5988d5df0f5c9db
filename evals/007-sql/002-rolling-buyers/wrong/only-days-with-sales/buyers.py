"""The statement that counts revenue and buyers over a trailing window of calendar days."""


def rolling_sql(days: int) -> str:
    """One row per shop and calendar day, each looking back over `days` days."""
    if days < 1:
        raise ValueError(f"days must be at least 1, not {days}")
    return f"""
        SELECT DISTINCT
            shop,
            sold_at::DATE AS day,
            sum(amount) OVER lookback AS revenue,
            count(DISTINCT customer) OVER lookback AS buyers
        FROM sales
        WINDOW lookback AS (
            PARTITION BY shop
            ORDER BY sold_at::DATE
            RANGE BETWEEN INTERVAL {days - 1} DAY PRECEDING AND CURRENT ROW
        )
        ORDER BY shop, day
    """
