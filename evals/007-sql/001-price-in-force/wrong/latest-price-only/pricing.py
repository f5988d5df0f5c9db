"""The statement that prices order lines at the moment they were ordered."""


def invoice_sql() -> str:
    """One row per order line, with the price in force when it was ordered."""
    return """
        WITH latest AS (
            SELECT product, effective_at, unit_price
            FROM price_changes
            QUALIFY row_number() OVER (PARTITION BY product ORDER BY effective_at DESC) = 1
        )
        SELECT
            l.line_id,
            CASE
                WHEN p.product IS NULL THEN 'unknown'
                WHEN p.unit_price IS NULL THEN 'withdrawn'
                ELSE 'priced'
            END AS status,
            p.unit_price,
            l.quantity * p.unit_price AS total
        FROM order_lines AS l
        LEFT JOIN latest AS p ON p.product = l.product AND p.effective_at <= l.ordered_at
        ORDER BY l.line_id
    """
