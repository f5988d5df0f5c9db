"""The statement that prices order lines at the moment they were ordered."""


def invoice_sql() -> str:
    """One row per order line, with the price in force when it was ordered."""
    return """
        WITH in_force AS (
            SELECT
                l.line_id,
                l.quantity,
                count(p.product) AS changes,
                arg_max(p.unit_price, p.effective_at) AS unit_price
            FROM order_lines AS l
            LEFT JOIN price_changes AS p
                ON p.product = l.product AND p.effective_at <= l.ordered_at
            GROUP BY l.line_id, l.quantity
        )
        SELECT
            line_id,
            CASE
                WHEN changes = 0 THEN 'unknown'
                WHEN unit_price IS NULL THEN 'withdrawn'
                ELSE 'priced'
            END AS status,
            unit_price,
            quantity * unit_price AS total
        FROM in_force
        ORDER BY line_id
    """
