"""Turns conditions into a DuckDB expression that is true or false for every row."""

Scalar = str | int | float | bool | None
Condition = tuple[str, str, Scalar | list[Scalar]]

TEMPLATES = {
    "=": "{} IS NOT DISTINCT FROM ?",
    "!=": "{} IS DISTINCT FROM ?",
    "<": "coalesce({} < ?, false)",
    ">": "coalesce({} > ?, false)",
    "contains": "coalesce(contains({}, ?), false)",
}


def where(conditions: list[Condition]) -> tuple[str, list[Scalar]]:
    """The expression that all conditions hold, and the parameters of its placeholders."""
    parts: list[str] = []
    parameters: list[Scalar] = []
    for column, operator, value in conditions:
        name = '"' + column.replace('"', '""') + '"'
        if operator in ("in", "not in") and isinstance(value, list):
            marks = ", ".join("?" for _ in value)
            within = f"coalesce({name} IN ({marks}), false)" if value else "false"
            parts.append(within if operator == "in" else f"NOT {within}")
            parameters.extend(value)
        elif operator in TEMPLATES and not isinstance(value, list):
            parts.append(TEMPLATES[operator].format(name))
            parameters.append(value)
        else:
            raise ValueError(f"unknown operator: {operator}")
    return " AND ".join(parts) or "true", parameters
